"""Where one model fails: the same slices as a comparison, what is worst, what is unseen, calibration, memory, baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.denominators import scored_text, segment_bytes
from lmgauge.evaluation.diagnosis.calibration import Calibration, calibrate
from lmgauge.evaluation.diagnosis.compressors import Baseline, Baselines, in_order
from lmgauge.evaluation.diagnosis.costs import TokenCosts, UnseenWords, spelling_costs
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.evaluation.evaluate import evaluate_scores
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import Run, about, lockstep, remembered
from lmgauge.evaluation.slicing.cuts import Cuts, TrainingWords, range_sizes
from lmgauge.evaluation.slicing.examples import ExampleHeap
from lmgauge.evaluation.slicing.span_alignment import Ints, Ranges, exact_sums, ranges_by_event
from lmgauge.evaluation.slicing.sums import CutSums, Slices
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import EOS_KIND, SPELLING, ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


# Texts of one kind share fewer runs of this many words by chance.
_LONG_RUN, _MUCH_SEEN = 5, 0.5


def diagnose(
    run: Run,
    settings: DiagnosisSettings | None = None,
    *,
    corpus: Corpus | None = None,
    training: Callable[[Corpus], TrainingWords] | None = None,
    rungs: Callable[[Corpus], Sequence[Baseline]] | None = None,
    model: LanguageModel | None = None,
) -> Diagnosis:
    """Divide a run's bits by everything that could explain them."""
    # training: given the text, what gives of the words of each of its blocks how often each occurs in the training text,
    # and the length of the longest n-gram of that text that ends with it: two integer arrays [words of the block].
    settings = settings or DiagnosisSettings()
    say_progress("reading the run")
    run, text, evaluation = _evaluated(run, corpus)
    words = None
    if training is not None and "slices" in settings.only:
        if text is None:
            raise UsageError("slices by what was seen in training need the text that was scored: name it (--text)")
        say_progress("reading the training text")
        words = training(text)
    seen = _Reading(run, text, evaluation, words, settings)
    say_progress("cutting the text into slices")
    tables = seen.read()
    calibration = None
    if model is not None and "calibration" in settings.only:
        calibration = calibrate(
            run,
            model,
            evaluation.events,
            tables=tables,
            text=text,
            contexts=None if settings.exhaustive else settings.contexts,
            seed=settings.seed,
            threads=settings.threads,
        )
    if rungs is not None and text is not None and seen.baselines is not None:
        seen.rungs = tuple(rungs(text))
    for _ in tables:  # what calibration did not read: all of it where there is no model
        pass
    return seen.finish(calibration)


def _evaluated(run: Run, corpus: Corpus | None) -> tuple[Run, Corpus | None, Evaluation]:
    # Evaluate a table together with its text, read once for both the numbers and its fingerprint.
    text = corpus if corpus is not None or not run.text_sha256 else run.corpus()
    evaluation: Evaluation | None = None
    try:
        evaluation = evaluate_scores(run.batches(), origin=run.origin, corpus=text)
    except InputError:
        if corpus is not None:
            about(run, corpus)  # that it is another text says more than where it differs
        if corpus is not None or text is None or remembered(run) is not None:
            raise
    if corpus is not None and evaluation is not None:
        return about(run, corpus), corpus, evaluation
    if evaluation is None or (text is not None and text.report.sha256 != run.text_sha256):
        text, evaluation = None, evaluate_scores(run.batches(), origin=run.origin)
    return run, text, evaluation if text is not None else _with_stored_figures(run, evaluation)


