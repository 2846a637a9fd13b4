"""Files that say which words a class stands for, in SRILM's format (`classes-format(5)`):

    CLASS [p] word

A line for each word of each class; p is the probability of the word given the class, 1 if it is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lmgauge.errors import ModelFileError
from lmgauge.records.lines import text_lines
from lmgauge.records.sources import find_sources
from lmgauge.text.vocabulary import SPECIAL_TOKENS

_FIELD = re.compile("[^ \\t\\r\\v\\f\ufeff]+")  # a no-break space is a letter of a word, as in texts
_TOLERANCE = 1e-3  # of the probabilities of a class: files have few digits


@dataclass(frozen=True)
class ClassDefinitions:
    """The words of classes."""

    # ClassDefinitions((("DAY", 0.75, "Monday"), ("DAY", 0.2, "Sunday"))).improper -> ['DAY']

    expansions: tuple[tuple[str, float, str], ...]  # class, probability, word: p(word | class); in the order of the file
    source: str = ""

    @property
    def improper(self) -> list[str]:
        """Classes whose probabilities do not sum to one."""
        totals: dict[str, float] = {}
        for name, p, _ in self.expansions:
            totals[name] = totals.get(name, 0.0) + p
        return [name for name, total in totals.items() if abs(total - 1) > _TOLERANCE]

    def to_text(self) -> str:
        """Return the lines of a file that says the same."""
        return "".join(f"{name} {p!r} {word}\n" for name, p, word in self.expansions)


def read_classes(path: str | Path) -> ClassDefinitions:
    """Read the classes file of a class-based model."""
    lines = text_lines(find_sources(path, "text")[0])
    expansions = tuple(_expansion(f"{path}, line {i}", fields) for i, line in lines if (fields := _FIELD.findall(line)))
    if not expansions:
        raise ModelFileError(f"{path}: no class is defined; a line is a class, a probability and a word: DAY 0.2 Monday")
    return ClassDefinitions(expansions, str(path))


def _expansion(place: str, fields: list[str]) -> tuple[str, float, str]:
    name, *rest = fields
    p = _number(rest[0]) if len(rest) > 1 else None
    if p is None:
        p, words = 1.0, rest
    else:
        words = rest[1:]
    if not words:
        raise ModelFileError(f"{place}: class {name!r} has no word; a line is a class, a probability and a word")
    if len(words) > 1:
        raise ModelFileError(
            f"{place}: class {name!r} stands for {len(words)} words in a row ({' '.join(words)!r:.60}); only classes of "
            "single words can be scored: join such words with _ in the text and in the file"
        )
    if not 0 < p <= 1:
        raise ModelFileError(f"{place}: {rest[0]!r} is not a probability above 0 and up to 1")
    if words[0] in SPECIAL_TOKENS or name in SPECIAL_TOKENS:
        raise ModelFileError(f"{place}: {' '.join(fields)!r:.60}: <unk>, <s> and </s> are neither classes nor words of them")
    return name, p, words[0]


def _number(text: str) -> float | None:
    # Number that a field spells; None for a word.
    try:
        return float(text) if text[0] in "0123456789.+-" else None
    except ValueError:
        return None
