"""Commands as tests run them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from click.testing import CliRunner, Result

from lmgauge.cli.main import main

TERMINAL = {"FORCE_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "LINES": "40"}
"""The environment in which a command prints what a terminal of 100 columns shows, without colors."""


class _Program:
    """The whole program, as click's runner calls a command."""

    name = "lmgauge"

    @staticmethod
    def main(args: Sequence[str], prog_name: str) -> None:
        """Run a command line, and leave the process as it was."""
        try:
            main(args)
        finally:
            gc.unfreeze()


def run(*arguments: object, stdin: bytes | None = None, **options: Any) -> Result:
    """What a command line comes to; `options` are those of click's runner."""
    program: Any = _Program()
    return CliRunner().invoke(program, [str(argument) for argument in arguments], input=stdin, **options)


def ok(*arguments: object, stdin: bytes | None = None) -> Result:
    """The result of a command line that must end well."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object, code: int = 2) -> str:
    """What a command line that must fail says on standard error: one line, and no traceback."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert len(result.stderr.strip().split("\n")) == 1, result.stderr
    assert result.stderr.startswith("lmgauge: error: ")
    return result.stderr
