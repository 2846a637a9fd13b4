"""Scores of what comes in parts: statistics add up, so parts from anywhere merge to the same digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.intervals import FEWEST_UNITS, UNKNOWN
from lmgauge.numerics.resampling import Estimate, UnitSums, document_sums
from lmgauge.tasks.metrics.protocol import SCALE, Statistics, TaskMetric, TaskScore, with_whole_statistics
from lmgauge.tasks.scoring import Blanks, block_of_strings, block_statistics, document_codes
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.significance import IndependentRows, SignificancePlan, uncertainties
from lmgauge.text.segment_metadata import BY_NAMES


class Accumulator:
    """A metric's statistics of segments that come in parts, in one process or many.

    The score depends on which segments there are, and not on how they were parted or in which order parts were merged. The
    interval depends also on the order of the segments, unless they name their documents; `merge` appends. Accumulators can
    be pickled, and so go from one process to another.

    >>> from lmgauge.tasks import WER
    >>> whole, part = Accumulator(WER()), Accumulator(WER())
    >>> whole.add(hypotheses=["a b"], references=["a c"])
    >>> part.add(hypotheses=["d e"], references=["d e"])
    >>> whole.merge(part)
    >>> whole.score().score, whole.segments
    (0.25, 2)
    """

    def __init__(self, metric: TaskMetric, *, keep_segments: bool = True, threads: int | None = None) -> None:
        """Begin with nothing.

        Args:
            metric: with its options.
            keep_segments: keep the statistics of each segment, for `interval`; without, memory does not grow.
            threads: how many score; does not change results.
        """
        self.metric = metric
        self.references: int | None = 0
        """References a segment, None where the number varies."""
        self.blanks = Blanks()
        self._threads = threads
        self._sums = np.zeros(len(metric.columns), dtype=np.int64)
        self._parts: list[Statistics] | None = [] if keep_segments else None
        self._documents: list[str] | None = None

    @property
    def _exact(self) -> TaskMetric:
        return with_whole_statistics(self.metric)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return self.blanks.segments

    def add(
        self,
        *,
        hypotheses: Sequence[str],
        references: Sequence[str | Sequence[str | None]],
        sources: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
    ) -> None:
        """Take further segments.

        Args:
            hypotheses: the system's outputs.
            references: for each a string, or a list of strings; None in a list is absent.
            sources: the text that each was translated from, where the metric needs it.
            documents: the name of the document of each, for `interval`; None if they are not known.

        Raises:
            UsageError: something is not a string or list of strings, or some segments name documents and some do not.
            InputError: the lengths differ, a segment has no reference, or a text holds NUL.
        """
        block = block_of_strings(self.metric, {"": hypotheses}, references, sources, documents)
        names = None if documents is None else [str(name) for name in documents]
        if not len(block):
            return
        self._check_documents(names)
        (rows,) = block_statistics(self._exact, block, self._threads)
        blanks = Blanks.of(block.hypotheses[0], block.references)
        self._take(rows.sum(axis=0, dtype=np.int64), [rows], block.references.count, blanks, names)

    def _check_documents(self, names: list[str] | None) -> None:
        if names is not None and self._parts is None:
            raise UsageError("documents are for intervals, and the statistics of segments are not kept: leave them out")
        if self.segments and (names is None) != (self._documents is None):
            raise UsageError("some segments name their documents and some do not: give documents for all or for none")

    def merge(self, other: Accumulator) -> None:
        """Take the segments of another accumulator, after one's own.

        Raises:
            UsageError: it is of another metric or other options, or only one of the two keeps segments.
        """
        own, others = _described(self.metric), _described(other.metric)
        if own != others:
            raise UsageError(f"cannot merge {others} into {own}: give the same metric and options")
        if (self._parts is None) != (other._parts is None):
            raise UsageError(
                "cannot merge: one keeps the statistics of each segment, the other does not; give both the same"
            )
        if other.segments:
            self._check_documents(other._documents)
            self._take(other._sums, list(other._parts or []), other.references, other.blanks, other._documents)

    def _take(
        self,
        sums: Statistics,
        parts: list[Statistics],
        references: int | None,
        blanks: Blanks,
        documents: list[str] | None,
    ) -> None:
        if self.segments and references != self.references:
            references = None
        self.references = references
        self._sums = self._sums + sums
        if self._parts is not None:
            self._parts.extend(parts)
        if documents is not None:
            self._documents = [*(self._documents or []), *documents]
        self.blanks = self.blanks.joined(blanks)

    def score(self) -> TaskScore:
        """Return the score of all segments so far.

        Raises:
            InputError: there are none, or nothing but blank ones.
        """
        self.blanks.check(self.metric)
        return self._exact.score(self._sums, self.references)

    def statistics(self) -> NDArray[Any]:
        """Return the statistics of each segment, [segments, columns], int64 or, if the metric's are, float64.

        Raises:
            UsageError: they were not kept.
        """
        rows = self._rows()
        return rows / SCALE if self.metric.float_statistics else rows

    def _rows(self) -> Statistics:
        if self._parts is None:
            raise UsageError("the statistics of each segment were not kept; make the accumulator with keep_segments=True")
        if len(self._parts) != 1:
            none = np.zeros((0, len(self.metric.columns)), dtype=np.int64)
            self._parts = [np.concatenate([none, *self._parts])]
        return self._parts[0]

    def interval(self, settings: ComparisonSettings | None = None) -> Estimate:
        """Return how sure the score is: the 95 % interval and half its width, as `score_systems` gives them.

        Args:
            settings: the test whose interval it is; None: the defaults of `ComparisonSettings`.

        Raises:
            InputError: there are too few segments, or nothing but blank ones.
            UsageError: statistics were not kept, or as `score_systems`.
        """
        self.blanks.check(self.metric)
        rows = self._rows()
        units = UnitSums(rows.shape[1])
        units.add(rows)
        by = UNKNOWN if self._documents is None else BY_NAMES
        independent = IndependentRows([units.rows()], len(rows), units.segments_per_unit, by)
        if self._documents is not None:
            independent = independent.with_documents(document_sums([rows], document_codes(self._documents, len(rows))))
        (found,) = uncertainties(
            self._exact, [self.metric.name], SignificancePlan(independent, settings or ComparisonSettings())
        )
        if found.interval is None:
            raise InputError(f"{len(rows):,} segments are too few: an interval needs {FEWEST_UNITS} that have a reference")
        return found.interval


def _described(metric: TaskMetric) -> str:
    # What makes a metric the same: its class and options.
    own: tuple[Field[Any], ...] = fields(metric) if is_dataclass(metric) else ()
    options = (f"{one.name}={getattr(metric, one.name)!r}" for one in own if one.init and one.compare)
    return f"{type(metric).__name__}({', '.join(options)})"
