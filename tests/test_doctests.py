"""Runs the examples in the docstrings of every module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import stacl

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(stacl.__path__, "stacl.")
    if module.name.rpartition(".")[2] != "__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False)
    for examples in finder.find(module, name):
        said: list[str] = []
        runner.run(examples, out=said.append)
        assert not said, "".join(said)


def test_examples_are_found() -> None:
    """Without this, a search that finds nothing would pass."""
    finder = doctest.DocTestFinder()
    count = sum(
        bool(examples.examples) for name in MODULES for examples in finder.find(importlib.import_module(name), name)
    )
    assert len(MODULES) > 50
    assert count > 30
