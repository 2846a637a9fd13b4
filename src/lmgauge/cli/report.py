"""What `lmgauge report`, `diagnose` and `explore` do besides calling their verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.cli.derive import Call
from lmgauge.cli.say import Page, say, say_where

if TYPE_CHECKING:
    from lmgauge.evaluation.overview import Overview

_PAGE = "report.html"


def report(call: Call) -> None:
    """Write the page, print the answers on it, and say where it lies."""
    output = call["output"] or (None if call.as_json else _PAGE)
    made = call(output=output)
    call.answer(made, lambda: made.verdicts)
    if output is not None:
        say_where(Path(output), err=call.as_json)


def diagnose(call: Call) -> None:
    """Print a diagnosis; a page of it is that of `report`."""
    if call.html is None:
        call.answer(call())
        return
    overview, page = with_page(call, [call["run"]])
    (diagnosis,) = overview.diagnoses
    call.answer(replace(diagnosis, worst_segments=diagnosis.worst_segments[: call["examples"]]), page=page)


def explore(call: Call) -> None:
    """Serve a page until interrupted."""
    from lmgauge.explore.door import explore as serve

    serve(**call.values, say=say)


def with_page(call: Call, runs: Sequence[str]) -> tuple[Overview, Page]:
    """Return all that is to say of runs, and the page that `report` makes of it."""
    from lmgauge.api.report import overview_of
    from lmgauge.report.made import page_of

    overview = call(overview_of, runs=runs, examples=call["examples"])
    made = page_of(overview)
    return overview, Page(made.title, made.document)
