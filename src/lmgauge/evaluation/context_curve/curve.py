"""The same tokens scored under contexts of several lengths, and how sure each length and each step is."""

# Counted are the tokens that have at least as many tokens of their segment before them as the longest context holds: only
# they can be seen with every length. Sums are exact; intervals and tests are over documents. Where all is one document, or
# documents are not known, spans of tokens stand for them, of which `numerics.intervals.spread` tells how alike neighbors
# are.

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import Tabled, column, interval_columns, plain_values
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.event_sums import Paired
from lmgauge.evaluation.origin import Origin, bound_reasons
from lmgauge.evaluation.slicing.cuts import range_sizes
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, exact_sums, ranges_by_event
from lmgauge.numerics.exact import exact_to_nats
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import FEWEST_UNITS, UNKNOWN, Interval, Spread, spread
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats
from lmgauge.scores import OOV, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.scoring import score_together, with_same_events
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus


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


_FEW_SPANS = 30


def context_curve(
    models: Sequence[LanguageModel],
    blocks: Any,
    corpus: Corpus,
    contexts: Sequence[int],
    stride: int,
    *,
    origin: Origin,
    threads: int | None = None,
) -> ContextCurve:
    """Score the same tokens under each length."""
    # models: the same model with each of the lengths, in order; blocks: the segments of the text that are long enough, and
    # the numbers of all events and segments (`models.network.long_segments`); stride: tokens from one window to the next.
    parts: list[Spans] = []
    done = 0

    def add(block: Segments, batches: list[ScoreBatch]) -> int:
        block, batches = with_same_events(block, batches)
        if len(batches[0]):
            parts.append(spans_of(block, batches, contexts[-1], models[0].context_policy))
        return block.byte_count()

    for size in score_together(models, blocks, add, spans=True, threads=threads):
        done += size
        say_progress(f"scored {done / 1e6:,.0f} MB")
    sums = Spans.joined(parts) if parts else None
    if sums is None or not sums.events:
        longest = contexts[-1]
        raise InputError(
            f"no segment of the text has a token with {longest:,} tokens before it: choose shorter --contexts, or longer "
            "segments (--unit document reads a file as one)"
        )
    lead = _spreads(sums, 0)[0]
    sha256, by = corpus.report.sha256, corpus.report.documents_by
    reasons = bound_reasons(origin, sums.oov, sums.lossy)
    return ContextCurve(
        model=origin.model,
        stride=stride,
        events=sums.events,
        bytes=sums.bytes,
        segments=len(np.unique(sums.segments)),
        documents=None if sums.documents is None else len(np.unique(sums.documents)),
        events_in_all=blocks.events,
        segments_in_all=blocks.segments,
        points=tuple(_point(sums, k, context, bound=bool(reasons)) for k, context in enumerate(contexts)),
        steps=holm_adjusted(_step(sums, k, contexts) for k in range(len(contexts) - 1)),
        bits_per_byte_is_bound=bool(reasons),
        bound_reasons=tuple(reason.sentence for reason in reasons),
        independence="" if lead is None else _independence(lead, by),
        documents_by=by,
        fingerprints=origin.fingerprints | {"text": sha256},
        signature=_signature(origin, contexts, stride, sums.events, sha256, in_signature(lead)),
        notes=(*corpus.report.notes(), *_notes(sums, blocks, contexts, stride, lead)),
    )


def _spreads(sums: Spans, k: int) -> list[Spread | None]:
    # Nats per token and per byte under a length, with how sure they are; None where a token has probability 0.
    if sums.zeros[:, k].any():
        return [None, None]
    total = exact_to_nats(-sums.exact[k])
    return [spread(-sums.nats[:, k], sizes, sums.documents, total=total) for sizes in sums.sizes.T]


def _point(sums: Spans, k: int, context: int, *, bound: bool) -> ContextPoint:
    zeros = int(sums.zeros[:, k].sum())
    nats = -math.inf if zeros else exact_to_nats(sums.exact[k])
    per_token, per_byte = (_in_bits(over, cost=True) for over in _spreads(sums, k))
    return ContextPoint(
        context=context,
        log_probability=nats,
        perplexity=math.inf if zeros else perplexity_from_nats(-nats / sums.events),
        bits_per_token=nats_to_bits(-nats / sums.events),
        interval_per_token=per_token,
        bits_per_byte=marked(nats_to_bits(-nats / sums.bytes) if sums.bytes else None, bound=bound),
        interval_per_byte=per_byte,
        zero_probability_events=zeros,
    )


def _step(sums: Spans, k: int, contexts: Sequence[int]) -> ContextStep:
    shorter, longer = contexts[k : k + 2]
    zeros = sums.zeros[:, k] + sums.zeros[:, k + 1]
    if zeros.any():
        return ContextStep(shorter, longer, None, None, None, None, None)
    paired = Paired((sums.nats[:, k], sums.nats[:, k + 1]), zeros, sums.sizes, sums.documents)
    change = exact_to_nats(sums.exact[k] - sums.exact[k + 1])
    per_token, per_byte = paired.spreads(change)
    return ContextStep(
        shorter,
        longer,
        nats_to_bits(change / sums.events),
        _in_bits(per_token),
        nats_to_bits(change / sums.bytes) if sums.bytes else None,
        _in_bits(per_byte),
        None if per_token is None else per_token.p_value,
    )


def _in_bits(over: Spread | None, *, cost: bool = False) -> Interval | None:
    # 95 % interval of nats in bits; a cost is not below 0.
    if over is None:
        return None
    interval = over.interval().mapped(nats_to_bits)
    return replace(interval, low=max(0.0, interval.low)) if cost else interval


