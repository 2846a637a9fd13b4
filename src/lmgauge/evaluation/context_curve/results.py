"""What each length of context costs, and what each longer one saves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lmgauge.numerics.intervals import Interval
from lmgauge.result_columns import column, interval_columns, plain_values
from lmgauge.result_list import Tabled


@dataclass(frozen=True)
class ContextPoint:
    """What the counted tokens cost under one length."""

    # All is infinite, without intervals, where a token has probability zero.

    context: int = field(metadata=column("context", form="count"))  # most tokens that a prediction sees
    log_probability: float  # of the counted tokens, nats
    perplexity: float = field(metadata=column("perplexity", 2, drop=3))  # exp of minus the nats per token
    # bits_per_token, interval_per_token: with its 95 % interval; None for too little text
    bits_per_token: float = field(metadata=column("bits/token"))
    interval_per_token: Interval | None = field(metadata=column("95 % interval", drop=2))
    # bits_per_byte, interval_per_byte: the same by the bytes of the counted tokens
    bits_per_byte: float | None = field(metadata=column("bits/byte"))
    interval_per_byte: Interval | None = field(metadata=column("95 %", drop=1))
    zero_probability_events: int = field(metadata=column("p = 0", form="count", optional=True))


@dataclass(frozen=True)
class ContextStep:
    """What changes from one length to the next, paired token by token; below 0 the longer context is better."""

    shorter: int
    longer: int
    # bits_per_token, interval_per_token: the difference and its 95 % interval
    bits_per_token: float | None = field(metadata=column("bits/token", 4, "signed"))
    interval_per_token: Interval | None = field(metadata=column("95 % interval", 4, "signed", drop=2))
    # bits_per_byte, interval_per_byte: the same by bytes
    bits_per_byte: float | None = field(metadata=column("bits/byte", 4, "signed"))
    interval_per_byte: Interval | None = field(metadata=column("95 %", 4, "signed", drop=1))
    # two-sided, of no difference; None for too little text, or with a token of probability zero
    p_value: float | None = field(metadata=column("p", form="p", drop=3))
    # adjusted for the number of steps
    p_value_holm: float | None = field(default=None, metadata=column("p (Holm)", form="p"))


@dataclass(frozen=True, repr=False)
class ContextCurve(Tabled):
    """The same tokens, scored under contexts of several lengths.

    A token is counted if at least as many tokens of its segment stand before it as the longest context holds. With a
    context of L and a stride of s it was seen with L - s + 1 to L of them.

    Attributes:
        model: its name.
        stride: tokens from one window to the next, the same for all lengths.
        events, bytes: counted tokens, and their bytes in the text.
        segments, documents: that have a counted token; `documents` is None where documents are not known.
        events_in_all, segments_in_all: of the text.
        points: of each length, the shortest first.
        steps: from each length to the next.
        bits_per_byte_is_bound, bound_reasons: True if bits per byte are lower bounds; and why.
        independence: what intervals and tests take as independent, in words.
        documents_by: what tells documents apart.
        fingerprints: of model, vocabulary, tokenizer and text.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.

    Example:
        >>> import lmgauge
        >>> from tokenizers import Tokenizer, models
        >>> from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
        >>> letters = Tokenizer(models.BPE({letter: i for i, letter in enumerate("#ab ")}, merges=[]))
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, bos_token="#", eos_token="#")
        >>> sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> network = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval()
        >>> text = lmgauge.Corpus.from_strings(["a bb a b a abb"])
        >>> curve = lmgauge.context_curve(lmgauge.models.NeuralModel.wrap(network, tokenizer), text, contexts=[2, 4, 8])
        >>> [point.context for point in curve.points], curve.events
        ([2, 4, 8], 7)
    """

    model: str
    stride: int
    events: int
    bytes: int
    segments: int
    documents: int | None
    events_in_all: int
    segments_in_all: int
    points: tuple[ContextPoint, ...]
    steps: tuple[ContextStep, ...]
    bits_per_byte_is_bound: bool
    bound_reasons: tuple[str, ...]
    independence: str
    documents_by: str
    fingerprints: dict[str, str]
    signature: str
    notes: tuple[str, ...]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each length, with what it saves beside the length before, and no difference for the first."""
        steps = {step.longer: step for step in self.steps}
        no_step = ContextStep(0, 0, None, None, None, None, None)
        return [
            {"model": self.model, "context": point.context, "events": self.events, "bytes": self.bytes}
            | {name: value for name, value in plain_values(point).items() if not name.startswith("interval")}
            | _ends(point, "")
            | _difference(steps.get(point.context, no_step))
            for point in self.points
        ]

    def _in_brief(self) -> str:
        bits = ", ".join(f"{point.context:,}: {point.bits_per_token:.4f}" for point in self.points)
        return f"{self.model}: bits per token with a context of {bits}"


_UNITS = ("token", "byte")


def _ends(of: ContextPoint | ContextStep, before: str) -> dict[str, Any]:
    # Ends of the intervals as columns: token_low, token_high, byte_low ...
    columns: dict[str, Any] = {}
    for unit in _UNITS:
        ends = interval_columns(getattr(of, f"interval_per_{unit}"))
        columns |= {f"{before}{unit}_low": ends["interval_low"], f"{before}{unit}_high": ends["interval_high"]}
    return columns


def _difference(step: ContextStep) -> dict[str, Any]:
    own = {f"difference_per_{unit}": getattr(step, f"bits_per_{unit}") for unit in _UNITS}
    return own | _ends(step, "difference_") | {"p_value": step.p_value, "p_value_holm": step.p_value_holm}
