"""Level 3: the log-probability of a token depends neither on later text, nor on the token itself, nor on the batch."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.progress import say_progress
from lmgauge.evaluation.audit.checks import Check, Compared, counted, in_nine_digits, judge
from lmgauge.evaluation.audit.normalization import Walk, follows_given
from lmgauge.evaluation.audit.subject import Contexts, Rows, Subject, blocks_of, drawn, sampled
from lmgauge.evaluation.options import AuditSettings
from lmgauge.evaluation.other_batches import by_itself
from lmgauge.scores import SPELLED, TOKEN
from lmgauge.scores.context_policy import EventContexts
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LEVEL = "causality"
MOST_SEGMENTS = 100
CUTS = 3
MOST_PLACES = 50
MOST_TOKENS = 32  # put in one place
STREAM_BYTES = 4000
_SIZES = (1, 3, 64)
_NEIGHBORS = 20
_MOST_NEIGHBOR_BYTES = 10_000
_ROUNDING = 1e-3  # nats: smaller differences look like the rounding of a model that computes in less than float64


class _Differences:
    """Rows that should be equal, compared."""

    def __init__(self, tolerance: float) -> None:
        self._compared, self._by = Compared(tolerance), Counter[str]()

    def compare(self, a: Rows, b: Rows | None, how: str, upto: int | None = None) -> None:
        # upto: number of events that the change must not move; all if not given.
        segment = f"segment {a.segment + 1}"
        if b is None or (upto is None and len(a) != len(b)):
            self._note(how, f"{segment} has {'no rows' if b is None else f'{len(a):,} rows, then {len(b):,}'}")
            return
        count = min(len(a) if upto is None else upto, len(a), len(b))
        other = np.flatnonzero((a.token_ids[:count] != b.token_ids[:count]) | _other_words(a, b, count))
        if upto is None and len(other):
            self._note(how, f"{segment}, event {other[0] + 1} is another token")
            return
        count = int(other[0]) if len(other) else count  # a tokenizer may look ahead; then these are other events
        apart = self._compared.places_apart(a.logprob[:count], b.logprob[:count])
        for j in apart[:1]:
            numbers = f"{in_nine_digits(a.logprob[j])} nats, then {in_nine_digits(b.logprob[j])}"
            self._note(how, f"{segment}, event {j + 1}, {a.tokens()[j]!r}: {numbers}", len(apart))

    def _note(self, how: str, what: str, count: int = 1) -> None:
        self._by[how] += count
        self._compared.apart.note(f"{what} ({how})", count)

    def check(self, name: str, good: str, bad: str) -> Check:
        compared, apart = self._compared, self._compared.apart
        rounding = not compared.tolerance and compared.largest < _ROUNDING and "rows" not in apart.first
        hint = "; a model that computes in less than float64 may state its `tolerance`" if rounding else ""
        stated = f"(the model states {compared.tolerance:g})"
        same = f"within {compared.largest:.2g} nats {stated}" if compared.largest else "bit by bit"
        bad = f"{bad}: {apart.first}{hint}." if apart.count else ""
        good = f"{good}: {counted(compared.events, 'row')} stayed the same, {same}."
        skipped = "" if compared.events else "the text has no two events in a row to compare"
        details = {"rows": compared.events, "moved": apart.count, "largest": compared.largest, "by": dict(self._by)}
        return judge(LEVEL, name, bad=bad, skipped=skipped, good=good, details=details)


def _other_words(a: Rows, b: Rows, count: int) -> NDArray[np.bool_]:
    # Which of the first events are spelled words that are other words: they share a token, but not the letters.
    spelled: NDArray[np.bool_] = a.kind[:count] == SPELLED
    if not spelled.any() or len(a.ends) != len(a) or len(b.ends) != len(b):
        return np.zeros(count, bool)
    spelled &= a.ends[:count] != b.ends[:count]
    return spelled


def check_causality(subject: Subject, contexts: Contexts, *, seed: int, exhaustive: bool) -> list[Check]:
    """Replace later text, the token itself and the neighbors in the batch, and compare the rows."""
    generator = np.random.default_rng(seed)
    if not len(contexts):
        return [judge(LEVEL, name, skipped="the text has no event") for name in ("later text", "target", "batches")]
    say_progress("replacing later text")
    later = _later_text(subject, contexts, generator, exhaustive)
    say_progress("replacing targets")
    target = _target(subject, contexts, generator, exhaustive)
    say_progress("scoring in other batches")
    return [later, target, _batches(subject, contexts, generator)]


def _later_text(subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool) -> Check:
    differences = _Differences(subject.tolerance)
    cuts = segments = 0
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        segments += 1
        for position in drawn([j for j in range(1, len(rows)) if _cuts_no_character(rows, j)], CUTS, generator):
            other = contexts.rows[int(generator.integers(len(contexts.rows)))].text
            head = rows.text[: int(rows.ends[position - 1])]
            gap = b" " if subject.tokenizer.unit == "word" else b""
            for how, text in (("the rest cut off", head), ("the rest replaced", head + gap + other)):
                changed = subject.score_texts([*before, text], 1)
                for before_it, after_it in zip(base[:-1], changed[:-1], strict=True):
                    differences.compare(before_it, after_it, how)
                differences.compare(base[-1], changed[-1], how, position)
            cuts += 1
    return differences.check(
        "later text",
        f"Text after {counted(cuts, 'place')} was cut off and replaced, in {_part(subject, contexts, segments)}",
        "Log-probabilities moved when later text was changed",
    )


def _part(subject: Subject, contexts: Contexts, segments: int) -> str:
    part = sampled(segments, contexts.whole.segments, "segment")
    return f"{part} (the beginning of the stream)" if subject.running and segments < contexts.whole.segments else part


def _cuts_no_character(rows: Rows, position: int) -> bool:
    # True if the text before an event is valid UTF-8; between the bytes of a character it would not be.
    end = int(rows.ends[position - 1])
    return end >= len(rows.text) or (rows.text[end] & 0xC0) != 0x80


def _alone(
    subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool
) -> Iterator[tuple[list[Rows], list[bytes], int]]:
    # Segments to disturb: rows as scored now (in a stream also those before), the texts before, the index.
    if subject.running:
        reach = max(1, int(np.searchsorted(np.cumsum([len(r.source) for r in contexts.rows]), STREAM_BYTES)))
        candidates: Sequence[int] = range(min(reach, len(contexts.rows)))
        most = MOST_SEGMENTS // 10
    else:
        candidates, most = range(len(contexts.rows)), len(contexts.rows) if exhaustive else MOST_SEGMENTS
    usable = [i for i in candidates if len(contexts.rows[i]) > 1 and len(contexts.rows[i].ends) == len(contexts.rows[i])]
    for i in drawn(usable, most, generator):
        rows = contexts.rows[i]
        first = 0 if subject.running else i
        before = [earlier.text for earlier in contexts.rows[first:i]]
        scored = [rows for rows in subject.score_texts([*before, rows.text], 1) if rows is not None]
        if len(scored) == len(before) + 1:
            numbered = zip(scored, contexts.rows[first : i + 1], strict=True)
            yield [replace(part, segments=own.segments) for part, own in numbered], before, i


def _target(subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool) -> Check:
    # Put other tokens of the text in a token's place: `score` has to give each what was predicted of it.
    most, places = len(contexts) if exhaustive else MOST_PLACES, 0
    compared = Compared(subject.agreement_tolerance)
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        choices = [j for j in range(min(len(base[-1]), len(rows))) if rows.kind[j] == TOKEN]
        for position in drawn(choices, 1, generator):
            logprob = subject.distribution(contexts.of(index, position))
            scores = _in_its_place(subject, contexts, index, position, before, generator)
            places += bool(scores)
            for token, value in scores.items():
                if compared.differ(value, float(logprob[token])):
                    where = f"{subject.vocabulary.token(token)!r} in segment {rows.segment + 1}, event {position + 1}"
                    numbers = f"{in_nine_digits(value)} nats, predicted {in_nine_digits(logprob[token])}"
                    compared.apart.note(f"{where}: {numbers}")
        if places >= most:
            break
    replaced, apart = counted(compared.events, "substitute token"), compared.apart
    bad = (
        f"{apart.count:,} of {replaced} were not scored as predicted: score looks at what it predicts, first {apart.first}."
    )
    good = f"At {counted(places, 'position')}, {replaced} scored exactly as predicted."
    skipped = "" if places else "no token of the text can be replaced by another one"
    details = {"places": places, "words": compared.events, "apart": apart.count}
    return judge(LEVEL, "target", bad=bad if apart.count else "", skipped=skipped, good=good, details=details)


def _in_its_place(
    subject: Subject, contexts: Contexts, index: int, position: int, before: list[bytes], generator: np.random.Generator
) -> dict[int, float]:
    # Scores of tokens put in a token's place, by id, without those that change the tokens before.
    rows, unit = contexts.rows[index], subject.tokenizer.unit
    piece, end = rows.piece(position), int(rows.ends[position])
    blank = piece[: len(piece) - len(piece.lstrip())] if unit in ("word", "subword") else b""
    others = [(contexts.rows[i], j) for i, j in contexts.drawn(MOST_TOKENS, generator)]
    pieces = [other.piece(j) for other, j in others if len(other.ends) == len(other)]
    pieces = [blank + other.lstrip() if blank else other for other in pieces if other]
    scores: dict[int, float] = {}
    for own in dict.fromkeys([piece, *pieces]):
        text = rows.text[: end - len(piece)] + own + (b"" if unit == "subword" else rows.text[end:])
        if text.decode(errors="replace").encode() != text:
            continue  # half a character: no text
        scored = subject.score_texts([*before, text], 1)[-1]
        if (
            scored is not None
            and len(scored) > position
            and scored.kind[position] == TOKEN
            and np.array_equal(scored.token_ids[:position], rows.token_ids[:position])
        ):
            scores[int(scored.token_ids[position])] = float(scored.event_logprob()[position])
    return scores


def _batches(subject: Subject, contexts: Contexts, generator: np.random.Generator) -> Check:
    differences, rows = _Differences(subject.tolerance), list(contexts.rows)
    ways = "in blocks of 1, 3, 64 and all, with 1, 2 and 3 threads"
    if not subject.running:
        ways += ", alone, in other order and beside longer neighbors"
    for how, order, scored in _scored_again(subject, [part.text for part in rows], generator):
        for i, again in zip(order, scored, strict=True):
            if len(rows[i]):
                differences.compare(rows[i], again, how)
    part = _part(subject, contexts, len(rows)).capitalize()
    return differences.check("batches", f"{part} scored again {ways}", "Rows changed with the batch")


def _scored_again(
    subject: Subject, texts: list[bytes], generator: np.random.Generator
) -> Iterator[tuple[str, Sequence[int], list[Rows | None]]]:
    # Ways to score texts again: how, the places of the texts in the order of their rows, and the rows.
    all_of_them = range(len(texts))
    for size in (*_SIZES, None):
        how = "all in one block" if size is None else f"in blocks of {size}"
        yield how, all_of_them, subject.score_texts(texts, size)
    for threads in (2, 3):
        yield f"in {threads} threads", all_of_them, subject.score_texts(texts, 5, threads)
    if subject.running:
        return
    alone = Subject(by_itself(subject.model), subject.threads)
    yield "alone", all_of_them, [alone.score_texts([text])[0] for text in texts]
    for how, order in (("in reverse order", all_of_them[::-1]), ("shuffled", generator.permutation(len(texts)).tolist())):
        yield how, order, subject.score_texts([texts[i] for i in order], 7)
    longer = b" ".join(texts[:_NEIGHBORS]) + b" "
    short = len(longer) < _MOST_NEIGHBOR_BYTES
    beside = [text for own in texts for text in (own, longer + own)] if short else [*texts, longer]
    step = 2 if short else 1
    yield "beside a longer neighbor", all_of_them, subject.score_texts(beside, 2 * step)[: step * len(texts) : step]


# A cache or an adapter that is filled by the first call of `score` and then left alone is causal in every later call, sums
# to one and can be decoded: its number is that of a model that was trained on the test text.


T = TypeVar("T")
_EARLY_SEGMENTS, _EARLY_STREAM_BYTES, _EARLY_BYTES = 64, 50_000, 1 << 20
_FEWEST, _MOST, _COMPARED_WITH_COPY = 12, 48, 200  # contexts, the last of a copy
_NUMBERS_HELD = 1 << 22  # in all distributions together: 32 MiB, unless a few have more


def beginning(subject: Subject, blocks: Iterable[Segments]) -> tuple[list[Segments], list[bytes]]:
    """Return the first blocks of a text, and the texts of their segments up to a size that does not depend on the blocks."""
    most = _EARLY_STREAM_BYTES if subject.running else _EARLY_BYTES
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
        subject, compared = self._subject, Compared(self._subject.tolerance)
        for context, before in self._before:
            after = subject.distribution(context)
            now, then = (np.where(np.isnan(logprob), 1.0, logprob) for logprob in (after, before))
            for token in compared.places_apart(now, then)[:1]:
                earlier, later = in_nine_digits(before[token]), in_nine_digits(after[token])
                where = f"after “{subject.words(context)}” {subject.vocabulary.token(token)!r}"
                compared.apart.note(f"{where} had {earlier} nats before the text was shown and {later} after")
        asked, moved, largest = counted(len(self._before), "context"), compared.apart, compared.largest
        bad = f"The model's predictions changed by being shown the text, at {moved.count:,} of {asked}: {moved.first}."
        alike = f"within {largest:.2g} nats (the model states {subject.tolerance:g})" if largest else "bit by bit"
        good = f"After {asked} of the first {counted(self._bytes, 'byte')} the model predicts what it predicted before it "
        good += f"was shown the text, {alike}."
        skipped = "" if self._before else "the text has no event"
        details = {"contexts": len(self._before), "moved": moved.count, "largest": largest}
        return judge(LEVEL, "memory", bad=bad if moved.count else "", skipped=skipped, good=good, details=details)


def _contexts(subject: Subject, texts: Sequence[bytes]) -> list[NDArray[np.uint32]]:
    # Contexts spread over texts, by the model's own tokenizer and vocabulary; a stream needs all segments before each.
    if not subject.running:
        texts = _spread([text for text in texts if text] or texts, _EARLY_SEGMENTS)
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


def check_copy(untouched: Subject | str, subject: Subject, contexts: Contexts, settings: AuditSettings) -> Check:
    """Compare the rows of `score` with the predictions of a copy of the model that was never shown the text."""
    name = "untouched copy"
    if isinstance(untouched, str):
        return judge(LEVEL, name, skipped=untouched)
    compared = Compared(subject.agreement_tolerance)
    for index, position in contexts.drawn(min(settings.contexts, _COMPARED_WITH_COPY), settings.seed):
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