def _independence(lead: Spread, by: str) -> str:
    if lead.unit != UNKNOWN:
        return in_words(lead, by)
    why = "" if by == UNKNOWN else f"fewer than {FEWEST_UNITS} documents, so this is about text like these; "
    spans = f"{lead.units:,} spans of {SPAN} tokens"
    if lead.alike >= 1.05:  # as in `in_words`
        wider = f"so the interval is {lead.alike:.2g} times as wide as for independent ones"
        return f"{why}neighbors among {spans} are similar, {wider}"
    return f"{why}{spans} are taken as independent, as neighbors are not similar"


def _signature(origin: Origin, contexts: Sequence[int], stride: int, events: int, sha256: str, independent: str) -> str:
    parts = {
        **origin.text_parts,
        "lengths": "+".join(map(str, contexts)),
        "stride": str(stride),
        "n": str(events),
        "context": str(replace(origin.policy, length=None, stride=None)),
        "independent": independent,
        "text": sha256[:6] or "unknown",
        "vocab": origin.fingerprints["vocabulary"][:6],
        "model": origin.fingerprints["label"],
        "v": NUMBERS_VERSION,
    }
    return str(Signature(parts, head="contexts"))


def _notes(sums: Spans, blocks: Any, contexts: Sequence[int], stride: int, lead: Spread | None) -> Iterator[str]:
    if sums.zeros.any():
        yield "a counted token has probability zero: figures with it are infinite, and no test can be made of them"
    if lead is not None and lead.unit == UNKNOWN and lead.units < _FEW_SPANS:
        yield f"only {lead.units} spans of {SPAN} tokens: treat the interval as rough"
    elif not sums.zeros.any() and (lead is None or lead.unit != UNKNOWN):
        yield from caveats(lead)
    shortest, longest = contexts[0], contexts[-1]
    yield (
        f"counted: {sums.events:,} of {blocks.events:,} tokens, those with {longest:,} or more before them: in "
        f"{len(np.unique(sums.segments)):,} of {blocks.segments:,} segments"
    )
    yield (
        f"windows begin every {stride:,} tokens: with a context of {shortest:,} a token is seen with "
        f"{shortest - stride + 1:,} to {shortest:,} tokens before it, and so on"
    )


SPAN = 64
"""Counted tokens of a segment that are summed up together, at most."""


@dataclass(frozen=True)
class Spans:
    """The counted tokens of a block, or of a text, summed up by spans."""

    exact: tuple[int, ...]  # of each length the sum over all, multiples of 2^-80 nats, without tokens of probability zero
    nats: Floats  # float64 [spans, lengths], the same of each span, rounded
    zeros: Ints  # int64 [spans, lengths], tokens of probability zero
    sizes: Floats  # float64 [spans, 2], tokens and bytes
    segments: Ints  # int64 [spans]
    documents: Ints | None  # int64 [spans]; None where documents are not known
    oov: int  # counted tokens that are unseen words
    lossy: int  # segments that their tokens do not spell exactly

    @classmethod
    def joined(cls, blocks: Sequence[Spans]) -> Spans:
        """Return those of all blocks as one."""
        nats, zeros, sizes, segments = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("nats", "zeros", "sizes", "segments")
        )
        documents = [block.documents for block in blocks if block.documents is not None]
        return cls(
            tuple(map(sum, zip(*(block.exact for block in blocks), strict=True))),
            nats,
            zeros,
            sizes,
            segments,
            np.concatenate(documents) if documents else None,
            sum(block.oov for block in blocks),
            sum(block.lossy for block in blocks),
        )

    @cached_property
    def events(self) -> int:
        """Return counted tokens."""
        return int(self.sizes[:, 0].sum())

    @cached_property
    def bytes(self) -> int:
        """Return their bytes in the text."""
        return int(self.sizes[:, 1].sum())


def spans_of(block: Segments, batches: Sequence[ScoreBatch], longest: int, policy: ContextPolicy) -> Spans:
    """Return the spans of a block, from its scores under each length."""
    table = batches[0]
    ranges = ranges_by_event([table])
    # The first event of a segment that has a row has this many tokens before it.
    before = ranges.position + (0 if policy.first == "uniform" else 1)
    counted = before >= longest
    # Within a segment: 0 for what is not counted, then the spans.
    number = np.where(counted, 1 + (before - longest) // SPAN, 0)
    begins = np.flatnonzero(np.diff(ranges.segment, prepend=-1) | np.diff(number, prepend=-1))
    events = np.diff(begins, append=len(table))
    used = counted[begins]
    owners = ranges.segment[begins][used]
    sums = [exact_sums(batch, events) for batch in batches]
    zeros = np.column_stack([part.zeros for part in sums])[used]
    nats = np.column_stack([part.nats() for part in sums])[used]
    sizes = np.add.reduceat(range_sizes(scored_text(block, [policy]), ranges)[:, 0], begins)
    return Spans(
        tuple(part.totals(np.where(used, 0, 1), 2)[0] for part in sums),
        np.where(zeros > 0, 0.0, nats),
        zeros,
        np.column_stack((events, sizes))[used].astype(np.float64),
        owners + block.first,
        None if block.documents is None else block.documents[owners],
        int(np.count_nonzero(counted & (table.kind == OOV))),
        int(np.count_nonzero(table.lossy[np.unique(owners)])) if len(table.lossy) else 0,
    )
