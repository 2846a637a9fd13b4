"""What rescoring n-best lists gives: the best of each list, the weights, and the errors before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.files import writing_or_printing
from lmgauge.json_text import to_json
from lmgauge.readable import for_output
from lmgauge.records.formats import BY_SUFFIX, COMPRESSIONS
from lmgauge.result_columns import plain_values
from lmgauge.result_list import Tabled
from lmgauge.tasks.comparison import Systems
from lmgauge.tasks.metrics.error_rates import ErrorRates
from lmgauge.tasks.metrics.protocol import Floats
from lmgauge.tasks.nbest.lists import NbestLists, is_cost
from lmgauge.tasks.texts import Integers
from lmgauge.tasks.transcripts import format_of

FIRST, RESCORED = "first of the list", "rescored"
"""Names of the two systems that are compared."""


@dataclass(frozen=True)
class Tuning:
    """How weights were chosen."""

    lists: int  # how many n-best lists there were
    hypotheses: int
    places: int
    lines: int
    seed: int
    first: ErrorRates  # error rate of the first hypotheses
    best: ErrorRates  # error rate with the tuned weights, which were chosen for it: that of other lists is higher
    oracle: ErrorRates  # error rate of the best hypotheses there are


@dataclass(frozen=True)
class UnknownWords:
    """Words of different hypotheses that a model does not know."""

    model: str
    unknown: int
    words: int


@dataclass(frozen=True, repr=False)
class Rescored(Tabled):
    """N-best lists with the scores of language models, and the best hypothesis of each.

    Attributes:
        lists: as they were read.
        models: names of the models.
        nats: float64 [models, hypotheses], what each model gives each hypothesis.
        totals: float64 [hypotheses], the weighted sums; -inf for a hypothesis that a model rules out.
        chosen: int64 [lists], the index of the best hypothesis of each.
        weights: by name; the last is that of the length, in words or characters.
        unknown: unknown words under each model.
        tuning: how the weights were chosen; None where they were given.
        systems: error rates of the first hypotheses and of the best, with intervals and a test; None without references.
        oracle: error rate of the hypotheses with the fewest errors; None without references.
        worst: error rate of those with the most errors.
        notes: what a reader must know.
        signature: all choices that move the numbers.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a dog barks", "the dog sleeps"]), order=2)
        >>> lists = {"u1": [("a dock barks", -3.0), ("a dog barks", -3.1)], "u2": [("the dog sleeps", -2.0)]}
        >>> result = lmgauge.rescore(lists, {"wb2": model}, weights={"score": 1, "wb2": 0.5})
        >>> result.texts, result.changed
        (('a dog barks', 'the dog sleeps'), 1)
    """

    lists: NbestLists
    models: tuple[str, ...]
    nats: Floats
    totals: Floats
    chosen: Integers
    weights: dict[str, float]
    unknown: tuple[UnknownWords, ...]
    tuning: Tuning | None
    systems: Systems | None
    oracle: ErrorRates | None
    worst: ErrorRates | None
    notes: tuple[str, ...]
    signature: str

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the utterances."""
        return self.lists.ids

    @property
    def texts(self) -> tuple[str, ...]:
        """The best hypothesis of each list."""
        return tuple(self.lists.texts[i] for i in self.chosen.tolist())

    @property
    def ranks(self) -> tuple[int, ...]:
        """The place of the best hypothesis in its list, from 1."""
        return tuple((self.chosen - self.lists.offsets[:-1] + 1).tolist())

    @property
    def changed(self) -> int:
        """How many lists have another text than that of their first hypothesis as the best."""
        texts, firsts = self.lists.texts, self.lists.offsets[:-1].tolist()
        return sum(texts[i] != texts[first] for i, first in zip(self.chosen.tolist(), firsts, strict=True))

    def _in_brief(self) -> str:
        lists = f"{len(self.lists):,} list{'s' * (len(self.lists) != 1)}, {self.changed:,} with another best"
        if self.systems is None:
            return lists
        before, after = (100 * item.score.score for item in self.systems)
        return f"{lists}; {self.systems.metric} {before:.2f} % -> {after:.2f} %"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, without the hypotheses."""
        rates = {name: rate.to_dict() for name in ("oracle", "worst") if (rate := getattr(self, name)) is not None}
        return {
            "lists": len(self.lists),
            "hypotheses": len(self.lists.texts),
            "changed": self.changed,
            "weights": self.weights,
            "unknown_words": {one.model: {"unknown": one.unknown, "words": one.words} for one in self.unknown},
            **({} if self.tuning is None else {"tuning": plain_values(self.tuning)}),
            **({} if self.systems is None else {"test": self.systems.to_dict()}),
            **rates,
            "notes": list(self.notes),
            "signature": self.signature,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for each hypothesis: id, rank in its list, text, all scores, total, and whether it is the best."""
        best, lists = set(self.chosen.tolist()), self.lists
        columns = dict(zip(self._score_names, [*lists.scores.tolist(), *self.nats.tolist()], strict=True))
        offsets, totals, rows = lists.offsets.tolist(), self.totals.tolist(), []
        for name, begin, end in zip(lists.ids, offsets[:-1], offsets[1:], strict=True):
            for i in range(begin, end):
                scores = {title: values[i] for title, values in columns.items()}
                own = {"id": name, "rank": i - begin + 1, "text": lists.texts[i]}
                rows.append({**own, **scores, "total": totals[i], "best": i in best})
        return rows

    def write_best(self, path: str | os.PathLike[str]) -> None:
        """Write the best hypothesis of each list, in the order of the lists.

        Args:
            path: of the file: JSONL with id, text, rank, scores and total where it ends in .jsonl; else Kaldi's form, id and
                words on a line. "-" is standard output.

        Raises:
            OutputError: it cannot be written; nothing is left behind.
            UsageError: the name has the ending of another format, or an id has white space and is to be written as Kaldi's.
        """
        if is_jsonl(path):
            self._write(path, (_record(row, self._score_names) for row in self.to_rows() if row["best"]))
            return
        spaced = next((name for name in self.ids if len(name.split()) != 1), None)
        if spaced is not None:
            raise UsageError(f"-o {path}: the id {spaced!r} has white space, which parts id and words there; write .jsonl")
        self._write(path, (" ".join([name, *text.split()]) for name, text in zip(self.ids, self.texts, strict=True)))

    def write_scores(self, path: str | os.PathLike[str]) -> None:
        """Write all hypotheses with the scores of the models added, as JSONL that `lmgauge.rescore` reads.

        The score of a text that a model rules out is written as "-inf", and such a hypothesis is refused when it is read.

        Args:
            path: of the file; "-" is standard output.

        Raises:
            OutputError: it cannot be written; nothing is left behind.
        """
        self._write(path, (_record(row, self._score_names) for row in self.to_rows()))

    @property
    def _score_names(self) -> tuple[str, ...]:
        return (*self.lists.score_names, *self.models)

    def _write(self, path: str | os.PathLike[str], lines: Iterator[str]) -> None:
        with writing_or_printing(path) as file:
            text = "".join(line + "\n" for line in lines)
            file.write((for_output(text) if os.fspath(path) == "-" else text).encode())


def is_jsonl(path: str | os.PathLike[str]) -> bool:
    """Return whether the best hypotheses are written to a file as JSONL, by its name; else as lines with id and words."""
    suffix = os.path.splitext(path)[1].lower()
    known = format_of(os.fspath(path), None) or BY_SUFFIX.get(suffix, "text")
    if known not in ("kaldi", "text", "jsonl") or suffix in COMPRESSIONS:
        raise UsageError(f"-o {os.fspath(path)}: the best hypotheses are written as .txt or .jsonl, not as {suffix}")
    return known == "jsonl"


def _record(row: dict[str, Any], names: tuple[str, ...]) -> str:
    # Hypothesis as a line of JSONL; costs get back their sign.
    own = {name: row[name] for name in ("id", "text", "rank", "total")}
    return to_json(own | {"scores": {name: -row[name] if is_cost(name) else row[name] for name in names}}, indent=None)
