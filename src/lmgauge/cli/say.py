"""Lines for people on standard output and standard error, errors among them."""

from __future__ import annotations

import logging

import click

from lmgauge.readable import visible


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
