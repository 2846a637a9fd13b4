"""What `lmgauge audit` does besides calling its verb."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lmgauge.api.types import PathLike
from lmgauge.cli.derive import Call
from lmgauge.cli.say import Page
from lmgauge.records.formats import FORMATS_OF_RECORDS


def audit(call: Call) -> None:
    """Print the checks; exit with 1 where one failed."""
    from lmgauge.report.documents import document_of

    result = call(**call(subject))
    call.answer(result, page=Page(f"Audit of {result.model}", document_of(result)[1:]))
    if not result.passed:
        call.context.exit(1)


def subject(
    what: Sequence[PathLike] = (), *, model: PathLike | None = None, text: Sequence[PathLike] = ()
) -> dict[str, Any]:
    """Return the run, or the text, that a user named.

    Args:
        what: TEXT of a model, or a RUN.

    Raises:
        click.UsageError: it is neither.
    """
    from lmgauge.evaluation.run_folder import EVALUATION_FILE

    only = str(what[0]) if len(what) == 1 else "-"
    if model is None:
        if only == "-" or Path(only).suffix in FORMATS_OF_RECORDS["text"].suffixes:
            raise click.UsageError("name a model with -m and its TEXT, or one RUN")
        return {"run": only}
    if (Path(only) / EVALUATION_FILE).exists():
        return {"run": only}
    if text:
        raise click.UsageError("--text belongs to a RUN; with -m the texts stand alone: lmgauge audit -m MODEL TEXT")
    return {"text": list(what) or ["-"]}
