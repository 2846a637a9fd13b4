"""Lists with the scores of language models: what is weighted, how many errors a choice makes, and tuned weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lmgauge.errors import UsageError
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.progress import say_progress
from lmgauge.readable import first_few
from lmgauge.signature import Signature
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.error_rates import EditRate, ErrorRates
from lmgauge.tasks.metrics.protocol import Floats, Statistics
from lmgauge.tasks.nbest.line_search import Candidates, Search
from lmgauge.tasks.nbest.lists import NbestLists
from lmgauge.tasks.nbest.references import references_of, speakers_of
from lmgauge.tasks.nbest.results import FIRST, RESCORED, Rescored, Tuning, UnknownWords
from lmgauge.tasks.scoring import document_codes
from lmgauge.tasks.settings import ComparisonSettings, NbestReading, PairsFile, RescoreSettings
from lmgauge.tasks.texts import Integers, References, Texts
from lmgauge.version import NUMBERS_VERSION

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
    """Return weights in the order of what is weighted, float64 [names]; 0 for what is not named."""
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
