"""What tests need of the system: a real browser for the page, and a font with Chinese characters for pictures.

`python -m tests.browser`, which `make test` calls, installs what is missing where it can: as root on Debian.
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


def chinese_font() -> bool:
    """Whether a font with Chinese characters is installed."""
    from stacl.plots import base

    base.prepare([])
    return base.find_cjk_font() is not None


def install() -> None:
    """Debian's packages, if this is Debian or derived from it, and we are root."""
    missing = [name for name, found in (("chromium", chromium()), ("fonts-noto-cjk", chinese_font())) if not found]
    if missing and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {' and '.join(missing)} for the tests", flush=True)
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            # A failure is reported by the tests that need the package.
            subprocess.run(["apt-get", "--quiet=2", *command], check=False, stdout=subprocess.DEVNULL)
    print(f"browser for the tests of the page: {chromium() or MISSING}")


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
