"""Lines for people on standard output and standard error, and where a page lies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import click

from lmgauge.base.escaping import visible

if TYPE_CHECKING:
    from pathlib import Path

    from lmgauge.report.blocks import Document


def say(text: str, *, err: bool = False) -> None:
    """Print a line; control characters of names and texts in it become signs."""
    click.echo(visible(text), err=err)


@cache
def show_warnings() -> None:
    """Show on standard error what our modules log as a warning."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"lmgauge: {record.getMessage()}", err=True)

    logging.getLogger("lmgauge").addHandler(Handler(logging.WARNING))


def write_page(path: str, title: str, document: Document) -> None:
    """Write a page, and say on standard error where it lies."""
    from lmgauge.report import documents

    say_where(documents.write_page(document, path, title), err=True)


def say_where(page: Path, *, err: bool = False) -> None:
    """Say where a page lies, and how to look at it."""
    from lmgauge.base.memory import format_bytes

    say(f"{page}: {format_bytes(page.stat().st_size)}; open it in a browser: {page.resolve().as_uri()}", err=err)
