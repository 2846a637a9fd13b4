"""Events become text, step by step: the letters of an unseen word, and then the white space before it."""

# One walk serves all who need it: a coder knows the text and asks how probable each step is, a decoder reads the steps from
# a code, sampling draws them. They differ only in how they choose.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.combined.spelling.whitespace_model import EMPTY, FIRST, INNER, LAST
from lmgauge.scores import SEPARATOR, SPELLING
from lmgauge.text.vocabulary import EOS, UNK

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.model import SpelledModel

_NOTHING = -1


@dataclass(frozen=True)
class Step:
    """What may come next inside an event."""

    part: str  # `spelling` or `separator`, the column of the score table that pays for it
    logprob: NDArray[np.float64]  # float64 [choices], nats
    wanted: int = _NOTHING  # the choice that the text makes, where the text is known; else -1
    end: int = _NOTHING  # the choice that ends the word, or the white space; -1 where none does


Choose = Callable[[Step], int]
"""Says which choice of a step is taken."""


class EventWriter:
    """Writes the events of a segment as its text, in the order in which they come."""

    def __init__(self, model: SpelledModel, text: bytes = b"", begin: int | None = None) -> None:
        self._model, self.text, self._quotes = model, bytearray(text), text.count(b'"')
        self._before = None if begin is None else self._divided(text[begin:])[0]
        self._standing = text.decode()[len(text.decode().rstrip(self._alphabet)) :] if self._alphabet else ""

    @property
    def _alphabet(self) -> str:
        return "" if self._model.separators is None else self._model.separators.alphabet

    def write(self, token: int, choose: Choose, text: bytes | None = None) -> bytes:
        """Write the next event, and return its text with the white space before it."""
        blank, word = (None, None) if text is None else self._divided(text)
        if token == EOS:
            word = ""
        elif token == UNK:
            word = self._spell(choose, word)
        else:
            word = self._model.text_of(token)
        blank = self._separate(token == EOS, word, choose, blank)
        piece = (blank + word).encode()
        self.text += piece
        self._quotes += piece.count(b'"')
        return piece

    def _divided(self, text: bytes) -> tuple[str, str]:
        whole = text.decode()
        word = whole.lstrip(self._alphabet) if self._alphabet else whole
        return whole[: len(whole) - len(word)], word

    def _spell(self, choose: Choose, word: str | None) -> str:
        model = self._model
        if model.speller is None:
            wanted = _NOTHING if word is None else ord(word)
            return chr(choose(Step(SPELLING, model.unseen_characters.log_probabilities, wanted)))
        vocabulary, unseen = model.speller.characters.vocabulary, model.speller.unseen
        prefix = ""
        while True:
            following = None if word is None else word[len(prefix) : len(prefix) + 1]
            wanted = _NOTHING if following is None else vocabulary.id(following) if following else EOS
            choice = choose(Step(SPELLING, _log(model.spelling.next_character(prefix)), wanted, EOS))
            if choice == EOS:
                return prefix
            if choice == UNK:
                code_point = ord(following) if following else _NOTHING
                prefix += chr(choose(Step(SPELLING, unseen.log_probabilities, code_point)))
            else:
                prefix += vocabulary.token(choice)

    def _separate(self, is_end: bool, word: str, choose: Choose, blank: str | None) -> str:
        separators = self._model.separators
        if separators is None:
            return ""
        if self._standing:  # the text that there was already ends with it
            self._before, self._standing = self._standing, ""
            return ""
        place = (LAST if self.text else EMPTY) if is_end else (INNER if self.text else FIRST)
        quoted = self._quotes % 2 == 1
        context = separators.context_of(place, bytes(self.text[-4:]), word.encode(), self._before, quoted=quoted)
        known = separators.known
        wanted = _NOTHING if blank is None else known.index(blank) if blank in known else len(known)
        choice = choose(Step(SEPARATOR, _log(separators.probabilities(context)), wanted))
        self._before = known[choice] if choice < len(known) else self._unknown_separator(place, choose, blank)
        return self._before

    def _unknown_separator(self, place: int, choose: Choose, blank: str | None) -> str:
        separators = self._model.separators
        assert separators is not None
        end, prefix = len(separators.alphabet), ""
        while True:
            following = None if blank is None else blank[len(prefix) : len(prefix) + 1]
            wanted = _NOTHING if following is None else separators.alphabet.index(following) if following else end
            choice = choose(Step(SEPARATOR, _log(separators.next_character(prefix, place)), wanted, end))
            if choice == end:
                return prefix
            prefix += separators.alphabet[choice]


def _log(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        logprob: NDArray[np.float64] = np.log(probabilities)
    return logprob
