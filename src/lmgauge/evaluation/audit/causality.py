"""Level 3: what a model says of a token depends neither on what comes later, nor on the token, nor on the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted, told
from lmgauge.evaluation.audit.rows import Rows, Subject
from lmgauge.evaluation.audit.sample import Contexts, sampled
from lmgauge.evaluation.audit.spelling import byte_named
from lmgauge.scores import TOKEN

LEVEL = "causality"
MOST_SEGMENTS = 100
CUTS = 3
MOST_PLACES = 50
LIKELY_WORDS, OTHER_WORDS = 20, 12
STREAM_BYTES = 4000
_SIZES = (1, 3, 64)
_NEIGHBOURS = 20

Progress = Callable[[str], None]


@dataclass
class _Differences:
    """Rows that should be equal, compared."""

    subject: Subject
    compared: int = 0
    moved: int = 0
    largest: float = 0.0
    boundless: bool = False
    first: str = ""
    by: dict[str, int] = field(default_factory=dict)

    def compare(self, a: Rows, b: Rows | None, how: str, segment: int, upto: int | None = None) -> None:
        """Holds rows of `b` against those of `a`, up to an event if given, as far as the tokens are the same."""
        if b is None:
            self._note(how, f"segment {segment + 1} has no rows")
            return
        if upto is None and len(a) != len(b):
            self._note(how, f"segment {segment + 1} has {len(a):,} rows, then {len(b):,}")
            return
        count = min(len(a) if upto is None else upto, len(a), len(b))
        other = np.flatnonzero(a.ids[:count] != b.ids[:count])
        if upto is None and len(other):
            self._note(how, f"segment {segment + 1}, event {other[0] + 1} is another token")
            return
        count = int(other[0]) if len(other) else count  # a tokenizer may look ahead; then these are other events
        self.compared += count
        x, y = a.logprob[:count], b.logprob[:count]
        with np.errstate(invalid="ignore"):  # two events of probability zero
            distance = np.where(x == y, 0.0, np.abs(x - y))
        unequal = np.flatnonzero(~(distance <= self.subject.tolerance))
        self.largest = max(self.largest, float(distance[np.isfinite(distance)].max(initial=0.0)))
        self.boundless |= not np.isfinite(distance).all()
        if len(unequal):
            j = int(unequal[0])
            where = f"segment {segment + 1}, event {j + 1}, {a.strings[int(a.ids[j])]!r}"
            self._note(how, f"{where}: {told(x[j])} nats, then {told(y[j])}", len(unequal))

    def _note(self, how: str, what: str, count: int = 1) -> None:
        self.moved += count
        self.by[how] = self.by.get(how, 0) + count
        self.first = self.first or f"{what} ({how})"

    def check(self, name: str, good: str, bad: str) -> Check:
        """The verdict: `good` and `bad` say what was done to the text."""
        tolerance = self.subject.tolerance
        details = {"rows": self.compared, "moved": self.moved, "largest": self.largest, "by": self.by}
        if self.moved:
            hint = "; a model that computes in less than float64 may state its `tolerance`" if not tolerance else ""
            near = hint if self.largest < 1e-3 and not self.boundless and "rows" not in self.first else ""
            return Check(LEVEL, name, FAIL, f"{bad}: {self.first}{near}.", details)
        if not self.compared:
            return Check(LEVEL, name, NOT_CHECKED, "the text has no two events in a row to look at", details)
        same = f"within {self.largest:.2g} nats (the model states {tolerance:g})" if self.largest else "bit by bit"
        return Check(LEVEL, name, PASS, f"{good}: {counted(self.compared, 'row')} stayed the same, {same}.", details)


def check_causality(subject: Subject, contexts: Contexts, *, seed: int, exhaustive: bool, progress: Progress) -> list[Check]:
    """Replaces what comes later, the token itself and the neighbours in the batch, and looks whether rows move.

    Args:
        subject: the model.
        contexts: segments of the text as `score` scored them; of a stream its beginning.
        seed: of the draws.
        exhaustive: take all segments.
        progress: told in words what is being done.
    """
    generator = np.random.default_rng(seed)
    if not len(contexts):
        reason = "the text has no event"
        return [Check(LEVEL, name, NOT_CHECKED, reason) for name in ("later text", "target", "batches")]
    progress("replacing later text")
    later = _later_text(subject, contexts, generator, exhaustive)
    progress("replacing targets")
    target = _target(subject, contexts, generator, exhaustive)
    progress("scoring in other batches")
    return [later, target, _batches(subject, contexts, generator)]


def _later_text(subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool) -> Check:
    differences = _Differences(subject)
    cuts = segments = 0
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        segments += 1
        for position in _drawn(generator, [j for j in range(1, len(rows)) if _cuts_no_character(rows, j)], CUTS):
            other = contexts.rows[int(generator.integers(len(contexts.rows)))].text
            kept = rows.text[: int(rows.ends[position - 1])]
            gap = b" " if subject.tokenizer.unit == "word" else b""
            for how, text in (("the rest cut off", kept), ("the rest replaced", kept + gap + other)):
                changed = subject.score_texts([*before, text], 1)
                for i, reference in enumerate(base[:-1]):
                    differences.compare(reference, changed[i], how, contexts.rows[i].segment)
                differences.compare(base[-1], changed[-1], how, rows.segment, position)
            cuts += 1
    return differences.check(
        "later text",
        f"Text after {counted(cuts, 'place')} was cut off and replaced, in {_part(subject, contexts, segments)}",
        "Log-probabilities moved when later text was changed",
    )


def _part(subject: Subject, contexts: Contexts, segments: int) -> str:
    """How many segments of the text were looked at, and where."""
    part = sampled(segments, contexts.whole.segments, "segment")
    return f"{part} (the beginning of the stream)" if subject.running and segments < contexts.whole.segments else part


def _cuts_no_character(rows: Rows, position: int) -> bool:
    """Whether what is before an event is valid UTF-8; between the bytes of a character it would not be."""
    end = int(rows.ends[position - 1])
    return end >= len(rows.text) or (rows.text[end] & 0xC0) != 0x80


def _alone(
    subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool
) -> Iterator[tuple[list[Rows], list[bytes], int]]:
    """Segments to disturb: rows as scored now (of a stream also those before), the texts before, the index."""
    if subject.running:
        reach = max(1, int(np.searchsorted(np.cumsum([len(r.source) for r in contexts.rows]), STREAM_BYTES)))
        candidates: Sequence[int] = range(min(reach, len(contexts.rows)))
        most = MOST_SEGMENTS // 10
    else:
        candidates, most = range(len(contexts.rows)), len(contexts.rows) if exhaustive else MOST_SEGMENTS
    usable = [i for i in candidates if len(contexts.rows[i]) > 1 and len(contexts.rows[i].ends) == len(contexts.rows[i])]
    for i in _drawn(generator, usable, most):
        rows = contexts.rows[i]
        before = [earlier.text for earlier in contexts.rows[:i]] if subject.running else []
        base = subject.score_texts([*before, rows.text], 1)
        known = [part for part in base if part is not None]
        if len(known) == len(base):
            yield known, before, i


def _drawn(generator: np.random.Generator, choices: Sequence[int], most: int) -> list[int]:
    if len(choices) <= most:
        return list(choices)
    return sorted(choices[i] for i in generator.choice(len(choices), most, replace=False).tolist())


def _target(subject: Subject, contexts: Contexts, generator: np.random.Generator, exhaustive: bool) -> Check:
    """Puts other words in a token's place: what `score` gives to different words there cannot exceed one in all."""
    most = len(contexts) if exhaustive else MOST_PLACES
    places = words = 0
    largest, worst, apart, furthest = 0.0, "", 0, ""
    for base, before, index in _alone(subject, contexts, generator, exhaustive):
        rows = contexts.rows[index]
        choices = [j for j in range(min(len(base[-1]), len(rows))) if rows.kind[j] == TOKEN]
        for position in _drawn(generator, choices, 1):
            logprob = subject.distribution(contexts.of(index, position))
            given = _replaced(subject, rows, position, before, logprob, generator)
            if not given:
                continue
            places += 1
            words += len(given)
            total = float(np.sum(np.exp(list(given.values()))))
            where = f"segment {rows.segment + 1}, event {position + 1}"
            if total > largest:
                largest, worst = (
                    total,
                    f"{counted(len(given), 'token')} in the place of {rows.tokens()[position]!r}, {where}",
                )
            for token, value in given.items():
                if value != logprob[token] and not abs(value - logprob[token]) <= subject.agreement_tolerance:
                    apart += 1
                    name = subject.vocabulary.token(token)
                    furthest = furthest or f"{name!r} in {where}: {told(value)} nats, foretold {told(logprob[token])}"
        if places >= most:
            break
    details = {"places": places, "words": words, "largest_sum": largest, "apart": apart}
    if not places:
        return Check(LEVEL, "target", NOT_CHECKED, "no token of the text can be replaced by another one", details)
    if largest > 1 + max(subject.sum_tolerance, subject.tolerance):
        text = f"score gives {worst}, probabilities that sum to {largest:.6g}, more than 1: it looks at what it predicts."
        return Check(LEVEL, "target", FAIL, text, details)
    if apart:
        text = (
            f"{apart:,} of {counted(words, 'token')} put in place of others were not scored as foretold, first {furthest}."
        )
        return Check(LEVEL, "target", FAIL, text, details)
    text = (
        f"{counted(words, 'token')} put in place of others, in {counted(places, 'place')} among "
        f"{counted(contexts.whole.events, 'event')}, got the probability foretold; those in one place sum to "
        f"{largest:.6f} at most."
    )
    return Check(LEVEL, "target", PASS, text, details)


