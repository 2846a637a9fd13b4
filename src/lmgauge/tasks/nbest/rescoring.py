"""N-best lists rescored: the result, what is weighted, how many errors a choice makes, and tuned weights."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import first_few, for_output
from lmgauge.base.files import writing_or_printing
from lmgauge.base.json_text import to_json
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import Tabled, plain_values
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.numerics.signature import Signature
from lmgauge.records.formats import BY_SUFFIX, COMPRESSIONS
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.metrics.error_rates import EditRate, ErrorRates
from lmgauge.tasks.metrics.protocol import Floats, Statistics
from lmgauge.tasks.nbest.line_search import Candidates, Search
from lmgauge.tasks.nbest.reading import NbestLists, is_cost, references_of, speakers_of
from lmgauge.tasks.scoring import document_codes
from lmgauge.tasks.settings import ComparisonSettings, NbestReading, PairsFile, RescoreSettings
from lmgauge.tasks.significance import IndependentRows
from lmgauge.tasks.texts import Integers, References, Texts
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


LENGTHS = {"word": "words", "character": "characters"}
"""What the length of a hypothesis is counted in, by the unit of errors: the name of its weight."""


@dataclass(frozen=True)
class ScoredLists:
    """N-best lists and what models make of them."""

    lists: NbestLists
    models: tuple[str, ...]
    nats: Floats  # float64 [models, hypotheses], natural logs of probabilities; -inf where a model rules a hypothesis out
    metric: EditRate  # says what lengths are counted in, and what an error is

    def __post_init__(self) -> None:
        if len(self.names) == 1:
            raise UsageError("there is nothing to weight but the length: name a model (-m), or lists with scores")
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise UsageError(
                f"two weights would be called {twice[0]!r}: give the model another name than a score or the length has "
                '(in Python {"name": model})'
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that is weighted: the recognizer's scores, the models, the length."""
        return (*self.lists.score_names, *self.models, LENGTHS[self.metric.unit])

    @cached_property
    def lengths(self) -> Floats:
        """Return float64 [hypotheses], words or characters of each, without white space."""
        texts = self.lists.texts
        sizes = [len(text.split()) if self.metric.unit == "word" else len("".join(text.split())) for text in texts]
        return np.array(sizes, dtype=np.float64)

    @cached_property
    def possible(self) -> tuple[Floats, Integers]:
        """Return the features float64 [names, n] and the indexes int64 [n] of the hypotheses that may be chosen."""
        # A hypothesis that a model rules out is none of them, if its list has others; where a model rules out all of a list
        # it has no say in that list.
        offsets, nats = self.lists.offsets, self.nats.copy()
        owners = np.repeat(np.arange(len(self.lists)), np.diff(offsets))
        open_ones = np.ones(len(owners), bool)
        for row in nats:
            usable = np.isfinite(row) & open_ones
            open_ones &= usable | ~np.logical_or.reduceat(usable, offsets[:-1])[owners]
        nats[~np.isfinite(nats)] = 0.0
        features = np.concatenate((self.lists.scores, nats, self.lengths[None]))
        return features[:, open_ones], np.flatnonzero(open_ones)

    def candidates(self, errors: Integers | None = None) -> Candidates:
        """Return the hypotheses that may be chosen."""
        # errors: int64 [hypotheses] of all; None: they are not known.
        features, indexes = self.possible
        offsets = np.searchsorted(indexes, self.lists.offsets).astype(np.int64)
        own = np.zeros(len(indexes), np.int64) if errors is None else errors[indexes]
        return Candidates(features, offsets, own)

    def choose(self, weights: Floats) -> Integers:
        """Return the best hypothesis of each list by these weights, int64 [lists]; of equal ones the first."""
        # weights: float64 [names].
        return self.possible[1][self.candidates().choose(weights)]

    def totals(self, weights: Floats) -> Floats:
        """Return the weighted sum of each hypothesis, float64 [hypotheses]; -inf for those that may not be chosen."""
        # weights: float64 [names].
        totals = np.full(len(self.lists.texts), -math.inf)
        totals[self.possible[1]] = self.candidates().totals(weights)
        return totals


