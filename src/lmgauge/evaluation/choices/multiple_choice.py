"""Which of several texts a model prefers: minimal pairs and the answers of questions.

The text of the higher log-probability is preferred (raw), or that of the higher log-probability a byte, which does not
reward short texts (the `acc_norm` of lm-evaluation-harness). Marvin & Linzen (2018), "Targeted syntactic evaluation of
language models"; Warstadt et al. (2020), "BLiMP: the benchmark of linguistic minimal pairs".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.choices.accuracies import MEASURES, PER_BYTE, RAW, Accuracy, Choices, Preference, counted
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.intervals import mcnemar_p_value, wilson_interval
from lmgauge.numerics.resampling import holm
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import OOV, ScoreBatch
from lmgauge.scores.scoring import score_together
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Flags = NDArray[np.bool_]

PAIRS, QUESTIONS = "pairs", "questions"
_DIGITS = 12
_TEXTS_IN_BLOCK = 8192
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Texts:
    """The segments of one text or several, scored: log-probabilities float64 [models, n] in nats, and what else is known."""

    # `unseen` bool [models, n] says where a word is that the model does not know; `counts` how many segments each text has.

    counts: list[int]
    nats: Floats
    unseen: Flags
    sizes: Ints
    places: list[str]
    strings: list[str]
    groups: list[str] | None
    ids: list[str]
    hashes: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Items:
    """What texts stand side by side."""

    kind: str
    texts: _Texts
    item: Ints  # int64 [n], to which item each belongs
    right: Ints  # int64 [items], place among the texts of the right one of each
    groups: list[str] | None  # of each item; None where there are none
    ids: list[str]

    def __len__(self) -> int:
        return len(self.right)


def prefer_pairs(
    models: Sequence[LanguageModel], good: Corpus, bad: Corpus, names: Sequence[str], threads: int | None = None
) -> Choices:
    """Return how often models prefer the first text of each pair."""
    # bad: the others, in the same order.
    texts = _score(models, [good, bad], threads)
    first, second = texts.counts
    if first != second:
        raise InputError(
            f"there are {first:,} good texts and {second:,} bad ones: each good text needs its bad one, in the same order"
        )
    count = np.arange(first)
    ids = (texts.ids or texts.places)[:first]
    return _Choosing(models, names, _Items(PAIRS, texts, np.tile(count, 2), count, texts.groups, ids)).result()


def prefer_answers(
    models: Sequence[LanguageModel], answers: Corpus, names: Sequence[str], threads: int | None = None
) -> Choices:
    """Return how often models prefer the right one of the answers of each question."""
    texts = _score(models, [answers], threads)
    places = texts.places
    firsts = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1]]
    bounds = [*firsts, len(places)]
    item = np.repeat(np.arange(len(firsts)), np.diff(bounds))
    right = np.array([_right(texts, begin, end) for begin, end in pairwise(bounds)], np.int64)
    groups = None if texts.groups is None else [texts.groups[i] for i in firsts]
    return _Choosing(models, names, _Items(QUESTIONS, texts, item, right, groups, [places[i] for i in firsts])).result()


def _right(texts: _Texts, begin: int, end: int) -> int:
    answer, answers = texts.ids[begin], texts.strings[begin:end]
    if len(answers) < 2:
        raise InputError(f"{texts.places[begin]}: has a single answer; there is nothing to choose from")
    if answers.count(answer) == 1:
        return begin + answers.index(answer)
    number = int(answer) if answer.isascii() and answer.isdecimal() and len(answer) < 9 else _LETTERS.find(answer or "?")
    if len(answer) and 0 <= number < len(answers):
        return begin + number
    raise InputError(
        f"{texts.places[begin]}: the right answer is {answer!r}, which is neither one of the {len(answers)} answers nor a "
        f"number from 0 to {len(answers) - 1} nor a letter from A to {_LETTERS[: len(answers)][-1]}"
    )


def log_probabilities(
    models: Sequence[LanguageModel], texts: Sequence[str], threads: int | None = None
) -> tuple[Floats, list[int]]:
    """Return what each model gives each text on its own, and how many words each model does not know."""
    # -> float64 [models, texts], natural logs, ends included where a model predicts them; -inf for what a model rules out.
    _refuse_running(models, "hypotheses need")
    nats, unseen = np.zeros((len(models), len(texts))), [0 for _ in models]
    for _, tallies in score_together(models, _blocks(texts) if models else (), _tallies, threads=threads):
        for k, tally in enumerate(tallies):
            own = tally.per_segment()
            nats[k, own.segments] = own.nats
            unseen[k] += tally.unseen_events
    return nats, unseen


def _blocks(texts: Sequence[str]) -> Iterator[Segments]:
    # Texts are known to be valid, so they are not cleaned again.
    for begin in range(0, len(texts), _TEXTS_IN_BLOCK):
        encoded = [text.encode() for text in texts[begin : begin + _TEXTS_IN_BLOCK]]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        yield Segments(data, np.append(0, ends[:-1]), ends, "<hypotheses>", first_line=begin + 1, first=begin)


def _refuse_running(models: Sequence[LanguageModel], what: str) -> None:
    running = next((model.label for model in models if model.context_policy.runs_on), None)
    if running is not None:
        raise UsageError(
            f"{running}: its context continues from one text to the next, and {what} contexts of their own "
            "(--context sentence)"
        )


def _tallies(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, list[EventSums]]:
    return block, [EventSums.of(batch) for batch in batches]


def _score(models: Sequence[LanguageModel], corpora: Sequence[Corpus], threads: int | None) -> _Texts:
    _refuse_running(models, "texts to choose from need")

    def summed(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, Floats, Flags]:
        nats = [EventSums.of(batch).per_segment().nats for batch in batches]
        unseen = [np.isin(batch.segments, batch.row_segments()[batch.kind == OOV]) for batch in batches]
        return block, np.stack(nats), np.stack(unseen)

    scored: list[tuple[Segments, Floats, Flags]] = []
    counts, groups = list[int](), list[str]()
    for corpus in corpora:
        own = list(score_together(models, corpus, summed, threads=threads))
        counts.append(sum(len(block) for block, *_ in own))
        if not counts[-1]:
            raise InputError("the text holds nothing to choose from")
        codes = [block.groups for block, *_ in own if block.groups is not None]
        groups += [corpus.group_names[code] for of_block in codes for code in of_block.tolist()]
        scored += own
    blocks, nats, unseen = zip(*scored, strict=True)
    lengths = np.concatenate([block.ends - block.starts for block in blocks])
    places = [f"{block.source}:{line}" for block in blocks for line in block.lines().tolist()]
    if not lengths.all():
        raise InputError(f"{places[int(np.argmin(lengths))]}: a text to choose from is empty")
    return _Texts(
        counts,
        np.concatenate(nats, axis=1),
        np.concatenate(unseen, axis=1),
        lengths,
        places,
        [block.text(i).decode() for block in blocks for i in range(len(block))],
        groups or None,
        [one for block in blocks for one in next(iter(block.labels.values()), [])],
        tuple(dict.fromkeys(corpus.report.sha256 for corpus in corpora)),
        tuple(dict.fromkeys(note for corpus in corpora for note in corpus.report.notes())),
    )


@dataclass(frozen=True)
class _Outcome:
    """What one model prefers by one measure."""

    credit: Floats  # float64 [items], 1 where the right text is preferred, 1 / k where it is one of k equal ones, else 0
    margin: Floats  # float64 [items], by how much it is preferred to the best other; NaN where both are impossible
    preferred: Ints  # int64 [items], place of the preferred text, -1 in a tie


def _outcome(scores: Floats, items: _Items) -> _Outcome:
    # What is preferred by scores, float64 [n]: higher ones.
    best, other = np.full(len(items), -np.inf), np.full(len(items), -np.inf)
    np.maximum.at(best, items.item, scores)
    wrong = np.ones(len(scores), bool)
    wrong[items.right] = False
    np.maximum.at(other, items.item[wrong], scores[wrong])
    at_top = scores == best[items.item]
    equal = np.bincount(items.item[at_top], minlength=len(items))
    own = scores[items.right]
    with np.errstate(invalid="ignore"):  # -inf - -inf: both are impossible
        margin = own - other
    preferred = np.full(len(items), -1)
    preferred[items.item[at_top]] = np.flatnonzero(at_top)
    preferred[equal > 1] = -1
    return _Outcome(np.where(own == best, 1.0 / equal, 0.0), margin, preferred)


class _Choosing:
    """All figures of some items."""

    def __init__(self, models: Sequence[LanguageModel], names: Sequence[str], items: _Items) -> None:
        self._models, self._names, self._items = models, list(names), items
        nats, sizes = items.texts.nats, items.texts.sizes
        self._outcomes = {
            (name, measure): _outcome(scores, items)
            for name, own in zip(self._names, nats, strict=True)
            for measure, scores in ((RAW, own), (PER_BYTE, own / sizes))
        }
        places: dict[str, list[int]] = {}
        for place, name in enumerate(items.groups or ()):
            places.setdefault(name, []).append(place)
        self._groups = {"": np.arange(len(items)), **{name: np.array(own, np.int64) for name, own in places.items()}}

    def result(self) -> Choices:
        items = self._items
        options = np.bincount(items.item)
        prints = [model.fingerprint for model in self._models]
        return Choices(
            kind=items.kind,
            models=tuple(self._names),
            groups=tuple(self._groups)[1:],
            items=len(items),
            options=(int(options.min()), int(options.max())),
            chance=float((1.0 / options).mean()),
            accuracies=tuple(self._accuracies()),
            preferences=tuple(self._preferences()),
            independence=f"each of {counted(len(items), items.kind)} is taken as independent",
            fingerprints={"models": prints, "texts": list(items.texts.hashes)},
            signature=self._signature(),
            notes=tuple(self._said()),
            rows=self._rows(),
        )

    def _accuracies(self) -> Iterator[Accuracy]:
        for (model, measure), outcome in self._outcomes.items():
            for group, chosen in self._groups.items():
                credit, margin = outcome.credit[chosen], outcome.margin[chosen]
                share = math.fsum(credit) / len(chosen)
                mean = nats_to_bits(_mean(margin[~np.isnan(margin)]))
                yield Accuracy(
                    model=model,
                    group=group,
                    measure=measure,
                    items=len(chosen),
                    right=int(np.count_nonzero(credit == 1.0)),
                    ties=int(np.count_nonzero((credit > 0) & (credit < 1))),
                    accuracy=share,
                    interval=wilson_interval(share, len(chosen), self._items.kind),
                    margin=None if math.isnan(mean) else mean,
                )

    def _preferences(self) -> Iterator[Preference]:
        couples = list(combinations(self._names, 2))
        for measure in MEASURES:
            overall = [self._preference(couple, "", measure) for couple in couples]
            yield from _adjusted(overall)
            for couple in couples:
                yield from _adjusted([self._preference(couple, group, measure) for group in list(self._groups)[1:]])

    def _preference(self, couple: tuple[str, str], group: str, measure: str) -> Preference:
        first, second = (self._outcomes[name, measure].credit[self._groups[group]] for name in couple)
        only_first, only_second = int(np.count_nonzero(first > second)), int(np.count_nonzero(second > first))
        p_value = mcnemar_p_value(only_first, only_second)
        difference = (math.fsum(second) - math.fsum(first)) / len(first)
        return Preference(*couple, group, measure, difference, only_first, only_second, p_value, p_value)

    def _said(self) -> Iterator[str]:
        yield from self._items.texts.notes
        kind = self._items.kind
        for model, name, unseen in zip(self._models, self._names, self._items.texts.unseen, strict=True):
            outcome = self._outcomes[name, RAW]
            strange = len(np.unique(self._items.item[unseen]))
            if strange:
                yield (
                    f"{name}: {counted(strange, kind)} with a word that this model does not know; it costs what the "
                    "class of all unseen words costs, which favors the text that has it"
                )
            ties = int(np.count_nonzero((outcome.credit > 0) & (outcome.credit < 1)))
            if ties:
                yield f"{name}: {ties:,} ties (raw), each counted as a random guess"
            impossible = int(np.count_nonzero(np.isnan(outcome.margin)))
            if impossible:
                yield f"{name}: {counted(impossible, kind)} whose texts have probability zero, which makes them ties"
            rounding = float(model.tolerance)
            near = int(np.count_nonzero((np.abs(outcome.margin) < rounding) & (outcome.margin != 0)))
            if near:
                yield f"{name}: {counted(near, kind)} decided by less than {rounding:g} nats, the rounding of this model"

    def _signature(self) -> str:
        items = self._items
        parts = {
            "model": "+".join(f"{model.label}@{model.fingerprint[:6]}" for model in self._models),
            "n": str(len(items)),
            "groups": str(len(self._groups) - 1),
            "context": "+".join(dict.fromkeys(str(model.context_policy) for model in self._models)),
            "ties": "half" if items.kind == PAIRS else "shared",
            "independent": items.kind,
            "text": "+".join(digest[:6] for digest in items.texts.hashes),
            "vocab": "+".join(dict.fromkeys(model.vocabulary.fingerprint[:6] for model in self._models)),
            "v": NUMBERS_VERSION,
        }
        return str(Signature(parts, head=items.kind))

    def _rows(self) -> dict[str, list[object]]:
        items, rows = self._items, {name: list[object]() for name in _ROWS}
        sizes, order = np.bincount(items.item), np.argsort(items.item, kind="stable")
        firsts = np.cumsum(sizes) - sizes
        number = np.empty(len(order) + 1, object)  # of each text among those of its item, and None of no text, the last
        number[order] = np.arange(len(order)) - np.repeat(firsts, sizes)

        def of_items(values: NDArray[Any]) -> list[object]:
            return [own.tolist() for own in np.split(values[order], firsts[1:])]

        for name, nats in zip(self._names, items.texts.nats, strict=True):
            columns = (
                [name] * len(items),
                items.ids,
                items.groups or [""] * len(items),
                number[items.right].tolist(),
                *(number[self._outcomes[name, measure].preferred].tolist() for measure in MEASURES),
                of_items(nats),
                of_items(items.texts.sizes),
            )
            for column, values in zip(_ROWS, columns, strict=True):
                rows[column] += values
        return rows


_ROWS = ("model", "id", "group", "right", "preferred", "preferred_per_byte", "logprobs", "bytes")


def _mean(values: Floats) -> float:
    # Mean; NaN where there is none. What cancels out but for the rounding of log-probabilities is 0.
    if len(values) and np.isfinite(values).all():
        return round(math.fsum(values) / len(values), _DIGITS)
    signs = np.unique(values[np.isinf(values)])
    return float(signs[0]) if len(signs) == 1 else math.nan


def _adjusted(tests: Sequence[Preference]) -> Iterator[Preference]:
    for test, p_value in zip(tests, holm([test.p_value for test in tests]), strict=True):
        yield replace(test, adjusted_p_value=test.p_value if p_value is None else p_value)