def _replaced(
    subject: Subject,
    rows: Rows,
    position: int,
    before: list[bytes],
    logprob: NDArray[np.float64],
    generator: np.random.Generator,
) -> dict[int, float]:
    """What `score` gives to words put in a token's place, by id; those that change the tokens before are left out."""
    likely = np.argpartition(-logprob, min(LIKELY_WORDS, len(logprob) - 1))[:LIKELY_WORDS].tolist()
    others = generator.integers(0, len(logprob), OTHER_WORDS).tolist()
    tokens = dict.fromkeys([int(rows.ids[position]), *likely, *others])
    for special in (subject.unk, subject.bos, subject.eos):
        tokens.pop(special, None)
    start = int(rows.ends[position - 1]) if position else 0
    piece = rows.text[start : int(rows.ends[position])]
    found: dict[int, float] = {}
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
            and scored.ids[position] == token
            and np.array_equal(scored.ids[:position], rows.ids[:position])
        ):
            found[token] = float(scored.logprob[position])
    return found


def _spelled(subject: Subject, token: int, piece: bytes) -> bytes | None:
    """The bytes that a token would have in the place of others; None if it cannot stand in a text."""
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
        _hold(differences, rows, subject.score_texts(texts, size), how)
    for threads in (2, 3):
        _hold(differences, rows, subject.score_texts(texts, 5, threads), f"in {threads} threads")
    ways = "in blocks of 1, 3, 64 and all, with 1, 2 and 3 threads"
    if not subject.running:
        ways += ", alone, in other order and beside longer neighbours"
        _hold(differences, rows, [subject.score_texts([text])[0] for text in texts], "alone")
        shuffled = generator.permutation(len(rows)).tolist()
        for how, order in (("in reverse order", range(len(rows))[::-1]), ("shuffled", shuffled)):
            _hold(differences, [rows[i] for i in order], subject.score_texts([texts[i] for i in order], 7), how)
        longer = b" ".join(texts[:_NEIGHBOURS]) + b" "
        beside = [text for own in texts for text in (own, longer + own)] if len(longer) < 10_000 else [*texts, longer]
        step = 2 if len(longer) < 10_000 else 1
        scored = subject.score_texts(beside, 2 * step)
        _hold(differences, rows, scored[: step * len(rows) : step], "beside a longer neighbour")
    return differences.check(
        "batches",
        f"{_part(subject, contexts, len(rows)).capitalize()} scored again {ways}",
        "Rows changed with the batch",
    )


def _hold(differences: _Differences, rows: Iterable[Rows], again: Iterable[Rows | None], how: str) -> None:
    for own, other in zip(rows, again, strict=True):
        if len(own):
            differences.compare(own, other, how, own.segment)
