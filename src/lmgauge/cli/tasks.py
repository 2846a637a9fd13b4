"""What `lmgauge bleu`, `chrf`, `ter`, `wer`, `cer` and `f1` do besides calling their verbs: what else is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import click

from lmgauge.api.inputs import PathLike
from lmgauge.base.choices import MOST_PASSAGES
from lmgauge.base.declaration import settings
from lmgauge.base.option_numbers import Bounds, Natural
from lmgauge.cli.derive import Call, fields_of
from lmgauge.cli.say import say

if TYPE_CHECKING:
    from lmgauge.tasks.comparison import Systems
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.scoring import SegmentScores


@settings
class Printing:
    """What is scored, and what is printed of it.

    Attributes:
        files: the references, then a file for each system, which are compared with the first: plain or compressed text with
            one segment per line, records, or folders of these; - is standard input. A test set has its own references.
        reference: a further reference for every segment; may be given several times.
        sentence: print a row for each segment instead; TSV, or JSON lines with --json.
        align: print alignments of segments with an error instead; with --json of all.
        also: more metrics for the same table, such as chrf,ter; options that they share apply to all.
        top: also show this many of the most frequent errors.
        width: decimals to print.
        score_only: print only the numbers, one line per system.
        segments: segments of each kind to show on the --html page: the worst, where systems differ most, and a sample.
    """

    heading: ClassVar[str] = "Output"
    files: Sequence[PathLike]
    reference: Sequence[PathLike] = ()
    sentence: bool = False
    align: bool = False
    also: Sequence[str] = ()
    top: Natural = 0
    width: Annotated[int, Bounds(0, 12)] = 2
    score_only: bool = False
    segments: Annotated[int, Bounds(0, MOST_PASSAGES)] = 20


_ALONE = {
    "also": ({"sentence", "align", "score_only", "html", "top", "group"}, "does not go with --also, which prints one table"),
    "align": ({"sentence", "score_only", "html", "top"}, "does not go with --align, which prints alignments alone"),
    "sentence": ({"score_only", "html", "top"}, "does not go with --sentence, which prints rows alone"),
    "score_only": ({"form", "top"}, "does not go with --score-only, which prints numbers alone"),
    "top": ({"form"}, "does not go with --top, which is for people: take --align"),
}
"""What is printed -> options that do not go with it, and why."""


def score(call: Call) -> None:
    """Score systems, or print each segment, or alignments."""
    from lmgauge.api.task_scores import align_files, score_files, score_segments
    from lmgauge.report import task_pages, tasks
    from lmgauge.report.terminal import show
    from lmgauge.tasks.alignment import errors_by_system
    from lmgauge.tasks.segment_examples import SegmentChooser

    _check(call)
    name = str(call.context.command.name)
    files, metric = _files(call), _metric(call, name)
    again = "top" if call["top"] else "also" if call["also"] else ""
    if again and "-" in (*call["files"], call["group"], call["document"]):
        raise click.UsageError(f"--{again} reads the files twice, which standard input cannot: save it in a file first")
    aligned = partial(call, align_files, metric=metric, **files)
    if call["sentence"]:
        for block in call(score_segments, metric=metric, **files, notes=_note):
            _print_segments(call, metric, block)
    elif call["align"] and call.as_json:
        _print_json(segment.to_dict() for segment in aligned(notes=_note))
    elif call["align"]:
        show(tasks.aligned_blocks(aligned(notes=_note)))
    elif call["also"]:
        several = [call(score_files, metric=one, **files) for one in (metric, *(_metric(call, one) for one in call["also"]))]
        call.answer([one.to_dict() for one in several], lambda: tasks.blocks_of_several(several, width=call["width"]))
    else:
        errors = errors_by_system(aligned()) if call["top"] else None  # first, for what it refuses
        chooser = SegmentChooser(metric, call["segments"], call["seed"]) if call.html else None
        systems = call(score_files, metric=metric, **files, chooser=chooser)
        examples = chooser and chooser.examples(systems.best.system)
        _print(call, systems, examples and task_pages.page(systems, examples, width=call["width"]))
        if errors is not None:
            click.echo()
            show(tasks.error_blocks(errors, call["top"]))


def _metric(call: Call, name: str) -> TaskMetric:
    """Return a metric with those of the user's options that it has."""
    from lmgauge.tasks.metrics.protocol import METRICS, metric_named

    options = {field: call.values[field] for field in fields_of(METRICS.find(name) or object) if field in call.values}
    if name == "bleu":
        from lmgauge.tasks.public_sets import tokenizer_for

        options = {"tokenizer": tokenizer_for(call.values.get("language_pair"))} | options
        options |= {"effective_order": True} if call["sentence"] else {}
    return metric_named(name, **options)


