"""The figures of an evaluation: one table that the library, its reports and the command line read."""

# Each divides minus the log-probability of the text by a count. To add one: a row here, and its field in `Evaluation`.

from __future__ import annotations

from typing import Literal, NamedTuple

FigureName = Literal[
    "perplexity",
    "cross_entropy",
    "bits_per_token",
    "bits_per_word",
    "bits_per_character",
    "bits_per_byte",
    "word_perplexity",
]
Scale = Literal["perplexity", "nats", "bits"]
Count = Literal["events", "tokens", "bytes", "characters", "words"]


class Figure(NamedTuple):
    """One figure."""

    name: FigureName  # the key in JSON and the field of `Evaluation`
    title: str  # what sentences and the rows of tables call it
    per: Count  # the count that it divides by; all but events and tokens are counted in the source text
    scale: Scale  # what the quotient, in nats, is turned into
    heading: str = ""  # of its column in the table of evaluations; empty if it has none
    drop: int = 0  # when its column goes where the terminal is too narrow: 1 goes first, 0 stays
    compared: int = 0  # its place among the figures that `lmgauge compare` gives a verdict on; 0 if it is not one of them
    logged: bool = True  # callbacks log it while a network is trained

    @property
    def bounded(self) -> bool:
        """Return True if it is a lower bound where the text has unseen words or is not given back."""
        return self.scale == "bits" and self.per in ("bytes", "characters", "words")

    @property
    def digits(self) -> int:
        """Return digits after the point where people read it."""
        return 2 if self.scale == "perplexity" else 4


FIGURES = (
    Figure("perplexity", "perplexity", "events", "perplexity", "perplexity", compared=1),
    Figure("cross_entropy", "cross-entropy", "events", "nats", "nats/event", drop=3),
    Figure("bits_per_token", "bits per token", "events", "bits"),
    Figure("bits_per_word", "bits per word", "words", "bits", "bits/word", 2, compared=4, logged=False),
    Figure("bits_per_character", "bits per character", "characters", "bits", "bits/char", 1, compared=3, logged=False),
    Figure("bits_per_byte", "bits per byte", "bytes", "bits", "bits/byte", 6, compared=2),
    Figure("word_perplexity", "word perplexity", "words", "perplexity"),
)
COMPARED = tuple(sorted((figure for figure in FIGURES if figure.compared), key=lambda figure: figure.compared))
TITLES: dict[str, str] = {figure.name: figure.title for figure in FIGURES}
