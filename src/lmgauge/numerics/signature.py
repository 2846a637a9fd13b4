"""The one line that says how a number was made, in the manner of sacreBLEU: `ppl|unit:word|n:82430|eos:yes|...`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ESCAPES = {"%": "%25", "|": "%7C", ":": "%3A"}


@dataclass(frozen=True)
class Signature:
    """Every choice that moves a number, in order; prints as one line, and two of them can be compared."""

    # key -> value, in the order in which they print; both are plain text, nothing in them is escaped
    parts: Mapping[str, str]
    head: str = ""  # the kind of number, in front of the parts; empty if the line begins with the first part

    def __str__(self) -> str:
        pairs = (f"{_escaped(key)}:{_escaped(value)}" for key, value in self.parts.items())
        return "|".join([self.head] * bool(self.head) + list(pairs))

    @classmethod
    def parse(cls, line: str) -> Signature:
        """Return the signature that prints as a line."""
        pairs = [part.partition(":") for part in line.split("|")]
        head = pairs.pop(0)[0] if pairs and not pairs[0][1] else ""
        return cls({_plain(key): _plain(value) for key, _, value in pairs}, head)

    def differences(self, other: Signature) -> dict[str, tuple[str | None, str | None]]:
        """Return the parts in which two signatures differ, with both values; None where one has no such part."""
        # other: the signature to compare with; its own parts come last.
        keys = dict.fromkeys((*self.parts, *other.parts))
        pairs = {key: (self.parts.get(key), other.parts.get(key)) for key in keys}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def text_parts(unit: str, normalizer: str | None) -> dict[str, str]:
    """Return the parts of a signature that say what tokens are made of."""
    return {"unit": unit, **({"norm": normalizer} if normalizer else {})}


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _plain(text: str) -> str:
    for character, escape in reversed(_ESCAPES.items()):
        text = text.replace(escape, character)
    return text
