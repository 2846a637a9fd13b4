"""What was learned of how unseen words are spelled, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmgauge.report.formats import number, percent


def learned(content: Mapping[str, Any]) -> list[str]:
    """Return what a speller learned from, and what white space costs.

    Args:
        content: as `SpelledModel.learned` gives it; empty for a model of characters.

    >>> learned({})
    ['unseen characters share what is left of Unicode; there is nothing to learn']
    """
    if not content:
        return ["unseen characters share what is left of Unicode; there is nothing to learn"]
    speller, separators = content["speller"], content["separators"]
    single = separators["single_space"]
    return [
        f"spelling: learned from {speller['words']:,} words of {speller['alphabet']:,} different characters, order "
        f"{speller['order']}; it gives {percent(speller['known_mass'])} to words that are known and never spelled",
        f"white space: {separators['seen']:,} places, {percent(single)} a single space; {number(separators['bits'], 4)} "
        "bits each",
    ]
