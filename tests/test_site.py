"""The documentation site builds without a warning: every link and anchor leads somewhere, and nothing is fetched."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        "mkdocs.yml",
        "--site-dir",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^(WARNING|ERROR)", done.stderr, flags=re.M), done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "experiments" / "log").glob("*.md")]
    for page in pages:
        name = page.relative_to(ROOT / "docs" if page.parent.name == "docs" else ROOT).with_suffix("")
        built = site / "index.html" if page.stem == "index" else site / name / "index.html"
        assert built.is_file(), page


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link[^>]*rel=\"stylesheet\"[^>]*href=\"([^\"]+)\"", text)
        loaded += re.findall(r"<link[^>]*href=\"([^\"]+)\"[^>]*rel=\"stylesheet\"", text)
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page


def test_the_python_reference_has_the_public_names(site: Path) -> None:
    import stacl

    text = (site / "reference" / "index.html").read_text(encoding="utf-8")
    assert [name for name in stacl.__all__ if not name.startswith("_") and name not in text] == []
