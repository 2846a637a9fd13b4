"""N-best lists: the utterances of a recognizer, each with several hypotheses and their scores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.tasks.metrics.protocol import Floats
from lmgauge.tasks.texts import Integers

NO_WORDS = frozenset(("<eps>", "<s>", "</s>"))
"""What decoders write where there is no word; left out of every hypothesis."""

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_MOST = 1e100  # what no sum of logs of probabilities reaches

Hypothesis = str | tuple[str, float] | tuple[str, Mapping[str, float]]
"""A text, with its score or its scores by their names."""


class Heard(NamedTuple):
    """A hypothesis as a file or a program has it, whatever the format."""

    utterance: str
    text: str
    scores: Mapping[str, float]  # by name; costs as they are
    where: str  # for messages
    source: str = ""  # the file or folder that has all hypotheses of the utterance


@dataclass(frozen=True)
class NbestLists:
    """Hypotheses in the order of the recognizer, list after list."""

    ids: tuple[str, ...]  # of the utterances, one for each list
    offsets: Integers  # int64 [lists + 1], rising: list i has the hypotheses `offsets[i]` to `offsets[i + 1]` (excluded)
    texts: tuple[str, ...]
    score_names: tuple[str, ...]
    # float64 [score names, hypotheses], logs of probabilities (or what else grows with how good a hypothesis is)
    scores: Floats
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, hypotheses: Iterable[Heard], what: str) -> NbestLists:
        """Return hypotheses as lists, those of an utterance together, in the order of their appearance."""
        lists: dict[str, list[tuple[str, list[float]]]] = {}
        source_of: dict[str, str] = {}
        names: tuple[str, ...] | None = None
        signs = 0
        for utterance, text, scores, where, source in hypotheses:
            if source_of.setdefault(utterance, source) != source:
                other = source_of[utterance]
                raise InputError(f"{where}: utterance {utterance!r} is in {other} too; each utterance needs one list")
            own = tuple(scores)
            names = own if names is None else names
            if own != names and {*own} != {*names}:
                this, before = (first_few(some) if some else "none" for some in (own, names))
                raise InputError(f"{where}: has the scores {this}, hypotheses before have {before}")
            if _NOT_TEXT.search(text):
                raise InputError(
                    f"{where}: the text holds NUL or a lone surrogate, which is not text; decode the source as UTF-8"
                )
            values = [_log_score(name, scores[name], where) for name in names]
            words, left_out = _words_of(text)
            signs += left_out
            lists.setdefault(utterance, []).append((words, values))
        if names is None:
            raise InputError(f"{what}: there are no hypotheses; is this the file of n-best lists?")
        flat = [one for several in lists.values() for one in several]
        note = f"{signs:,} signs for no word ({', '.join(sorted(NO_WORDS))}) are left out of the hypotheses"
        return cls(
            ids=tuple(lists),
            offsets=np.append(0, np.cumsum([len(several) for several in lists.values()])).astype(np.int64),
            texts=tuple(text for text, _ in flat),
            score_names=names,
            scores=np.array([values for _, values in flat], dtype=np.float64).reshape(len(flat), -1).T.copy(),
            notes=(note,) if signs else (),
        )

    @classmethod
    def of_hypotheses(cls, lists: Mapping[str, Sequence[Hypothesis]]) -> NbestLists:
        """Return lists that a program has in memory."""
        # NbestLists.of_hypotheses({"u1": [("a dog", -3.0), ("a dock", -2.5)]}).scores -> [[-3.0, -2.5]]
        return cls.of(_of_program(lists), "the lists")


def _of_program(lists: Mapping[str, Sequence[Hypothesis]]) -> Iterator[Heard]:
    for name, hypotheses in lists.items():
        if isinstance(hypotheses, str) or not isinstance(hypotheses, Sequence):
            raise UsageError(f"utterance {name!r}: a list of hypotheses is needed, not {type(hypotheses).__name__}")
        for i, one in enumerate(hypotheses, 1):
            pair = (one, {}) if isinstance(one, str) else one
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
                raise UsageError(f"utterance {name!r}: hypothesis {i} is not a text, (text, score) or (text, scores)")
            text, scores = pair
            named = scores if isinstance(scores, Mapping) else {"score": scores}
            yield Heard(str(name), text, named, f"utterance {name!r}, hypothesis {i}")
        if not len(hypotheses):
            raise InputError(f"utterance {name!r}: its list is empty; leave it out, or give an empty text")


def _words_of(text: str) -> tuple[str, int]:
    # Text on one line, and how many signs for no word were left out of it.
    if "\n" in text:
        text = " ".join(text.split())
    if "<" not in text:
        return text.strip(), 0
    words = text.split()
    rest = [word for word in words if word not in NO_WORDS]
    left_out = len(words) - len(rest)
    return (" ".join(rest) if left_out else text.strip()), left_out


def is_cost(name: str) -> bool:
    """Return True if a score of this name is a cost: the less the better."""
    return "cost" in name or name.startswith(("acwt", "lmwt"))


def _log_score(name: str, value: float, where: str) -> float:
    # Score that grows with how good a hypothesis is: costs change their sign.
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST
    if not usable:
        raise InputError(
            f"{where}: the score {name!r} is {str(value)[:40]!r}, not a finite number; leave the hypothesis out"
        )
    return -float(value) if is_cost(name) else float(value)
