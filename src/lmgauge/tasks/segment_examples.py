"""Segments to look at, chosen while all are scored: the worst, those on which systems differ most, and a sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.option_numbers import check_whole
from lmgauge.numerics.largest import Largest
from lmgauge.numerics.resampling import GOLDEN, mixed
from lmgauge.tasks.alignment import Alignment, ErrorCounts, Unit, align_all
from lmgauge.tasks.metrics.bleu import BLEU
from lmgauge.tasks.metrics.error_rates import EditRate
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.texts import Block, Texts

APART, SAMPLE = "systems differ most", "sample"
BINS = 20
MOST_TEXTS = 900  # of all systems: of many systems fewer segments are shown
_LONGEST = 20_000  # characters of a text that are aligned for reading, where the metric aligns nothing itself
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0x20000, 0x3FFFF))


@dataclass(frozen=True)
class Output:
    """What a system made of a segment."""

    system: str
    score: float  # of this segment alone, in the metric's unit
    alignment: Alignment  # with the reference that it is nearest to


@dataclass(frozen=True)
class ShownSegment:
    """A segment to look at."""

    segment: int
    group: str  # its group; "" if there is none
    why: tuple[str, ...]  # it was chosen: the worst of a system, "systems differ most", "sample"
    references: tuple[str, ...]  # as they were written; normalized where the metric aligns
    outputs: tuple[Output, ...]  # of the systems, in their order


@dataclass(frozen=True)
class SegmentExamples:
    """What a page shows of segments."""

    items: tuple[ShownSegment, ...]  # chosen segments, by why they were chosen
    aligned: bool  # the metric is an error rate, whose alignments these are; else texts are only compared for reading
    # of the bins of segment scores, float64 [bins + 1], in the metric's unit; scores beyond the last are in it
    edges: tuple[float, ...]
    counts: dict[str, tuple[int, ...]]  # of each system, how many segments are in each bin
    errors: dict[str, ErrorCounts]  # of each system, where the metric is an error rate


@dataclass(frozen=True)
class _Texts:
    """The texts of a segment that may be shown."""

    group: str
    references: tuple[str, ...]
    hypotheses: tuple[str, ...]
    scores: tuple[float, ...]


class SegmentChooser:
    """Chooses segments while they are scored; keeps no more texts than are shown at the end."""

    def __init__(self, metric: TaskMetric, count: int, seed: int = DEFAULT_SEED) -> None:
        check_whole("segments", count, 0)
        self._metric, self._count, self._seed = metric, count, seed
        self._scored_by = replace(metric, effective_order=True) if isinstance(metric, BLEU) else metric
        self._names: tuple[str, ...] = ()
        self._worst: list[Largest] = []
        self._apart = self._sample = Largest(0)
        self._texts: dict[int, _Texts] = {}
        self._done = 0
        self._edges = np.linspace(0, 1 if metric.percent else 100, BINS + 1)
        self._counts: list[NDArray[np.int64]] = []
        self._errors: list[ErrorCounts] = []

    def see(
        self, names: Sequence[str], group_names: Sequence[str], block: Block, statistics: Sequence[NDArray[Any]]
    ) -> None:
        """Look at further segments."""
        # statistics: of each system, [segments, columns].
        if not self._names:
            self._names = tuple(names)
            self._count = min(self._count, max(1, MOST_TEXTS // (3 * len(names))))
            self._apart, self._sample = Largest(self._count), Largest(self._count)
            self._worst = [Largest(self._count) for _ in names]
            self._counts = [np.zeros(BINS, np.int64) for _ in names]
            self._errors = [ErrorCounts() for _ in names]
        sums = [rows.astype(np.float64) for rows in statistics]
        scores = np.array([self._scored_by.scores(rows) for rows in sums])
        lengths = sums[0][:, self._metric.reference_columns].sum(axis=1)
        places = np.arange(self._done, self._done + len(block))
        if self._metric.higher_is_better:
            badness, seconds = -scores, lengths
        else:  # the number of errors: of short segments a rate says little
            badness, seconds = scores * np.maximum(lengths, 1), scores[0]
        for top, keys in zip(self._worst, badness, strict=True):
            top.add(places, keys, seconds)
        if len(names) > 1:
            spread = badness.max(axis=0) - badness.min(axis=0)
            self._apart.add(places, np.where(spread > 0, spread, -np.inf), lengths)
        drawn = mixed((places.astype(np.uint64) + np.uint64(1 + ((self._seed % 2**32) << 32))) * GOLDEN)
        self._sample.add(places, drawn.astype(np.float64), lengths)
        for counts, of_system in zip(self._counts, scores, strict=True):
            counts += np.histogram(np.clip(of_system, self._edges[0], self._edges[-1]), self._edges)[0]
        if isinstance(self._metric, EditRate):
            self._count_errors(self._metric, block, sums)
        self._keep(block, group_names, scores)
        self._done += len(block)

    def _count_errors(self, metric: EditRate, block: Block, sums: Sequence[NDArray[np.float64]]) -> None:
        for k, (errors, rows) in enumerate(zip(self._errors, sums, strict=True)):
            wrong = np.flatnonzero(rows[:, 1:].sum(axis=1))
            own, hypotheses = block.against(k), block.hypotheses[k].picked(wrong)
            references = own.texts.picked(own.offsets[wrong])
            for alignment in align_all(metric.prepared(references), metric.prepared(hypotheses), metric.unit):
                errors.add(alignment)

    def _keep(self, block: Block, group_names: Sequence[str], scores: NDArray[np.float64]) -> None:
        # Keep the texts of what is chosen so far, and no others.
        chosen = {segment for top in (*self._worst, self._apart, self._sample) for segment in top}
        self._texts = {segment: texts for segment, texts in self._texts.items() if segment in chosen}
        for segment in chosen - self._texts.keys():
            i = segment - self._done
            first, last = block.references.offsets[i : i + 2].tolist()
            self._texts[segment] = _Texts(
                "" if block.groups is None else group_names[int(block.groups[i])],
                tuple(block.references.texts.part(first, last).strings()),
                tuple(texts.part(i, i + 1).strings()[0] for texts in block.hypotheses),
                tuple(scores[:, i].tolist()),
            )

    def examples(self, best: str) -> SegmentExamples:
        """Return what was chosen, once all segments were seen."""
        worst = f"worst of {best}" if len(self._names) > 1 else "worst"
        reasons: dict[int, list[str]] = {}
        kinds = ((worst, self._worst[self._names.index(best)]), (APART, self._apart), (SAMPLE, self._sample))
        for why, top in kinds:
            for segment in top:
                reasons.setdefault(segment, []).append(why)
        first_with = {texts.references + texts.hypotheses: i for i, texts in sorted(self._texts.items(), reverse=True)}
        distinct = set(first_with.values())  # a text that comes again and again is shown once
        items = (self._shown(segment, tuple(why)) for segment, why in reasons.items() if segment in distinct)
        return SegmentExamples(
            items=tuple(items),
            aligned=isinstance(self._metric, EditRate),
            edges=tuple(self._edges.tolist()),
            counts={name: tuple(counts.tolist()) for name, counts in zip(self._names, self._counts, strict=True)},
            errors=dict(zip(self._names, self._errors, strict=True)) if isinstance(self._metric, EditRate) else {},
        )

    def _shown(self, segment: int, why: tuple[str, ...]) -> ShownSegment:
        texts, metric = self._texts[segment], self._metric
        unit: Unit = metric.unit if isinstance(metric, EditRate) else _unit(texts.references)
        most = None if isinstance(metric, EditRate) else _LONGEST
        sides = (Texts.of_strings([text[:most] for text in side]) for side in (texts.references, texts.hypotheses))
        references, hypotheses = (metric.prepared(side) if isinstance(metric, EditRate) else side for side in sides)
        alignments = [_nearest(references, hypotheses.part(i, i + 1), unit) for i in range(len(hypotheses))]
        outputs = (Output(*of_system) for of_system in zip(self._names, texts.scores, alignments, strict=True))
        return ShownSegment(segment, texts.group, why, tuple(references.strings()), tuple(outputs))


def _nearest(references: Texts, hypothesis: Texts, unit: Unit) -> Alignment:
    repeated = hypothesis.picked(np.zeros(len(references), np.int64))
    return min(align_all(references, repeated, unit), key=lambda one: one.substitutions + one.deletions + one.insertions)


def _unit(references: Iterable[str]) -> Unit:
    # What texts are compared by: characters where their script puts no spaces between words.
    letters = [ord(character) for text in references for character in text[:1000] if character.isalpha()]
    unspaced = sum(any(low <= letter <= high for low, high in _UNSPACED) for letter in letters)
    return "character" if 2 * unspaced > len(letters) else "word"


def window(item: ShownSegment, most: int) -> tuple[int, int]:
    """Return which units of the reference to show of a segment that is long: those with most errors of all systems."""
    length = len(item.outputs[0].alignment.reference)
    if length <= most:
        return 0, length
    wrong = np.zeros(length + 1)
    for output in item.outputs:
        operations = output.alignment.operations
        places = np.minimum(np.cumsum(operations != 3) - (operations != 3), length)
        np.add.at(wrong, places[operations != 0], 1)
    sums = np.concatenate([[0.0], np.cumsum(wrong)])
    first = int(np.argmax(sums[most:] - sums[:-most]))
    first = min(first, length - most)
    return first, first + most


def pairs_within(alignment: Alignment, first: int, last: int) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield the pairs of an alignment (see `Alignment.pairs`) at some units of the reference."""
    place = 0
    for operation, reference, hypothesis in alignment.pairs():
        if first <= place < last or (place == last == len(alignment.reference)):
            yield operation, reference, hypothesis
        place += reference is not None
