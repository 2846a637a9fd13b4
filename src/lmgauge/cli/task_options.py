"""What `bleu`, `chrf`, `ter`, `wer`, `cer` and `f1` share: options worded once, and the run itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from lmgauge.choices import FORMATS, SIGNIFICANCE_TESTS, TASK_ERROR_POLICIES
from lmgauge.cli.options import json_option, seed_option, unit_option

if TYPE_CHECKING:
    from lmgauge.tasks.alignment import AlignedSegment
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.error_rates import EditRate
    from lmgauge.tasks.metrics.protocol import TaskMetric

_F = TypeVar("_F", bound=Callable[..., Any])

files_arguments = (
    click.argument("reference", type=click.Path(allow_dash=True)),
    click.argument("hypotheses", nargs=-1, required=True, type=click.Path(allow_dash=True)),
)

_READING = (
    click.option(
        "-r",
        "--reference",
        "more_references",
        multiple=True,
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="A further reference for every segment; may be given several times.",
    ),
    click.option(
        "--field",
        default="text",
        show_default=True,
        metavar="NAME",
        help="Field of JSONL, column of TSV (name or number) or Parquet.",
    ),
    click.option(
        "--ref-field",
        "reference_fields",
        multiple=True,
        metavar="NAME",
        help="That of the references, if another; several give several references. A JSONL field may hold a list.",
    ),
    click.option("--id", "id_field", metavar="NAME", help="Field that says which segment a record is, where orders differ."),
    click.option(
        "--by",
        metavar="GROUP",
        help="Also a row for each group: a field of the references, a file with a name on each line, or file (folders).",
    ),
    click.option(
        "--document",
        metavar="RULE",
        help="What is independent: a field of the references (or the outputs), a file with a document's name on each line, "
        "file (folders), segment, blank-line or heading; each file of folders, if not given.",
    ),
    unit_option,
    click.option("--format", type=click.Choice(FORMATS), help="Of all files; by suffix if not given."),
    click.option(
        "--errors",
        type=click.Choice(TASK_ERROR_POLICIES),
        default="fail",
        show_default=True,
        help="Invalid UTF-8 and NUL bytes: stop, or replace by U+FFFD.",
    ),
)

_RESULT = (
    click.option("--sentence", is_flag=True, help="Print a row for each segment instead: TSV, or JSON lines with --json."),
    click.option(
        "--test",
        type=click.Choice([*SIGNIFICANCE_TESTS, "none"]),
        default="randomization",
        show_default=True,
        help="How systems are held against the first; bootstrap is lenient; none: no p-values and no intervals.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(100, 1_000_000),
        metavar="N",
        help="Of the test; 10,000 of the randomization or 1,000 of the bootstrap if not given.",
    ),
    click.option("-w", "--width", type=click.IntRange(0, 12), default=2, show_default=True, help="Decimals to print."),
    click.option("-b", "--score-only", is_flag=True, help="Print the numbers alone, a line for each system."),
    seed_option,
    click.option(
        "--threads", type=click.IntRange(min=1), metavar="N", help="Threads; all cores if not given. Changes no number."
    ),
    json_option,
)

_READING_NAMES = ("field", "reference_fields", "id_field", "by", "document", "unit", "format", "errors")


def task_options(command: _F) -> _F:
    """How files are read, how systems are compared and what is printed."""
    for option in reversed((*files_arguments, *_READING, *_RESULT)):
        command = option(command)
    return command


def run_metric(metric: TaskMetric, options: dict[str, Any]) -> None:
    """Measures files as `task_options` say, and prints what they ask for."""
    from lmgauge.api.task_scores import score_files
    from lmgauge.report.terminal import progress

    _check(options)
    if options["sentence"]:
        _print_segments(metric, options)
        return
    with progress() as status:
        systems = score_files(
            metric,
            **_files(options),
            **_drawing(options),
            threads=options["threads"],
            progress=lambda done: status.update(f"{done:,} segments"),
        )
    _print(systems, options)


def _check(options: dict[str, Any]) -> None:
    other = next((name for name in ("sentence", "as_json") if options[name]), None)
    if options["score_only"] and other is not None:
        raise click.UsageError(f"give one of --score-only and --{other.removeprefix('as_')}: each is all that is printed")
    if options["test"] == "none" and options["resamples"] is not None:
        raise click.UsageError("--test none draws nothing: leave out --resamples")


def _print(systems: Systems, options: dict[str, Any]) -> None:
    if options["as_json"]:
        from lmgauge.json_text import to_json

        click.echo(to_json(systems.to_dict()))
    elif options["score_only"]:
        scale = 100.0 if systems.percent else 1.0
        for system in systems:
            click.echo(f"{scale * system.score.score:.{options['width']}f}")
        for note in systems.notes:
            _note(note)
    else:
        from lmgauge.report import tasks
        from lmgauge.report.terminal import show

        show(tasks.blocks(systems, width=options["width"]))


def run_label_scores(average: str, labels: list[str] | None, options: dict[str, Any]) -> None:
    """Measures files of labels as `task_options` say, and prints what they ask for."""
    from lmgauge.api.task_scores import score_label_files

    _check(options)
    systems = score_label_files(
        gold=options["reference"],
        predicted=list(options["hypotheses"]),
        labels=labels,
        average=cast(Any, average),
        **_drawing(options),
        **{name: options[name] for name in _READING_NAMES},
    )
    _print(systems, options)


def _files(options: dict[str, Any]) -> dict[str, Any]:
    texts = {"references": [options["reference"], *options["more_references"]], "hypotheses": list(options["hypotheses"])}
    return texts | {name: options[name] for name in _READING_NAMES}


def _drawing(options: dict[str, Any]) -> dict[str, Any]:
    # Neither p-values nor intervals are shown beside the numbers alone.
    drawn = options["test"] != "none" and not options["score_only"]
    chosen = {"test": options["test"], "resamples": options["resamples"]} if drawn else {"test": None}
    return chosen | {"seed": options["seed"]}


def _print_segments(metric: TaskMetric, options: dict[str, Any]) -> None:
    from lmgauge.api.task_scores import score_segments
    from lmgauge.tasks.segment_files import SegmentPrinter

    printer = SegmentPrinter(metric, as_json=options["as_json"], width=options["width"])
    for block in score_segments(metric, **_files(options), threads=options["threads"], notes=_note):
        printer.write(block)


def aligned(metric: EditRate, options: dict[str, Any], *, notes: bool = False) -> Iterator[AlignedSegment]:
    """The alignments of the segments of files, as `task_options` say; with `notes`, what reading says goes to stderr."""
    from lmgauge.api.task_scores import align_files

    return align_files(metric, **_files(options), notes=_note if notes else None)


def _note(note: str) -> None:
    """Say what a reader must know where standard output is for rows or numbers alone."""
    from lmgauge.readable import readable

    click.echo(f"lmgauge: {readable(note)}", err=True)
