"""Whether a model is the same before it was shown the text and after: what it said before `score` was ever called.

A cache or an adapter that is filled by the first call of `score` and then left alone is causal in every later call, sums to
one and can be decoded: its number is that of a model which was trained on the test.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted, told
from lmgauge.evaluation.audit.rows import Rows, Subject, blocks_of
from lmgauge.evaluation.audit.sample import Contexts, sampled_events
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LEVEL, NAME = "causality", "memory"
MOST_SEGMENTS, STREAM_BYTES, MOST_BYTES = 64, 50_000, 1 << 20
_FEWEST, _MOST = 12, 48
_KEPT_NUMBERS = 1 << 22  # of all distributions together: 32 MiB, unless a few have more


@dataclass(frozen=True)
class _Early:
    """What the model said of an event before it was shown the text."""

    segment: int
    position: int
    context: NDArray[np.uint32]
    token: int
    logprob: NDArray[np.float64]


class Memory:
    """Asks a model at some contexts of a text that it was not shown yet, and keeps the answers.

    Args:
        subject: the model; `score` must not have been called.
        texts: the first segments of the text, as `beginning` gives them.
    """

    def __init__(self, subject: Subject, texts: Sequence[bytes]) -> None:
        self._subject = subject
        self._bytes = sum(map(len, texts))
        self._early = _asked(subject, texts)
        self._by_segment: dict[int, list[_Early]] = {}
        for early in self._early:
            self._by_segment.setdefault(early.segment, []).append(early)
        self._before: list[NDArray[np.uint32]] = []
        self.rows = self.rows_apart = 0
        self._first_row = ""

    def watch(self, rows: Rows) -> None:
        """Holds what `score` gives to events of the next segment against what was foretold of them."""
        if self._by_segment and rows.segment > max(self._by_segment):
            self._by_segment.clear()  # segments without rows: coverage has found that
        if not self._by_segment:
            self._before.clear()
            return
        if self._subject.running:
            self._before.append(rows.ids.copy())
        for early in self._by_segment.pop(rows.segment, []):
            if early.position >= len(rows) or rows.ids[early.position] != early.token:
                continue
            before = (
                [*self._before[:-1], rows.ids[: early.position]] if self._subject.running else [rows.ids[: early.position]]
            )
            if not np.array_equal(np.concatenate(before), early.context[1:]):
                continue  # other events than were asked about, e.g. of a model without </s>
            self.rows += 1
            scored, foretold = float(rows.logprob[early.position]), float(early.logprob[early.token])
            if math.isnan(foretold) or scored == foretold:
                continue
            if not abs(scored - foretold) <= self._subject.agreement_tolerance:
                self.rows_apart += 1
                self._first_row = self._first_row or (
                    f"after {self._told(early)} it gives {told(scored)} nats, foretold {told(foretold)}"
                )

    def _told(self, early: _Early) -> str:
        return f"“{self._subject.words(early.context)}” to {self._subject.vocabulary.token(early.token)!r}"

    def check(self) -> Check:
        """Asks again, and compares."""
        moved, largest, first = 0, 0.0, ""
        for early in self._early:
            again = self._subject.distribution(early.context)
            with np.errstate(invalid="ignore"):
                same = (again == early.logprob) | (np.isnan(again) & np.isnan(early.logprob))
                distance = np.where(same, 0.0, np.abs(again - early.logprob))
            largest = max(largest, float(distance[np.isfinite(distance)].max(initial=0.0)))
            if (distance <= self._subject.tolerance).all():
                continue
            moved += 1
            if not first:
                token = early.token if not distance[early.token] <= self._subject.tolerance else int(np.argmax(distance))
                name = self._subject.vocabulary.token(token)
                numbers = f"{told(early.logprob[token])} nats before the text was shown and {told(again[token])} after"
                first = f"after “{self._subject.words(early.context)}” {name!r} had {numbers}"
        return self._verdict(moved, largest, first)

    def _verdict(self, moved: int, largest: float, first: str) -> Check:
        asked = counted(len(self._early), "context")
        details = {"contexts": len(self._early), "moved": moved, "largest": largest}
        details |= {"rows": self.rows, "rows_apart": self.rows_apart}
        if moved:
            text = f"The model's predictions changed by being shown the text, at {moved:,} of {asked}: {first}."
            return Check(LEVEL, NAME, FAIL, text, details)
        if self.rows_apart:
            text = f"score differs from what log_distribution foretold before the text was shown, at {self.rows_apart:,} of"
            return Check(LEVEL, NAME, FAIL, f"{text} {counted(self.rows, 'event')}: {self._first_row}.", details)
        if not self._early:
            return Check(LEVEL, NAME, NOT_CHECKED, "the text has no event", details)
        same = f"within {largest:.2g} nats (the model states {self._subject.tolerance:g})" if largest else "bit by bit"
        where = f"{asked} of the first {counted(self._bytes, 'byte')}"
        text = f"After {where} the model says what it said before it was shown the text, {same}"
        return Check(LEVEL, NAME, PASS, f"{text}; {counted(self.rows, 'row')} of score are as foretold.", details)


def untouched_copy(model: LanguageModel) -> LanguageModel | str:
    """A copy of a model as it is now, or in words why there is none."""
    try:
        return copy.deepcopy(model)
    except (TypeError, ValueError, AttributeError, RuntimeError, OSError) as error:
        return f"the model cannot be copied ({type(error).__name__}: {error})"


def check_copy(untouched: Subject | str, subject: Subject, contexts: Contexts, *, wanted: int, seed: int) -> Check:
    """Holds what `score` gave against a copy of the model that was never shown the text.

    Args:
        untouched: the copy, or why there is none.
        subject: the model that scored.
        contexts: events of the whole text, as it scored them.
        wanted: how many to draw.
        seed: of the draw.
    """
    name = "untouched copy"
    if isinstance(untouched, str):
        return Check(LEVEL, name, NOT_CHECKED, untouched)
    numbers = sampled_events(len(contexts), wanted, seed)
    apart, first = 0, ""
    for number in numbers:
        index, position = contexts.event(number)
        rows, context = contexts.rows[index], contexts.of(index, position)
        scored, expected = float(rows.logprob[position]), float(untouched.distribution(context)[rows.ids[position]])
        if scored == expected or abs(scored - expected) <= subject.agreement_tolerance:
            continue
        apart += 1
        token = subject.vocabulary.token(int(rows.ids[position]))
        first = (
            first or f"after “{subject.words(context)}” {token!r} has {told(expected)} nats there, {told(scored)} in score"
        )
    details = {"events": len(numbers), "apart": apart}
    asked = counted(len(numbers), "event")
    if apart:
        text = f"A copy that was not shown the text differs at {apart:,} of {asked} of the whole text: {first}."
        return Check(LEVEL, name, FAIL, text, details)
    if not numbers:
        return Check(LEVEL, name, NOT_CHECKED, "the text has no event", details)
    text = f"A copy that was not shown the text gives the same at {asked} of the whole text."
    return Check(LEVEL, name, PASS, text, details)


def beginning(subject: Subject, blocks: Iterable[Segments]) -> tuple[list[Segments], list[bytes]]:
    """The first blocks of a text, and their segments up to a size that does not depend on how it is cut into blocks."""
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


def _asked(subject: Subject, texts: Sequence[bytes]) -> list[_Early]:
    chosen = _chosen(subject, texts)
    sentences = _ids(subject, [texts[i] for i in chosen])
    lengths = [len(ids) for ids in sentences]
    starts = np.cumsum([0, *lengths])
    wanted = min(_MOST, max(_FEWEST, _KEPT_NUMBERS // len(subject.vocabulary)))
    numbers = _spread(int(starts[-1]), wanted)
    stream = np.concatenate(sentences) if subject.running and sentences else None
    bos = np.array([subject.bos], np.uint32)
    found = []
    for number in numbers:
        index = int(np.searchsorted(starts, number, side="right")) - 1
        position = int(number - starts[index])
        before = sentences[index][:position] if stream is None else stream[:number]
        context = np.concatenate((bos, before))
        logprob = subject.distribution(context).copy()  # a model may hand out the same array again
        found.append(_Early(chosen[index], position, context, int(sentences[index][position]), logprob))
    return found


def _chosen(subject: Subject, texts: Sequence[bytes]) -> list[int]:
    """Segments spread over the texts; of a stream all, as each needs those before it."""
    if subject.running:
        return list(range(len(texts)))
    filled = [i for i, text in enumerate(texts) if text] or list(range(len(texts)))
    return [filled[place] for place in _spread(len(filled), MOST_SEGMENTS)]


def _spread(count: int, wanted: int) -> list[int]:
    """Up to so many of `count` numbers, from 0, spread evenly."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(wanted, count))}) if count else []


def _ids(subject: Subject, texts: Sequence[bytes]) -> list[NDArray[np.uint32]]:
    """The ids of texts, by the model's own tokenizer and vocabulary, each closed by `</s>`."""
    if not texts:
        return []
    tokens = subject.tokenizer.tokenize(next(blocks_of(texts)))
    ids = [subject.vocabulary.id(token.decode(errors="replace")) for token in tokens.strings()]
    bounds = np.concatenate(([0], np.cumsum(tokens.counts))).tolist()
    return [np.array([*ids[a:b], subject.eos], np.uint32) for a, b in pairwise(bounds)]
