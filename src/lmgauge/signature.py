"""The one line that says how a number was made, in the manner of sacreBLEU: `ppl|unit:word|n:82430|eos:yes|...`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ESCAPES = {"%": "%25", "|": "%7C", ":": "%3A"}


@dataclass(frozen=True)
class Signature:
    """Every choice that moves a number, in order; prints as one line, and two of them can be compared.

    Attributes:
        parts: key -> value, in the order in which they print; both are plain text, nothing in them is escaped.
        head: the kind of number, in front of the parts; empty if the line begins with the first part.

    Example:
        >>> ours = Signature({"unit": "word", "eos": "yes"}, head="ppl")
        >>> str(ours)
        'ppl|unit:word|eos:yes'
        >>> ours.differences(Signature.parse("ppl|unit:word|eos:no"))
        {'eos': ('yes', 'no')}
    """

    parts: Mapping[str, str]
    head: str = ""

    def __str__(self) -> str:
        """Return the line; `|`, `:` and `%` inside a key or value are escaped as in an address (`%7C`, `%3A`, `%25`)."""
        pairs = (f"{_escaped(key)}:{_escaped(value)}" for key, value in self.parts.items())
        return "|".join([self.head] * bool(self.head) + list(pairs))

    @classmethod
    def parse(cls, line: str) -> Signature:
        """Return the signature that prints as a line.

        Args:
            line: a printed signature; a first part without a colon is the head.

        Example:
            >>> Signature.parse("ppl|model:http%3A//host").parts["model"]
            'http://host'
        """
        pairs = [part.partition(":") for part in line.split("|")]
        head = pairs.pop(0)[0] if pairs and not pairs[0][1] else ""
        return cls({_plain(key): _plain(value) for key, _, value in pairs}, head)

    def differences(self, other: Signature) -> dict[str, tuple[str | None, str | None]]:
        """Return the parts in which two signatures differ, with both values; None where one has no such part.

        Args:
            other: the signature to compare with; its own parts come last.

        Example:
            >>> Signature({"tok": "13a", "case": "mixed"}).differences(Signature({"tok": "intl", "case": "mixed"}))
            {'tok': ('13a', 'intl')}
        """
        keys = dict.fromkeys((*self.parts, *other.parts))
        pairs = {key: (self.parts.get(key), other.parts.get(key)) for key in keys}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def text_parts(unit: str, normalizer: str | None) -> dict[str, str]:
    """Return the parts of a signature that say what tokens are made of.

    Args:
        unit: of the tokens.
        normalizer: what was done to the text before it was cut; None if nothing was.

    Example:
        >>> text_parts("subword", "ccnet")
        {'unit': 'subword', 'norm': 'ccnet'}
    """
    return {"unit": unit, **({"norm": normalizer} if normalizer else {})}


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _plain(text: str) -> str:
    for character, escape in reversed(_ESCAPES.items()):
        text = text.replace(escape, character)
    return text
