"""Lines for people on standard output and standard error, errors among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmgauge.readable import visible
from lmgauge.shown import Shown

if TYPE_CHECKING:
    from lmgauge.report.blocks import Document


def say(text: str, *, err: bool = False) -> None:
    """Print a line; control characters of names and texts in it become signs."""
    click.echo(visible(text), err=err)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"lmgauge: {record.getMessage()}", err=True)


def show_warnings() -> None:
    """Show on standard error what our modules log as a warning."""
    logger = logging.getLogger("lmgauge")
    if not any(isinstance(handler, _Handler) for handler in logger.handlers):
        logger.addHandler(_Handler(logging.WARNING))


@dataclass(frozen=True)
class Page:
    """What is on a page: its title, and blocks."""

    title: str
    document: Document


def answer(
    result: object,
    document: Callable[[], Document],
    *,
    as_json: bool,
    html: str | None = None,
    page: Page | None = None,
    aside: bool = False,
) -> None:
    """Print a result on standard output; with --html, also write its page, and say on standard error where it lies.

    Args:
        result: has `to_dict`, or is plain values.
        document: makes the blocks that people read.
        as_json: print JSON in full precision instead.
        html: the page to write.
        page: what is on it, if more than what is printed.
        aside: standard output takes something else: JSON goes to standard error, and what people read is left out.
    """
    if as_json:
        from lmgauge.json_text import to_json

        plain = getattr(result, "to_dict", lambda: result)
        click.echo(to_json(plain()), err=aside)
    elif not aside:
        from lmgauge.report.terminal import show

        show(document())
    if html is not None:
        write_page(html, Page(_in_a_line(result), document()) if page is None else page)


def _in_a_line(result: object) -> str:
    return repr(result).removeprefix("<").removesuffix(">") if isinstance(result, Shown) else ""


def write_page(path: str, page: Page) -> None:
    """Write a page, and say on standard error where it lies.

    Args:
        path: of the file.
        page: what is on it.

    Raises:
        OutputError: it cannot be written.
    """
    from lmgauge.report import notebook

    say_where(notebook.write_page(page.document, path, page.title or "lmgauge"), err=True)


def say_where(page: Path, *, err: bool = False) -> None:
    """Say where a page lies, and how to look at it."""
    say(f"{page}: {size_in_words(page.stat().st_size)}; open it in a browser: {page.resolve().as_uri()}", err=err)


def size_in_words(size: int) -> str:
    """Return the size of a file.

    >>> size_in_words(214_350), size_in_words(1_830_000)
    ('214 kB', '1.8 MB')
    """
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


@contextmanager
def showing_progress(stage: str = "") -> Iterator[None]:
    """Show on standard error how far the functions called in the block are.

    Args:
        stage: what is being done at first.
    """
    from lmgauge.progress import listening
    from lmgauge.report.progress import progress

    with progress() as listener, listening(listener):
        if stage:
            listener(stage)
        yield
