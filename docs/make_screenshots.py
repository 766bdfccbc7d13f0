"""Take the screenshots for the README: `python -m docs.make_screenshots [MODEL]`, in the repository root.

Starts a server with the model (a shipped one or NAME=FOLDER) and opens the page in headless Chromium.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from tests.browser import open_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).with_name("screenshots")
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
CAPTIONS = {"width": 1280, "height": 200}
SHOWN = 9  # source words, in the middle of the sentence
TIMEOUT = 60_000  # milliseconds


@contextlib.contextmanager
def serving(model: str) -> Iterator[str]:
    """The address of a server with this model."""
    command = [sys.executable, "-m", "stacl", "serve", model, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            output = ""
            for line in server.stderr:
                output += line
                found = re.search(r"http://\S+", line)
                if found:
                    yield found[0].rstrip("/")
                    return
            raise SystemExit(f"the server did not start:\n{output}")
        finally:
            server.terminate()


def opened(browser: Browser, address: str, theme: str, size: dict[str, int], example: str, k: int) -> Page:
    page = browser.new_context(viewport=size, color_scheme=theme).new_page()  # type: ignore[arg-type]
    page.goto(f"{address}/?example={example}&k={k}&pace=220")
    page.wait_for_selector("[data-state=live]", timeout=TIMEOUT)
    return page


def play_to_the_middle(page: Page) -> None:
    page.click("#play")
    page.wait_for_selector(f"#heard .now .word:nth-of-type({SHOWN})", timeout=TIMEOUT)
    page.click("#play")
    page.wait_for_selector(
        f"[data-tone='1'] .now .word:nth-of-type({SHOWN + 1})", timeout=TIMEOUT
    )  # +1: the dotted line


def play_to_the_end(page: Page) -> None:
    page.click("#play")
    page.wait_for_selector("[data-tone='full'] .said", timeout=TIMEOUT)


def keep(page: Page, name: str) -> None:
    """Save a screenshot with a palette, which is enough for flat colours."""
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    path = FOLDER / f"{name}.png"
    picture.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size / 1024:.0f} KiB")


def take(browser: Browser, address: str) -> None:
    page = opened(browser, address, "dark", DESKTOP, "The red hat", k=4)
    keep(page, "empty")
    play_to_the_middle(page)
    keep(page, "stage-dark")
    page = opened(browser, address, "light", DESKTOP, "At the beach", k=6)
    play_to_the_end(page)
    keep(page, "stage-light")
    captions = page.context.new_page()
    captions.set_viewport_size(CAPTIONS)  # type: ignore[arg-type]
    captions.goto(f"{address}/?view=captions&ground=dark&size=56")
    captions.wait_for_selector("#captions-text .word:nth-of-type(8)", timeout=TIMEOUT)
    keep(captions, "captions")
    page = opened(browser, address, "dark", PHONE, "At the beach", k=6)
    play_to_the_end(page)
    page.evaluate("document.querySelector('.listeners').scrollIntoView()")
    keep(page, "phone")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    model = sys.argv[1] if len(sys.argv) > 1 else "photos-de-en"
    with serving(model) as address, open_browser() as browser:
        take(browser, address)


if __name__ == "__main__":
    main()
