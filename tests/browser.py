"""A browser for pages: the system's Chromium, driven by Playwright. Without one, tests are skipped with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.pictures import FLAGS, find_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser; no site outside this machine is asked for anything."""
    program = find_browser()
    if program is None:
        pytest.skip("needs a browser: no chromium on the path (Debian: apt install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


class Opened:
    """A page that was opened, and what it complained about or asked for.

    Attributes:
        page: Playwright's.
        complaints: messages of the console, errors of scripts, requests to other places than where the page is from.
    """

    def __init__(self, page: Any, origin: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}: {error.stack}"))
        page.on("request", lambda request: self._asked(request.url, origin))

    def _asked(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "data:")):
            self.complaints.append(f"request: {url}")

    def violations(self) -> list[str]:
        """Return what axe-core has against the page."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
        response = axe.Axe().run(self.page, options={"resultTypes": ["violations"]}).response  # no list of what passed
        return [f"{found['id']}: {found['nodes'][0]['html'][:200]}" for found in response["violations"]]

    def is_wider_than_its_window(self) -> bool:
        """Return True if the page as a whole must be scrolled sideways."""
        return bool(self.page.evaluate("document.scrollingElement.scrollWidth > innerWidth"))


@pytest.fixture
def opens(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Open a page: its HTML, or the address of one; `width` and `dark` as wanted."""
    contexts = []

    def opens(page: str, *, width: int = 1280, dark: bool = False, fragment: str = "") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        contexts.append(context)
        address = page
        if not page.startswith("http"):
            file = tmp_path / "page.html"
            file.write_text(page, encoding="utf-8")
            address = file.as_uri()
        opened = Opened(context.new_page(), address.split("?")[0].rsplit("/", 1)[0] if page.startswith("http") else address)
        opened.page.goto(address + fragment)
        return opened

    yield opens
    for context in contexts:
        context.close()
