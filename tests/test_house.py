"""The structure of the package: layers, sizes, unique class names, and a docstring for every sub-package."""

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
PACKAGES = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_package_imports_only_from_lower_layers() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_documents_its_purpose_and_imports(package: Path) -> None:
    docstring = ast.get_docstring(tree(package / "__init__.py")) or ""
    assert len(docstring.split()) >= 15
    assert "import" in docstring


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


def test_class_names_are_unique() -> None:
    names = Counter(node.name for path in MODULES for node in tree(path).body if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_only_the_run_folder_names_its_files() -> None:
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
