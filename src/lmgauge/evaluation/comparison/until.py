"""Until it is decided: documents in random order, scored a few at a time, and a look after each few.

Of 5 % errors four belong to all looks together (`numerics.sequential`), and one to the ordinary paired test of all of them,
which is made where the text is used up. Totals of documents are noted as soon as they are known: a run goes on from there.
What is asked is a `Question`: which of two models predicts better (`Pair`), or is nearer to a third (`divergence.Nearness`).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import growing_digest
from lmgauge.base.progress import say_progress
from lmgauge.base.remote.addresses import PathLike
from lmgauge.base.result_list import Result
from lmgauge.base.temporaries import scratch_folder
from lmgauge.evaluation.comparison.comparability import TableFacts, facts_of, verdicts
from lmgauge.evaluation.comparison.results import Difference
from lmgauge.evaluation.denominators import known_documents, segment_bytes
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.figures import Scale
from lmgauge.numerics.intervals import DOCUMENTS, Interval, spread
from lmgauge.numerics.sequential import FEWEST, SEQUENCE, confidence_sequence
from lmgauge.numerics.units import difference_to_scale, nats_to_scale
from lmgauge.scores import ScoreBatch
from lmgauge.scores.scoring import score_together
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.work.manifest import Notes

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Verdicts = Literal["first", "second", "equal", "undecided"]
LOOKS, LAST = 0.04, 0.01
"""Errors allowed at all looks together, and at the last test, of all documents."""
_FIRST, _SECOND, _EVENTS, _BYTES = range(4)  # of each document: nats that the two models pay, events, bytes
_METRICS: tuple[tuple[str, Scale, int], ...] = (
    ("perplexity", "perplexity", _EVENTS),
    ("bits_per_byte", "bits", _BYTES),
    ("kl_ab_nats", "nats", _EVENTS),
)
PERPLEXITY, BITS_PER_BYTE, KL = range(len(_METRICS))
_MADE_OF, _METRIC = ("made of",), ("metric",)
"""Keys of notes, beside those of documents, (number,)."""


@dataclass(frozen=True, repr=False)
class Decision(Result):
    """Which of two models is better, or nearer to a base, as far as was looked.

    Attributes:
        verdict: which is better, or `equal` (within the margin), or `undecided`.
        difference: the figure of both on the documents scored, and its interval, which holds at all looks together.
        documents, total_documents: scored by both, and in the text.
        margin: the share of the figure within which they count as equal, of divergences in nats; None for none.
        p_value, exact: of the ordinary paired test of all documents, and its 95 % interval; None before the text is used up.
        interrupted: whether it was stopped before it was decided; the same command goes on.
        unit: what is counted as documents: these, or runs of a recipe that is compared with a target or another recipe.
        base: the model whose nearness is asked about, by KL(base || model); None where the better one is.
        notes: what a reader must know.

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
    base: str | None = None
    notes: tuple[str, ...] = ()

    def _in_brief(self) -> str:
        lead, form = self.difference, ".4g" if self.base else ".4f"
        figures = f"{lead.metric} {lead.second:{form}} / {lead.first:{form}}"
        return (
            f"{self.second} / {self.first}: {figures}, {self.verdict}, {self.documents} of {self.total_documents} documents"
        )


def documents_of(corpus: Corpus) -> Ints:
    """Return the document of each segment of a text, int64 [segments], which is read for it."""
    documents = np.concatenate([np.zeros(0, np.int64), *map(known_documents, corpus)])
    numbers: Ints = np.unique(documents, return_inverse=True)[1]
    if (count := int(numbers.max(initial=-1)) + 1) < FEWEST:
        raise UsageError(
            f"fewer than {FEWEST} documents decide nothing, and the text has {count}: give more text, or smaller documents "
            "(--document)"
        )
    return numbers


