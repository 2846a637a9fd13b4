"""What a reader must know to read the comparison of two runs, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmgauge.evaluation.bounds import lossy_reason
from lmgauge.evaluation.comparison.comparability import EXACT_PART, NOTHING, SHARED_EVENTS, WHOLE
from lmgauge.evaluation.comparison.pair_sums import PairSums
from lmgauge.evaluation.comparison.paired_segments import Paired
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.intervals import DOCUMENTS, Spread
from lmgauge.scores import OOV


def notes(sums: PairSums, part: str, paired: Paired, lead: Spread | None, slices: Sequence[Slices]) -> Iterator[str]:
    """Yield the notes of a comparison, the most important first.

    Args:
        sums: what was collected of the two runs.
        part: what of the text is compared in the end.
        paired: columns of all segments.
        lead: the spread of the leading figure; None where there is none.
        slices: those that are shown.
    """
    for run, zeros in zip(sums.runs, sums.zeros, strict=True):
        if zeros:
            rest = "'without' leaves out the segments they are in" if paired.used.any() else "no segment is without"
            yield (
                f"{run.name}: {zeros:,} events have probability zero: its figures are infinite and no test can be made; "
                + rest
            )
    if sums.by_segment:
        yield "a table has no byte spans: compared are whole segments, and whether all bytes were scored was not checked"
    if part != NOTHING and np.count_nonzero(paired.used) + np.count_nonzero(paired.zeros) < 2:
        yield "there is only one segment, so there is no interval and no test"
    yield from caveats(lead, tested=not any(sums.zeros))
    yield from sums.documents.notes if lead is not None else ()
    rows = [row for cut in slices for row in cut.rows if row.segments > 1 and row.difference is not None]
    if lead is not None and lead.unit == DOCUMENTS and any(row.interval is None for row in rows):
        yield "a slice that is within one document has no interval: its segments are not independent"
    if part == NOTHING:
        for run in sums.runs:
            if run.origin.lossy_segments and run.origin.unit != "word":
                why = lossy_reason(run.origin).short
                yield (
                    f"{run.name}: {run.origin.lossy_segments:,} segments are not exact ({why}); a score table does "
                    "not tell which, so no part of the text is known to be exact"
                )
    if part == NOTHING and sums.facts.same_lengths_shuffled:
        yield "the segments of both have the same lengths, in another order: the same text, shuffled?"
    if part not in (NOTHING, SHARED_EVENTS) and sums.corpus is None:
        yield "the text is not at hand: name it with --text for groups, classes and examples"
        if sums.unit == "byte" and sums.line_end() is None:
            yield "without the text each segment is taken to have a line end, which counts as a byte"
        if part == EXACT_PART and any(run.origin.lossy_segments for run in sums.runs):
            yield "without the text any white space of one byte between words passes for a space, which words give back"
    contexts = {run.origin.context for run in sums.runs}
    if part == WHOLE and len(contexts) > 1:
        yield f"contexts differ ({' / '.join(run.origin.context for run in sums.runs)}): part of what is compared"
    if part == EXACT_PART:
        for run, tally in zip(sums.runs, sums.facts.totals, strict=True):
            if tally.events[OOV]:
                yield f"{run.name} is compared only where it knows the {run.origin.unit}s, which favors it"
    vocabularies = {run.origin.fingerprints.get("vocabulary", run.name) for run in sums.runs}
    if part == SHARED_EVENTS and len(vocabularies) > 1:
        yield (
            "a smaller vocabulary makes the words it knows cheaper: of two models over different vocabularies the one "
            "with fewer words is favored here"
        )