def count_errors(lists: NbestLists, references: Sequence[str], metric: EditRate, threads: int | None) -> Statistics:
    """Return hits, substitutions, deletions and insertions of each hypothesis, int64 [hypotheses, 4]."""
    hypotheses = metric.prepared(Texts.of_strings(lists.texts, "hypothesis"))
    right = metric.prepared_references(Texts.of_strings(references, "reference"))
    owners = np.repeat(np.arange(len(lists)), np.diff(lists.offsets))
    return metric.statistics(hypotheses, References.single(right.picked(owners)), threads)


def rates_of(metric: EditRate, statistics: Statistics, chosen: Integers) -> ErrorRates:
    """Return the error rate of some hypotheses together."""
    # statistics: int64 [hypotheses, 4] of all; chosen: int64 [lists], their indexes.
    return metric.score(statistics[chosen].sum(axis=0), 1)


def extremes(lists: NbestLists, statistics: Statistics) -> tuple[Integers, Integers]:
    """Return the hypotheses with the fewest and the most errors of each list, int64 [lists] each."""
    # Of equal ones the first.
    # statistics: int64 [hypotheses, 4].
    errors = statistics[:, 1:].sum(axis=1).astype(np.float64)
    candidates = Candidates(errors[None], lists.offsets, np.zeros(0, np.int64))
    return candidates.choose(-np.ones(1)), candidates.choose(np.ones(1))


def tune_weights(
    scored: ScoredLists, references: Sequence[str], *, starts: int, seed: int, threads: int | None
) -> tuple[dict[str, float], Tuning]:
    """Return weights that make the fewest errors on lists with references, and how they were chosen."""
    # The first weight is 1; those of scores and models are 0 or more; that of the length is free.
    metric, firsts = scored.metric, scored.lists.offsets[:-1]
    statistics = count_errors(scored.lists, references, metric, threads)
    lows = np.append(np.zeros(len(scored.names) - 1), -math.inf)
    result = Search(scored.candidates(statistics[:, 1:].sum(axis=1)), lows, starts, seed).run(threads)
    ends = (firsts, scored.choose(result.weights), extremes(scored.lists, statistics)[0])
    rates = (rates_of(metric, statistics, chosen) for chosen in ends)
    tuning = Tuning(len(scored.lists), len(scored.lists.texts), starts + 2, result.lines, seed, *rates)
    return dict(zip(scored.names, result.weights.tolist(), strict=True)), tuning


def weights_of(names: Sequence[str], weights: Mapping[str, float]) -> Floats:
    """Return weights in the order of what is weighted, float64 [names]; 0 for those not named."""
    # weights_of(("score", "kn5", "words"), {"score": 1.0, "kn5": 0.5}) -> [1.0, 0.5, 0.0]
    unknown = [name for name in weights if name not in names]
    if unknown:
        raise UsageError(f"there is no weight {unknown[0]!r}; what is weighted is {first_few(list(names), 8)}")
    bad = [name for name, value in weights.items() if not math.isfinite(value)]
    if bad:
        raise UsageError(f"the weight of {bad[0]!r} is not a finite number")
    if not any(weights.values()):
        raise UsageError("all weights are 0: every hypothesis would be as good as any; give at least one")
    return np.array([float(weights.get(name, 0.0)) for name in names])


