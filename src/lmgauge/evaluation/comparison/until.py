"""Two models until it is decided: documents in random order, scored by both a few at a time, and a look after each few.

Of 5 % errors four belong to all looks together (`numerics.sequential`), and one to the ordinary paired test of all of them,
which is made where the text is used up. Totals of documents are noted as soon as they are known: a run goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import growing_digest
from lmgauge.base.progress import say_progress
from lmgauge.base.result_list import Result
from lmgauge.evaluation.comparison.comparability import TableFacts, facts_of, verdicts
from lmgauge.evaluation.comparison.results import Difference
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.figures import Scale
from lmgauge.numerics.intervals import DOCUMENTS, Interval, spread
from lmgauge.numerics.sequential import FEWEST, SEQUENCE, confidence_sequence
from lmgauge.numerics.units import difference_to_scale, nats_to_scale
from lmgauge.scores.scoring import score_together
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Verdicts = Literal["first", "second", "equal", "undecided"]
LOOKS, LAST = 0.04, 0.01
"""Errors allowed at all looks together, and at the last test, of all documents."""
_METRICS: tuple[tuple[str, Scale], ...] = (("perplexity", "perplexity"), ("bits_per_byte", "bits"))
_MADE_OF, _METRIC = ("made of",), ("metric",)
"""Keys of notes, beside those of documents, (number,)."""
_FIRST, _SECOND, _EVENTS, _BYTES = range(4)  # of each document: nats that the two models pay, events, bytes


@dataclass(frozen=True, repr=False)
class Decision(Result):
    """Which of two models is better, as far as was looked.

    Attributes:
        verdict: which is better, or `equal` (within the margin), or `undecided`.
        difference: the figure of both on the documents scored, and its interval, which holds at all looks together.
        documents, total_documents: scored by both, and in the text.
        margin: the share of the figure within which they count as equal; None for none.
        p_value, exact: of the ordinary paired test of all documents, and its 95 % interval; None before the text is used up.
        interrupted: whether it was stopped before it was decided; the same command goes on.
        unit: what is counted as documents: these, or runs of a recipe that is compared with a target.

    Example:
        >>> import lmgauge
        >>> texts = [f"the {animal} sat" for animal in ("cat", "dog", "cow", "hen", "pig", "owl", "ant", "bee", "fox")]
        >>> corpus = lmgauge.Corpus.from_strings(texts, documents=texts)
        >>> models = [lmgauge.train("witten-bell", corpus, order=order) for order in (1, 2)]
        >>> decision = lmgauge.decide(models, corpus)
        >>> decision.verdict, decision.documents, decision.total_documents
        ('second', 7, 9)
    """

    first: str
    second: str
    verdict: Verdicts
    difference: Difference
    documents: int
    total_documents: int
    margin: float | None
    p_value: float | None
    exact: Interval | None
    interrupted: bool = False
    unit: str = DOCUMENTS

    def _in_brief(self) -> str:
        lead = self.difference
        figures = f"{lead.metric} {lead.second:.4f} / {lead.first:.4f}"
        return (
            f"{self.second} / {self.first}: {figures}, {self.verdict}, {self.documents} of {self.total_documents} documents"
        )


def documents_of(corpus: Corpus) -> Ints:
    """Return the document of each segment of a text, int64 [segments], which is read for it."""
    documents = [block.documents for block in corpus]
    known = [one for one in documents if one is not None]
    if not documents or len(known) < len(documents):
        raise UsageError(
            "documents are what is drawn, and those of the text are not known: say what is independent (--document segment, "
            "blank-line, heading, or the name of a field)"
        )
    numbers: Ints = np.unique(np.concatenate(known), return_inverse=True)[1]
    if (count := int(numbers.max()) + 1) < FEWEST:
        raise UsageError(
            f"fewer than {FEWEST} documents decide nothing, and the text has {count}: give more text, or smaller documents "
            "(--document)"
        )
    return numbers


class _Pair:
    """Two models and the totals of the documents that both have scored."""

    def __init__(self, models: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus, threads: int | None) -> None:
        self.models, self.corpus, self.threads = models, corpus, threads
        for model in models:
            if model.context_policy.runs_on:
                raise UsageError(
                    f"{model.label}: its context runs on from document to document, so order matters: --context sentence"
                )
        self.documents = documents_of(corpus)
        self.origins = [Origin.of_model(model, name).after(corpus) for model, name in zip(models, names, strict=True)]
        text = corpus.report.sha256
        self.runs = [Run(one.model, Path(), Path(), one, text, None, {}) for one in self.origins]
        self.facts = [TableFacts(run) for run in self.runs]
        self.totals = np.zeros((int(self.documents.max()) + 1, 4))
        documents = growing_digest(np.ascontiguousarray(self.documents, "<i8").data).hexdigest()
        scored = [
            [one.fingerprints["model"], one.context, str(model.reserved)]
            for one, model in zip(self.origins, models, strict=True)
        ]
        self.made_of = {"text": text, "documents": documents, "models": scored}

    def score(self, wanted: Ints) -> Iterator[list[int]]:
        """Score documents with both models, add up what they pay, and yield after each block the numbers of those done."""
        chosen = np.isin(self.documents, wanted)
        numbers, begin = self.documents[chosen], 0
        waiting = np.bincount(numbers, minlength=len(self.totals))  # segments
        blocks = score_together(
            self.models, self.corpus.chosen(chosen), lambda *scored: scored, spans=True, threads=self.threads
        )
        for block, batches in blocks:
            own, begin = numbers[begin : begin + len(block)], begin + len(block)
            for facts, batch in zip(self.facts, batches, strict=True):
                facts.add(next(facts.first_tokens.watch([batch])), batches[0])
            sums = [EventSums.of(batch).per_segment() for batch in batches]
            if any(one.zeros.any() for one in sums):
                raise InputError("an event has probability zero, so a figure is infinite: there is nothing to decide")
            columns = [
                -sums[0].nats,
                -sums[1].nats,
                sums[1].events,
                segment_bytes(block, batches[1], self.origins[1].policy),
            ]
            np.add.at(self.totals, own[sums[0].segments - block.first], np.column_stack(columns))
            np.subtract.at(waiting, own, 1)
            yield [number for number in np.unique(own).tolist() if not waiting[number]]

    def metric(self) -> int:
        """Return the number of the figure that may be compared: of perplexity, else of bits per byte."""
        answers = {one.metric: one for one in verdicts(self.runs[0], self.runs[1], facts_of(*self.facts))[0]}
        for i, (name, _) in enumerate(_METRICS):
            if answers[name].comparable:
                return i
        reasons = "; ".join(answers["bits_per_byte"].reasons)
        raise InputError(f"{self.runs[1].name} and {self.runs[0].name} may not be compared ({reasons})")


def decide(
    models: Sequence[LanguageModel],
    names: Sequence[str],
    corpus: Corpus,
    notes: MutableMapping[Any, Any],
    *,
    margin: float | None,
    seed: int,
    threads: int | None = None,
) -> Decision:
    """Score documents in random order until it is decided which of two models is better, or that they are alike."""
    # notes: totals of documents by their number, of an earlier run or to be kept for a later one.
    pair = _Pair(models, names, corpus, threads)
    if notes.get(_MADE_OF, pair.made_of) != pair.made_of:
        raise UsageError("the output is that of other models or of another text: name another, or remove it")
    notes[_MADE_OF] = pair.made_of
    order = np.random.default_rng(seed).permutation(len(pair.totals))
    decision: Decision | None = None
    done = 0
    try:
        while done < len(order) and (decision is None or decision.verdict == "undecided"):
            drawn = order[done : max(FEWEST, done + 1 + done // 10)]
            fresh = np.array([number for number in drawn.tolist() if (number,) not in notes], np.int64)
            for finished in pair.score(fresh) if len(fresh) else ():
                notes[_METRIC] = max(pair.metric(), notes.get(_METRIC, 0))
                for number in finished:
                    notes[(number,)] = pair.totals[number].tolist()
            done += len(drawn)
            totals = np.array([notes[(number,)] for number in order[:done].tolist()])
            decision = _look(names, totals, len(order), notes[_METRIC], margin)
            say_progress(f"{done:,} of {len(order):,} documents, {decision.verdict}")
    except KeyboardInterrupt:
        if decision is None:
            raise
        return replace(decision, interrupted=True)
    assert decision is not None
    return decision


def _look(names: Sequence[str], totals: Floats, documents: int, metric: int, margin: float | None) -> Decision:
    # totals: float64 [documents scored, 4], in the order of drawing.
    name, scale = _METRICS[metric]
    sizes = totals[:, (_EVENTS, _BYTES)[metric]]
    apart, size = totals[:, _SECOND] - totals[:, _FIRST], float(sizes.sum())
    low, high = (float(ends[-1]) for ends in confidence_sequence(apart, sizes, LOOKS))
    figures = [nats_to_scale(math.fsum(totals[:, column]) / size, scale) for column in (_FIRST, _SECOND)]
    to_difference = partial(difference_to_scale, scale=scale)
    at_looks = Interval(low, high, 1 - LOOKS, SEQUENCE, DOCUMENTS, len(totals)).mapped(to_difference)
    over = spread(apart, sizes, np.arange(len(totals))) if len(totals) == documents else None
    verdict: Verdicts = "undecided"
    if low > 0 or high < 0 or (over is not None and over.p_value < LAST):
        verdict = "first" if apart.sum() > 0 else "second"
    elif margin is not None and _within(margin, low, high, apart, totals, metric):
        verdict = "equal"
    gap = to_difference(math.fsum(apart) / size)
    return Decision(
        first=names[0],
        second=names[1],
        verdict=verdict,
        difference=Difference(name, figures[0], figures[1], gap, at_looks if math.isfinite(high) else None),
        documents=len(totals),
        total_documents=documents,
        margin=margin,
        p_value=None if over is None else over.p_value,
        exact=None if over is None else over.interval().mapped(to_difference),
    )


def against_target(runs: Sequence[Run], target: float) -> Decision:
    """Say whether the mean cross-entropy of a recipe is below a target, by its runs in order, looked at after each."""
    values = np.array([run.evaluation["cross_entropy"] for run in runs if run.evaluation is not None])
    if len(runs) < 2 or len(values) < len(runs) or len({run.text_sha256 for run in runs}) > 1:
        raise UsageError("a target needs two run folders or more of one recipe (other seeds), all of one text")
    if len(np.unique(values)) < len(values):
        raise UsageError("two runs have the same cross-entropy to the last digit: they are the same model, not two seeds")
    ends = confidence_sequence(values - target, np.ones(len(values)), LOOKS + LAST, 2)
    low, high = float(ends[0].max()), float(ends[1].min())
    mean, level = math.fsum(values) / len(values), 1 - LOOKS - LAST
    interval = Interval(low, high, level, SEQUENCE, "runs", len(values)) if math.isfinite(high) else None
    gap = Difference("cross_entropy", target, mean, mean - target, interval)
    verdict: Verdicts = "first" if low > 0 else "second" if high < 0 else "undecided"
    return Decision("the target", "the recipe", verdict, gap, len(values), len(values), None, None, None, unit="runs")


def _within(margin: float, low: float, high: float, apart: Floats, totals: Floats, metric: int) -> bool:
    # Whether the change of the figure is within a share of it: perplexity by a factor; bits over those of the first model.
    most = math.log1p(margin)
    if _METRICS[metric][1] == "bits":
        low, high = (float(ends[-1]) for ends in confidence_sequence(apart, totals[:, _FIRST], LOOKS))
        most = margin
    return -most < low and high < most
