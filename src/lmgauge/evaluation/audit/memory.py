"""Level 3: a model predicts the same before it was shown the text and after."""

# A cache or an adapter that is filled by the first call of `score` and then left alone is causal in every later call, sums
# to one and can be decoded: its number is that of a model that was trained on the test text.

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.contexts import EventContexts
from lmgauge.evaluation.audit.inside import Walked, follows_given, writer_before
from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.rows import Rows, Subject, blocks_of
from lmgauge.evaluation.audit.sample import Contexts
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LEVEL, NAME = "causality", "memory"
MOST_SEGMENTS, STREAM_BYTES, MOST_BYTES = 64, 50_000, 1 << 20
_FEWEST, _MOST = 12, 48
_NUMBERS_HELD = 1 << 22  # in all distributions together: 32 MiB, unless a few have more


@dataclass(frozen=True)
class _Early:
    """The prediction of an event before the model was shown the text."""

    segment: int
    position: int
    context: NDArray[np.uint32]
    token: int
    logprob: NDArray[np.float64]


class Memory:
    """Asks a model at some contexts of a text that it was not shown yet, and keeps the answers."""

    # subject: the model; `score` must not have been called.

    def __init__(self, subject: Subject, texts: Sequence[bytes]) -> None:
        self._subject = subject
        self._bytes = sum(map(len, texts))
        self._early = _ask(subject, texts)
        self._by_segment: dict[int, list[_Early]] = {}
        for early in self._early:
            self._by_segment.setdefault(early.segment, []).append(early)
        self._before = np.zeros(0, np.uint32)
        self.contexts, self.moved, self.largest = len(self._early), 0, 0.0
        self.rows = self.rows_apart = 0
        self._first_row = ""

    def watch(self, rows: Rows) -> None:
        """Compare the rows of the next segment with the predictions of its events."""
        # rows: of the segment, [n].
        if not self._by_segment or rows.segment > max(self._by_segment):
            self._by_segment.clear()  # segments without rows were left behind: coverage reports them
            return
        for early in self._by_segment.pop(rows.segment, []):
            context = np.concatenate((self._before, rows.token_ids[: early.position]))
            if (
                early.position < len(rows)
                and rows.token_ids[early.position] == early.token
                and np.array_equal(context, early.context[1:])  # else other events, e.g. of a model without </s>
            ):
                self._compare(early, float(rows.event_logprob()[early.position]))
        if self._subject.running:
            self._before = np.concatenate((self._before, rows.token_ids))

    def _compare(self, early: _Early, scored: float) -> None:
        self.rows += 1
        predicted = float(early.logprob[early.token])
        if math.isnan(predicted) or scored == predicted or abs(scored - predicted) <= self._subject.agreement_tolerance:
            return
        self.rows_apart += 1
        where = f"after “{self._subject.words(early.context)}” to {self._subject.vocabulary.token(early.token)!r}"
        numbers = f"it gives {in_nine_digits(scored)} nats, predicted were {in_nine_digits(predicted)}"
        self._first_row = self._first_row or f"{where} {numbers}"

    def check(self) -> Check:
        """Ask again, and compare."""
        subject, tolerance, first = self._subject, self._subject.tolerance, ""
        for early in self._early:
            again = subject.distribution(early.context)
            with np.errstate(invalid="ignore"):
                same = (again == early.logprob) | (np.isnan(again) & np.isnan(early.logprob))
                distance = np.where(same, 0.0, np.abs(again - early.logprob))
            self.largest = max(self.largest, float(distance[np.isfinite(distance)].max(initial=0.0)))
            if (distance <= tolerance).all():
                continue
            self.moved += 1
            token = early.token if not distance[early.token] <= tolerance else int(np.argmax(distance))
            before, after = in_nine_digits(early.logprob[token]), in_nine_digits(again[token])
            where = f"after “{subject.words(early.context)}” {subject.vocabulary.token(token)!r}"
            first = first or f"{where} had {before} nats before the text was shown and {after} after"
        asked, rows, bad = counted(self.contexts, "context"), counted(self.rows, "event"), ""
        if self.moved:
            bad = f"The model's predictions changed by being shown the text, at {self.moved:,} of {asked}: {first}."
        elif self.rows_apart:
            bad = f"score differs from what log_distribution predicted before the text was shown, at {self.rows_apart:,} of "
            bad += f"{rows}: {self._first_row}."
        alike = f"within {self.largest:.2g} nats (the model states {tolerance:g})" if self.largest else "bit by bit"
        good = f"After {asked} of the first {counted(self._bytes, 'byte')} the model predicts what it predicted before it "
        good += f"was shown the text, {alike}; {counted(self.rows, 'row')} of score are as predicted."
        skipped = "" if self._early else "the text has no event"
        return judge(LEVEL, NAME, bad=bad, skipped=skipped, good=good, details=numbers_of(self))