class _Reading:
    """What is collected while the table and the text go by."""

    def __init__(
        self,
        run: Run,
        corpus: Corpus | None,
        evaluation: Evaluation,
        training: TrainingWords | None,
        settings: DiagnosisSettings,
    ) -> None:
        self.run, self.corpus, self.evaluation, self.training = run, corpus, evaluation, training
        self.only, self.examples = settings.only, settings.examples
        self.baselines: Baselines | None = None
        self.rungs: tuple[Baseline, ...] = ()
        if corpus is not None and "baselines" in self.only:
            self.baselines = Baselines(corpus.report.bytes or None, settings.threads)
        self.slices = CutSums()
        self.spans = True
        self.long_runs = _LongRuns()
        self.cuts = Cuts(corpus, training, len(evaluation.events_by_matched_order), self.long_runs.add)
        self.tokens, self.unseen = TokenCosts(), UnseenWords()
        self.spelling = EventSums()
        self.worst, self.impossible, self.segments = (ExampleHeap(self.examples) for _ in range(3))
        self.bits_per_byte = finite_bits(evaluation) / evaluation.bytes if evaluation.bytes else 0.0

    def read(self) -> Iterator[ScoreBatch]:
        # Read the table and the text once, and hand the rows on.
        for block, (table,) in lockstep([self.run.batches()], self.corpus, [self.run.name]):
            self._add(scored_text(block, [self.run.origin.policy]), table)
            yield table

    def _add(self, block: Segments | None, table: ScoreBatch) -> None:
        if block is not None and self.baselines is not None:
            self.baselines.add(block)
        self.spans &= len(table.ends) == len(table)
        ranges = ranges_by_event([table])
        sums = exact_sums(table, ranges.events[0])
        self.tokens.add(table)
        if SPELLING in table.extra:
            self.spelling.add(table)
        if "slices" in self.only:
            size = range_sizes(block, ranges)[:, 0] if block is not None and self.spans else ranges.events[0]
            cuts = self.cuts.of_events(block, table, ranges, spans=self.spans)
            first = int(table.segments[0]) if len(table.segments) else 0
            documents = self._documents(block, table)
            silent = np.flatnonzero(table.segment_events == 0)
            if block is not None and self.spans and len(silent):
                # Segments without rows have no event, but their line ends are bytes of their group.
                at = np.searchsorted(ranges.segment, silent)
                segment, events = np.insert(ranges.segment, at, silent), np.insert(ranges.events[0], at, 0)
                name, labels, codes = next(cuts)
                codes = np.insert(codes, at, 0 if block.groups is None else block.groups[silent])
                group, sizes = [(name, labels, codes)], np.insert(size, at, block.terminator)
                own = [exact_sums(table, events)]
                self.slices.add(group, segment, own, sizes, first=first, documents=documents, events=events)
            self.slices.add(cuts, ranges.segment, [sums], size, first=first, documents=documents)
        if block is not None:
            self._add_examples(block, table, ranges)

    def _documents(self, block: Segments | None, table: ScoreBatch) -> Ints | None:
        # Document of each segment, as the evaluation took them; None where it took segments.
        interval = self.evaluation.interval
        if interval is None or interval.unit == UNKNOWN:
            return None
        of_text = "document" not in table.extra or (self.corpus and self.corpus.settings.get("document") is not None)
        return block.documents if block is not None and of_text else table.documents()

    def _add_examples(self, block: Segments, table: ScoreBatch, ranges: Ranges) -> None:
        bits = nats_to_bits(-table.logprob)
        zero = np.isinf(bits)
        finite = np.where(zero, 0.0, bits)
        if self.spans:
            shown = replace(ranges, ends=ranges.ends + (table.kind == EOS_KIND))  # what ends behind the text shows as </s>
            if "tokens" in self.only:
                self.worst.add_ranges(block, shown, finite, [bits])
                self.impossible.add_ranges(block, shown, zero.astype(np.float64), [bits])
            if "unseen" in self.only:
                self.unseen.add(block, table, ranges)
        if "segments" in self.only:
            whole = np.bincount(ranges.segment, finite, len(block))
            size = segment_bytes(block, table, self.run.origin.policy)
            scored = np.where(table.segment_events > 0, whole - self.bits_per_byte * size, 0.0)
            in_all = np.bincount(ranges.segment, bits, len(block)).astype(np.float64)
            self.segments.add_segments(block, scored, [in_all])

    def finish(self, calibration: Calibration | None) -> Diagnosis:
        unit = "byte" if self.corpus is not None and self.spans else "event"
        bound = self.evaluation.bits_per_byte_is_bound
        slices = [cut.marked([bound]) for cut in self.slices.finish(unit)]
        return Diagnosis(
            evaluation=self.evaluation,
            interval=None if bound and unit == "byte" else self.slices.whole_interval(),
            baselines=self._ladder(),
            slices=tuple(slices),
            costly_tokens=self.tokens.most(self.examples) if "tokens" in self.only else (),
            worst_tokens=self.worst.worst(),
            impossible_tokens=self.impossible.worst(),
            # A single one costs what bytes cost on average, but for rounding.
            worst_segments=self.segments.worst() if self.evaluation.segments > 1 else (),
            unseen_words=self.unseen.most(self.examples),
            unseen_types=len(self.unseen) + self.unseen.forgotten,
            calibration=calibration,
            notes=tuple(self._notes(slices, calibration)),
            spelling=spelling_costs(self.spelling),
        )

    def _ladder(self) -> tuple[Baseline, ...]:
        # Baselines without their seconds, so that two diagnoses of one run are equal.
        compressed = () if self.baselines is None else self.baselines.finish()
        return in_order(replace(one, seconds=None) for one in (*self.rungs, *compressed))

    def _notes(self, slices: Sequence[Slices], calibration: Calibration | None) -> Iterator[str]:
        yield from self.long_runs.notes()
        if self.corpus is None:
            yield "the text is not available: name it with --text for groups, classes, examples, unseen words and baselines"
        elif not self.spans:
            yield "the table has no byte spans: no classes, no tokens in context and no unseen words"
        elif self.training is None and "slices" in self.only:
            yield "slices by what was seen in training need the training text: --train TRAIN"
        elif "slices" in self.only and not self._tokens_are_spaced_words():
            yield "slices by what was seen in training are by words between white space, not by the tokens of the run"
        if calibration is None and "calibration" in self.only:
            yield "calibration needs the model's distributions: -m MODEL"
        if not self.tokens.named:
            yield "the table does not tell its tokens: nothing is said about single tokens"
        by_group = next((s for s in slices if s.name == "group"), None)
        if by_group is not None and self.corpus is not None:
            empty = set(self.corpus.group_names) - {row.label for row in by_group.rows}
            if empty:
                yield f"groups without any text are left out: {', '.join(sorted(empty))}"
        if self.unseen.forgotten:
            yield f"of the unseen words {self.unseen.forgotten:,} met once were forgotten, as there are too many to hold"

    def _tokens_are_spaced_words(self) -> bool:
        origin = self.run.origin
        return origin.fingerprints.get("tokenizer_name", origin.unit) in ("whitespace", "word")


