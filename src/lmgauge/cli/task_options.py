"""What `bleu`, `chrf`, `ter`, `wer`, `cer` and `f1` share: options worded once, and the run itself.

A command takes its metric's own options as one object, and these as `task: TaskOptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from lmgauge.choices import FORMATS, MOST_PASSAGES, SIGNIFICANCE_TESTS, TASK_ERROR_POLICIES, TRANSCRIPT_FORMATS
from lmgauge.cli.command import refuse_given, settings
from lmgauge.cli.options import (
    html_option,
    json_option,
    run_shard,
    seed_option,
    shard_option,
    shards_folder_option,
    unit_option,
)
from lmgauge.cli.say import Page, answer, write_page
from lmgauge.tasks.settings import ComparisonSettings, Reading

if TYPE_CHECKING:
    from lmgauge.cluster.shard import Shard
    from lmgauge.report.blocks import Document
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.scoring import SegmentScores
    from lmgauge.tasks.segment_examples import SegmentChooser

Function = Callable[..., None]


@dataclass(frozen=True)
class Files:
    """The files to score; `reference` and `more_references` each hold a reference for every segment."""

    reference: str
    hypotheses: tuple[str, ...]
    more_references: tuple[str, ...] = ()
    test_set: str | None = None
    language_pair: str | None = None

    @property
    def references(self) -> list[str]:
        """All files of references."""
        return [self.reference, *self.more_references]


@dataclass(frozen=True)
class Printing:
    """What is printed: a table, rows for segments, numbers alone, or JSON."""

    sentence: bool = False
    width: int = 2
    score_only: bool = False
    html: str | None = None
    segments: int = 20
    as_json: bool = False

    def __post_init__(self) -> None:
        """Refuse two things that each are all that is printed."""
        other = "sentence" if self.sentence else "json" if self.as_json else None
        if self.score_only and other is not None:
            raise click.UsageError(f"give one of --score-only and --{other}: each is all that is printed")


@dataclass(frozen=True)
class Sharding:
    """Which share of the segments is counted, and where the shards are; all of them if `shard` is None."""

    shard: Shard | None = None
    folder: str | None = None


@dataclass(frozen=True)
class TaskOptions:
    """The options that the commands of task metrics share."""

    files: Files
    reading: Reading
    comparison: ComparisonSettings
    printing: Printing
    sharding: Sharding = Sharding()


def _test(ctx: click.Context, param: click.Parameter, value: str) -> str | None:
    return None if value == "none" else value


_HYPOTHESES = click.argument("hypotheses", nargs=-1, required=True, type=click.Path(allow_dash=True))
_PUBLIC_SET = (
    click.argument("hypotheses", nargs=-1, type=click.Path(allow_dash=True)),
    click.option(
        "-t", "--test-set", metavar="NAME", help="A test set of sacreBLEU, such as wmt22, instead of REFERENCE; with -l."
    ),
    click.option("-l", "--language-pair", metavar="PAIR", help="Of the test set, such as en-de."),
)
_FILES = (
    click.argument("reference", type=click.Path(allow_dash=True)),
    click.option(
        "-r",
        "--reference",
        "more_references",
        multiple=True,
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="A further reference for every segment; may be given several times.",
    ),
)

_READING = (
    click.option(
        "--field",
        default="text",
        show_default=True,
        metavar="NAME",
        help="Field or column (name or number) that holds the text of a record.",
    ),
    click.option(
        "--ref-field",
        "ref_field",
        multiple=True,
        metavar="NAME",
        help="Field of the references, if another; several give several references. A JSONL field may hold a list.",
    ),
    click.option("--id", metavar="NAME", help="Field that says which segment a record is, where orders differ."),
    click.option(
        "--group",
        metavar="NAME",
        help="Also a row for each group: a field of the references, a file with a name on each line, or file (folders).",
    ),
    click.option(
        "--document",
        metavar="RULE",
        help="What is independent: a field of the references (or the outputs), a file with a document's name on each line, "
        "file (folders), segment, blank-line or heading; each file of folders, if not given.",
    ),
    unit_option,
    click.option(
        "--errors",
        type=click.Choice(TASK_ERROR_POLICIES),
        default="fail",
        show_default=True,
        help="Invalid UTF-8 and NUL bytes: stop, or replace by U+FFFD.",
    ),
)

COMPARISON_OPTIONS = (
    click.option(
        "--significance",
        "test",
        type=click.Choice([*SIGNIFICANCE_TESTS, "none"]),
        default="student",
        show_default=True,
        callback=_test,
        help="The test against the first system, and the intervals. student: over documents or, if these are not known, "
        "wide enough for neighboring segments that are alike; sacrebleu, sacrebleu-bootstrap: its randomization and "
        "bootstrap, as if segments were independent; none: neither.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(100, 1_000_000),
        metavar="N",
        help="Of sacreBLEU's tests; 10,000 of the randomization or 1,000 of the bootstrap if not given.",
    ),
    seed_option,
    click.option(
        "--threads", type=click.IntRange(min=1), metavar="N", help="Threads; all cores if not given. Changes no number."
    ),
)

_PRINTING = (
    click.option("--sentence", is_flag=True, help="Print a row for each segment instead: TSV, or JSON lines with --json."),
    click.option("-w", "--width", type=click.IntRange(0, 12), default=2, show_default=True, help="Decimals to print."),
    click.option("-b", "--score-only", is_flag=True, help="Print the numbers alone, a line for each system."),
    html_option,
    click.option(
        "--segments",
        type=click.IntRange(0, MOST_PASSAGES),
        default=20,
        show_default=True,
        metavar="N",
        help="With --html: segments of each kind to show: the worst, where systems differ most, and a sample.",
    ),
    json_option,
)


_FORMAT = click.option("--format", type=click.Choice(FORMATS), help="Format of all files; by their names if not given.")
_SPEECH_FORMAT = click.option(
    "--format",
    type=click.Choice([*FORMATS, *TRANSCRIPT_FORMATS]),
    help="Format of all files; by names (or ids) if not given. kaldi, trn, stm (outputs: ctm): matched by ids or time.",
)


def task_options(command: Function) -> Function:
    """Declare how files are read, how systems are compared and what is printed; the command gets `task`, a `TaskOptions`."""
    return _declared(command, _FORMAT, in_shards=False)


def translation_options(command: Function) -> Function:
    """Declare the same, public test sets, and shards."""
    return _declared(command, _FORMAT, *_PUBLIC_SET)


def speech_options(command: Function) -> Function:
    """Declare the same, the formats of speech tools, and shards."""
    return _declared(command, _SPEECH_FORMAT)


def _declared(
    command: Function,
    format_option: Callable[[Function], Function],
    *own_files: Callable[[Any], Any],
    in_shards: bool = True,
) -> Function:
    @wraps(command)
    def gathered(
        files: Files,
        reading: Reading,
        comparison: ComparisonSettings,
        printing: Printing,
        sharding: Sharding | None = None,
        **own: Any,
    ) -> None:
        if printing.html is None:
            refuse_given(("segments",), "is for the page: name it with --html")
        elif printing.sentence:
            raise click.UsageError("--html is for scores: leave out --sentence")
        if files.test_set is not None or files.language_pair is not None:
            files = _of_public_set(files)
        elif not files.hypotheses:
            raise click.UsageError("Missing argument 'HYPOTHESES...'.")
        command(task=TaskOptions(files, reading, comparison, printing, sharding or Sharding()), **own)

    declared: Function = gathered
    for decorate in (
        *([settings("sharding", Sharding, "Output", shard_option, shards_folder_option)] if in_shards else []),
        settings("printing", Printing, "Output", *_PRINTING),
        settings("comparison", ComparisonSettings, "Statistics", *COMPARISON_OPTIONS),
        settings("reading", Reading, "Text", *_READING, format_option),
        settings("files", Files, "Text", *_FILES, *(own_files or (_HYPOTHESES,))),
    ):
        declared = decorate(declared)
    return declared


def _of_public_set(files: Files) -> Files:
    """Return the files with the references of the test set: all that the user named are hypotheses."""
    from lmgauge.tasks import find_public_set

    if files.more_references:
        raise click.UsageError("--test-set has its references: leave out --reference")
    public = find_public_set(files.test_set, files.language_pair)
    first, *more = public.references
    return replace(files, reference=first, hypotheses=(files.reference, *files.hypotheses), more_references=tuple(more))


def run_metric(metric: TaskMetric, task: TaskOptions, options: Mapping[str, Any]) -> None:
    """Measure files and print what the options ask for, or count a shard of them.

    Args:
        metric: with its options.
        task: what is measured, and how it is printed.
        options: of the metric.

    Raises:
        InputError: a file is missing, ends before another, or holds what is not text.
        UsageError: options contradict each other, or do not fit the files.
    """
    if task.sharding.shard is not None:
        _count_shard(metric, task, task.sharding.shard, options)
        return
    refuse_given(("folder",), "is for shards: name one with --shard")
    if task.printing.sentence:
        _print_segments(metric, task)
        return
    chooser = None
    if task.printing.html is not None:
        from lmgauge.tasks.segment_examples import SegmentChooser

        chooser = SegmentChooser(metric, task.printing.segments, task.comparison.seed)
    systems = _score(metric, task, chooser)
    page = None
    if chooser is not None:
        from lmgauge.report import task_pages

        page = task_pages.page(systems, chooser.examples(systems.best.system), width=task.printing.width)
    print_result(systems, task.printing, page)


def _count_shard(metric: TaskMetric, task: TaskOptions, shard: Shard, options: Mapping[str, Any]) -> None:
    from lmgauge.cluster.task import TaskJob

    refuse_given(
        ("sentence", "score_only", "width", "html", "align", "top"), "does not go with --shard: merge prints scores"
    )
    files = task.files
    chosen = {name: value for name, value in options.items() if value is not None}
    job = TaskJob(type(metric).__name__.lower(), files.references, files.hypotheses, chosen, task.reading, task.comparison)
    run_shard(job, shard, task.sharding.folder, as_json=task.printing.as_json)


def _score(metric: TaskMetric, task: TaskOptions, chooser: SegmentChooser | None) -> Systems:
    from lmgauge.report.progress import progress
    from lmgauge.tasks import score_files

    with progress() as listener:
        return score_files(
            metric,
            references=task.files.references,
            hypotheses=task.files.hypotheses,
            reading=task.reading,
            settings=what_is_drawn(task),
            progress=lambda done: listener(f"{done:,} segments"),
            chooser=chooser,
        )


def what_is_drawn(task: TaskOptions) -> ComparisonSettings:
    """Return the settings of the comparison; beside the numbers alone neither p-values nor intervals are shown."""
    return (
        replace(task.comparison, test=None, resamples=None)
        if task.printing.score_only and task.printing.html is None
        else task.comparison
    )


def print_result(systems: Systems, printing: Printing, document: Document | None = None) -> None:
    """Print the scores of systems: for people, as numbers alone, or as JSON; and write their page, if one is asked for.

    Args:
        systems: to print.
        printing: how.
        document: what is on the page, if more than what is printed for people.
    """
    from lmgauge.report import tasks
    from lmgauge.report.formats import names_in_brief

    page = Page(
        f"{systems.metric} of {names_in_brief([item.system for item in systems])}", document or tasks.blocks(systems)
    )
    if printing.score_only and not printing.as_json:
        scale = 100.0 if systems.percent else 1.0
        for system in systems:
            click.echo(f"{scale * system.score.score:.{printing.width}f}")
        for line in systems.notes:
            note(line)
        if printing.html is not None:
            write_page(printing.html, page)
    else:
        shown = partial(tasks.blocks, systems, width=printing.width)
        answer(systems, shown, as_json=printing.as_json, html=printing.html, page=page)


def _print_segments(metric: TaskMetric, task: TaskOptions) -> None:
    from lmgauge.readable import for_output
    from lmgauge.tasks import score_segments

    printing = task.printing
    for block in score_segments(
        metric,
        references=task.files.references,
        hypotheses=task.files.hypotheses,
        reading=task.reading,
        threads=task.comparison.threads,
        notes=note,
    ):
        lines = _json_lines(metric, block) if printing.as_json else _table_lines(metric, block, printing.width)
        click.echo(for_output("".join(line + "\n" for line in lines)), nl=False)


def _json_lines(metric: TaskMetric, block: SegmentScores) -> Iterator[str]:
    """Yield an object for each segment and system, with the parts of the score in full precision."""
    from lmgauge.json_text import to_json

    for i, references in enumerate(block.references.tolist()):
        group = {} if block.groups is None else {"group": block.groups[i]}
        for name, rows in zip(block.names, block.statistics, strict=True):
            score = metric.score(rows[i], references).to_dict()
            yield to_json({"segment": block.first + i + 1, **group, "system": name, **score}, indent=None)


def _table_lines(metric: TaskMetric, block: SegmentScores, width: int) -> Iterator[str]:
    """Yield a line of TSV for each segment, with a column for each system; before the first the names of the columns."""
    scale = 100.0 if metric.percent else 1.0
    groups = [] if block.groups is None else [("group", *(name.replace("\t", " ") for name in block.groups))]
    columns = [
        (name, *(f"{scale * value:.{width}f}" for value in scores.tolist()))
        for name, scores in zip(block.names, block.scores, strict=True)
    ]
    for i, cells in enumerate(zip(*groups, *columns, strict=True)):
        if i or not block.first:
            yield "\t".join([str(block.first + i) if i else "segment", *cells])


def note(text: str) -> None:
    """Say what a reader must know where standard output is for rows or numbers alone."""
    from lmgauge.readable import readable

    click.echo(f"lmgauge: {readable(text)}", err=True)
