"""The results of a measurement of divergence: objects that print, and turn into dicts and data frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from lmgauge.base.result_list import ResultList, Tabled, column, interval_columns
from lmgauge.evaluation.diagnosis.costs import TokenCost
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.numerics.intervals import Interval

SIGNIFICANT = 0.05
FLOOR = "noise floor"


@dataclass(frozen=True)
class Figure:
    """A figure of the text, and its 95 % interval; None where there is none (few segments, inf - inf)."""

    value: float | None
    interval: Interval | None

    def mapped(self, function: Callable[[float], float]) -> Figure:
        """Return the figure under an increasing function, such as one from nats to bits."""
        return Figure(
            None if self.value is None else function(self.value),
            None if self.interval is None else self.interval.mapped(function),
        )


@dataclass(frozen=True)
class WorstToken:
    """An event that stands out, with the token that each model holds for the most probable."""

    segment: int
    position: int
    context: str  # what comes before it, at most twelve tokens of the segment
    token: str  # what came, as the models see it
    text: str  # the same as it stands behind the context, with the space before it, if any
    # KL(base || candidate) of the two distributions; None where a model gives nothing a probability
    kl_nats: float | None = field(metadata=column("KL, nats", 2, "figures"))
    p_a: float
    p_b: float
    top_a: str  # top_a, top_b: the most probable token of each model
    top_a_probability: float
    top_b: str
    top_b_probability: float


@dataclass(frozen=True)
class TokenErrors:
    """Standard errors as llama.cpp prints them behind ±: as if every event were independent of all others."""

    log_perplexity_a: float  # log_perplexity_a, log_perplexity_b: of the mean of -ln p of the true token
    log_perplexity_b: float
    correlation: float  # of these two over events, -1 to 1
    log_probability_change: float  # of the mean difference of the two
    kl_ab: float  # of the mean of KL(base || candidate)
    # probability_change, squared_probability_change: of the mean change of p of the true token, and of its square
    probability_change: float
    squared_probability_change: float
    top_1: float  # of the share of events at which both have the same most probable token


@dataclass(frozen=True)
class CandidateTest:
    """Two candidates beside the base, event by event: which is worse, and is that chance?"""

    first: str
    second: str
    measure: str  # "kl": KL(base || candidate); "log_loss": -ln p of the true token
    first_value: float | None  # first_value, second_value: mean over the events that count, nats
    second_value: float | None
    difference: float | None  # second minus first, nats; above 0 the second is worse
    interval: Interval | None  # 95 %, of the difference; None for fewer than six documents or segments
    p_value: float | None  # two-sided, of documents or segments as for `Comparison`; None without an interval
    p_value_holm: float | None  # adjusted for all tests of this measure
    segments: int  # segments, left_out: that count, and that do not, as a value is infinite or undefined in them
    left_out: int

    @property
    def significant(self) -> bool | None:
        """Return True if the difference is significant, at 5 %, adjusted; None where it was not tested."""
        return None if self.p_value_holm is None else self.p_value_holm < SIGNIFICANT


@dataclass(frozen=True)
class StorageError:
    """How far a figure from a stored base can be from that of the whole distributions."""

    # of the mean, from the draws alone; 0 where all is stored
    standard_error: float | None = field(metadata=column("standard error", 2, drop=1))
    # low, high: the figure of the whole distributions lies between them, proven for any models, unless draws fell out as
    # they do in 1 - `confidence` of all files; `high` is None where nothing is proven
    low: float = field(metadata=column("at least", 6))
    high: float | None = field(metadata=column("at most", 6))
    confidence: float = 0.999


@dataclass(frozen=True)
class Storage:
    """From what stored base a divergence was measured, and what storing can have done to its figures."""

    file: str
    stored: str
    top: int
    samples: int
    file_bytes: int
    whole_bytes: int
    tail_mass: float  # mean probability that is not stored token by token, 0 to 1
    event_error_nats: float  # root mean square of the standard error of KL(base || candidate) at one event, from the draws
    # of mean figures, by the names of their attributes and in their units; a figure that is not there is exact
    errors: dict[str, StorageError]


@dataclass(frozen=True, repr=False)
class Divergence(Tabled):
    """How far a candidate is from its base, on the events of a text.

    Attributes:
        a, b: names of base and candidate; figures that end in a or b are theirs.
        events, total_events: compared, and in the text; likewise `segments`.
        kl_ab_nats, kl_ba_nats: mean KL(base || candidate) and the reverse, nats; inf if one event's is.
        kl_ab_bits, kl_ba_bits: the same in bits.
        kl_ab_without_infinite_nats: mean KL(base || candidate) over the events where it is finite.
        infinite_kl_ab, infinite_kl_ba: events at which one rules out what the other holds possible: the candidate, the base.
        kl_ab_quantiles_nats: of KL(base || candidate) over events, by percent; 0 is the minimum, 100 the maximum.
        jensen_shannon_bits: mean Jensen-Shannon divergence, from 0 to 1.
        total_variation: mean total variation distance, from 0 to 1.
        acceptance_rate: 1 - total_variation: share of the candidate's tokens that the base would accept in speculative
            decoding (Leviathan et al. 2023), at temperature 1.
        top_1_agreement: share of events at which both hold the same token for the most probable (ties: the lower id).
        top_k_overlap: for each k, which share of the base's k most probable tokens is among the candidate's.
        log_probability_change_nats: mean change of ln p of the true token, from base to candidate; 0 where it is
            impossible to both.
        probability_change: mean change of p of the true token, -1 to 1.
        probability_change_rms: root mean square of it.
        probability_change_quantiles: of it over events, by percent.
        perplexity_a, perplexity_b: on these events; equal to those of an evaluation where all events are compared.
        perplexity_ratio: that of the candidate over that of the base.
        token_errors: standard errors as if events were independent, as llama.cpp prints them; None for fewer than two.
        zero_probability_a, zero_probability_b: events whose true token the model gives probability zero.
        undefined_events: events at which a model gives nothing a probability; left out of all but the perplexities and the
            changes of the true token.
        missing_mass_a, missing_mass_b: mean of what each model's probabilities lack of one, such as the mass of rows of a
            network's output layer that are no token; below 0 where they sum to more.
        slices: mean KL(base || candidate), in bits per event, by group, class, position and frequency in a training text.
        costly_tokens: the tokens with most KL(base || candidate) in all, bits.
        worst_tokens: the events with the largest KL(base || candidate).
        lost_tokens: the events at which the probability of the true token fell most.
        tests: this candidate against those named before it, where several were compared.
        seed: of the sample of segments.
        independence: what the intervals take as independent, in words.
        fingerprints: of both models, the vocabulary and the text.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        storage: of a stored base: what storing can have done to the figures; None where the base itself was asked.
        floor: the noise floor: the base compared with itself, its windows in batches and one by one, at some of the events;
            None where the base repeats its numbers bit by bit, or was not asked.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> small, large = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2))
        >>> result = lmgauge.divergence(large, small, text)
        >>> result.events, round(result.jensen_shannon_bits.value, 3)
        (12, 0.145)
    """

    a: str
    b: str
    events: int
    total_events: int
    segments: int
    total_segments: int
    kl_ab_nats: Figure = field(metadata=column("KL, nats", 2, "figures"))
    kl_ab_bits: Figure = field(metadata=column("KL, bits", 2, "figures"))
    kl_ba_nats: Figure = field(metadata=column("reverse KL, nats", 2, "figures"))
    kl_ba_bits: Figure = field(metadata=column("reverse KL, bits", 2, "figures"))
    kl_ab_without_infinite_nats: float | None
    infinite_kl_ab: int
    infinite_kl_ba: int
    kl_ab_quantiles_nats: dict[str, float]
    jensen_shannon_bits: Figure = field(metadata=column("Jensen-Shannon, bits", 6))
    total_variation: Figure = field(metadata=column("total variation", 6))
    acceptance_rate: Figure = field(metadata=column("expected acceptance rate", 5))
    top_1_agreement: Figure = field(metadata=column("top-1 agreement, %", 2, scale=100))
    top_k_overlap: dict[int, Figure] = field(metadata=column("top-{} overlap, %", 2, scale=100))
    log_probability_change_nats: Figure = field(metadata=column("true token: change of ln p", 6))
    probability_change: Figure = field(metadata=column("true token: change of p, %", 4, scale=100))
    probability_change_rms: Figure = field(metadata=column("true token: RMS change of p, %", 4, scale=100))
    probability_change_quantiles: dict[str, float]
    perplexity_a: Figure = field(metadata=column("perplexity of {a}", 3))
    perplexity_b: Figure = field(metadata=column("perplexity of {b}", 3))
    perplexity_ratio: Figure = field(metadata=column("perplexity ratio", 5))
    token_errors: TokenErrors | None
    zero_probability_a: int
    zero_probability_b: int
    undefined_events: int
    missing_mass_a: float
    missing_mass_b: float
    slices: tuple[Slices, ...]
    costly_tokens: tuple[TokenCost, ...]
    worst_tokens: tuple[WorstToken, ...]
    lost_tokens: tuple[WorstToken, ...]
    tests: tuple[CandidateTest, ...]
    seed: int
    independence: str
    fingerprints: dict[str, str]
    signature: str
    notes: tuple[str, ...]
    storage: Storage | None = None
    floor: Divergence | None = None

    def to_llama_cpp(self) -> str:
        """Return the figures as `llama-perplexity --kl-divergence` prints them, under the same names.

        What stands behind ± is, as there, a standard error of independent tokens. The 95 % intervals of this object are over
        documents or segments: they reach about two standard errors to each side, and further where the tokens of a segment
        or document are alike.

        Raises:
            InputError: a figure is infinite, or there are fewer than two events: there is no such table then.
        """
        from lmgauge.evaluation.divergence.llama_cpp import llama_cpp_table

        return llama_cpp_table(self)

    def figures(self) -> dict[str, Figure]:
        """Return the figures by the names of their attributes; of each k of `top_k_overlap` `top_k_overlap` with it."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        figures = {name: value for name, value in own.items() if isinstance(value, Figure)}
        return figures | {f"top_{k}_overlap": figure for k, figure in self.top_k_overlap.items()}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure: its name (that of the attribute), value, and interval."""
        return [{"figure": name, "value": f.value} | interval_columns(f.interval) for name, f in self.figures().items()]

    def _in_brief(self) -> str:
        def shown(figure: Figure) -> str:
            return "none" if figure.value is None else f"{figure.value:.6g}"

        return (
            f"{self.b} compared with {self.a}: KL {shown(self.kl_ab_nats)} nats, Jensen-Shannon "
            f"{shown(self.jensen_shannon_bits)} bits, top-1 agreement {shown(self.top_1_agreement)}, perplexity ratio "
            f"{shown(self.perplexity_ratio)}"
        )


@dataclass(frozen=True, repr=False)
class CandidateDivergences(ResultList[Divergence]):
    """Several candidates, each compared with one base over the same events of a text.

    Attributes:
        items: the divergences, in the order of the candidates.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> models = {f"wb{order}": lmgauge.train("witten-bell", text, order=order) for order in (1, 2, 3)}
        >>> base = models.pop("wb3")
        >>> result = lmgauge.divergence(base, models, text)
        >>> [(one.b, round(one.kl_ab_nats.value, 3)) for one in result]
        [('wb1', 0.783), ('wb2', 0.088)]
        >>> [(test.measure, round(test.difference, 3), test.significant) for test in result.tests]  # of three segments
        [('kl', -0.695, None), ('log_loss', -1.099, None)]
    """

    @property
    def tests(self) -> tuple[CandidateTest, ...]:
        """All tests of one candidate against another."""
        return tuple(test for item in self.items for test in item.tests)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each candidate and figure."""
        return [{"base": item.a, "candidate": item.b} | row for item in self.items for row in item.to_rows()]

    def _in_brief(self) -> str:
        values = [(item.b, item.kl_ab_nats.value) for item in self.items]
        shown = ", ".join(f"{name} {'none' if value is None else format(value, '.6g')}" for name, value in values)
        return f"KL from {self.items[0].a}, nats: {shown}"


