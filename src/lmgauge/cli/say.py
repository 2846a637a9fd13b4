"""Lines for people on standard output and standard error, errors among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lmgauge.readable import visible

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


def answer(result: object, document: Callable[[], Document], *, as_json: bool) -> None:
    """Print a result on standard output.

    Args:
        result: has `to_dict`, or is plain values.
        document: makes the blocks that people read.
        as_json: print JSON in full precision instead.
    """
    if as_json:
        from lmgauge.json_text import to_json

        plain = getattr(result, "to_dict", lambda: result)
        click.echo(to_json(plain()))
    else:
        from lmgauge.report.terminal import show

        show(document())


@contextmanager
def showing_progress(stage: str = "") -> Iterator[None]:
    """Show on standard error how far the functions called in the block are.

    Args:
        stage: what is being done at first.
    """
    from lmgauge.progress import listening
    from lmgauge.report.terminal import progress

    with progress() as listener, listening(listener):
        if stage:
            listener(stage)
        yield
