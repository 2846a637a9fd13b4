"""What of a text a model sees when it predicts an event, and which events it predicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.base.choices import Boundary, CacheFormat, FirstToken, ProtocolName, SegmentEnd

# -----------------------------------------------------------------------------------------------------------------------
# Whose rules a figure follows: what other programs do to a text before they print a perplexity, in one table.
#
# A protocol is a rule for the text (how segments become one), a layout of windows, and what it leaves out. The sources,
# read
# in 2026:
#
#     hf-guide    transformers, docs/source/en/perplexity.md, "Perplexity of fixed-length models"
#     harness     lm-evaluation-harness 0.4, lm_eval/utils.py (get_rolling_token_windows), models/huggingface.py
#     llama.cpp   llama.cpp, tools/perplexity/perplexity.cpp (perplexity), common/arg.cpp (--file)
#     gptq        IST-DASLab/gptq, llama.py (llama_eval), datautils.py (get_wikitext2); so most papers on quantization
LayoutName = Literal["sliding", "filled", "chunks"]


@dataclass(frozen=True, kw_only=True)
class ScoringProtocol:
    """The rules of one source."""

    name: ProtocolName
    source: str
    rules: str  # what it does, in a sentence
    separator: str | None  # what segments are joined by into one text; None: each is scored by itself
    # of windows: `sliding` (each begins `stride` tokens after the one before), `filled` (side by side, the last moved left
    # until it is full) or `chunks` (side by side, the rest that fills none dropped)
    layout: LayoutName
    window: int | None = None  # tokens of a window; None: as many as the model has positions for
    shrinks: bool = False  # a window is no longer than the model has positions for; otherwise such a model is refused
    stride: int | None = None  # tokens from one window to the next; None: the window
    second_half: bool = False  # only the second half of each window is scored
    # what a text begins with: `bos`, the BOS token (else EOS), or `own`, what the tokenizer itself puts there
    begins: Literal["bos", "own"] = "own"
    bos_each: bool = False  # each window begins with the BOS token where the tokenizer puts one before a text
    figures: tuple[str, ...] = ("ppl",)  # what the source calls its figures

    @property
    def leaves_out(self) -> bool:
        """Return True if tokens may have no score, and their bytes no place in denominators."""
        return self.separator is not None

    @property
    def causal(self) -> bool:
        """Return True if what a prediction sees depends on what is before it alone, and not on the length of the text."""
        return self.layout != "filled"

    def first_scored(self, chunk: int) -> int:
        """Return the first position of a chunk that is scored."""
        return chunk // 2 + 1 if self.second_half else 1


PROTOCOLS: dict[ProtocolName, ScoringProtocol] = {
    protocol.name: protocol
    for protocol in (
        ScoringProtocol(
            name="hf-guide",
            source="the guide of transformers",
            rules="segments joined by a blank line; windows that overlap, each token scored in the first that reaches it",
            separator="\n\n",
            layout="sliding",
            stride=512,
        ),
        ScoringProtocol(
            name="harness",
            source="lm-evaluation-harness",
            rules="each segment a document after BOS (else EOS); windows side by side, the last moved left until it is full",
            separator=None,
            layout="filled",
            begins="bos",
            figures=("word_perplexity", "byte_perplexity", "bits_per_byte"),
        ),
        ScoringProtocol(
            name="llama.cpp",
            source="llama-perplexity",
            rules="the text as one, in chunks; the second half of each is scored, and what fills no chunk is dropped",
            separator="\n",
            layout="chunks",
            window=512,
            second_half=True,
            bos_each=True,
            figures=("PPL",),
        ),
        ScoringProtocol(
            name="gptq",
            source="GPTQ",
            rules="segments joined by a blank line, in chunks; all but the first token of each is scored, the rest dropped",
            separator="\n\n",
            layout="chunks",
            window=2048,
            shrinks=True,
        ),
    )
}


# -----------------------------------------------------------------------------------------------------------------------
# Models state it; signatures and stored tables name it in a word or a few (`sentence`, `stream,1024/512,first=unscored`);
# evaluation asks it whether an end of line is an event and whether segments share a context.


ContextUnit = Literal["sentence", "stream", "conversation", "unknown"]
LineEnds = Literal["event", "text", "unscored"]
_LINE_ENDS: dict[SegmentEnd, LineEnds] = {"eos": "event", "newline": "text", "none": "unscored"}
_KINDS = {"first": FirstToken, "end": SegmentEnd, "protocol": ProtocolName, "kv_cache": CacheFormat, "given": Boundary}
_NAMED: dict[str, tuple[str, ...]] = {name: get_args(kind) for name, kind in _KINDS.items()}
_FLAGS = {"bos=each": "bos_each", "framing=scored": "framing"}
_WINDOW = re.compile(r"([0-9]{1,18})/([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True)
class ContextPolicy:
    """What of the text each prediction sees; `str()` of it is what signatures and files show.

    Attributes:
        unit: `sentence`: nothing before the segment; `stream`: the context runs on over the ends of segments;
            `conversation`: what a chat template makes of the conversation before a turn; `unknown`: the table came from a
            program that did not say.
        length: most tokens a prediction sees, `<s>` included; None if there is no limit.
        stride: tokens from one window to the next; None if there is no limit.
        first: what the first token of a context is predicted from.
        end: what ends a segment.
        protocol: whose layout of windows is followed; None for one's own, windows `stride` tokens apart.
        bos_each: every window begins with the BOS token, in the place of the first token it would show.
        kv_cache: the number format that keys and values are rounded to; None for that of the engine.
        given: how text that is given before each segment is cut from it; None where no text is given, and for models, which
            it is not a property of.
        template: six digits of the digest of the chat template and its arguments, and these; "" where there is none.
        framing: what the template puts between the turns is scored, too.
        turns: the roles whose turns are the segments, joined by +; "" for any other text.

    Example:
        >>> policy = ContextPolicy.parse("stream,1024/512,first=unscored")
        >>> policy.length, policy.runs_on, policy.scores_first_tokens
        (1024, True, False)
        >>> str(policy)
        'stream,1024/512,first=unscored'
    """

    unit: ContextUnit = "sentence"
    length: int | None = None
    stride: int | None = None
    first: FirstToken = "bos"
    end: SegmentEnd = "eos"
    protocol: ProtocolName | None = None
    bos_each: bool = False
    kv_cache: CacheFormat | None = None
    given: Boundary | None = None
    template: str = ""
    framing: bool = False
    turns: str = ""

    @classmethod
    def parse(cls, text: str) -> ContextPolicy:
        """Return the policy that a stored table or a signature names; what is not known in it is passed over."""
        unit, *parts = text.split(",")
        policy: dict[str, object] = {"unit": unit if unit in get_args(ContextUnit) else "unknown"}
        for part in parts:
            name, _, value = part.partition("=")
            if window := _WINDOW.fullmatch(part):
                policy |= {"length": int(window[1]), "stride": int(window[2])}
            elif value in _NAMED.get(name, ()) or name in ("template", "turns"):
                policy[name] = value
            elif part in _FLAGS:
                policy[_FLAGS[part]] = True
        return cls(**policy)  # type: ignore[arg-type]

    @property
    def runs_on(self) -> bool:
        """Return True if a context runs on over the ends of segments."""
        return self.unit == "stream"

    @property
    def scores_first_tokens(self) -> bool:
        """Return True if the first token of a context has a row like all others."""
        # So contexts can be had from the rows.
        return self.first != "unscored" and not self.leaves_out

    @property
    def leaves_out(self) -> bool:
        """Return True if the protocol leaves tokens unscored, with their bytes."""
        return self.protocol is not None and PROTOCOLS[self.protocol].leaves_out

    @property
    def first_bytes_move(self) -> bool:
        """Return True if the bytes of an unscored first token are counted with the event after it."""
        return self.first == "unscored" and not self.leaves_out

    @property
    def line_ends(self) -> LineEnds:
        """Return what the end of a line is: an event `</s>`, the newline in the text, or nothing that is scored."""
        return "unscored" if self.leaves_out else _LINE_ENDS[self.end]

    @property
    def counts_line_ends(self) -> bool:
        """Return True if the end of a line is in denominators, whether or not a table has a row for it."""
        # It is text to be predicted.
        # `evaluation/denominators.py` applies it, to sums, to blocks of text and to segments; nothing else decides it.
        return self.line_ends != "unscored"

    def __str__(self) -> str:
        parts: list[str] = [self.unit]
        if self.length is not None:
            parts.append(f"{self.length}/{self.stride}")
        if self.first != "bos":
            parts.append(f"first={self.first}")
        if self.end != "eos":
            parts.append(f"end={self.end}")
        if self.bos_each:
            parts.append("bos=each")
        named = {name: getattr(self, name) for name in ("protocol", "kv_cache", "given", "template", "turns")}
        parts += [f"{name}={value}" for name, value in named.items() if value]
        if self.framing:
            parts.append("framing=scored")
        return ",".join(parts)


def shared_policy(policies: Sequence[ContextPolicy]) -> ContextPolicy:
    """Return the policy of models that score together: a stream if any of them runs on, with what all have in common."""
    # policies: [models], at least one.
    one = policies[0]
    if all(other == one for other in policies):
        return one
    same_window = all((other.length, other.stride) == (one.length, one.stride) for other in policies)
    return ContextPolicy(
        unit="stream" if any(policy.runs_on for policy in policies) else "sentence",
        length=one.length if same_window else None,
        stride=one.stride if same_window else None,
        first=one.first if all(other.first == one.first for other in policies) else "bos",
        end=one.end if all(other.end == one.end for other in policies) else "eos",
        bos_each=all(other.bos_each for other in policies),
        kv_cache=one.kv_cache if all(other.kv_cache == one.kv_cache for other in policies) else None,
    )


# -- the tokens before an event: what `log_distribution` is asked about -------------------------------------------------
# `EventContexts` gives them for the events of a batch, a segment or a whole text, by number or one after another;
# `GrowingContext` for a text that is drawn or decoded token by token.


_FIRST_ROOM = 1 << 10


class EventContexts:
    """The ids before each event of consecutive segments."""

    # ids: uint32 [n], the events, segment after segment; segment_events: int [segments], events of each segment; before:
    # uint32, what came before these segments where a context runs on, `<s>` first; None at the beginning; given_tokens:
    # uint32 [m] and int64 [segments], the ids that are given before each segment, and how many of each; None for none.

    def __init__(
        self,
        ids: NDArray[np.uint32],
        segment_events: ArrayLike,
        *,
        bos: int,
        runs_on: bool,
        before: NDArray[np.uint32] | None = None,
        given_tokens: tuple[NDArray[np.uint32], NDArray[np.int64]] | None = None,
    ) -> None:
        begin = np.array([bos], np.uint32)
        if runs_on:
            before = begin if before is None else before
            self.ids = np.concatenate((before, ids))
            self._begins, self._ends = np.zeros(len(ids), np.int64), len(before) + np.arange(len(ids))
            return
        # Each segment gets an <s> of its own: [5 6 2 7 2] of 3 + 2 events becomes [<s> 5 6 2 <s> 7 2].
        counts = np.asarray(segment_events, np.int64)
        firsts = np.cumsum(counts) - counts
        shown, shown_counts = (begin[:0], np.zeros(len(counts), np.int64)) if given_tokens is None else given_tokens
        shown = np.insert(shown, np.cumsum(shown_counts) - shown_counts, bos)
        shown_counts = shown_counts + 1
        self.ids = np.insert(ids, np.repeat(firsts, shown_counts), shown)
        offsets = np.cumsum(shown_counts)  # ids that are not events, up to each segment's first event
        self._begins = np.repeat(firsts + offsets - shown_counts, counts)
        self._ends = np.arange(len(ids)) + np.repeat(offsets, counts)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, event: int) -> NDArray[np.uint32]:
        # Ids before an event, uint32 [n], `<s>` first: a view, not a copy.
        return self.ids[self._begins[event] : self._ends[event]]

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        # Ids before each event, as `[event]` gives them.
        for begin, end in zip(self._begins.tolist(), self._ends.tolist(), strict=True):
            yield self.ids[begin:end]


class GrowingContext:
    """The ids before the next event of a text that comes token by token."""

    def __init__(self, bos: int, *, runs_on: bool) -> None:
        # An array that doubles: a list would be turned into an array again at every event.
        self._ids = np.full(_FIRST_ROOM, bos, np.uint32)
        self._used, self._runs_on = 1, runs_on

    def ids(self) -> NDArray[np.uint32]:
        """Return the ids, uint32 [n], `<s>` first: a view that holds until the context changes."""
        return self._ids[: self._used]

    def add(self, token: int) -> None:
        """Take one event more."""
        if self._used == len(self._ids):
            self._ids = np.concatenate((self._ids, np.empty_like(self._ids)))
        self._ids[self._used] = token
        self._used += 1

    def end_segment(self) -> None:
        """Begin the next segment, which sees nothing of what was before it, unless the context runs on."""
        if not self._runs_on:
            self.restart()

    def restart(self) -> None:
        """Forget all but `<s>`."""
        self._used = 1


def last_sentence(context: NDArray[np.uint32], bos: int, eos: int) -> NDArray[np.uint32]:
    """Return what a model of single sentences sees of a running context: `<s>`, and what follows the last `</s>`."""
    # context: uint32 [n], `<s>` first.
    ends = np.flatnonzero(context == eos)
    return np.insert(context[ends[-1] + 1 :], 0, bos) if len(ends) else context
