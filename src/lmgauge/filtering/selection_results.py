"""What a selection of training text is, and how its share was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmgauge.filtering.histogram import Bins
from lmgauge.numerics.intervals import Interval
from lmgauge.result_list import Tabled

LEVEL = 0.05
"""Below this p-value, adjusted for the number of shares, a share is significantly worse than the best."""


@dataclass(frozen=True)
class MeasuredModel:
    """A model trained on a part of the pool, measured on the held-out text."""

    perplexity: float
    interval: Interval | None = None
    ratio: float | None = None  # its perplexity over that of another model; 1 is as good
    ratio_interval: Interval | None = None  # 95 %, of the ratio, paired: both models scored the same text
    p_value: float | None = None  # of no difference between the two


@dataclass(frozen=True)
class SelectionCut:
    """What would be selected at one share of the pool."""

    share: float  # of the bytes of the pool that was asked for, 0 to 1
    documents: int
    bytes: int
    threshold: float  # the highest difference among them, bits per token
    # a model trained on them; its ratio is to the best share. None where no share was tried.
    selected: MeasuredModel | None = None
    # a model trained on as many bytes of random documents; its ratio is the perplexity of the selected one over its own.
    # None also for the whole pool.
    random: MeasuredModel | None = None
    # the p-value of the ratio to the best share, adjusted for the number of shares (Holm 1979)
    p_value_holm: float | None = None

    @property
    def worse(self) -> bool:
        """Return True if the share is significantly worse than the best one."""
        return self.p_value_holm is not None and self.p_value_holm < LEVEL

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        size = {name: getattr(self, name) for name in ("share", "documents", "bytes", "threshold")}
        selected = _measured("", self.selected, "ratio_to_best") | {"p_value_holm": self.p_value_holm}
        return size | selected | _measured("random_", self.random, "ratio_to_random")


def _measured(prefix: str, model: MeasuredModel | None, ratio: str) -> dict[str, Any]:
    names = (f"{prefix}perplexity", f"{prefix}interval", ratio, f"{ratio}_interval", f"{ratio}_p_value")
    values = [None] * len(names) if model is None else vars(model).values()
    ends = [[value.low, value.high] if isinstance(value, Interval) else value for value in values]
    return dict(zip(names, ends, strict=True))


@dataclass(frozen=True)
class SelectionExample:
    """A document of the pool."""

    place: str  # its file and line or record
    difference: float  # of its cross-entropies, bits per token
    text: str


@dataclass(frozen=True, repr=False)
class Selection(Tabled):
    """Documents selected from a pool for being like a target.

    Attributes:
        chosen: the share that is selected.
        cuts: all shares that were tried, rising; the chosen one alone where none was.
        tolerance: the smallest share surely no worse than this, relative to the best, was taken; 0 takes the best.
        documents, bytes: of the pool, those without a word included.
        without_words: documents of the pool without any token, which are never selected.
        in_domain_bytes: of the target's part that the in-domain model was trained on.
        in_domain_perplexity: of that model itself on the held-out text; None without one.
        held_out_events: tokens of the held-out text, `</s>` included; 0 without one.
        oov_rate: share of unseen words in the held-out text, 0 to 1; None without one.
        vocabulary: words that all models know.
        independence: what the intervals take as independent, in words.
        outputs: the files written, empty if none.
        histogram: of the differences, in bits per token; the outermost bins also have what lies outside.
        examples: documents of the pool by where they stand in the order: the most and the least alike, and those on both
            sides of where the selection ends.
        notes: what a reader must know.
        signature: every choice that decides what is selected.

    Example:
        >>> import lmgauge
        >>> pool = lmgauge.Corpus.from_strings(["the cat sat", "buy now", "the dog sat", "buy cheap", "now buy"] * 9)
        >>> target = lmgauge.Corpus.from_strings(["the cat ran", "the dog ran home", "the cat sat", "the dog sat down"] * 9)
        >>> settings = lmgauge.settings.SelectionSettings(share=0.5, smoothing="laplace", order=2)
        >>> lmgauge.select_documents(pool, target, settings=settings)
        <Selection: 18 of 45 documents, 198 of 405 bytes, difference at most -0.1078 bits per token>
    """

    chosen: SelectionCut
    cuts: tuple[SelectionCut, ...]
    tolerance: float
    documents: int
    bytes: int
    without_words: int
    in_domain_bytes: int
    in_domain_perplexity: float | None
    held_out_events: int
    oov_rate: float | None
    vocabulary: int
    independence: str = ""
    outputs: tuple[str, ...] = ()
    histogram: Bins | None = field(default=None, repr=False)
    examples: Mapping[str, tuple[SelectionExample, ...]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    signature: str = ""

    @property
    def best(self) -> SelectionCut | None:
        """The share with the lowest perplexity on the held-out text; None where no share was tried."""
        tried = [cut for cut in self.cuts if cut.selected is not None]
        return min(tried, key=perplexity_of, default=None)

    @property
    def smallest_alike(self) -> SelectionCut | None:
        """The smallest share that is not significantly worse than the best; None where no share was tried."""
        return next((cut for cut in self.cuts if cut.selected is not None and not cut.worse), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge select --json` prints them."""
        best, alike = self.best, self.smallest_alike
        first = {
            "chosen": self.chosen.to_dict(),
            "best_share": None if best is None else best.share,
            "smallest_share_not_worse": None if alike is None else alike.share,
            "tolerance": self.tolerance,
            "cuts": self.to_rows(),
        }
        others = {name: value for name, value in vars(self).items() if name not in {*first, "histogram"}}
        examples = {where: [dict(vars(one)) for one in examples] for where, examples in self.examples.items()}
        return first | others | {"outputs": list(self.outputs), "notes": list(self.notes), "examples": examples}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each share that was tried."""
        return [cut.to_dict() for cut in self.cuts]

    def _in_brief(self) -> str:
        chosen = self.chosen
        brief = f"{chosen.documents:,} of {self.documents:,} documents, {chosen.bytes:,} of {self.bytes:,} bytes"
        if chosen.selected is None:
            return f"{brief}, difference at most {chosen.threshold:.4g} bits per token"
        versus = "" if chosen.random is None else f", random {chosen.random.perplexity:.4g}"
        return f"{brief}, held-out perplexity {chosen.selected.perplexity:.4g}{versus}"


def perplexity_of(cut: SelectionCut) -> float:
    """Return the perplexity per event, on the held-out text, of a share that was tried."""
    assert cut.selected is not None
    return cut.selected.perplexity


def choose_cut(cuts: Sequence[SelectionCut], tolerance: float) -> SelectionCut:
    """Return the share to select."""
    best = min(cuts, key=perplexity_of)
    for cut in cuts if tolerance else ():
        assert cut.selected is not None
        interval = cut.selected.ratio_interval
        if interval is not None and interval.high <= 1 + tolerance:
            return cut
        if cut is best:
            break
    return best
