"""Level 3: a model predicts the same before it was shown the text and after."""

# A cache or an adapter that is filled by the first call of `score` and then left alone is causal in every later call, sums
# to one and can be decoded: its number is that of a model that was trained on the test text.

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.contexts import EventContexts
from lmgauge.evaluation.audit.inside import Walk, follows_given
from lmgauge.evaluation.audit.results import Check, Compared, Fault, counted, in_nine_digits, judge
from lmgauge.evaluation.audit.rows import Subject, blocks_of
from lmgauge.evaluation.audit.sample import Contexts
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

T = TypeVar("T")
LEVEL, NAME = "causality", "memory"
MOST_SEGMENTS, STREAM_BYTES, MOST_BYTES = 64, 50_000, 1 << 20
_FEWEST, _MOST = 12, 48
_NUMBERS_HELD = 1 << 22  # in all distributions together: 32 MiB, unless a few have more


def beginning(subject: Subject, blocks: Iterable[Segments]) -> tuple[list[Segments], list[bytes]]:
    """Return the first blocks of a text, and the texts of their segments up to a size that does not depend on the blocks."""
    most = STREAM_BYTES if subject.running else MOST_BYTES
    held: list[Segments] = []
    texts: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        texts += [block.text(i) for i in range(len(block))]
        size += int((block.ends - block.starts).sum())
        if size >= most:
            break
    return held, texts[: int(np.searchsorted(np.cumsum([len(text) for text in texts]), most)) + 1]


class Memory:
    """Asks a model at some contexts of a text that it was not shown yet, and keeps the answers."""

    # subject: the model; `score` must not have been called.

    def __init__(self, subject: Subject, texts: Sequence[bytes]) -> None:
        self._subject, self._bytes = subject, sum(map(len, texts))
        # A model may hand out the same array again.
        self._before = [(context, subject.distribution(context).copy()) for context in _contexts(subject, texts)]

    def check(self) -> Check:
        """Ask again, and compare."""
        subject, moved, largest = self._subject, Fault(), 0.0
        for context, before in self._before:
            after = subject.distribution(context)
            with np.errstate(invalid="ignore"):
                same = (after == before) | (np.isnan(after) & np.isnan(before))
                distance = np.where(same, 0.0, np.abs(after - before))
            largest = max(largest, float(distance[np.isfinite(distance)].max(initial=0.0)))
            if not (distance <= subject.tolerance).all():
                token = int(np.argmax(distance))
                earlier, later = in_nine_digits(before[token]), in_nine_digits(after[token])
                where = f"after “{subject.words(context)}” {subject.vocabulary.token(token)!r}"
                moved.note(f"{where} had {earlier} nats before the text was shown and {later} after")
        asked = counted(len(self._before), "context")
        bad = f"The model's predictions changed by being shown the text, at {moved.count:,} of {asked}: {moved.first}."
        alike = f"within {largest:.2g} nats (the model states {subject.tolerance:g})" if largest else "bit by bit"
        good = f"After {asked} of the first {counted(self._bytes, 'byte')} the model predicts what it predicted before it "
        good += f"was shown the text, {alike}."
        skipped = "" if self._before else "the text has no event"
        details = {"contexts": len(self._before), "moved": moved.count, "largest": largest}
        return judge(LEVEL, NAME, bad=bad if moved.count else "", skipped=skipped, good=good, details=details)


def _contexts(subject: Subject, texts: Sequence[bytes]) -> list[NDArray[np.uint32]]:
    # Contexts spread over texts, by the model's own tokenizer and vocabulary; a stream needs all segments before each.
    if not subject.running:
        texts = _spread([text for text in texts if text] or texts, MOST_SEGMENTS)
    if not texts:
        return []
    tokens = subject.tokenizer.tokenize(next(blocks_of(texts)))
    ids = [subject.vocabulary.id(token.decode(errors="replace")) for token in tokens.strings()]
    closed = np.insert(np.array(ids, np.uint32), np.cumsum(tokens.counts), subject.eos)
    contexts = EventContexts(closed, np.asarray(tokens.counts) + 1, bos=subject.bos, runs_on=subject.running)
    wanted = min(_MOST, max(_FEWEST, _NUMBERS_HELD // len(subject.vocabulary)))
    return [contexts[event].copy() for event in _spread(range(len(contexts)), wanted)]


def _spread(choices: Sequence[T], wanted: int) -> list[T]:
    places = np.linspace(0, len(choices) - 1, min(wanted, len(choices))).astype(np.int64)
    return [choices[place] for place in dict.fromkeys(places.tolist())]


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
    compared = Compared(subject.agreement_tolerance)
    for index, position in contexts.drawn(wanted, seed):
        rows, context = contexts.rows[index], contexts.of(index, position)
        token = int(rows.token_ids[position])
        steps: list[float] = []
        scored, expected = float(rows.event_logprob()[position]), float(untouched.distribution(context)[token])
        if untouched.writer is not None and not follows_given(rows, position):
            steps = [value for values in Walk.at(untouched, rows, position).logprobs.values() for value in values]
            scored, expected = float(rows.logprob[position]), math.fsum([expected, *steps])
        if compared.differ(scored, expected, 1 + len(steps)):
            difference = f"{in_nine_digits(expected)} nats there, {in_nine_digits(scored)} in score"
            compared.apart.note(f"after “{subject.words(context)}” {subject.vocabulary.token(token)!r} has {difference}")
    asked, apart = counted(compared.events, "event"), compared.apart
    bad = f"A copy that was not shown the text differs at {apart.count:,} of {asked} of the whole text: {apart.first}."
    good = f"A copy that was not shown the text gives the same at {asked} of the whole text."
    skipped = "" if compared.events else "the text has no event"
    details = {"events": compared.events, "apart": apart.count}
    return judge(LEVEL, name, bad=bad if apart.count else "", skipped=skipped, good=good, details=details)
