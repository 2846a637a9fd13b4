"""Take the pictures of README.md and the book anew: `python docs/pictures.py SITE`, where SITE is the built book.

Beside each picture lies the text that is to be read on it. Tests hold that against the page of the day, so that a picture
does not outlive what it shows.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "pictures"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--disable-component-update"]
"""How Chromium is started, here and in the tests."""


@dataclass(frozen=True)
class Picture:
    """A part of a page.

    Attributes:
        name: of the files, without ending.
        page: in the site.
        height: of the window, in pixels; its width is 1280.
        heading: that stands on top; the page's beginning if empty.
    """

    name: str
    page: str
    height: int
    heading: str = ""


PICTURES = (
    Picture("report", "quickstart/report.html", 980),
    Picture("text", "quickstart/two.html", 860, heading="The text"),
)
_VISIBLE = """
() => [...document.querySelectorAll("h1, h2, p, td, th, label, figcaption, .tokens, svg text")]
    .filter(element => { const box = element.getBoundingClientRect();
                         return element.checkVisibility() && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; })
    .map(element => element.textContent.replace(/\\s+/g, " ").trim()).filter(text => text).join("\\n")
"""
_OPEN = "heading => { const fold = heading.closest('details'); if (fold) fold.open = true; heading.scrollIntoView(); }"


def find_browser() -> str | None:
    """Return the system's Chromium, or None if it has none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def take(browser: Any, site: Path, picture: Picture) -> tuple[bytes, str]:
    """Return a picture as PNG, and the text that is to be read on it.

    Args:
        browser: Playwright's.
        site: the folder of the built book.
        picture: to be taken.
    """
    context = browser.new_context(viewport={"width": 1280, "height": picture.height}, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.goto((site / picture.page).resolve().as_uri())
        if picture.heading:
            page.get_by_role("heading", name=picture.heading, exact=True).evaluate(_OPEN)
        page.wait_for_timeout(300)
        return page.screenshot(), page.evaluate(_VISIBLE) + "\n"
    finally:
        context.close()


def main(site: Path) -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        for picture in PICTURES:
            image, text = take(browser, site, picture)
            FOLDER.joinpath(f"{picture.name}.png").write_bytes(image)
            FOLDER.joinpath(f"{picture.name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