def score_labels(call: Call) -> None:
    """Score labels."""
    from lmgauge.api.task_scores import score_label_files

    _check(call)
    files = _files(call)
    gold = files["references"][0]
    _print(call, call(score_label_files, gold=gold, predicted=files["hypotheses"]))


def _check(call: Call) -> None:
    """Refuse what does not go together."""
    for name, (others, reason) in _ALONE.items():
        if call[name]:
            call.refuse(others, reason)
        if call[name] and name in ("align", "sentence") and not call.as_json:
            call.refuse({"form"}, f"does not go with --{name}, which prints no table")
    if call.html is None:
        call.refuse(["segments"], "is for the page: name it with --html")
        if call["score_only"]:  # beside the numbers alone neither p-values nor intervals are shown
            call.values |= {"significance": "none", "resamples": None}


def _files(call: Call) -> dict[str, list[str]]:
    """Return the files of references and hypotheses."""
    files, more = list(call["files"]), list(call["reference"])
    test_set, pair = call.values.get("test_set"), call.values.get("language_pair")
    if test_set or pair:
        from lmgauge.tasks.public_sets import find_public_set

        call.refuse(["reference"], "does not go with --test-set, which has its references")
        return {"references": [*find_public_set(test_set, pair).references], "hypotheses": files}
    if len(files) < 2:
        raise click.UsageError("Missing argument 'HYPOTHESES...'.")
    return {"references": [files[0], *more], "hypotheses": files[1:]}


def _print(call: Call, systems: Systems, document: Any = None) -> None:
    """Print the scores of systems for people, as numbers alone or as JSON, and write their page."""
    from lmgauge.report import tasks
    from lmgauge.report.formats import names_in_brief

    title = f"{systems.metric} of {names_in_brief([item.system for item in systems])}"
    page = title, document or tasks.blocks(systems)
    numbers = [f"{systems.scale * one.score.score:.{call['width']}f}" for one in systems]
    for line in systems.notes if call["score_only"] else ():
        _note(line)
    plain = "\n".join(numbers) if call["score_only"] else ""
    call.answer(systems, partial(tasks.blocks, systems, width=call["width"]), page, plain)


def _print_segments(call: Call, metric: TaskMetric, block: SegmentScores) -> None:
    """Print an object for each segment and system, or a line for each segment and before the first the names of columns."""
    from lmgauge.report.blocks import Column, Table, labels
    from lmgauge.report.tsv_renderer import as_rows

    if call.as_json:
        _print_json(_of_segments(metric, block))
        return
    columns = [labels("segment", [str(block.first + i) for i in range(1, len(block.references) + 1)])]
    columns += [labels("group", block.groups)] if block.groups is not None else []
    for name, scores in zip(block.names, block.scores, strict=True):
        shown = (100.0 if metric.percent else 1.0) * scores
        columns.append(Column(name, [f"{score:.{call['width']}f}" for score in shown.tolist()]))
    rows = as_rows([Table(tuple(columns))])
    click.echo(rows.partition("\n")[2] if block.first else rows, nl=False)


def _of_segments(metric: TaskMetric, block: SegmentScores) -> Iterator[dict[str, Any]]:
    for i, references in enumerate(block.references.tolist()):
        group = {} if block.groups is None else {"group": block.groups[i]}
        for name, rows in zip(block.names, block.statistics, strict=True):
            score = metric.score(rows[i], references).to_dict()
            yield {"segment": block.first + i + 1, **group, "system": name, **score}


def _print_json(objects: Iterator[dict[str, Any]]) -> None:
    from lmgauge.base.json_text import to_json

    for one in objects:
        click.echo(to_json(one, indent=None))


def _note(text: str) -> None:
    """Say what a reader must know where standard output is for rows or numbers alone."""
    say(f"lmgauge: {text}", err=True)