@dataclass(frozen=True, repr=False)
class SavedBase(Tabled):
    """A base that was stored, to compare candidates with.

    Attributes:
        path: the file.
        model: the base.
        events, total_events, segments, total_segments: stored, and in the text.
        stored: "top": the most probable tokens and draws from the rest; "float32" or "bfloat16": whole distributions;
            "states": the hidden states that the output layer makes them of.
        top: how many most probable tokens of each event.
        samples: tokens drawn from the rest for each unit of its probability.
        file_bytes: length of the file.
        whole_bytes: what whole distributions in 16 bits a token take.
        seed: of the sample of segments, and of the draws.
        fingerprints: of the base, the vocabulary and the text.
        notes: what a reader must know.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = lmgauge.save_base(lmgauge.train("witten-bell", text, order=2), text, f"{folder}/wb2.base")
        >>> saved.events, saved.stored, saved.whole_bytes  # 8 events, 7 tokens
        (8, 'top', 112)
    """

    path: Path
    model: str
    events: int
    total_events: int
    segments: int
    total_segments: int
    stored: str
    top: int
    samples: int
    file_bytes: int
    whole_bytes: int
    seed: int
    fingerprints: dict[str, str]
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row, a column a field."""
        return [self.to_dict()]

    def _in_brief(self) -> str:
        return f"{self.model}, {self.events:,} events in {self.file_bytes:,} bytes: {self.path}"