def untouched_copy(model: LanguageModel) -> LanguageModel | str:
    """Return a copy of a model as it is now, or in words why there is none."""
    try:
        return copy.deepcopy(model)
    except (TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
        return f"the model cannot be copied ({type(error).__name__}: {error})"


def check_copy(untouched: Subject | str, subject: Subject, contexts: Contexts, *, wanted: int, seed: int) -> Check:
    """Compare the rows of `score` with the predictions of a copy of the model that was never shown the text."""
    name = "untouched copy"
    if isinstance(untouched, str):
        return judge(LEVEL, name, skipped=untouched)
    events = apart = 0
    first = ""
    for index, position in contexts.drawn(wanted, seed):
        events += 1
        rows, context = contexts.rows[index], contexts.of(index, position)
        token = int(rows.token_ids[position])
        scored, expected = float(rows.event_logprob()[position]), float(untouched.distribution(context)[token])
        tolerance = subject.agreement_tolerance
        if untouched.writer is not None and not follows_given(rows, position):
            walked = Walked.of(writer_before(untouched, rows, position), token, rows.piece(position))
            scored, expected = float(rows.logprob[position]), math.fsum([expected, *walked.nats.values()])
            tolerance *= 1 + sum(walked.steps.values())
        if scored == expected or abs(scored - expected) <= tolerance:
            continue
        apart += 1
        difference = f"{in_nine_digits(expected)} nats there, {in_nine_digits(scored)} in score"
        first = first or f"after “{subject.words(context)}” {subject.vocabulary.token(token)!r} has {difference}"
    asked = counted(events, "event")
    bad = f"A copy that was not shown the text differs at {apart:,} of {asked} of the whole text: {first}." if apart else ""
    good = f"A copy that was not shown the text gives the same at {asked} of the whole text."
    skipped = "" if events else "the text has no event"
    return judge(LEVEL, name, bad=bad, skipped=skipped, good=good, details={"events": events, "apart": apart})


def beginning(subject: Subject, blocks: Iterable[Segments]) -> tuple[list[Segments], list[bytes]]:
    """Return the first blocks of a text, and the texts of their segments up to a size that does not depend on the blocks."""
    most = STREAM_BYTES if subject.running else MOST_BYTES
    held: list[Segments] = []
    texts: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        for i in range(len(block)):
            if size >= most:
                return held, texts
            texts.append(block.text(i))
            size += len(texts[-1])
        if size >= most:
            break
    return held, texts


def _ask(subject: Subject, texts: Sequence[bytes]) -> list[_Early]:
    chosen = _chosen(subject, texts)
    sentences = _ids(subject, [texts[i] for i in chosen])
    lengths = [len(ids) for ids in sentences]
    starts = np.cumsum([0, *lengths])
    ids = np.concatenate([np.zeros(0, np.uint32), *sentences])
    contexts = EventContexts(ids, lengths, bos=subject.bos, runs_on=subject.running)
    early = []
    for number in _spread(len(ids), min(_MOST, max(_FEWEST, _NUMBERS_HELD // len(subject.vocabulary)))):
        index = int(np.searchsorted(starts, number, side="right")) - 1
        context = contexts[number].copy()
        logprob = subject.distribution(context).copy()  # a model may hand out the same array again
        early.append(_Early(chosen[index], int(number - starts[index]), context, int(ids[number]), logprob))
    return early


def _chosen(subject: Subject, texts: Sequence[bytes]) -> list[int]:
    # Indices of segments spread over the texts; for a stream all, as each needs those before it.
    if subject.running:
        return list(range(len(texts)))
    filled = [i for i, text in enumerate(texts) if text] or list(range(len(texts)))
    return [filled[place] for place in _spread(len(filled), MOST_SEGMENTS)]


def _spread(count: int, wanted: int) -> list[int]:
    return sorted({int(place) for place in np.linspace(0, count - 1, min(wanted, count))}) if count else []


def _ids(subject: Subject, texts: Sequence[bytes]) -> list[NDArray[np.uint32]]:
    # Ids of texts, by the model's own tokenizer and vocabulary, each closed by `</s>`.
    if not texts:
        return []
    tokens = subject.tokenizer.tokenize(next(blocks_of(texts)))
    ids = [subject.vocabulary.id(token.decode(errors="replace")) for token in tokens.strings()]
    bounds = np.concatenate(([0], np.cumsum(tokens.counts))).tolist()
    return [np.array([*ids[a:b], subject.eos], np.uint32) for a, b in pairwise(bounds)]
