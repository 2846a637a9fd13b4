"""Level 3: the log-probability of a token depends neither on later text, nor on the token itself, nor on the batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import Check, counted, in_nine_digits, judge, numbers_of
from lmgauge.evaluation.audit.rows import Rows, Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled
from lmgauge.evaluation.audit.spelling import byte_named
from lmgauge.progress import say_progress
from lmgauge.scores import SPELLED, TOKEN

LEVEL = "causality"
MOST_SEGMENTS = 100
CUTS = 3
MOST_PLACES = 50
LIKELY_WORDS, OTHER_WORDS = 20, 12
STREAM_BYTES = 4000
_SIZES = (1, 3, 64)
_NEIGHBORS = 20
_MOST_NEIGHBOR_BYTES = 10_000
_ROUNDING = 1e-3  # nats: smaller differences look like the rounding of a model that computes in less than float64


class _Differences:
    """Rows that should be equal, compared."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._first, self._boundless = subject, "", False
        self.rows = self.moved = 0
        self.largest = 0.0
        self.by: dict[str, int] = {}

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
        self.rows += count
        x, y = a.logprob[:count], b.logprob[:count]
        with np.errstate(invalid="ignore"):  # two events of probability zero
            distance = np.where(x == y, 0.0, np.abs(x - y))
        unequal = np.flatnonzero(~(distance <= self._subject.tolerance))
        self.largest = max(self.largest, float(distance[np.isfinite(distance)].max(initial=0.0)))
        self._boundless |= not np.isfinite(distance).all()
        if len(unequal):
            j = int(unequal[0])
            numbers = f"{in_nine_digits(x[j])} nats, then {in_nine_digits(y[j])}"
            self._note(how, f"{segment}, event {j + 1}, {a.tokens()[j]!r}: {numbers}", len(unequal))

    def compare_all(self, rows: Iterable[Rows], again: Iterable[Rows | None], how: str) -> None:
        for before, after in zip(rows, again, strict=True):
            if len(before):
                self.compare(before, after, how)

    def _note(self, how: str, what: str, count: int = 1) -> None:
        self.moved += count
        self.by[how] = self.by.get(how, 0) + count
        self._first = self._first or f"{what} ({how})"

    def check(self, name: str, good: str, bad: str) -> Check:
        tolerance = self._subject.tolerance
        rounding = not tolerance and self.largest < _ROUNDING and not self._boundless and "rows" not in self._first
        hint = "; a model that computes in less than float64 may state its `tolerance`" if rounding else ""
        same = f"within {self.largest:.2g} nats (the model states {tolerance:g})" if self.largest else "bit by bit"
        bad = f"{bad}: {self._first}{hint}." if self.moved else ""
        good = f"{good}: {counted(self.rows, 'row')} stayed the same, {same}."
        skipped = "" if self.rows else "the text has no two events in a row to compare"
        return judge(LEVEL, name, bad=bad, skipped=skipped, good=good, details=numbers_of(self))


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
    differences = _Differences(subject)
    cuts = segments = 0
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        segments += 1
        for position in _drawn(generator, [j for j in range(1, len(rows)) if _cuts_no_character(rows, j)], CUTS):
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
    for i in _drawn(generator, usable, most):
        rows = contexts.rows[i]
        first = 0 if subject.running else i
        before = [earlier.text for earlier in contexts.rows[first:i]]
        scored = [rows for rows in subject.score_texts([*before, rows.text], 1) if rows is not None]
        if len(scored) == len(before) + 1:
            numbered = zip(scored, contexts.rows[first : i + 1], strict=True)
            yield [replace(part, segments=own.segments) for part, own in numbered], before, i


def _drawn(generator: np.random.Generator, choices: Sequence[int], most: int) -> list[int]:
    if len(choices) <= most:
        return list(choices)
    return sorted(choices[i] for i in generator.choice(len(choices), most, replace=False).tolist())


def _target(subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool) -> Check:
    # Put other tokens in a token's place: the probabilities that `score` gives to them there sum to one at most.
    most = len(contexts) if exhaustive else MOST_PLACES
    places = tokens = apart = 0
    largest, worst, furthest = 0.0, "", ""
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        choices = [j for j in range(min(len(base[-1]), len(rows))) if rows.kind[j] == TOKEN]
        for position in _drawn(generator, choices, 1):
            logprob = subject.distribution(contexts.of(index, position))
            scored = _replaced(subject, rows, position, before, logprob, generator)
            if not scored:
                continue
            places += 1
            tokens += len(scored)
            total = float(np.sum(np.exp(list(scored.values()))))
            where = f"segment {rows.segment + 1}, event {position + 1}"
            if total > largest:
                largest = total
                worst = f"{counted(len(scored), 'token')} in the place of {rows.tokens()[position]!r}, {where}"
            for token, value in scored.items():
                if value != logprob[token] and not abs(value - logprob[token]) <= subject.agreement_tolerance:
                    apart += 1
                    numbers = f"{in_nine_digits(value)} nats, predicted {in_nine_digits(logprob[token])}"
                    furthest = furthest or f"{subject.vocabulary.token(token)!r} in {where}: {numbers}"
        if places >= most:
            break
    replaced, bad = counted(tokens, "token"), ""
    if largest > 1 + max(subject.sum_tolerance, subject.tolerance):
        bad = f"score gives {worst}, probabilities that sum to {largest:.6g}, more than 1: it looks at what it predicts."
    elif apart:
        bad = f"{apart:,} of {replaced} put in place of others were not scored as predicted, first {furthest}."
    good = f"{replaced} put in place of others, in {counted(places, 'place')} among "
    good += f"{counted(contexts.whole.events, 'event')}, got the predicted probability; those in one place sum to "
    good += f"{largest:.6f} at most."
    skipped = "" if places else "no token of the text can be replaced by another one"
    details = {"places": places, "words": tokens, "largest_sum": largest, "apart": apart}
    return judge(LEVEL, "target", bad=bad, skipped=skipped, good=good, details=details)


