"""What of a text a model sees when it predicts an event, and which events it predicts."""

# Models state it; signatures and stored tables name it in a word or a few (`sentence`, `stream,1024/512,first=unscored`);
# evaluation asks it whether an end of line is an event and whether segments share a context.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from lmgauge.base.choices import (
    PROTOCOL_NAMES,
    Boundary,
    FirstToken,
    ProtocolName,
    SegmentEnd,
)
from lmgauge.scores.protocols import PROTOCOLS

ContextUnit = Literal["sentence", "stream", "unknown"]
LineEnds = Literal["event", "text", "unscored"]
_LINE_ENDS: dict[SegmentEnd, LineEnds] = {"eos": "event", "newline": "text", "none": "unscored"}
_NAMED: dict[str, tuple[str, ...]] = {
    name: get_args(kind) for name, kind in (("first", FirstToken), ("end", SegmentEnd), ("given", Boundary))
}
_WINDOW = re.compile(r"([0-9]{1,18})/([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True)
class ContextPolicy:
    """What of the text each prediction sees; `str()` of it is what signatures and files show.

    Attributes:
        unit: `sentence`: nothing before the segment; `stream`: the context runs on over the ends of segments; `unknown`:
            the table came from a program that did not say.
        length: most tokens a prediction sees, `<s>` included; None if there is no limit.
        stride: tokens from one window to the next; None if there is no limit.
        first: what the first token of a context is predicted from.
        end: what ends a segment.
        protocol: whose layout of windows is followed; None for one's own, windows `stride` tokens apart.
        bos_each: every window begins with the BOS token, in the place of the first token it would show.
        given: how text that is given before each segment is cut from it; None where no text is given, and for models, which
            it is not a property of.

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
    given: Boundary | None = None

    @classmethod
    def parse(cls, text: str) -> ContextPolicy:
        """Return the policy that a stored table or a signature names; what is not known in it is passed over."""
        unit, *parts = text.split(",")
        policy: dict[str, object] = {"unit": unit if unit in get_args(ContextUnit) else "unknown"}
        for part in parts:
            name, _, value = part.partition("=")
            if window := _WINDOW.fullmatch(part):
                policy |= {"length": int(window[1]), "stride": int(window[2])}
            elif value in _NAMED.get(name, ()):
                policy[name] = value
            elif (name == "protocol" and value in PROTOCOL_NAMES) or part == "bos=each":
                policy |= {"protocol": value} if name == "protocol" else {"bos_each": True}
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
        if self.protocol is not None:
            parts.append(f"protocol={self.protocol}")
        if self.given is not None:
            parts.append(f"given={self.given}")
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
    )
