"""docs/adding.md, executed: each of its files, put into its folder, works without another line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^## An? [a-z]+: `(stacl/[\w/]+\.py)`\n\n```python\n(.*?)^```$", PAGE, flags=re.M | re.S))
# The folder of a new file is added to its package, as if the file lay in it.
PROGRAM = """
import importlib, sys
importlib.import_module({package!r}).__path__.append({folder!r})
from stacl.__main__ import main
{code}
"""
EXAMPLES = {
    "stacl/policies/every_other.py": ("main(['show', 'every-other', '--src', '5', '--tgt', '3'])", "2 4 5"),
    "stacl/metrics/first_delay.py": ("main(['score', sys.argv[1]])", "FirstDelay"),
    "stacl/corpora/doubled.py": ("main(['data', 'doubled'])", "every word twice"),
    "stacl/decoding/constraints/no_question_marks.py": (
        "import stacl; t = stacl.load('de-en'); print(*[t.translate('Wie geht es dir?', decoding=d) for d in ("
        "stacl.Decoding(constraints=('no-question-marks',)), stacl.Decoding(constraints=()))], sep='|')",
        "?\n",
    ),
    "stacl/commands/hello.py": ("main(['hello', 'Anna'])", "Hello Anna"),
}


def test_every_file_of_the_page_is_executed() -> None:
    assert FILES.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("file", EXAMPLES)
def test_a_new_file_is_all_it_takes(file: str, tmp_path: Path) -> None:
    code, expected = EXAMPLES[file]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / Path(file).name).write_text(FILES[file], encoding="utf-8")
    (tmp_path / "paths.txt").write_text("RRWRWW\n", encoding="utf-8")
    package = file.removesuffix(".py").replace("/", ".").rpartition(".")[0]
    program = PROGRAM.format(package=package, folder=str(tmp_path / "new"), code=code)
    command = [sys.executable, "-c", program, str(tmp_path / "paths.txt")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    if "question" in file:
        without, free = done.stdout.split("|")
        assert "?" in free
        assert "?" not in without
