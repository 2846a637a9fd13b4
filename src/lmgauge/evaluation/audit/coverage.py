"""Level 1: every byte is scored once, every segment is there, and numbers are divided by what the text holds."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.checks import Check, Fault, counted, in_nine_digits, judge
from lmgauge.evaluation.audit.spelling import Spelling
from lmgauge.evaluation.audit.subject import Rows, Subject, unseen_noun
from lmgauge.evaluation.denominators import UNSPACED, Denominators, count_denominators
from lmgauge.numerics.exact import PlainSum
from lmgauge.numerics.units import nats_to_bits, perplexity_ratio_from_nats
from lmgauge.scores import ALTERED, EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, ScoreBatch, escaped, iter_segments
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.scores.special_tokens import is_special
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer

LEVEL = "coverage"
_ROUNDING = 1e-9  # of the sum of three logs
_QUESTIONS = {
    "segments": ("{} missing, repeated, foreign or out of order", "segment"),
    "spans": ("The spans do not tile the bytes, {}", "time"),
    "tokens": ("In {} the tokens are not those of the tokenizer", "segment"),
    "sentence ends": ("</s> is not as it should be {}", "time"),
    "log-probabilities": ("{} NaN or above 0", "log-probability", "log-probabilities"),
    "denominators": ("Counted again they differ {}", "time"),
    "parts": ("The parts of rows are wrong {}", "time"),
}
"""What each check reports where it fails, and what it counts."""
Scorer = Callable[[Iterable[Segments]], Iterable[ScoreBatch]]


def recount(block: Segments) -> Denominators:
    """Return the denominators of a block, counted the plain way: each segment as a string, split and measured."""
    texts = [block.text(i) for i in range(len(block))]
    return Denominators(
        line_ends=block.terminator * len(texts),
        segments=len(texts),
        words=sum(len(text.split()) for text in texts),
        unspaced=sum(len(re.findall(UNSPACED, text.decode())) for text in texts),
        characters=sum(len(text.decode()) + block.terminator for text in texts),
        bytes=sum(len(text) + block.terminator for text in texts),
    )


def recount_scored(text: bytes, starts: list[int], ends: list[int]) -> Denominators:
    """Return the denominators of what spans cover of a segment, counted the plain way: each byte marked by itself."""
    scored = bytearray(len(text))
    for start, end in zip(starts, ends, strict=True):
        scored[start:end] = b"\1" * (end - start)
    begins = (place for place in range(len(text)) if not text[place : place + 1].isspace())
    words = sum(scored[place] for place in begins if not place or text[place - 1 : place].isspace())
    characters = [place for place in range(len(text)) if text[place] & 0xC0 != 0x80]
    unspaced = [place for place, one in zip(characters, text.decode(), strict=True) if re.match(UNSPACED, one)]
    count = sum(scored[place] for place in characters)
    return Denominators(1, words, count, sum(scored), unspaced=sum(scored[place] for place in unspaced))


class _Feed:
    """Hands blocks out and keeps them until their rows are back; those that rows come for unasked, it pulls itself."""

    def __init__(self, blocks: Iterable[Segments], count: Callable[[Segments], None], *, pull: bool) -> None:
        self._source, self._count, self._pull = iter(blocks), count, pull
        self._pending: deque[Segments] = deque()
        self.segments = 0

    def __iter__(self) -> Iterator[Segments]:
        return self

    def __next__(self) -> Segments:
        block = next(self._source)
        self._count(block)
        self._pending.append(block)
        self.segments = block.first + len(block)
        return block

    def find(self, segment: int) -> tuple[Segments, int] | None:
        while self._pull and segment >= self.segments and next(self, None) is not None:
            pass
        while self._pending and segment >= self._pending[0].first + len(self._pending[0]):
            self._pending.popleft()
        if not self._pending or segment < self._pending[0].first:
            return None
        return self._pending[0], segment - self._pending[0].first


@dataclass(frozen=True)
class _Expected:
    """The tokens that a tokenizer makes of a block, where those of each segment begin, and which segments it alters."""

    block: Segments
    strings: list[bytes]
    span_ends: NDArray[np.int64]
    bounds: NDArray[np.int64]
    lossy: NDArray[np.bool_]


def _expected(block: Segments, tokenizer: Tokenizer) -> _Expected:
    # Tokens of each segment: those that end in it, where it is cut with the text given before it.
    whole = block
    if block.given_starts is not None and block.boundary != "apart":
        whole = replace(block, starts=block.given_starts, given_starts=None)
    tokens, joint = tokenizer.tokenize(whole), whole is not block
    owner = np.repeat(np.arange(len(block)), tokens.counts)
    before = (block.given_lengths() if joint else np.zeros(len(block), np.int64))[owner]
    own = (tokens.span_ends > before) | (before == 0)
    strings = tokens.strings()
    strings = [strings[i] for i in np.flatnonzero(own).tolist()] if joint else strings
    bounds = np.concatenate(([0], np.cumsum(np.bincount(owner[own], minlength=len(block)))))
    return _Expected(block, strings, (tokens.span_ends - before)[own], bounds, tokens.lossy)


class Coverage:
    """Reads every row of a table, beside the text."""

    def __init__(self, subject: Subject | None, unit: str, policy: ContextPolicy | None = None) -> None:
        self._subject, self._unit = None if subject is None or subject.served else subject, unit
        self._policy = policy or (ContextPolicy() if subject is None else subject.model.context_policy)
        self._scored = Denominators()
        self._spelling = Spelling(unit, None if subject is None else subject.tokenizer.detokenize)
        self.faults = {question: Fault() for question in _QUESTIONS}
        self.kinds: Counter[int] = Counter()
        self.sum = PlainSum()
        self.claimed, self.counted = Denominators(), Denominators()
        self.segments_scored = self.bytes = self.lossy = 0
        self._turns = self._ended = self._ends = self._without_spans = self._without_tokens = self._separated = 0
        self._expected: _Expected | None = None
        self._first: Segments | None = None
        self._vocabulary: list[bytes] | None = None

    def walk(self, blocks: Iterable[Segments], score: Scorer) -> Iterator[Rows]:
        """Check the rows of each segment of the text and hand them on, beside their text."""
        feed = _Feed(blocks, self._count, pull=self._subject is None)
        expected = 0
        for rows in iter_segments(self._watched(score(feed))):
            self.kinds.update(rows.kind.tolist())
            self.sum.add(rows.logprob)
            if rows.segment < expected:
                self.faults["segments"].note(f"segment {rows.segment + 1} comes twice, or after a later one")
                continue
            while expected < rows.segment and self._miss(feed, expected):
                expected += 1  # to the end of the text at most: the number of a foreign segment may be any
            place = feed.find(rows.segment)
            expected = rows.segment + 1
            if place is None:
                self.faults["segments"].note(f"segment {rows.segment + 1} is in no text")
                continue
            block, i = place
            lead = block.given_text(i) if block.boundary == "joint" else b""
            beside = Rows.beside(rows, block.text(i), block.terminator, lead)
            self._check(beside, *place)
            yield beside
        for _ in feed:
            pass  # segments that the model never asked for are text all the same
        while expected < feed.segments:
            self._miss(feed, expected)
            expected += 1

    def _watched(self, batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        for batch in batches:
            self.lossy += batch.lossy_segments
            apart = batch.spans_apart - (batch.gaps if self._policy.leaves_out else 0)
            if apart:
                self.faults["spans"].note("a span that does not begin where the one before ended", apart)
            yield batch

    @property
    def events(self) -> int:
        """Return rows of the table."""
        return self.kinds.total()

    @property
    def denominators(self) -> Denominators:
        """Denominators of the text, as counted here: of what a protocol scores, without line ends that nothing predicts."""
        if self._policy.leaves_out:
            return self._scored
        return self.counted.scored_under(self._policy)

    def headline(self, *, text: bool = True, lossy: bool = False) -> dict[str, Any]:
        """Return the numbers that the rows come to, as fields of an audit: per byte of the text as it was counted here."""
        # text: False where it is not at hand; lossy: True if the tokenizer is known to alter it.
        if not self.events:
            return {}
        nats, size = -self.sum.nats, self.denominators.bytes if text else 0
        return {
            "perplexity": perplexity_ratio_from_nats(nats / self.events),
            "bits_per_byte": nats_to_bits(nats / size) if size else None,
            "bits_per_byte_is_bound": bool(self.kinds[OOV] or self.lossy or self._spelling.altered or lossy),
            "events": self.events,
        }

    def _count(self, block: Segments) -> None:
        self._first = self._first or block
        claimed, plain = count_denominators(block), recount(block)
        if claimed != plain:
            where = f"segments {block.first + 1} to {block.first + len(block)}: {claimed} but {plain}"
            self.faults["denominators"].note(where)
        self.claimed += claimed
        self.counted += plain

    def _miss(self, feed: _Feed, segment: int) -> bool:
        # Note that a segment has no rows, unless it is empty; return whether the text has such a segment at all.
        place = feed.find(segment)
        if place is not None and place[0].text(place[1]):
            text = place[0].text(place[1])[:40].decode(errors="replace")
            self.faults["segments"].note(f"segment {segment + 1}, {text!r}, has no rows")
        return place is not None

    def _check(self, rows: Rows, block: Segments, place: int) -> None:
        self.segments_scored += 1
        self.bytes += len(rows.source)
        if block.turns is not None and self._subject is None:
            self._turns += 1
            last = rows.strings.tokens[int(rows.token_ids[-1])] if len(rows) else ""
            self._ended += is_special(last) or bool((rows.kind[-1:] == EOS_KIND).any())
        if self._policy.leaves_out and len(rows.ends) == len(rows):
            self._scored += recount_scored(rows.text, rows.starts().tolist(), rows.ends.tolist())
        self._note("log-probabilities", rows, ~(rows.logprob <= 0), "is NaN or above 0", rows.logprob)
        self._check_parts(rows)
        self._check_ends(rows)
        if len(rows.ends) < len(rows):
            self._without_spans += 1
            return
        sound = self._check_spans(rows)
        altered = bool(rows.part(ALTERED).any()) if block.turns is not None else self._check_tokens(rows, block, place)
        if not any(rows.strings.tokens):
            self._without_tokens += 1
        elif sound and not self._policy.leaves_out:
            self._spelling.add(rows, altered=altered or not self._policy.scores_first_tokens)

    def _note(
        self, name: str, rows: Rows, wrong: NDArray[np.bool_], what: str, nats: NDArray[np.float64] | None = None
    ) -> None:
        # Note the events that are wrong, bool [n], and what is wrong with the first.
        at = np.flatnonzero(wrong)
        if len(at):
            number = "" if nats is None else f" ({in_nine_digits(nats[at[0]])} nats)"
            self.faults[name].note(f"segment {rows.segment + 1}, event {at[0] + 1}, {what}{number}", len(at))

    def _check_parts(self, rows: Rows) -> None:
        # Read the columns `spelling` and `separator`.
        spelled, spelling, separator = rows.kind == SPELLED, rows.part(SPELLING), rows.part(SEPARATOR)
        self._separated += len(separator)
        if not len(spelling):
            self._note("parts", rows, spelled, "is spelled, but there is no column `spelling` that pays for its letters")
        for name, column in ((SPELLING, spelling), (SEPARATOR, separator)):
            if len(column):
                self._note("parts", rows, ~(column <= 0), f"has a {name} that is NaN or above 0", column)
        if len(spelling):
            self._note("parts", rows, spelled & (spelling == 0), "is spelled, but nothing is paid for its letters")
            self._note("parts", rows, ~spelled & (spelling != 0), "is not spelled, but has a spelling", spelling)
        if len(spelling) or len(separator):
            event = rows.event_logprob()
            above = event > _ROUNDING * (1 - np.maximum(rows.logprob, -1e300))
            what = "costs less than its spelling and white space do: the event alone comes to"
            self._note("parts", rows, above, what, event)

    def _check_ends(self, rows: Rows) -> None:
        at = np.flatnonzero(rows.kind == EOS_KIND)
        self._ends += bool(len(at))
        if len(at) > 1:
            self.faults["sentence ends"].note(f"segment {rows.segment + 1} has {len(at)} of them")
        elif len(at) and at[0] != len(rows) - 1:
            self.faults["sentence ends"].note(f"in segment {rows.segment + 1} it is event {at[0] + 1} of {len(rows)}")

    def _check_spans(self, rows: Rows) -> bool:
        ends, size = rows.ends, len(rows.text)
        back = np.flatnonzero(np.diff(ends, prepend=0) < 0)
        last = int(ends[-1]) if len(ends) else 0
        if len(back):
            what = f"the span of event {back[0] + 1} ends before it begins, at byte {ends[back[0]]}"
        elif last > size:
            what = f"spans end at byte {last}, but it has only {counted(size, 'byte')}"
        elif last < size and not self._policy.leaves_out:
            what = f"spans end at byte {last} of {size}; the rest belongs to no event"
        else:
            return True
        self.faults["spans"].note(f"segment {rows.segment + 1}: {what}")
        return False

    def _check_tokens(self, rows: Rows, block: Segments, place: int) -> bool:
        # Compare the tokens with the tokenizer's; return whether the tokenizer says that it alters the segment.
        if self._subject is None:
            return False
        if self._expected is None or self._expected.block is not block:
            self._expected = _expected(block, self._subject.tokenizer)
        expected = self._expected
        part = slice(int(expected.bounds[place]), int(expected.bounds[place + 1]))
        difference = self._difference(self._subject, rows, expected.strings[part], expected.span_ends[part])
        if difference:
            self.faults["tokens"].note(f"segment {rows.segment + 1}: {difference}")
        return bool(expected.lossy[place])

    def _difference(self, subject: Subject, rows: Rows, strings: list[bytes], span_ends: NDArray[np.int64]) -> str:
        # How the rows of a segment differ from the tokens that its tokenizer makes; empty if they do not.
        predicted = rows.kind != EOS_KIND
        kinds = rows.kind[predicted]
        ids, unknown = rows.token_ids[predicted], (kinds == OOV) | (kinds == SPELLED)
        if len(ids) != len(strings):
            return f"{counted(len(ids), 'token')} scored, but its tokenizer makes {len(strings):,}"
        if int(rows.token_ids.max(initial=0)) >= len(rows.strings.tokens):
            return f"token id {rows.token_ids.max()} is outside the vocabulary of {len(rows.strings.tokens):,}"
        if (rows.token_ids[~predicted] != subject.eos).any():
            return f"the event that ends it is {rows.tokens()[int(np.flatnonzero(~predicted)[0])]!r} and not </s>"
        if self._vocabulary is None:
            self._vocabulary = [token.encode(errors="surrogatepass") for token in rows.strings.tokens]
        scored = [self._vocabulary[i] for i in ids.tolist()]
        for j in np.flatnonzero(unknown != (ids == subject.unk)).tolist():
            how = "is marked as an unknown word, but is {!r}" if unknown[j] else "is {!r}, but not marked as such"
            return f"event {j + 1} {how.format(scored[j].decode())}"
        for j in range(len(ids) if scored != strings or unknown.any() else 0):
            made, theirs = strings[j].decode(errors="replace"), strings[j]
            if unknown[j] and theirs != scored[j] and made in subject.vocabulary and escaped(made) == made:
                return f"event {j + 1} is an unknown word, but {made!r} is in the vocabulary"
            if not unknown[j] and scored[j] not in (theirs, b"<" + theirs + b">"):
                return f"event {j + 1} is {scored[j].decode()!r}, but its tokenizer makes {made!r}"
        if predicted.all() and len(ids):  # without `</s>` the last token takes what follows it
            span_ends = np.append(span_ends[:-1], len(rows.text))
        for j in np.flatnonzero(rows.ends[predicted] != span_ends).tolist():
            where = f"ends at byte {rows.ends[j]} and not at {span_ends[j]}"
            return f"the span of event {j + 1}, {scored[j].decode()!r}, {where}"
        return ""

    def checks(self) -> list[Check]:
        """Return the verdicts over the whole text."""
        bare, no_spans = self._subject is None, self._without_spans == self.segments_scored
        if self._without_spans:
            self.faults["spans"].note(f"one of {counted(self._without_spans, 'segment')} without spans")
        events, own = counted(self.events, "event"), self.counted
        tiled, rest = f"tile {counted(self.bytes, 'byte')}: none left out", ""
        if self._policy.leaves_out:
            own, rest = self._scored, f": protocol {self._policy.protocol} leaves out the rest"
            tiled = f"are {counted(own.bytes, 'byte')} of {self.bytes:,}"
        zeros = f"; {counted(self.sum.zeros, 'event')} of probability zero" if self.sum.zeros else ""
        counts = f"{own.segments:,} segments, {own.words:,} words, {own.characters:,} characters, {own.bytes:,} bytes"
        judged, oov, spelled = self._judged, self.kinds[OOV], self.kinds[SPELLED]
        unseen = counted(spelled, unseen_noun(self._unit))
        unknown = [f"{unseen} spelled"] * bool(spelled) + [counted(oov, "unknown token")] * bool(oov or not spelled)
        as_made = f"Every segment has the tokens its tokenizer makes, where it makes them; {', '.join(unknown)}."
        if no_spans or self.segments_scored == self._without_tokens:
            spelling = judge(LEVEL, "spelling", skipped="the table names no tokens, or no spans")
        else:
            spelling = self._spelling.check(oov, spelled)
        blank = "the white space before each event" if self._separated else "no white space"
        paid = f"{unseen} of {events} pay for their letters, and rows for {blank}; "
        paid += "what is left for the event itself is never above 0."
        parts = judged("parts", paid, faults=self.faults["parts"].count, spelled=spelled, separators=self._separated)
        segments = f"{counted(self.counted.segments, 'segment')} of the text, and rows for all of them, in order, each once."
        of_turns = "turns are cut with the conversation before them" if self._policy.unit == "conversation" else ""
        missing = "the table has no column of span ends" if no_spans and bare else ""
        return [
            judged("segments", segments),
            judged("spans", f"The spans of {events} {tiled}, none twice{rest}.", missing),
            *([] if bare else [judged("tokens", as_made, of_turns)]),
            spelling,
            judged("sentence ends", *self._sentence_ends()),
            *self._special_tokens(),
            judged("log-probabilities", f"None of {events} is NaN or above 0{zeros}."),
            judged("denominators", f"Counted again from the text: {counts}.", claimed=vars(self.claimed), counted=vars(own)),
            *([parts] if spelled or self._separated or self.faults["parts"].count else []),
        ]

    def _special_tokens(self) -> Iterator[Check]:
        # What a network is shown and asked for at the head and the end of a segment.
        special = self._subject and self._first and self._subject.model.special_tokens(self._first)
        if special:
            seen, faults, hints = special
            bad, good = (text and f"{text[0].upper()}{text[1:]}." for text in ("; ".join(faults), "; ".join([seen, *hints])))
            yield judge(LEVEL, "special tokens", bad=bad, good=good)
        elif self._turns and not self._ended and self._policy.unit != "sentence":
            yield judge(LEVEL, "ends of turns", bad=f"No row scores what ends a turn, in {counted(self._turns, 'turn')}.")

    def _judged(self, name: str, good: str, skipped: str = "", **details: Any) -> Check:
        # Verdict on one of the questions, from what was noted.
        fault, (what, *noun) = self.faults[name], _QUESTIONS[name]
        if skipped:
            return judge(LEVEL, name, skipped=skipped)
        bad = f"{what.format(counted(fault.count, *noun))}, first {fault.first}." if fault.count else ""
        return judge(LEVEL, name, bad=bad, good=good, details=details or {"faults": fault.count})

    def _sentence_ends(self) -> tuple[str, str]:
        # Note what is wrong with `</s>`; return the evidence that nothing is, and why it cannot be judged, if so.
        fault, ends, lines = self.faults["sentence ends"], self._ends, self.counted.line_ends
        if ends not in (0, self.counted.segments):
            fault.note(f"{ends:,} of {self.counted.segments:,} segments have one: all should, or none")
        if ends or not lines:
            return "Every segment ends with one </s>." if ends else "No </s> is predicted; records have no line ends.", ""
        if self._policy.line_ends == "text":
            return f"No </s> is predicted: {counted(lines, 'line end')} are scored as the text that they are.", ""
        if self._policy.line_ends == "unscored":
            return f"No </s> is predicted; {counted(lines, 'line end')} are neither scored nor among the bytes.", ""
        missing = f"o </s> is predicted: {counted(lines, 'line end')} are among the bytes, and in no event"
        if self._subject is None:
            return "", f"N{missing}: bits per byte are too low by what they cost"
        fault.note(f"no segment has one: n{missing}")
        return "", ""
