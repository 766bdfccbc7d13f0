"""MkDocs hook: adds pages outside docs/ to the site and rewrites the links to them."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md", "experiments/**/*.md", "experiments/*.png")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of OUTSIDE under their paths in the repository."""
    for path in sorted(found for pattern in OUTSIDE for found in ROOT.glob(pattern)):
        uri = path.relative_to(ROOT).as_posix()
        file = File.generated(config, uri, abs_src_path=str(path))
        if uri.startswith(("experiments/log/", "experiments/everyday/")):
            file.inclusion = file.inclusion.NOT_IN_NAV  # linked from the index of the log
        files.append(file)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links: docs/ is a folder in the repository and the root of the site."""
    if page.file.generated_by:
        return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1", markdown)
    return markdown.replace("](../", "](")