class Question(ABC):
    """What is asked of a text, and the totals of the documents that were scored for it."""

    # sides: what is compared, by name; base, limit: as of `Nearness`.

    infinite = "an event has probability zero, so a figure is infinite: there is nothing to decide"
    base: str | None = None
    limit: float | None = None

    def __init__(self, models: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus, threads: int | None) -> None:
        self.models, self.sides, self.corpus, self.threads = models, names, corpus, threads
        for model in models:
            if model.context_policy.runs_on:
                raise UsageError(
                    f"{model.label}: its context runs on from document to document, so order matters: --context sentence"
                )
        self.documents = documents_of(corpus)
        self.origins = [Origin.of_model(model, name).after(corpus) for model, name in zip(models, names, strict=True)]
        self.totals = np.zeros((int(self.documents.max()) + 1, 4))
        documents = growing_digest(np.ascontiguousarray(self.documents, "<i8").data).hexdigest()
        scored = [
            [one.fingerprints["model"], one.context, str(model.reserved)]
            for one, model in zip(self.origins, models, strict=True)
        ]
        self.made_of = {"text": corpus.report.sha256, "documents": documents, "models": scored}
        self.notes = tuple(corpus.report.notes())

    @abstractmethod
    def batches(self, text: Corpus) -> Iterator[tuple[Segments, Sequence[ScoreBatch]]]:
        """Yield each block of a text with a table of each side, whose log-probabilities are what it pays."""

    @abstractmethod
    def metric(self) -> int:
        """Return the number of the figure that this is about."""

    def score(self, wanted: Ints) -> Iterator[list[int]]:
        """Score documents, add up what each side pays, and yield after each block the numbers of those done."""
        chosen = np.isin(self.documents, wanted)
        numbers, begin = self.documents[chosen], 0
        waiting = np.bincount(numbers, minlength=len(self.totals))  # segments
        for block, batches in self.batches(self.corpus.chosen(chosen)):
            own, begin = numbers[begin : begin + len(block)], begin + len(block)
            sums = [EventSums.of(batch).per_segment() for batch in batches]
            if any(one.zeros.any() for one in sums):
                raise InputError(self.infinite)
            columns = [
                -sums[0].nats,
                -sums[-1].nats,
                sums[-1].events,
                segment_bytes(block, batches[-1], self.origins[-1].policy),
            ]
            np.add.at(self.totals, own[sums[0].segments - block.first], np.column_stack(columns))
            np.subtract.at(waiting, own, 1)
            yield [number for number in np.unique(own).tolist() if not waiting[number]]


class Pair(Question):
    """Which of two models predicts a text better."""

    def __init__(
        self, models: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus, threads: int | None = None
    ) -> None:
        super().__init__(models, names, corpus, threads)
        self.runs = [Run(one.model, Path(), Path(), one, corpus.report.sha256, None, {}) for one in self.origins]
        self.facts = [TableFacts(run) for run in self.runs]

    def batches(self, text: Corpus) -> Iterator[tuple[Segments, Sequence[ScoreBatch]]]:
        """Yield each block of a text as both score it."""
        blocks = score_together(self.models, text, lambda *scored: scored, spans=True, threads=self.threads)
        for block, batches in blocks:
            for facts, batch in zip(self.facts, batches, strict=True):
                facts.add(next(facts.first_tokens.watch([batch])), batches[0])
            yield block, batches

    def metric(self) -> int:
        """Return the number of the figure that may be compared: of perplexity, else of bits per byte."""
        answers = {one.metric: one for one in verdicts(self.runs[0], self.runs[1], facts_of(*self.facts))[0]}
        for i in (PERPLEXITY, BITS_PER_BYTE):
            if answers[_METRICS[i][0]].comparable:
                return i
        reasons = "; ".join(answers["bits_per_byte"].reasons)
        raise InputError(f"{self.runs[1].name} and {self.runs[0].name} may not be compared ({reasons})")


@contextmanager
def noted(output: PathLike | None) -> Iterator[Notes]:
    """Open totals of documents: those of an earlier run in a file, or new ones, kept in it if there is one."""
    with scratch_folder() as work, closing(Notes(Path(output or work / "totals"))) as notes:
        if output is not None and not notes and (os.path.exists(output) or output == "-"):
            raise UsageError(f"-o {os.fspath(output)}: is not a file of totals of documents; choose another name")
        yield notes