@dataclass(frozen=True)
class Rescoring:
    """Lists scored by models, weights tuned, and the best chosen."""

    # texts -> float64 [models, texts], natural logs of probabilities, and how many words each model does not know
    score: Callable[[Sequence[str]], tuple[Floats, Sequence[int]]]
    models: Sequence[str]  # their names
    fingerprints: str  # of the models, for the signature
    metric: EditRate
    settings: RescoreSettings
    reading: NbestReading
    comparison: ComparisonSettings

    def result(
        self, lists: NbestLists, tuned_on: NbestLists | None, ref: PairsFile | None, test_ref: PairsFile | None
    ) -> Rescored:
        """Return the best of all lists, with error rates where there are references."""
        weights, tuning, notes = self.settings.weights or {}, None, [*lists.notes]
        if tuned_on is not None and ref is not None:
            references, more = references_of(tuned_on.ids, ref, self.reading)
            scored, _ = self._scored(tuned_on)
            say_progress("tuning weights")
            seed, threads = self.comparison.seed, self.comparison.threads
            weights, tuning = tune_weights(scored, references, starts=self.settings.starts, seed=seed, threads=threads)
            shared = len({*lists.ids} & {*tuned_on.ids})
            seen = f"{shared:,} utterances are among those that the weights were tuned on, so their error rate is too low"
            notes += [*more, seen] if shared else more
        references, more = ([], []) if test_ref is None else references_of(lists.ids, test_ref, self.reading)
        scored, unknown = self._scored(lists)
        own = weights_of(scored.names, weights)
        best = scored.choose(own)
        systems, oracle, worst = (None,) * 3 if test_ref is None else self._errors(lists, references, best)
        ruled_out, every = len(lists.texts) - len(scored.possible[1]), len(lists.texts)
        if ruled_out:
            share = f"{ruled_out:,} of {every:,} hypotheses have probability 0 under a model"
            more = [*more, f"{share}, and are not chosen while others are left"]
        return Rescored(
            lists=lists,
            models=tuple(self.models),
            nats=scored.nats,
            totals=scored.totals(own),
            chosen=best,
            weights=dict(zip(scored.names, own.tolist(), strict=True)),
            unknown=unknown,
            tuning=tuning,
            systems=systems,
            oracle=oracle,
            worst=worst,
            notes=tuple(dict.fromkeys([*notes, *more])),
            signature=self._signature(weights, tuning),
        )

    def _scored(self, lists: NbestLists) -> tuple[ScoredLists, tuple[UnknownWords, ...]]:
        # Equal texts are scored once.
        place = {text: i for i, text in enumerate(dict.fromkeys(lists.texts))}
        say_progress(f"scoring {len(place):,} different hypotheses")
        nats, unknown = self.score(list(place))
        words = sum(len(text.split()) for text in place)
        counts = tuple(UnknownWords(name, count, words) for name, count in zip(self.models, unknown, strict=True))
        return ScoredLists(lists, tuple(self.models), nats[:, [place[text] for text in lists.texts]], self.metric), counts

    def _errors(
        self, lists: NbestLists, references: Sequence[str], best: Integers
    ) -> tuple[Systems, ErrorRates, ErrorRates]:
        # First and best hypotheses as two systems; error rates of the hypotheses with the fewest and the most errors.
        statistics = count_errors(lists, references, self.metric, self.comparison.threads)
        who = self.settings.document
        codes = None if who is None else document_codes(speakers_of(lists.ids, who, self.reading.id), len(lists))
        by = UNKNOWN if who is None else "speakers or calls"
        rows = IndependentRows.of([statistics[lists.offsets[:-1]], statistics[best]], codes, by)
        systems = compare_systems(self.metric, [FIRST, RESCORED], rows, 1, settings=self.comparison)
        fewest, most = (rates_of(self.metric, statistics, ends) for ends in extremes(lists, statistics))
        return systems, fewest, most

    def _signature(self, weights: Mapping[str, float], tuning: Tuning | None) -> str:
        metric = self.metric
        parts = {"metric": metric.name.lower(), **metric.normalization.signature(), "models": self.fingerprints}
        parts["weights"] = ",".join(f"{name}={value:.6g}" for name, value in weights.items())
        if tuning is not None:
            parts |= {"tuned": f"{tuning.lists}-lists", "places": str(tuning.places), "seed": str(tuning.seed)}
        return str(Signature(parts | {"v": NUMBERS_VERSION}, head="rescore"))
