"""Translation edit rate of texts: statistics per segment, and the score with its parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.metrics.reference_length import LENGTH_SCALE, MOST_AVERAGED
from lmgauge.metrics.ter import ter_scores
from lmgauge.tasks.metric import SACREBLEU_VERSION, Statistics
from lmgauge.tasks.sharding import count_segments
from lmgauge.tasks.tercom import Tercom
from lmgauge.tasks.texts import References, Texts
from lmgauge.version import __version__

__all__ = ["TER", "TerScore"]


@dataclass(frozen=True)
class TerScore:
    """TER of a text and what it was made of.

    Attributes:
        metric: "TER".
        score: edits for each 100 words of reference; less is better, and it may exceed 100.
        num_edits: insertions, deletions, substitutions and shifts, of each segment against the reference that needs fewest.
        ref_length: words of the references, of several the average.
        signature: all choices that move the number, in sacreBLEU's format.
    """

    metric: str
    score: float
    num_edits: int
    ref_length: float
    signature: str

    def __str__(self) -> str:
        """Return sacreBLEU's line, with one decimal."""
        return f"{self.metric}|{self.signature} = {self.score:.1f}"

    def to_dict(self) -> dict[str, Any]:
        """The score and its parts."""
        return asdict(self)


@dataclass(frozen=True)
class TER:
    """The options of translation edit rate (Snover et al. 2006), as Tercom and sacreBLEU compute it.

    The edits are those of a greedy search for shifts of up to 10 words over up to 50, with an edit distance that leaves the
    diagonal by at most 25 words; a segment gets no further shift after 1,000 were tried.

    Attributes:
        normalized: undo XML entities and set punctuation apart, as Tercom's normaliser does.
        no_punct: remove punctuation.
        asian_support: with one of these, treat Chinese and Japanese too.
        case_sensitive: tell upper from lower case.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    percent: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    reference_columns: ClassVar[slice] = slice(1, 2)

    @property
    def name(self) -> str:
        """ "TER"."""
        return "TER"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the statistics; the length is in words times `LENGTH_SCALE`."""
        return ("edits", "reference_length")

    def prepared(self, texts: Texts) -> Texts:
        """The texts in lower case and normalised, as the options say."""
        return Tercom(self.normalized, self.no_punct, self.asian_support, self.case_sensitive)(texts)

    def prepared_references(self, texts: Texts) -> Texts:
        """The references after the same, twice where they are normalised, as in sacreBLEU: "it's," comes apart once more."""
        once = self.prepared(texts)
        return self.prepared(once) if self.normalized else once

    def statistics(self, hypotheses: Texts, references: References, threads: int | None = None) -> Statistics:
        """Edits, and the average length of the references.

        Args:
            hypotheses: one for each segment, prepared.
            references: 1 to 16 for each segment, prepared; the one that needs fewest edits counts.
            threads: how many to use; the result does not depend on it.

        Returns:
            int64 [segments, 2], columns as `columns`.

        Raises:
            InputError: hypotheses and references are not equally many, or a segment has no reference.
            UsageError: a segment has more than 16 references.
        """
        _check_counts(references)

        def count(begin: int, end: int, out: Statistics) -> None:
            _native.ter_statistics(hypotheses.arrays, references.texts.arrays, references.offsets, begin, end, out)

        return count_segments(hypotheses, references, len(self.columns), threads, count)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """TER of each row of sums, float64 [rows, 2] -> float64 [rows]."""
        return ter_scores(sums)

    def score(self, sums: NDArray[np.int64], references: int | None, choices: dict[str, str] | None = None) -> TerScore:
        """The score and its parts from one sum of statistics.

        Args:
            sums: int64 [2].
            references: references per segment, None where the number varies.
            choices: further keys of the signature.
        """
        return TerScore(
            metric=self.name,
            score=float(self.scores(np.asarray(sums, dtype=np.float64)[None])[0]),
            num_edits=int(sums[0]),
            ref_length=int(sums[1]) / LENGTH_SCALE,
            signature=self._signature(references, choices or {}),
        )

    def _signature(self, references: int | None, choices: dict[str, str]) -> str:
        keys = {
            "nrefs": "var" if references is None else str(references),
            **choices,
            "case": "mixed" if self.case_sensitive else "lc",
            "tok": "tercom",
            "norm": _yes(self.normalized),
            "punct": _yes(not self.no_punct),
            "asian": _yes(self.asian_support),
            "version": SACREBLEU_VERSION,
            "lmgauge": __version__,
        }
        return "|".join(f"{key}:{value}" for key, value in keys.items())


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _check_counts(references: References) -> None:
    counts = np.diff(references.offsets)
    if len(counts) and counts.max() > MOST_AVERAGED:
        raise UsageError(
            f"segment {int(np.argmax(counts)) + 1} has {counts.max()} references: TER averages their lengths and "
            f"takes up to {MOST_AVERAGED}"
        )