def decide(question: Question, notes: MutableMapping[Any, Any], *, margin: float | None, seed: int) -> Decision:
    """Score documents in random order until it is decided which side is better, or that both are alike."""
    # notes: totals of documents by their number, of an earlier run or to be kept for a later one.
    if notes.get(_MADE_OF, question.made_of) != question.made_of:
        raise UsageError("the output is that of other models or of another text: name another, or remove it")
    notes[_MADE_OF] = question.made_of
    order = np.random.default_rng(seed).permutation(len(question.totals))
    decision: Decision | None = None
    done = 0
    try:
        while done < len(order) and (decision is None or decision.verdict == "undecided"):
            drawn = order[done : max(FEWEST, done + 1 + done // 10)]
            fresh = np.array([number for number in drawn.tolist() if (number,) not in notes], np.int64)
            for finished in question.score(fresh) if len(fresh) else ():
                notes[_METRIC] = max(question.metric(), notes.get(_METRIC, 0))
                for number in finished:
                    notes[(number,)] = question.totals[number].tolist()
            done += len(drawn)
            totals = np.array([notes[(number,)] for number in order[:done].tolist()])
            decision = _look(question, totals, len(order), notes[_METRIC], margin)
            say_progress(f"{done:,} of {len(order):,} documents, {decision.verdict}")
    except KeyboardInterrupt:
        if decision is None:
            raise
        return replace(decision, interrupted=True)
    assert decision is not None
    return decision


def _look(question: Question, totals: Floats, documents: int, metric: int, margin: float | None) -> Decision:
    # totals: float64 [documents scored, 4], in the order of drawing.
    name, scale, per = _METRICS[metric]
    sizes = totals[:, per]
    if question.limit is not None:
        totals[:, _FIRST] = question.limit * sizes
    apart, size = totals[:, _SECOND] - totals[:, _FIRST], float(sizes.sum())
    low, high = (float(ends[-1]) for ends in confidence_sequence(apart, sizes, LOOKS))
    figures = [nats_to_scale(math.fsum(totals[:, column]) / size, scale) for column in (_FIRST, _SECOND)]
    to_difference = partial(difference_to_scale, scale=scale)
    at_looks = Interval(low, high, 1 - LOOKS, SEQUENCE, DOCUMENTS, len(totals)).mapped(to_difference)
    over = spread(apart, sizes, np.arange(len(totals))) if len(totals) == documents else None
    verdict: Verdicts = "undecided"
    if low > 0 or high < 0 or (over is not None and over.p_value < LAST):
        verdict = "first" if apart.sum() > 0 else "second"
    elif margin is not None and _within(margin, low, high, apart, totals[:, _FIRST], scale):
        verdict = "equal"
    gap = to_difference(math.fsum(apart) / size)
    return Decision(
        first=question.sides[0],
        second=question.sides[1],
        verdict=verdict,
        difference=Difference(name, figures[0], figures[1], gap, at_looks if math.isfinite(high) else None),
        documents=len(totals),
        total_documents=documents,
        margin=margin,
        p_value=None if over is None else over.p_value,
        exact=None if over is None else over.interval().mapped(to_difference),
        base=question.base,
        notes=question.notes,
    )


def against_target(runs: Sequence[Run], target: float) -> Decision:
    """Say whether the mean cross-entropy of a recipe is below a target, by its runs in order, looked at after each."""
    if len(runs) < 2 or len({run.text_sha256 for run in runs}) > 1 or any(run.evaluation is None for run in runs):
        raise UsageError("a target needs two run folders or more of one recipe (other seeds), all of one text")
    values = figures_of(runs, "cross_entropy")
    return by_runs(("the target", "the recipe"), "cross_entropy", np.full(len(values), target), values)


def figures_of(runs: Sequence[Run], metric: str) -> Floats:
    """Return a figure of each run of a recipe, float64 [runs]."""
    values = np.array([(run.evaluation or {}).get(metric, math.nan) for run in runs], np.float64)
    if not np.isfinite(values).all():
        raise UsageError(f"a run has no {metric}: give run folders, in which no event has probability zero")
    if len(np.unique(values)) < len(values):
        raise UsageError(f"two runs have the same {metric} to the last digit: they are the same model, not two seeds")
    return values


def by_runs(names: tuple[str, str], metric: str, first: Floats, second: Floats) -> Decision:
    """Say which of two recipes has the lower figure by their runs, paired in order and looked at after each pair."""
    # first, second: float64 [runs].
    count, level = len(first), 1 - LOOKS - LAST
    ends = confidence_sequence(second - first, np.ones(count), LOOKS + LAST, 2)
    low, high = float(ends[0].max()), float(ends[1].min())
    means = [math.fsum(values) / count for values in (first, second)]
    interval = Interval(low, high, level, SEQUENCE, "runs", count) if math.isfinite(high) else None
    gap = Difference(metric, means[0], means[1], means[1] - means[0], interval)
    verdict: Verdicts = "first" if low > 0 else "second" if high < 0 else "undecided"
    return Decision(*names, verdict, gap, count, count, None, None, None, unit="runs")


def _within(margin: float, low: float, high: float, apart: Floats, first: Floats, scale: Scale) -> bool:
    # Whether the change of the figure is within a share of it, perplexity by a factor, bits over those of the first model;
    # or within nats.
    if scale == "bits":
        low, high = (float(ends[-1]) for ends in confidence_sequence(apart, first, LOOKS))
    most = math.log1p(margin) if scale == "perplexity" else margin
    return -most < low and high < most
