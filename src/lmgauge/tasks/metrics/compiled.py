"""Metrics whose statistics compiled code counts, segment by segment, shared among threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.result_list import Result
from lmgauge.base.threads import run_ranges, thread_count
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.tasks.metrics.protocol import Statistics, TaskMetric, reference_key, signature_of
from lmgauge.tasks.texts import References, Texts

# Below this a second thread costs more than it saves.
BYTES_PER_THREAD = 1 << 17

LONGEST = 1 << 30
"""Bytes that no text reaches: kernels count its words in 32 bits."""

LENGTH_SCALE = 720720
"""Average lengths of several references are whole numbers of this part of a word, so that sums over segments stay exact:
it is divisible by every number of references up to `MOST_AVERAGED`."""

MOST_AVERAGED = 16
"""The most references of a segment whose lengths can be averaged."""

NO_MATCH = "no n-gram of some order is in a reference, or no output is that long; lower the order, or take the effective one"
"""Why BLEU or chrF may be 0."""

Kernel = Callable[[int, int, Statistics], None]
"""Fills rows `begin` to `end` (excluded) of the statistics."""

Stop = NDArray[np.uint8]
"""uint8 [1]: what takes long ends early once it is not 0."""


class PrintedScore(Result):
    """A score with its parts as fields, counts an entry for each order, that prints as the line people paste."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.metric}|{self.signature} = {self.score:.1f}"  # type: ignore[attr-defined]

    def _in_brief(self) -> str:
        return str(self)


class CompiledMetric(TaskMetric):
    """A metric whose statistics are int64, counted by compiled code."""

    @property
    def averages_lengths(self) -> bool:
        """Whether the reference length of a segment is the average over its references."""
        return False

    @abstractmethod
    def kernel(self, hypotheses: Texts, references: References, stop: Stop) -> Kernel:
        """Return what counts the statistics of some segments.

        Args:
            hypotheses: one for each segment, prepared.
            references: one or more for each segment, prepared.
            stop: set where another thread has failed, or on Ctrl-C.
        """

    def signature_with(
        self, references: int | None, choices: Mapping[str, str] | None, own: Mapping[str, str | bool]
    ) -> str:
        """Return all choices that move the score, in sacreBLEU's format: of the data, of the test, of the metric.

        Args:
            references: how many each segment has, None where the number varies.
            choices: keys of the test, such as `seed`.
            own: options of the metric; True and False are written as yes and no.
        """
        named = {key: ("yes" if value else "no") if isinstance(value, bool) else value for key, value in own.items()}
        return signature_of(reference_key(references) | dict(choices or {}) | named | {"lmgauge": NUMBERS_VERSION})

    def statistics(
        self, hypotheses: Texts, references: References, threads: int | None = None, sources: Texts | None = None
    ) -> Statistics:
        """Count the statistics of each segment.

        Args:
            hypotheses: one for each segment, prepared.
            references: one or more for each segment, prepared.
            threads: how many to use, all cores if None; the result does not depend on it.
            sources: not used.

        Returns:
            int64 [segments, columns], named by `columns`.

        Raises:
            InputError: numbers of segments differ, a segment has no reference, or a text has 1 GiB or more.
            UsageError: a segment has more than 16 references, and their lengths are averaged.
        """
        segments, counts = len(hypotheses), np.diff(references.offsets)
        if segments != len(references):
            raise InputError(f"{segments:,} hypotheses and references of {len(references):,} segments: give as many")
        if segments and not counts.all():
            raise InputError(f"segment {int(np.argmin(counts)) + 1} has no reference; give at least one (it may be empty)")
        if segments and self.averages_lengths and counts.max() > MOST_AVERAGED:
            raise UsageError(
                f"segment {int(np.argmax(counts)) + 1} has {counts.max()} references; {self.name} averages the lengths of "
                f"up to {MOST_AVERAGED}"
            )
        sizes = [texts.ends - texts.starts for texts in (hypotheses, references.texts)]
        if segments and max(int(size.max()) for size in sizes) >= LONGEST:
            raise InputError("a segment has 1 GiB or more: is the file without line ends? Cut it into segments")
        rows = np.zeros((segments, len(self.columns)), dtype=np.int64)
        stop = np.zeros(1, dtype=np.uint8)
        kernel = self.kernel(hypotheses, references, stop)
        useful = max(1, min(segments, int(sum(size.sum() for size in sizes)) // BYTES_PER_THREAD))
        try:
            run_ranges(lambda begin, end: kernel(begin, end, rows), segments, min(thread_count(threads), useful))
        except BaseException:
            stop[0] = 1
            raise
        return rows
