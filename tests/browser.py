"""A real browser for tests of the page. Without one they are skipped, but never in CI: there they fail.

`python -m tests.browser`, which `make test` calls, looks for one, and installs Debian's where there is none and it may.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = f"no browser: install chromium, or name one in STACL_CHROMIUM (looked for {', '.join(NAMES)})"


def chromium() -> str | None:
    """The path of a Chromium or Chrome: STACL_CHROMIUM, or the first of the usual names."""
    return next(filter(None, map(shutil.which, (os.environ.get("STACL_CHROMIUM", ""), *NAMES))), None)


def install() -> None:
    """Debian's Chromium, if this is Debian or a child of it, and we may install."""
    if chromium() is None and shutil.which("apt-get") and os.geteuid() == 0:
        print("installing chromium, for the tests of the page", flush=True)
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            # A failure is told by the tests that find no browser.
            subprocess.run(["apt-get", "--quiet=2", *command], check=False, stdout=subprocess.DEVNULL)
    print(f"browser for the tests of the page: {chromium() or MISSING}")


# In CI a test without its browser runs, and fails where it asks for one.
requires_browser = pytest.mark.skipif(chromium() is None and os.environ.get("CI") != "true", reason=MISSING)


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """A headless browser; `browser.new_page()` is a tab without history or cookies.

    Pytest's event loop must not run: use it in plain tests, as the fixture `browser` of tests/server/conftest.py.
    """
    binary = chromium()
    if binary is None:
        pytest.fail(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"], timeout=180_000)
        try:
            yield browser
        finally:
            browser.close()


if __name__ == "__main__":
    install()
