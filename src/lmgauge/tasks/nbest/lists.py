"""N-best lists: the utterances of a recognizer, each with several hypotheses and their scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.readable import first_few
from lmgauge.tasks.metrics.protocol import Floats
from lmgauge.tasks.texts import Integers

NO_WORDS = frozenset(("<eps>", "<s>", "</s>"))
"""What decoders write where there is no word; left out of every hypothesis."""

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_MOST = 1e100  # what no sum of logs of probabilities reaches

Hypothesis = str | tuple[str, float] | tuple[str, Mapping[str, float]]
"""A text, with its score or its scores by their names."""


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
    def of_hypotheses(cls, lists: Mapping[str, Sequence[Hypothesis]]) -> NbestLists:
        """Return lists that a program has in memory."""
        # NbestLists.of_hypotheses({"u1": [("a dog", -3.0), ("a dock", -2.5)]}).scores -> [[-3.0, -2.5]]
        builder = ListBuilder()
        for name, hypotheses in lists.items():
            if isinstance(hypotheses, str) or not isinstance(hypotheses, Sequence):
                raise UsageError(f"utterance {name!r}: a list of hypotheses is needed, not {type(hypotheses).__name__}")
            for i, one in enumerate(hypotheses, 1):
                pair = (one, {}) if isinstance(one, str) else one
                if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
                    raise UsageError(f"utterance {name!r}: hypothesis {i} is not a text, (text, score) or (text, scores)")
                text, scores = pair
                named = scores if isinstance(scores, Mapping) else {"score": scores}
                builder.add(str(name), text, named, f"utterance {name!r}, hypothesis {i}")
            if not len(hypotheses):
                raise InputError(f"utterance {name!r}: its list is empty; leave it out, or give an empty text")
        return builder.lists("the lists")


@dataclass
class ListBuilder:
    """Collects hypotheses, those of an utterance together, in the order of their appearance."""

    hypotheses: dict[str, list[tuple[str, tuple[float, ...]]]] = field(default_factory=dict)
    source_of: dict[str, str] = field(default_factory=dict)  # from which source each utterance is
    names: tuple[str, ...] | None = None  # of the scores; None before the first hypothesis
    no_words: int = 0  # how many signs for no word were left out

    def add(self, utterance: str, text: str, scores: Mapping[str, float], where: str, source: str = "") -> None:
        """Add a hypothesis of an utterance, behind those it has."""
        if self.source_of.setdefault(utterance, source) != source:
            raise InputError(
                f"{where}: utterance {utterance!r} is in {self.source_of[utterance]} too; each utterance needs one list"
            )
        names = tuple(scores)
        if self.names is None:
            self.names = names
        if names != self.names and set(names) != set(self.names):
            before = first_few(self.names) if self.names else "none"
            raise InputError(
                f"{where}: has the scores {first_few(names) if names else 'none'}, hypotheses before have {before}"
            )
        if _NOT_TEXT.search(text):
            raise InputError(
                f"{where}: the text holds NUL or a lone surrogate, which is not text; decode the source as UTF-8"
            )
        values = tuple(_log_score(name, scores[name], where) for name in self.names)
        self.hypotheses.setdefault(utterance, []).append((self._words_of(text), values))

    def _words_of(self, text: str) -> str:
        if "\n" in text:
            text = " ".join(text.split())
        if "<" not in text:
            return text.strip()
        words = text.split()
        rest = [word for word in words if word not in NO_WORDS]
        self.no_words += len(words) - len(rest)
        return text.strip() if len(rest) == len(words) else " ".join(rest)

    def lists(self, what: str) -> NbestLists:
        """Return all lists."""
        if not self.hypotheses:
            raise InputError(f"{what}: there are no hypotheses; is this the file of n-best lists?")
        flat = [one for own in self.hypotheses.values() for one in own]
        signs = f"{self.no_words:,} signs for no word ({', '.join(sorted(NO_WORDS))}) are left out of the hypotheses"
        return NbestLists(
            ids=tuple(self.hypotheses),
            offsets=np.append(0, np.cumsum([len(own) for own in self.hypotheses.values()])).astype(np.int64),
            texts=tuple(text for text, _ in flat),
            score_names=self.names or (),
            scores=np.array([values for _, values in flat], dtype=np.float64).reshape(len(flat), -1).T.copy(),
            notes=(signs,) if self.no_words else (),
        )


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
