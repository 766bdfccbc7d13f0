"""The wheel holds every module of the package, and works where only its light dependencies are."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("stacl-*.whl")
    return built


def test_it_holds_the_whole_package(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "stacl").rglob("*.py")}
    assert ours <= inside
    assert "stacl/py.typed" in inside
    assert not [name for name in inside if name.startswith(("tests/", "benchmarks/", "runs/"))]


def test_it_scores_without_torch(wheel: Path, tmp_path: Path) -> None:
    """Unpacked by itself, with torch, sentencepiece and the rest of the heavy install made unimportable."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    (tmp_path / "paths.txt").write_text("RRWRWW\nRWRWRW\n")
    program = (
        "import sys\n"
        "for name in ('torch', 'sentencepiece', 'safetensors', 'rjieba', 'matplotlib', 'onnxruntime', 'tomli_w'):\n"
        "    sys.modules[name] = None\n"
        "from stacl.__main__ import main\n"
        "import stacl; assert stacl.__file__.startswith(sys.argv[1]), stacl.__file__\n"
        "assert main(['train', sys.argv[2], '--out', sys.argv[1] + '/run']) == 2\n"
        "sys.exit(main(['score', sys.argv[1] + '/paths.txt']) or main(['show', 'wait-k:2']))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(ROOT / "configs" / "toy.toml")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "AL           1.500" in done.stdout
    assert "pip install 'stacl[train]'" in done.stderr
