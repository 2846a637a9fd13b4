"""Level 1: every byte is scored once, every segment is there, and what numbers are divided by is what the text has."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, Headline, counted
from lmgauge.evaluation.audit.rows import Rows, Subject, rows_of
from lmgauge.evaluation.audit.spelling import Spelling
from lmgauge.evaluation.denominators import Denominators, count_denominators
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.text.segments import Segments

LEVEL = "coverage"
_PARTIAL_SUMS = 4096
Scorer = Callable[[Iterable[Segments]], Iterable[ScoreBatch]]


@dataclass
class Fault:
    """Something that went wrong so many times, and where it did first."""

    count: int = 0
    first: str = ""

    def note(self, where: str) -> None:
        """Counts one more."""
        self.count += 1
        self.first = self.first or where


def recount(block: Segments) -> Denominators:
    """Segments, words, characters and bytes of a block, the plain way: each segment as text, split and measured."""
    texts = [block.text(i) for i in range(len(block))]
    return Denominators(
        line_ends=block.terminator * len(texts),
        segments=len(texts),
        words=sum(len(text.split()) for text in texts),
        characters=sum(len(text.decode()) + block.terminator for text in texts),
        bytes=sum(len(text) + block.terminator for text in texts),
    )


class _Feed:
    """Hands blocks out and keeps them until their rows are back."""

    def __init__(self, blocks: Iterable[Segments], see: Callable[[Segments], None]) -> None:
        self._source, self._see = iter(blocks), see
        self._pending: deque[Segments] = deque()
        self.segments = 0

    def __iter__(self) -> Iterator[Segments]:
        return self

    def __next__(self) -> Segments:
        block = next(self._source)
        self._see(block)
        self._pending.append(block)
        self.segments = block.first + len(block)
        return block

    def find(self, segment: int, *, pull: bool) -> tuple[Segments, int] | None:
        """The block of a segment and its place there; earlier blocks are let go. `pull` reads on until it comes."""
        while pull and segment >= self.segments and next(self, None) is not None:
            pass
        while self._pending and segment >= self._pending[0].first + len(self._pending[0]):
            self._pending.popleft()
        if not self._pending or segment < self._pending[0].first:
            return None
        return self._pending[0], segment - self._pending[0].first


@dataclass(frozen=True)
class _Expected:
    """What a tokenizer makes of a block: its tokens, where those of each segment begin, and which segments it alters."""

    block: Segments
    strings: list[bytes]
    span_ends: NDArray[np.int64]
    bounds: NDArray[np.int64]
    lossy: NDArray[np.bool_]


class Coverage:
    """Looks at every row of a table, beside the text.

    Args:
        subject: the model behind the table, whose tokenizer says which tokens there should be; None for a stored table.
        unit: of the tokens.
        pull: whether the table is read by itself, and not made from the blocks that this hands out.
        context: context policy of a stored table.
    """

    def __init__(self, subject: Subject | None, unit: str, *, pull: bool = False, context: str = "") -> None:
        self._subject, self._pull = subject, pull
        self._line_ends = ContextPolicy.parse(context if subject is None else subject.context).line_ends
        self._spelling = Spelling(unit, None if subject is None else subject.tokenizer.detokenize)
        self.faults = {name: Fault() for name in ("segments", "spans", "tokens", "sentence ends", "log-probabilities")}
        self.claimed, self.counted = Denominators(0, 0, 0, 0), Denominators(0, 0, 0, 0)
        self.denominator_fault = Fault()
        self.events = self.ends = self.oov = self.zeros = self.scored = self.without_spans = self.without_tokens = 0
        self.bytes = self.lossy = self.line_ends = 0
        self._sums: list[float] = []
        self._spoiled = False
        self._expected: _Expected | None = None
        self._vocabulary: list[bytes] | None = None

    def walk(self, blocks: Iterable[Segments], score: Scorer) -> Iterator[Rows]:
        """Checks the rows of each segment of the text and hands them on, with their text."""
        feed = _Feed(blocks, self._count)
        expected = 0
        for rows in rows_of(self._told_lossy(score(feed))):
            if rows.segment < expected:
                self.faults["segments"].note(f"segment {rows.segment + 1} comes twice, or after a later one")
                continue
            while expected < rows.segment and self._miss(feed, expected):
                expected += 1  # to the end of the text at most: the number of a foreign segment may be any
            found = feed.find(rows.segment, pull=self._pull)
            expected = rows.segment + 1
            if found is None:
                self.faults["segments"].note(f"segment {rows.segment + 1} is in no text")
                continue
            whole = replace(rows, text=found[0].text(found[1]), terminator=found[0].terminator)
            self._check(whole, *found)
            yield whole
        for _ in feed:
            pass  # what the model never asked for is text all the same
        while expected < feed.segments:
            self._miss(feed, expected)
            expected += 1

    def _told_lossy(self, batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        for batch in batches:
            self.lossy += batch.lossy_segments
            yield batch

    @property
    def denominators(self) -> Denominators:
        """What the text has, as counted here: without line ends where nothing predicts them."""
        return self.counted.without_line_ends() if self._line_ends == "unscored" else self.counted

    def headline(self) -> Headline:
        """The number that the rows come to, over the bytes of the text as they were counted here."""
        nats = math.nan if self._spoiled else -math.inf if self.zeros else math.fsum(self._sums)
        altered = self.lossy or self._spelling.altered
        return Headline.of(nats, self.events, self.denominators.bytes, bound=bool(self.oov or altered))

    def _add_up(self, logprob: NDArray[np.float64]) -> None:
        """Correctly rounded sums of segments, themselves summed up now and then, so that no list grows with the text."""
        values = logprob.tolist()
        self._spoiled |= any(math.isnan(value) or value == math.inf for value in values)
        self._sums.append(math.fsum(value for value in values if math.isfinite(value)))
        if len(self._sums) >= _PARTIAL_SUMS:
            self._sums = [math.fsum(self._sums)]

    def _count(self, block: Segments) -> None:
        """Denominators: as evaluation counts them, and again by the plain way."""
        claimed, plain = count_denominators(block), recount(block)
        self.line_ends += block.terminator * len(block)
        if claimed != plain:
            self.denominator_fault.note(f"segments {block.first + 1} to {block.first + len(block)}: {claimed} but {plain}")
        self.claimed += claimed
        self.counted += plain

    def _miss(self, feed: _Feed, segment: int) -> bool:
        """Notes that a segment has no rows, unless it is empty; returns whether the text has such a segment at all."""
        found = feed.find(segment, pull=self._pull)
        if found is not None and found[0].text(found[1]):
            text = found[0].text(found[1])[:40].decode(errors="replace")
            self.faults["segments"].note(f"segment {segment + 1}, {text!r}, has no rows")
        return found is not None

    def _check(self, rows: Rows, block: Segments, place: int) -> None:
        self.scored += 1
        self.events += len(rows)
        self.bytes += len(rows.source)
        self.oov += int(np.count_nonzero(rows.kind == OOV))
        self._add_up(rows.logprob)
        self._check_logprob(rows)
        self._check_ends(rows)
        if len(rows.ends) < len(rows):
            self.without_spans += 1
            return
        sound = self._check_spans(rows)
        altered = self._check_tokens(rows, block, place) if self._subject is not None else False
        if not any(rows.strings):
            self.without_tokens += 1
        elif sound:
            self._spelling.add(rows, altered=altered)

    def _check_logprob(self, rows: Rows) -> None:
        self.zeros += int(np.count_nonzero(rows.logprob == -np.inf))
        bad = np.flatnonzero(~(rows.logprob <= 0))
        if len(bad):
            fault = self.faults["log-probabilities"]
            fault.note(f"segment {rows.segment + 1}, event {bad[0] + 1}: {rows.logprob[bad[0]]}")
            fault.count += len(bad) - 1

    def _check_ends(self, rows: Rows) -> None:
        at = np.flatnonzero(rows.kind == EOS_KIND)
        self.ends += bool(len(at))
        if len(at) > 1:
            self.faults["sentence ends"].note(f"segment {rows.segment + 1} has {len(at)} of them")
        elif len(at) and at[0] != len(rows) - 1:
            self.faults["sentence ends"].note(f"in segment {rows.segment + 1} it is event {at[0] + 1} of {len(rows)}")

    def _check_spans(self, rows: Rows) -> bool:
        ends, size = rows.ends, len(rows.text)
        fault = self.faults["spans"]
        where = f"segment {rows.segment + 1}"
        back = np.flatnonzero(np.diff(ends, prepend=0) < 0)
        last = int(ends[-1]) if len(ends) else 0
        if len(back):
            fault.note(f"{where}: the span of event {back[0] + 1} ends before it begins, at byte {ends[back[0]]}")
        elif last > size:
            fault.note(f"{where}: spans end at byte {last}, but it has only {counted(size, 'byte')}")
        elif last < size:
            fault.note(f"{where}: spans end at byte {last} of {size}; the rest belongs to no event")
        else:
            return True
        return False

    def _check_tokens(self, rows: Rows, block: Segments, place: int) -> bool:
        """Holds the tokens against the tokenizer's; returns whether it says that it alters the segment."""
        expected = self._tokenized(block)
        part = slice(int(expected.bounds[place]), int(expected.bounds[place + 1]))
        difference = self._difference(rows, expected.strings[part], expected.span_ends[part])
        if difference:
            self.faults["tokens"].note(f"segment {rows.segment + 1}: {difference}")
        return bool(expected.lossy[place])

    def _tokenized(self, block: Segments) -> _Expected:
        assert self._subject is not None
        if self._expected is None or self._expected.block is not block:
            tokens = self._subject.tokenizer.tokenize(block)
            bounds = np.concatenate(([0], np.cumsum(tokens.counts)))
            self._expected = _Expected(block, tokens.strings(), tokens.span_ends, bounds, tokens.lossy)
        return self._expected

    def _difference(self, rows: Rows, strings: list[bytes], span_ends: NDArray[np.int64]) -> str:
        """How the rows of a segment differ from the tokens that its tokenizer makes; empty if they do not."""
        subject = self._subject
        assert subject is not None
        predicted = rows.kind != EOS_KIND
        count = int(np.count_nonzero(predicted))
        if count != len(strings):
            return f"{counted(count, 'token')} scored, but its tokenizer makes {len(strings):,}"
        if int(rows.ids.max(initial=0)) >= len(rows.strings):
            return f"token id {rows.ids.max()} is outside the vocabulary of {len(rows.strings):,}"
        if (rows.ids[~predicted] != subject.eos).any():
            return f"the event that ends it is {rows.tokens()[int(np.flatnonzero(~predicted)[0])]!r} and not </s>"
        if self._vocabulary is None:
            self._vocabulary = [token.encode(errors="surrogatepass") for token in rows.strings]
        mine = [self._vocabulary[i] for i in rows.ids[predicted].tolist()]
        unknown = rows.kind[predicted] == OOV
        ids = rows.ids[predicted]
        if not np.array_equal(unknown, ids == subject.unk):
            j = int(np.flatnonzero(unknown != (ids == subject.unk))[0])
            return (
                f"event {j + 1} is {mine[j].decode()!r}, but not marked as such"
                if not unknown[j]
                else (f"event {j + 1} is marked as an unknown word, but is {mine[j].decode()!r}")
            )
        if mine != strings or unknown.any():
            for j, (own, theirs) in enumerate(zip(mine, strings, strict=True)):
                if unknown[j] and theirs not in (b"<unk>", own) and theirs.decode(errors="replace") in subject.vocabulary:
                    return f"event {j + 1} is an unknown word, but {theirs.decode(errors='replace')!r} is in the vocabulary"
                if not unknown[j] and own not in (theirs, b"<" + theirs + b">"):
                    return f"event {j + 1} is {own.decode()!r}, but its tokenizer makes {theirs.decode(errors='replace')!r}"
        if predicted.all() and count:  # without `</s>` the last token takes what follows it
            span_ends = np.append(span_ends[:-1], len(rows.text))
        wrong = np.flatnonzero(rows.ends[predicted] != span_ends)
        if len(wrong):
            j = int(wrong[0])
            return f"the span of event {j + 1}, {mine[j].decode()!r}, ends at byte {rows.ends[j]} and not at {span_ends[j]}"
        return ""

    def checks(self) -> list[Check]:
        """The verdicts over the whole text."""
        found = [self._segments(), self._spans()]
        if self._subject is not None:
            found.append(self._tokens_check())
        if self.without_tokens == self.scored or self.without_spans == self.scored:
            found.append(Check(LEVEL, "spelling", NOT_CHECKED, "the table names no tokens, or no spans"))
        else:
            found.append(self._spelling.check(self.oov))
        return [*found, self._sentence_ends(), self._logprob_check(), self._denominators()]

    def _verdict(self, name: str, good: str, bad: str, *noun: str) -> Check:
        fault = self.faults[name]
        if fault.count:
            what = bad.format(counted(fault.count, *(noun or ("segment",))))
            return Check(LEVEL, name, FAIL, f"{what}, first {fault.first}.", {"faults": fault.count})
        return Check(LEVEL, name, PASS, good, {"faults": 0})

    def _segments(self) -> Check:
        return self._verdict(
            "segments",
            f"{counted(self.counted.segments, 'segment')} of the text, and rows for all of them, in order, each once.",
            "{} missing, repeated, foreign or out of order",
        )

    def _spans(self) -> Check:
        if self.without_spans == self.scored and self._subject is None:
            return Check(LEVEL, "spans", NOT_CHECKED, "the table has no column of span ends")
        if self.without_spans:
            self.faults["spans"].note(f"one of {counted(self.without_spans, 'segment')} without spans")
        return self._verdict(
            "spans",
            f"The spans of {counted(self.events, 'event')} tile {counted(self.bytes, 'byte')}: none left out, none twice.",
            "The spans do not tile the bytes, {}",
            "time",
        )

    def _tokens_check(self) -> Check:
        return self._verdict(
            "tokens",
            f"Every segment has the tokens its tokenizer makes, where it makes them; {counted(self.oov, 'unknown token')}.",
            "In {} the tokens are not those of the tokenizer",
        )

    def _sentence_ends(self) -> Check:
        if self.ends not in (0, self.counted.segments):
            self.faults["sentence ends"].note(
                f"{self.ends:,} of {self.counted.segments:,} segments have one: all should, or none"
            )
        if not self.ends and self.line_ends and self._line_ends == "text":
            evidence = f"No </s> is predicted: {counted(self.line_ends, 'line end')} are scored as the text that they are."
            return self._verdict("sentence ends", evidence, "</s> is not as it should be {}", "time")
        if not self.ends and self.line_ends and self._line_ends == "unscored":
            evidence = f"No </s> is predicted; {counted(self.line_ends, 'line end')} are neither scored nor among the bytes."
            return self._verdict("sentence ends", evidence, "</s> is not as it should be {}", "time")
        if not self.ends and self.line_ends:
            evidence = f"No </s> is predicted: {counted(self.line_ends, 'line end')} are among the bytes, and in no event"
            if self._subject is None:
                return Check(LEVEL, "sentence ends", NOT_CHECKED, f"{evidence}: bits per byte are too low by what they cost")
            self.faults["sentence ends"].note(f"no segment has one: {evidence[0].lower()}{evidence[1:]}")
        return self._verdict(
            "sentence ends",
            "Every segment ends with one </s>." if self.ends else "No </s> is predicted; records have no line ends.",
            "</s> is not as it should be {}",
            "time",
        )

    def _logprob_check(self) -> Check:
        zeros = f"; {counted(self.zeros, 'event')} of probability zero" if self.zeros else ""
        return self._verdict(
            "log-probabilities",
            f"None of {counted(self.events, 'event')} is NaN or above 0{zeros}.",
            "{} NaN or above 0",
            "log-probability",
            "log-probabilities",
        )

    def _denominators(self) -> Check:
        fault, own = self.denominator_fault, self.counted
        details = {"claimed": vars(self.claimed), "counted": vars(own)}
        if fault.count:
            return Check(LEVEL, "denominators", FAIL, f"Counted again they differ, first in {fault.first}.", details)
        counts = f"{own.segments:,} segments, {own.words:,} words, {own.characters:,} characters, {own.bytes:,} bytes"
        return Check(LEVEL, "denominators", PASS, f"Counted again from the text: {counts}.", details)
