"""The shape of the package: layers, sizes, one class a name, and a word on the door of every room."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "stacl"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_room_imports_only_from_below() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_every_room_says_what_it_is_for_and_may_import(room: Path) -> None:
    said = ast.get_docstring(tree(room / "__init__.py")) or ""
    assert len(said.split()) >= 15
    assert "import" in said


def test_no_module_has_more_than_300_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > 300} == {}


def test_no_function_has_more_than_60_lines() -> None:
    functions = (
        (path.name, node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [function for function in functions if function[2] > 60] == []


def test_no_two_classes_have_one_name() -> None:
    names = Counter(node.name for path in MODULES for node in tree(path).body if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_only_the_run_folder_spells_its_files() -> None:
    spelled = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in ("config.toml", "model.safetensors")
    }
    assert spelled <= {"runs/folder.py", "runs/pretrained/__init__.py"}


@pytest.mark.parametrize("code", ["import stacl", "import stacl.__main__ as main; main.build_parser()"])
def test_importing_and_the_help_load_nothing_heavy(code: str) -> None:
    heavy = "torch", "onnxruntime", "matplotlib", "sentencepiece", "starlette", "langcodes", "tqdm"
    seen = f"{code}; import sys; print(*[name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", seen], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr + done.stdout