def _replaced(
    subject: Subject,
    rows: Rows,
    position: int,
    before: list[bytes],
    logprob: NDArray[np.float64],
    generator: np.random.Generator,
) -> dict[int, float]:
    # Scores of tokens put in a token's place, by id, without those that change the tokens before.
    likely = np.argpartition(-logprob, min(LIKELY_WORDS, len(logprob) - 1))[:LIKELY_WORDS].tolist()
    others = generator.integers(0, len(logprob), OTHER_WORDS).tolist()
    tokens = dict.fromkeys([int(rows.token_ids[position]), *likely, *others])
    for special in (subject.unk, subject.bos, subject.eos):
        tokens.pop(special, None)
    start = int(rows.ends[position - 1]) if position else 0
    piece = rows.text[start : int(rows.ends[position])]
    scores: dict[int, float] = {}
    for token in tokens:
        spelled = _spelled(subject, token, piece)
        rest = b"" if subject.tokenizer.unit == "subword" else rows.text[int(rows.ends[position]) :]
        if spelled is None:
            continue
        try:
            text = rows.text[:start] + spelled + rest
            text.decode()
        except UnicodeDecodeError:
            continue  # half a character: no text
        scored = subject.score_texts([*before, text], 1)[-1]
        if (
            scored is not None
            and len(scored) > position
            and scored.token_ids[position] == token
            and np.array_equal(scored.token_ids[:position], rows.token_ids[:position])
        ):
            scores[token] = float(scored.event_logprob()[position])
    return scores


def _spelled(subject: Subject, token: int, piece: bytes) -> bytes | None:
    # Bytes that a token would have in the place of `piece`; None if it cannot stand in a text.
    name = subject.vocabulary.token(token)
    if name.startswith("<") and name.endswith(">") and subject.tokenizer.unit != "byte":
        return None  # reserved, or the escape of what is
    spelled = subject.tokenizer.detokenize([name]).encode(errors="replace")
    if not spelled or b"\0" in spelled:
        return None
    blank = piece[: len(piece) - len(piece.lstrip())]
    if subject.tokenizer.unit == "byte":
        value = byte_named(name)
        return bytes([value]) if value is not None and 0 < value < 0x80 else None
    if subject.tokenizer.unit == "word" or (subject.tokenizer.unit == "subword" and not spelled.startswith(b" ")):
        return blank + spelled
    return spelled


def _batches(subject: Subject, contexts: Contexts, generator: np.random.Generator) -> Check:
    differences = _Differences(subject)
    rows = list(contexts.rows)
    texts = [part.text for part in rows]
    for size in (*_SIZES, None):
        how = "all in one block" if size is None else f"in blocks of {size}"
        differences.compare_all(rows, subject.score_texts(texts, size), how)
    for threads in (2, 3):
        differences.compare_all(rows, subject.score_texts(texts, 5, threads), f"in {threads} threads")
    ways = "in blocks of 1, 3, 64 and all, with 1, 2 and 3 threads"
    if not subject.running:
        ways += ", alone, in other order and beside longer neighbors"
        differences.compare_all(rows, [subject.score_texts([text])[0] for text in texts], "alone")
        shuffled = generator.permutation(len(rows)).tolist()
        for how, order in (("in reverse order", range(len(rows))[::-1]), ("shuffled", shuffled)):
            differences.compare_all([rows[i] for i in order], subject.score_texts([texts[i] for i in order], 7), how)
        longer = b" ".join(texts[:_NEIGHBORS]) + b" "
        short = len(longer) < _MOST_NEIGHBOR_BYTES
        beside = [text for own in texts for text in (own, longer + own)] if short else [*texts, longer]
        step = 2 if short else 1
        scored = subject.score_texts(beside, 2 * step)
        differences.compare_all(rows, scored[: step * len(rows) : step], "beside a longer neighbor")
    part = _part(subject, contexts, len(rows)).capitalize()
    return differences.check("batches", f"{part} scored again {ways}", "Rows changed with the batch")
