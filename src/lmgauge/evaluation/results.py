"""The result of an evaluation: one object a model (and group), which prints, and turns into dicts and data frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lmgauge.base.escaping import listed
from lmgauge.base.remote.addresses import PATHS, PathLike
from lmgauge.base.result_list import Result, ResultList, interval_columns, pandas_module
from lmgauge.evaluation.event_sums import ZeroEvent
from lmgauge.evaluation.origin import Origin
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.signature import Signature
from lmgauge.scores.context_policy import ContextPolicy

if TYPE_CHECKING:
    import pandas as pd

    from lmgauge.evaluation.runs import Run


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    """One model on one text, or on one group of its segments. Log-probabilities and cross-entropy are in nats.

    `perplexity` and all that follows from it is infinite where an event has probability zero. What is not known, such as
    figures by words without the text, is None.

    Attributes:
        model: its name.
        group: the group of segments; None for the whole text.
        perplexity: exp of the cross-entropy.
        cross_entropy: nats per event.
        bits_per_token: the same in bits.
        bits_per_word, bits_per_character, bits_per_byte: all bits by what the source text has.
        bits_per_byte_is_bound, bound_reasons: True if the three are lower bounds (then each is a `LowerBound`, which is not
            ranked), as with unseen words or a tokenizer that loses text; and why.
        interval: of 95 %, of the perplexity; None for fewer than six documents or segments.
        independence, documents_by: what the interval takes as independent, in words, and what tells documents apart
            ("files", ..., "unknown").
        events: of which `tokens`, `sentence_ends` (`</s>`), and among the tokens `oov` (unseen words, spelled or not).
        oov_rate: share of the tokens, 0 to 1; None where the scores do not say which tokens are unseen words.
        perplexity_without_eos, perplexity_without_oov: over the tokens, and over all events but unseen words.
        word_perplexity: by the words of the source text, whatever the tokens are.
        mean_segment_perplexity: mean of the segments' own perplexities, another number than `perplexity`.
        log_probability: of all events, nats.
        zero_probability_events, perplexity_without_zeros, first_zero_probability_events: how many, the finite perplexity of
            the others, and the first ones with their places.
        events_by_matched_order: of an n-gram model: events whose longest n-gram has order 1, 2, ...
        segments, words, characters, bytes: of the source text, newlines included.
        lossy_segments: segments that their tokens do not spell exactly.
        given_bytes: of text that stands before the segments: shown to the model, and in no count and no figure.
        crossing_tokens: first tokens of segments that begin in the given text; each is scored whole.
        unit: of the tokens: word, subword, character, byte.
        context, oov_policy, vocabulary_size: of the model; see the signature.
        fingerprints: SHA-256 of text, model, vocabulary and tokenizer, by name.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        scored_share: share of the text's bytes that is scored, below 1 where a protocol leaves tokens out, or None.
        spelling_bits, separator_bits: of all bits those of the letters of unseen words, and of the white space between
            words; None of a table that has no such columns.
        source_figures: what the program whose protocol was followed prints, under its own names; empty without a protocol.
        first_segment: of a network, the first and last tokens with their ids that it sees of the first segment; else None.
        scores: where `compare` has the scores from: a run folder, or a function that scores the text again and writes one;
            None where there is neither.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
        >>> result = lmgauge.evaluate(model, texts=["the cat sat", "the dog ran"])
        >>> round(result.perplexity, 4), result.events, result.oov
        (2.9453, 8, 1)
        >>> result
        <Evaluation: wb2: perplexity 2.9453, >= 0.5667 bits per byte>
    """

    model: str
    group: str | None
    perplexity: float
    cross_entropy: float
    bits_per_token: float
    bits_per_word: float | None
    bits_per_character: float | None
    bits_per_byte: float | None
    bits_per_byte_is_bound: bool
    bound_reasons: list[str]
    interval: Interval | None
    independence: str
    documents_by: str
    events: int
    tokens: int
    sentence_ends: int
    oov: int
    oov_rate: float | None
    perplexity_without_eos: float | None
    perplexity_without_oov: float | None
    word_perplexity: float | None
    mean_segment_perplexity: float
    log_probability: float
    zero_probability_events: int
    perplexity_without_zeros: float | None
    first_zero_probability_events: list[ZeroEvent]
    events_by_matched_order: list[int]
    segments: int
    words: int | None
    characters: int | None
    bytes: int | None
    lossy_segments: int
    unit: str
    context: str
    oov_policy: str
    vocabulary_size: int | None
    fingerprints: dict[str, str]
    signature: str
    notes: list[str] = field(default_factory=list)
    scored_share: float | None = None
    source_figures: dict[str, float] = field(default_factory=dict)
    given_bytes: int = 0
    crossing_tokens: int = 0
    spelling_bits: float | None = None
    separator_bits: float | None = None
    first_segment: str | None = field(default=None, compare=False)
    scores: PathLike | Callable[[PathLike], Run] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # What is pickled: neither a model nor a text.
        return vars(self) | {"scores": self.scores if isinstance(self.scores, PATHS) else None}

    def __post_init__(self) -> None:
        if self.oov_policy == "unknown" and self.unit != "word" and not self.oov:  # output of word models marks them
            object.__setattr__(self, "oov_rate", None)
        for figure in FIGURES:
            if figure.bounded:
                value = marked(getattr(self, figure.name), bound=self.bits_per_byte_is_bound)
                object.__setattr__(self, figure.name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, full precision; infinities stay floats. What some models lack is left out."""
        return {name: value for name, value in super().to_dict().items() if value is not None or name not in _OF_SOME}

    def origin(self) -> Origin:
        """Return what a score table must state of its origin, so that the same numbers come out of it again."""
        return Origin(**{part.name: getattr(self, part.name) for part in fields(Origin)})

    def to_row(self) -> dict[str, Any]:
        """Return the scalar fields, numbers, strings and None, and the ends of the interval with its unit."""
        plain = self.to_dict()
        scalars = {key: value for key, value in plain.items() if key != "interval" and not isinstance(value, (dict, list))}
        return scalars | interval_columns(self.interval)

    def to_pandas(self) -> pd.Series[Any]:
        """Return the scalar fields as a pandas Series.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        series: pd.Series[Any] = pandas_module().Series(self.to_row())
        return series

    @property
    def sample(self) -> str:
        """How many documents of how many the text is a sample of, as in "200/5000"; empty if it is none."""
        return Signature.parse(self.signature).parts.get("sample", "")

    def _in_brief(self) -> str:
        bits = "" if self.bits_per_byte is None else f", {self.bits_per_byte:.4f} bits per byte"
        name = self.model if self.group is None else f"{self.model} [{self.group}]"
        return f"{name}: perplexity {self.perplexity:.4f}{bits}"


_OF_SOME = ("spelling_bits", "separator_bits", "first_segment")


def comparison_notes(results: Sequence[Evaluation]) -> list[str]:
    """Say which perplexities of one table may not be compared, and which figure may; nothing where all may."""
    # results: of models on one text, with their bits per byte; rows of groups are left out.
    results = [result for result in results if result.group is None]
    if len({result.fingerprints.get("text") for result in results}) != 1:
        return []
    alike: dict[tuple[Any, ...], list[Evaluation]] = {}
    for result in results:
        alike.setdefault(tuple(_events(result).values()), []).append(result)
    if len(alike) < 2:
        return []
    firsts = [_events(members[0]) for members in alike.values()]
    differ = [name for name in firsts[0] if len({first[name] for first in firsts}) > 1]
    sizes = [f"{members[0].events:,} {members[0].unit}s" for members in alike.values()]
    parts = [
        f"{', '.join(result.model for result in members)} ({size})"
        for members, size in zip(alike.values(), sizes, strict=True)
    ]
    note = f"perplexity may not be compared between {' | '.join(parts)}: {listed(differ)} differ; "
    ends = {ContextPolicy.parse(result.context).line_ends for result in results}
    if "unscored" in ends and len(ends) > 1:
        return [note + "nor may bits per byte, as not all models score the ends of lines"]
    bounds = [result.model for result in results if result.bits_per_byte_is_bound]
    return [note + "compare bits per byte" + (f", a lower bound for {', '.join(bounds)}" if bounds else "")]


def _events(result: Evaluation) -> dict[str, object]:
    return {
        "units": (result.unit, result.events),
        "vocabularies": result.fingerprints.get("vocabulary"),
        "line ends": bool(result.sentence_ends),
        "unseen words": result.oov_policy,
    }


@dataclass(frozen=True, repr=False)
class Evaluations(ResultList[Evaluation]):
    """Several evaluations, in order; prints as lines, turns into dicts and data frames.

    Attributes:
        items: of each model the whole text, then its groups.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> models = {f"wb{n}": lmgauge.train("witten-bell", text, order=n) for n in (1, 2)}
        >>> [(item.model, round(item.perplexity, 2)) for item in lmgauge.evaluate(models, texts=["the cat ran"])]
        [('wb1', 6.95), ('wb2', 4.96)]
    """

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a dict for each evaluation; what concerns several is among the notes of each whole text."""
        together = comparison_notes(self.items)
        dicts = [item.to_dict() for item in self.items]
        for plain in dicts:
            plain["notes"] += together if plain["group"] is None else []
        return dicts

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each evaluation: its scalar fields."""
        return [item.to_row() for item in self.items]
