"""The figures of an evaluation: one table that the library, its reports and the command line read.

Each divides minus the log-probability of the text by a count. To add one: a row here, and its field in `Evaluation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FigureName = Literal[
    "perplexity",
    "cross_entropy",
    "bits_per_token",
    "bits_per_byte",
    "bits_per_character",
    "bits_per_word",
    "word_perplexity",
]
Scale = Literal["perplexity", "nats", "bits"]
Count = Literal["events", "tokens", "bytes", "characters", "words"]


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        name: the key in JSON and the field of `Evaluation`.
        title: what sentences and the rows of tables call it.
        per: the count that it divides by; all but events and tokens are counted in the source text.
        scale: what the quotient, in nats, is turned into.
        heading: of its column in the table of evaluations; empty if it has none.
        drop: when its column goes where the terminal is too narrow: 1 goes first, 0 stays.
        compared: `lmgauge compare` gives a verdict on it.
        logged: callbacks log it while a network is trained.
    """

    name: FigureName
    title: str
    per: Count
    scale: Scale
    heading: str = ""
    drop: int = 0
    compared: bool = False
    logged: bool = True


FIGURES = (
    Figure("perplexity", "perplexity", "events", "perplexity", "perplexity", compared=True),
    Figure("cross_entropy", "cross-entropy", "events", "nats", "nats/event", drop=3),
    Figure("bits_per_token", "bits per token", "events", "bits"),
    Figure("bits_per_byte", "bits per byte", "bytes", "bits", "bits/byte", drop=6, compared=True),
    Figure("bits_per_character", "bits per character", "characters", "bits", "bits/char", 1, compared=True, logged=False),
    Figure("bits_per_word", "bits per word", "words", "bits", "bits/word", 2, compared=True, logged=False),
    Figure("word_perplexity", "word perplexity", "words", "perplexity"),
)
COMPARED = tuple(figure for figure in FIGURES if figure.compared)
