"""The overlap of training and test text: how much, in which files, and the passages themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.evaluation.evaluate import CLEAN, CONTAMINATED
from lmgauge.report import blocks as doc
from lmgauge.report import evaluations
from lmgauge.report.formats import counted, percent, share_of

if TYPE_CHECKING:
    from lmgauge.evaluation.evaluate import SplitEvaluation
    from lmgauge.text.overlap.overlap_results import Overlap

_LONGEST_TEXT = 240
_MOST_GROUPS = 40
_INDENT = 4


def blocks(overlap: Overlap) -> doc.Document:
    """Return how much of the test text is in the training text, by group, with passages."""
    return (
        doc.Lines(tuple(_headline(overlap))),
        *doc.notes(overlap.notes),
        *(_groups(overlap) if len(overlap.groups) > 1 else ()),
        *_passages(overlap),
        *(() if overlap.run is None else split_blocks(overlap.run)),
    )


def page(overlap: Overlap) -> doc.Document:
    """Return the answer in a sentence, then all else."""
    share = percent(overlap.contaminated_bytes / overlap.bytes if overlap.bytes else 0.0)
    sentence = (
        f"{share} of the test's bytes are in the training text, in {overlap.contaminated_segments:,} of "
        f"{counted(overlap.segments, 'segment')}."
    )
    return (doc.Verdict("fact", sentence), *blocks(overlap))


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({share_of(part, whole)})"


def _headline(overlap: Overlap) -> Iterator[tuple[str, str]]:
    folded = ", case and punctuation ignored" if overlap.fold else ""
    yield "compared", f"runs of {overlap.n:,} {overlap.unit}s or more{folded}"
    blank = f"; {overlap.blank_segments:,} blank" if overlap.blank_segments else ""
    yield "contaminated segments", _share(overlap.contaminated_segments, overlap.segments) + blank
    yield "contaminated bytes", _share(overlap.contaminated_bytes, overlap.bytes)
    yield f"bytes in {overlap.n}-grams", _share(overlap.ngram_bytes, overlap.bytes)
    yield f"{overlap.n}-grams seen", _share(overlap.seen_ngrams, overlap.ngrams)
    yield "distinct ones", _share(overlap.seen_distinct_ngrams, overlap.distinct_ngrams)
    yield "longest run", counted(overlap.longest_run, overlap.unit)
    yield "whole duplicates", f"{counted(overlap.whole_duplicates, 'segment')}, {counted(overlap.duplicate_bytes, 'byte')}"


def _groups(overlap: Overlap) -> Iterator[doc.Block]:
    groups = sorted(overlap.groups, key=lambda group: -group.ngram_share)
    left, groups = len(groups) - _MOST_GROUPS, groups[:_MOST_GROUPS]
    shares = [group.contaminated_bytes / group.bytes if group.bytes else 0.0 for group in groups]
    columns = (
        doc.labels("test text", [group.name for group in groups], wraps=True),
        doc.numbers("segments", [group.segments for group in groups], form="count", drop=2),
        doc.numbers("contaminated", [group.contaminated_segments for group in groups], form="count"),
        doc.numbers("duplicates", [group.whole_duplicates for group in groups], form="count", drop=1),
        doc.numbers("bytes", shares, 2, "percent"),
        doc.numbers(f"{overlap.n}-grams", [group.ngram_share for group in groups], 2, "percent"),
    )
    more = (f"and {left:,} more, with smaller shares: --json has them all",) if left > 0 else ()
    yield doc.Table(columns, f"By test text (bytes and {overlap.n}-grams: the share in the training text)", footnotes=more)
    names = [group.name for group in groups]
    by_share = (("bytes", shares), (f"{overlap.n}-grams", [group.ngram_share for group in groups]))
    series = tuple(doc.series(what, names, [100 * share for share in part]) for what, part in by_share)
    title, y = "Overlap by test text", "share that is in the training text"
    yield doc.ChartData("overlap", title, "test text", y, "%", series, kind="bars", better="lower", note="".join(more))


def _passages(overlap: Overlap) -> Iterator[doc.Block]:
    if not overlap.passages:
        return
    which = "The longest passages" if overlap.passage_count > len(overlap.passages) else "Passages"
    yield doc.Heading(f"{which}, {len(overlap.passages):,} of {overlap.passage_count:,}")
    for passage in overlap.passages:
        yield doc.Text(f"{counted(passage.length, overlap.unit)}  {passage.test}")
        yield doc.Text(f"= {passage.train}", indent=_INDENT)
        yield _quoted(passage.text)


def _quoted(text: str) -> doc.Text:
    # Text in one paragraph, whatever its line ends were.
    flat = " ".join(text.split())
    if len(flat) > _LONGEST_TEXT:
        flat = flat[:_LONGEST_TEXT].rstrip("… ") + "…"
    return doc.Text(flat, note=True, indent=_INDENT)


def split_blocks(split: SplitEvaluation) -> Iterator[doc.Block]:
    """Yield the figures of a run and of its parts, and which part is empty."""
    yield from evaluations.blocks([part for part in (split.whole, split.clean, split.contaminated) if part is not None])
    for name, part in ((CLEAN, split.clean), (CONTAMINATED, split.contaminated)):
        if part is None:
            yield doc.Text(f"No segment is {name}: there are no numbers for that part.")
