"""Which stretch of a token sequence the model is shown for which predictions.

A sequence is s[0], s[1], ...; s[n] is predicted from what comes before it, for n from 1. Window k shows s[k * stride] to
s[k * stride + context - 1], so its predictions reach to n = k * stride + context; each prediction is taken from the first
window that reaches it. Where a window begins thus depends on the position alone: what follows a token never changes it.

The protocols of other programs lay windows differently. Those of the layout `filled`, which is kept for the figures of one
program only, depend on the sequence's length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lmgauge.base.progress import CountedNote
from lmgauge.scores.context_policy import PROTOCOLS, ContextPolicy, LayoutName

if TYPE_CHECKING:
    from lmgauge.models.network.tokens import TokenMap
    from lmgauge.text.segments import Segments


class Window(NamedTuple):
    """A stretch of a sequence and the predictions taken from it."""

    begin: int
    first: int
    last: int  # one past the last position predicted; the model is shown `begin` to `last - 1` (not included)


class Layout(NamedTuple):
    """Which windows a sequence has, and where the window of a position begins."""

    length: int | None  # most tokens to show at a time; None for all
    stride: int | None  # tokens from one window to the next
    kind: LayoutName = "sliding"  # see `ScoringProtocol`
    first_scored: int = 1  # of chunks: first position within each that is scored, those before it being shown only

    @classmethod
    def of(cls, policy: ContextPolicy) -> Layout:
        """Return how a policy lays windows over a sequence."""
        if policy.protocol is None or policy.stride is None:
            return cls(policy.length, policy.stride)
        protocol = PROTOCOLS[policy.protocol]
        return cls(policy.length, policy.stride, protocol.layout, protocol.first_scored(policy.stride))

    def windows(self, first: int, last: int) -> Iterator[Window]:
        """Yield the windows that predict positions `first` to `last` (not included), in order."""
        # [window.begin for window in Layout(4, 2).windows(1, 8)] -> [0, 2, 4]
        if self.kind == "chunks" and self.stride is not None:
            # 7 tokens in chunks of 3: begins [0, 3]; the last token fills no chunk.
            for begin in range(0, last - self.stride + 1, self.stride):
                yield Window(begin, max(first, begin + self.first_scored), begin + self.stride)
            return
        first = max(1, first)
        while first < last:
            begin, reached = self.begin(first), last
            if self.length is not None and self.kind == "filled":
                # The last window is moved left until it is full: its predictions see more. lm-evaluation-harness does so
                # (`get_rolling_token_windows`).
                reached = min(last, first + self.length)
                begin = max(0, reached - 1 - self.length)
            elif self.length is not None:
                # length 4, stride 2: window 0 predicts 1 to 4, window 1 (from 2) 5 and 6, window 2 (from 4) 7 and 8.
                reached = min(last, begin + self.length + 1)
            yield Window(begin, first, reached)
            first = reached

    def begin(self, position: int) -> int:
        """Return where the window begins that predicts a position, as if the sequence ended there."""
        # [Layout(4, 2).begin(position) for position in (1, 4, 5, 7)] -> [0, 0, 2, 4]
        if self.length is None or self.stride is None:
            return 0
        if self.kind == "chunks":
            return position // self.stride * self.stride
        beyond = max(0, position - self.length)
        return beyond if self.kind == "filled" else -(-beyond // self.stride) * self.stride


def windows_note(policy: ContextPolicy, without_bos: bool, count: int, total: int) -> CountedNote:
    """Return the sentence on segments that do not fit into a window."""
    sentence = (
        f"segments longer than {policy.length:,} tokens, read in windows of that size, each {policy.stride:,} tokens after "
        "the one before"
    )
    return CountedNote.of("{count:,} of {total:,} " + sentence + _WITHOUT_BOS * without_bos, count, total)


_WITHOUT_BOS = "; only the first begins with BOS, which this tokenizer puts before a text (--bos-each-window)"


def counted_turns(block: Segments, tokens: TokenMap) -> Counter[str]:
    """Return how many segments of a block are plain text, turns, and turns that name special tokens."""
    if block.turns is None:
        return Counter(plain=len(block))
    template = tokens.framing
    special = (template is not None and template.names_special(turn.message["content"]) for turn in block.turns)
    return Counter(turns=len(block), special=sum(special))


def template_notes(label: str, tokens: TokenMap, seen: Counter[str]) -> list[str]:
    """Return what must be known of a text scored in a chat template, or without one."""
    # seen: how many segments were plain text, turns of conversations, and turns that name special tokens.
    template = tokens.framing
    if template is not None:
        unused = f"{label}: its chat template has no variable {', '.join(template.unused)} (--template-args)"
        known = f"; it has {', '.join(template.variables)}" if template.variables else ""
        turns = f"{seen['special']:,} turn{'s' * (seen['special'] != 1)}"
        special = f"{label}: names of special tokens stand in the content of {turns}, and are read as those tokens"
        return [*[unused + known] * bool(template.unused), *[special] * bool(seen["special"])]
    if seen["plain"] and tokens.template is not None:
        return [
            f"{label} has a chat template, and text without it is not what it is used for: frame conversations with --chat "
            "FIELD, plain text with --as-turn assistant"
        ]
    if seen["turns"] and tokens.template is None and not tokens.trained_here:
        return [
            f"{label} has no chat template: it scores what is said in a turn as text, without the conversation before it; "
            "give it one with --template FILE"
        ]
    return []