def _with_stored_figures(run: Run, evaluation: Evaluation) -> Evaluation:
    stored = run.evaluation or {}
    known: dict[str, Any] = {name: stored.get(name) for name in ("words", "characters", "bytes")}
    for name in (figure.name for figure in FIGURES if figure.per in known):
        known[name] = None if stored.get(name) is None else float(stored[name])  # JSON has "inf" as a string
    known |= {name: stored[name] for name in ("signature", "fingerprints") if name in stored}
    return replace(evaluation, **known, notes=[])


class _LongRuns:
    """How many words of the text end a run that the training text has, of those that could."""

    def __init__(self) -> None:
        self.words = self.seen = 0

    def add(self, words: Ints, segments: Ints, longest: Ints) -> None:
        # words: int64 [ranges], number of the word that each range of the text is in; -1 for none; segments: int64
        # [ranges], in order; longest: int64 [words], length of the longest run of the training text that ends with each
        # word.
        numbers, at = np.unique(words, return_index=True)
        numbers, owners = numbers[numbers >= 0], segments[at][numbers >= 0]
        before = np.arange(len(numbers)) - np.searchsorted(owners, owners)
        able = before >= _LONG_RUN - 1
        self.words += int(np.count_nonzero(able))
        self.seen += int(np.count_nonzero(longest[numbers[able]] >= _LONG_RUN))

    def notes(self) -> Iterator[str]:
        if self.words and self.seen >= _MUCH_SEEN * self.words:
            yield (
                f"{100 * self.seen / self.words:.0f} % of the runs of {_LONG_RUN} words are in the training text, too: it "
                "may contain the text that was scored, whose numbers then say little; see lmgauge overlap TRAIN TEST"
            )
