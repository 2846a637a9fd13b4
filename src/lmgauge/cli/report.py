"""`lmgauge report`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmgauge.choices import MOST_PASSAGES
from lmgauge.cli.command import Command, settings
from lmgauge.cli.options import document_option, json_option, scored_text_option, seed_option, threads_option, training_text
from lmgauge.cli.say import answer, say_where, showing_progress

if TYPE_CHECKING:
    from lmgauge.api.report import Report

_PAGE = "report.html"


@dataclass(frozen=True)
class _Choices:
    """What the page shows: arguments of `lmgauge.report`."""

    model: str | None
    audit: str | None
    segments: int
    title: str | None


@dataclass(frozen=True)
class _Statistics:
    """How it is worked out: arguments of `lmgauge.report`."""

    document: str | None
    seed: int
    threads: int | None


@dataclass(frozen=True)
class _Written:
    """Files, and what is printed."""

    output: str | None
    vega: str | None
    figures: str | None
    as_json: bool


@click.command("report", cls=Command)
@click.argument("runs", nargs=-1, type=click.Path())
@scored_text_option
@training_text("for slices by how often words, and how long n-grams, occur in it")
@settings(
    "choices",
    _Choices,
    "Options",
    click.option("-m", "--model", type=click.Path(), help="The model behind the one run: adds calibration."),
    click.option(
        "--audit", type=click.Path(), help="What `lmgauge audit --json` printed of a run: the page shows its verdict."
    ),
    click.option(
        "--segments",
        type=click.IntRange(0, MOST_PASSAGES),
        default=20,
        metavar="N",
        help="Segments of each kind to show in color: the worst, the most changed and a sample.",
    ),
    click.option("--title", metavar="TEXT", help="Title of the page; the names of the runs if not given."),
)
@settings("statistics", _Statistics, "Statistics", document_option, seed_option, threads_option)
@settings(
    "written",
    _Written,
    "Output",
    click.option("-o", "--output", type=click.Path(), help=f"The page to write; {_PAGE} if not given."),
    click.option("--vega", type=click.Path(), metavar="DIR", help="Also write the charts as Vega-Lite, with their data."),
    click.option("--figures", type=click.Path(), metavar="DIR", help="Also write the charts as SVG, PDF and PNG."),
    json_option,
)
def report(
    runs: tuple[str, ...],
    texts: tuple[str, ...],
    train: tuple[str, ...],
    choices: _Choices,
    statistics: _Statistics,
    written: _Written,
) -> None:
    """Make one page to look at: the answer, charts, tables, and the text in color.

    RUNS are folders that `lmgauge eval -o` wrote, or score tables (Parquet, JSONL); each is compared with the first. The
    page is one HTML file that opens without a network. With --json the numbers are printed, and a page is written only with
    -o.

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge eval -m wb5/ test.txt -o run-wb5/
    lmgauge report run-kn5/ -o kn5.html
    lmgauge report run-kn5/ run-wb5/ -o both.html
    """
    from lmgauge.api.report import report as make

    if not runs:
        raise click.UsageError("name a run: a folder that `lmgauge eval -o` wrote, or a score table")
    page = written.output or (None if written.as_json else _PAGE)
    _check_outputs(page, written)
    with showing_progress("reading the runs"):
        made = make(
            list(runs) if len(runs) > 1 else runs[0],
            page,
            text=list(texts) or None,
            train=list(train) or None,
            **asdict(choices),
            **asdict(statistics),
        )
        _write_charts(made, written)
    answer(made, lambda: made.verdicts, as_json=written.as_json)
    if page is not None:
        say_where(Path(page), err=written.as_json)


def _check_outputs(page: str | None, written: _Written) -> None:
    """Say before the work what would stop the output after it.

    Raises:
        MissingExtraError: what draws pages and figures is not installed.
        click.UsageError: a folder is a file.
    """
    from lmgauge.report.page import check_installed

    if page is not None or written.figures is not None:
        check_installed()
    for option, folder in (("--vega", written.vega), ("--figures", written.figures)):
        if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
            raise click.UsageError(f"{option} {folder}: is a file; name a folder")


def _write_charts(made: Report, written: _Written) -> None:
    from lmgauge.report.blocks import ChartData
    from lmgauge.report.drawing import write_figures, write_specifications

    charts = [block for block in made.document if isinstance(block, ChartData)]
    if written.vega is not None:
        write_specifications(charts, written.vega)
    if written.figures is not None:
        write_figures(charts, written.figures)
