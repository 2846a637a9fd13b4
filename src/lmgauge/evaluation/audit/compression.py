"""Level 5: the text is coded to the size that the number claims, and decoded again with nothing but model and code.

A range coder (Martin 1979) spends -log2 p bits on an event of probability p. It is driven by `log_distribution` of what
was coded before, which the decoder has too: a model that looks ahead cannot be followed by it, and one whose
probabilities sum to more than one needs more bits than it claims.

A code is made of lanes, so that independent segments can be coded side by side: their number, then of each the words
it has. A lane begins with three words: segments, events, and whether the events of each segment are told (they are not
where each ends with `</s>`; else a word a segment follows). All these say nothing of the text but its length, and are no
part of the code length. Ending a lane costs up to 33 bits, which are.
"""

from __future__ import annotations

import lzma
import math
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.contexts import GrowingContext
from lmgauge.errors import MissingExtraError
from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted
from lmgauge.evaluation.audit.rows import Rows, Subject
from lmgauge.evaluation.audit.sample import Extent, sampled
from lmgauge.evaluation.slicing.ranges import unescaped
from lmgauge.scores import OOV
from lmgauge.threads import map_in_order, thread_count

LEVEL = "compression"
RELATIVE_TOLERANCE = 0.001
ABSOLUTE_TOLERANCE_BITS = 64
_HEADER = 3
_SHOWN_EVERY = 64
_BITS_PER_LANE = 33_000  # what ending it costs then stays below the relative tolerance
_MOST_LANES = 16

Progress = Callable[[str], None]


class NoCodeError(Exception):
    """An event that no code can be made for, or a code that cannot be read; the message says why."""


class EventCoder:
    """Codes one event of a large vocabulary in two steps, bucket and token in it.

    The coder rounds probabilities to multiples of 2^-24 and gives every symbol one at least. Over a vocabulary of 300,000
    that would cost 2 % of the mass; over buckets of the square root of it, next to nothing.

    Args:
        size: tokens in the vocabulary.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._width = 1 << max(1, math.ceil(math.log2(max(2, size)) / 2))
        self._buckets = -(-size // self._width)
        self._probability = np.zeros(self._buckets * self._width, np.float64)
        self._constriction = constriction()

    def _prepare(self, logprob: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fills the probabilities and returns those of the buckets."""
        np.exp(logprob, out=self._probability[: self._size])
        buckets: NDArray[np.float64] = self._probability.reshape(self._buckets, self._width).sum(axis=1)
        total = float(buckets.sum())
        if not math.isfinite(total):
            raise NoCodeError(f"log_distribution gives {'NaN' if math.isnan(total) else 'probabilities without bound'}")
        if not total > 0:
            raise NoCodeError(f"the probabilities after a context sum to {total}, so that nothing can follow")
        return buckets

    def _model(self, weights: NDArray[np.float64]) -> Any:
        return self._constriction.stream.model.Categorical(weights, perfect=False)

    def _inside(self, bucket: int) -> NDArray[np.float64]:
        return self._probability[bucket * self._width : (bucket + 1) * self._width]

    def encode(self, encoder: Any, token: int, logprob: NDArray[np.float64]) -> None:
        """Adds a token to a code.

        Raises:
            NoCodeError: the distribution gives it no probability.
        """
        buckets = self._prepare(logprob)
        bucket, place = divmod(token, self._width)
        if not self._probability[token] > 0:
            raise NoCodeError("log_distribution gives probability zero to an event that score gives more")
        if self._buckets > 1:
            encoder.encode(bucket, self._model(buckets))
        encoder.encode(place, self._model(self._inside(bucket)))

    def decode(self, decoder: Any, logprob: NDArray[np.float64]) -> int:
        """Reads the next token of a code."""
        buckets = self._prepare(logprob)
        bucket = decoder.decode(self._model(buckets)) if self._buckets > 1 else 0
        inside = self._inside(bucket)
        if not inside.sum() > 0:
            raise NoCodeError("the code leads to an event of probability zero")
        token: int = bucket * self._width + decoder.decode(self._model(inside))
        return token


def constriction() -> Any:
    """The library of entropy coders.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import constriction as library
    except ImportError as error:
        raise MissingExtraError("constriction", extra="audit") from error
    return library


class _Work:
    """What the lanes share: who works, how far they are, and whether to go on.

    Args:
        subject: the model.
        what: is being done, for people.
        events: in all.
        progress: told so.
    """

    def __init__(self, subject: Subject, what: str, events: int, progress: Progress) -> None:
        self.subject, self._what, self._events, self._progress = subject, what, events, progress
        self._done = 0
        self._stop = threading.Event()

    def step(self) -> None:
        """One event more.

        Raises:
            NoCodeError: the work was given up.
        """
        if self._stop.is_set():
            raise NoCodeError("given up")
        if self._done % _SHOWN_EVERY == 0:
            percent = 100 * self._done // max(1, self._events)
            self._progress(f"{LEVEL}: {self._what} event {self._done:,} of {self._events:,} ({percent} %)")
        self._done += 1

    def run(self, work: Callable[[Any], Any], lanes: Sequence[Any]) -> list[Any]:
        """The work on every lane, side by side where the model is made for that."""
        threads = thread_count(self.subject.threads) if self.subject.independent else 1
        try:
            return list(map_in_order(work, lanes, min(threads, len(lanes))))
        finally:
            self._stop.set()  # whatever ended it early, no thread goes on


def encode_segments(
    subject: Subject, segments: Sequence[Rows], progress: Progress = lambda text: None
) -> NDArray[np.uint32]:
    """The code of the events of segments, uint32 words.

    Raises:
        NoCodeError: an event has no probability.
        MissingExtraError: constriction is not installed.
    """
    work = _Work(subject, "coding", sum(len(rows) for rows in segments), progress)
    lanes = work.run(lambda part: _encode_lane(work, part), _lanes(segments, subject.running))
    parts = [np.array([len(lanes)], np.uint32)]
    for lane in lanes:
        parts += [np.array([len(lane)], np.uint32), lane]
    return np.concatenate(parts)


def _lanes(segments: Sequence[Rows], running: bool) -> list[list[Rows]]:
    """Consecutive segments of about as many events each; all in one where each needs those before it."""
    bits = -math.fsum(float(rows.logprob.sum()) for rows in segments) / math.log(2)
    count = 1 if running else min(_MOST_LANES, len(segments), max(1, int(bits // _BITS_PER_LANE)))
    before = np.cumsum([0, *(len(rows) for rows in segments)])
    bounds = np.searchsorted(before, before[-1] * np.arange(count + 1) / count).tolist()
    return [list(segments[a:b]) for a, b in pairwise([0, *bounds[1:-1], len(segments)])]


def _encode_lane(work: _Work, segments: Sequence[Rows]) -> NDArray[np.uint32]:
    subject = work.subject
    coder, encoder = EventCoder(len(subject.vocabulary)), constriction().stream.queue.RangeEncoder()
    history = GrowingContext(subject.bos, runs_on=subject.running)
    told = any(not _closed(rows, subject.eos) for rows in segments)
    for rows in segments:
        for token in rows.ids.tolist():
            work.step()
            coder.encode(encoder, token, subject.distribution(history.ids()))
            history.add(token)
        history.end_segment()
    events = sum(len(rows) for rows in segments)
    header = [len(segments), events, int(told), *([len(rows) for rows in segments] if told else [])]
    return np.concatenate((np.array(header, np.uint32), encoder.get_compressed()))


def _closed(rows: Rows, eos: int) -> bool:
    at = np.flatnonzero(rows.ids == eos)
    return len(at) == 1 and int(at[0]) == len(rows) - 1


def _split(code: NDArray[np.uint32]) -> list[tuple[int, int, list[int], NDArray[np.uint32]]]:
    """Of each lane of a code the segments, the events, the events of each segment if told, and the words."""
    lanes = []
    at = 1
    for _ in range(int(code[0])):
        lane = code[at + 1 : at + 1 + int(code[at])]
        at += 1 + len(lane)
        count, events, told = (int(word) for word in lane[:_HEADER])
        lengths = [int(word) for word in lane[_HEADER : _HEADER + count]] if told else []
        lanes.append((count, events, lengths, np.ascontiguousarray(lane[_HEADER + len(lengths) :])))
    return lanes


def decode_segments(subject: Subject, code: NDArray[np.uint32], progress: Progress = lambda text: None) -> list[list[int]]:
    """The tokens of the segments behind a code: from model and code, and nothing else.

    Raises:
        NoCodeError: the code is not one of this model.
        MissingExtraError: constriction is not installed.
    """
    lanes = _split(code)
    work = _Work(subject, "decoding", sum(events for _, events, _, _ in lanes), progress)
    return [tokens for lane in work.run(lambda lane: _decode_lane(work, *lane), lanes) for tokens in lane]


def _decode_lane(work: _Work, count: int, events: int, lengths: list[int], words: NDArray[np.uint32]) -> list[list[int]]:
    subject = work.subject
    coder, decoder = EventCoder(len(subject.vocabulary)), constriction().stream.queue.RangeDecoder(words)
    history = GrowingContext(subject.bos, runs_on=subject.running)
    segments: list[list[int]] = []
    done = 0
    for i in range(count):
        tokens: list[int] = []
        while len(tokens) < lengths[i] if lengths else not tokens or tokens[-1] != subject.eos:
            if done == events:
                raise NoCodeError("the decoder runs on after the last event")
            work.step()
            try:
                token = coder.decode(decoder, subject.distribution(history.ids()))
            except (AssertionError, ValueError) as error:  # the library's words for a code that fits no distribution
                raise NoCodeError("it does not fit the distributions that the decoder is given") from error
            history.add(token)
            tokens.append(token)
            done += 1
        history.end_segment()
        segments.append(tokens)
    return segments


@dataclass(frozen=True)
class _Chosen:
    """What is coded, and what had to be left out."""

    segments: list[Rows]
    impossible: int
    bytes: int
    bits: float


def _choose(subject: Subject, segments: Sequence[Rows]) -> _Chosen:
    """Segments without an event of probability zero; of a stream those before the first such."""
    kept: list[Rows] = []
    for rows in segments:
        if (rows.logprob == -np.inf).any():
            if subject.running:
                break
            continue
        kept.append(rows)
    nats = -math.fsum(value for rows in kept for value in rows.logprob.tolist())
    size = sum(len(rows.source) for rows in kept)
    return _Chosen(kept, len(segments) - len(kept), size, nats / math.log(2))


def check_compression(
    subject: Subject, segments: Sequence[Rows], whole: Extent | None = None, progress: Progress = lambda text: None
) -> list[Check]:
    """Codes segments with the model's distributions and decodes them again.

    Args:
        subject: the model.
        segments: as `score` scored them, in order; of a stream from its beginning.
        whole: the text that they were drawn from, if they are not all of it.
        progress: told in words what is being done.
    """
    chosen = _choose(subject, segments)
    if any(not (rows.logprob <= 0).all() for rows in segments):
        reason = "a log-probability is NaN or above 0: that claims no number of bits"
        return [Check(LEVEL, "code length", FAIL, reason)]
    if not sum(len(rows) for rows in chosen.segments):
        reason = "the text has no event"
        if chosen.impossible:
            which = "the first segment has" if subject.running else "every segment has"
            reason = f"{which} an event of probability zero: infinitely many bits are claimed, and no code is so long"
        return [Check(LEVEL, "code length", NOT_CHECKED, reason), Check(LEVEL, "decoding", NOT_CHECKED, reason)]
    try:
        code = encode_segments(subject, chosen.segments, progress)
    except MissingExtraError as error:
        return [Check(LEVEL, name, NOT_CHECKED, str(error)) for name in ("code length", "decoding")]
    except NoCodeError as error:
        return [Check(LEVEL, "code length", FAIL, f"the text cannot be coded: {error}")]
    length = _length_check(chosen, code, whole)
    try:
        decoded = decode_segments(subject, code, progress)
    except NoCodeError as error:
        return [length, Check(LEVEL, "decoding", FAIL, f"The code cannot be decoded: {error}.")]
    return [length, _decoding_check(subject, chosen, decoded)]


def _length_check(chosen: _Chosen, code: NDArray[np.uint32], whole: Extent | None) -> Check:
    bits = 32 * sum(len(words) for _, _, _, words in _split(code))
    difference = bits - chosen.bits
    allowed = RELATIVE_TOLERANCE * chosen.bits + ABSOLUTE_TOLERANCE_BITS
    plain = b"".join(rows.source for rows in chosen.segments)
    gzip, xz = len(zlib.compress(plain, 9)), len(lzma.compress(plain, preset=9))
    events = sum(len(rows) for rows in chosen.segments)
    text_bytes = max(chosen.bytes, whole.bytes if whole else 0)
    details = {
        "segments": len(chosen.segments),
        "events": events,
        "source_bytes": chosen.bytes,
        "text_bytes": text_bytes,
        "code_bits": bits,
        "claimed_bits": chosen.bits,
        "allowed_difference_bits": allowed,
        "header_bits": 32 * len(code) - bits,
        "gzip_bytes": gzip,
        "xz_bytes": xz,
        "impossible_segments": chosen.impossible,
    }
    percent = f"{100 * difference / chosen.bits:+.3f} %" if chosen.bits else f"{difference:+.0f} bits"
    coded = sampled(chosen.bytes, text_bytes, "byte").capitalize()
    what = f"{coded} ({counted(len(chosen.segments), 'segment')}, {counted(events, 'event')})"
    sizes = f"{bits:,} bits where {chosen.bits:,.1f} were claimed ({percent})"
    impossible = counted(chosen.impossible, "segment")
    left = f" Left out: {impossible} with an event of probability zero." if chosen.impossible else ""
    if abs(difference) <= allowed:
        others = f"{bits // 8:,} bytes; gzip makes {gzip:,} of them, xz {xz:,}"
        return Check(LEVEL, "code length", PASS, f"{what} were coded in {sizes}: {others}.{left}", details)
    text = f"{what} took {sizes}; {allowed:,.0f} bits of difference are allowed: the numbers are no probabilities.{left}"
    return Check(LEVEL, "code length", FAIL, text, details)


def _decoding_check(subject: Subject, chosen: _Chosen, decoded: list[list[int]]) -> Check:
    events = sum(len(rows) for rows in chosen.segments)
    for rows, tokens in zip(chosen.segments, decoded, strict=True):
        if rows.ids.tolist() != tokens:
            j = next((j for j, (a, b) in enumerate(zip(rows.ids.tolist(), tokens, strict=False)) if a != b), len(tokens))
            text = f"Decoding gave other events, first event {j + 1} of segment {rows.segment + 1}."
            return Check(LEVEL, "decoding", FAIL, text, {"segments": len(decoded), "events": events})
    return _came_back(subject, chosen, decoded)


def _text_of(subject: Subject, tokens: list[int], source: bytes) -> str:
    """The text of decoded tokens; reserved words that were escaped lose their brackets, where that gives the source."""
    strings = [subject.vocabulary.token(token) for token in tokens if token != subject.eos]
    text = subject.tokenizer.detokenize(strings)
    if text.split() == source.decode().split():
        return text
    return subject.tokenizer.detokenize([unescaped(string) for string in strings])


def _came_back(subject: Subject, chosen: _Chosen, decoded: list[list[int]]) -> Check:
    """What of the text the decoded events are: its bytes, its words, or no more than the events."""
    exact = size = words = unknown = 0
    for rows, tokens in zip(chosen.segments, decoded, strict=True):
        text = _text_of(subject, tokens, rows.text)
        if text.encode(errors="replace") in (rows.text, rows.source):
            exact += 1
            size += len(rows.source)
        elif text.split() == rows.text.decode().split():
            words += 1
        else:
            unknown += bool((rows.kind == OOV).any())
    events, others = sum(len(rows) for rows in chosen.segments), len(decoded) - exact
    details = {"segments": len(decoded), "events": events, "exact_segments": exact, "exact_bytes": size}
    details |= {"words_only_segments": words, "unknown_word_segments": unknown}
    done = f"All {counted(events, 'event')} came back from model and code alone"
    if not others:
        return Check(LEVEL, "decoding", PASS, f"{done}, and with them all {counted(size, 'byte')}.", details)
    partly = []
    if words:
        lost = "but not all white space" if subject.tokenizer.name == "whitespace" else "and the tokenizer alters the rest"
        partly.append(f"of {words:,} the words came back, {lost}")
    if unknown:
        partly.append(f"of {unknown:,}, with unknown words, what is proved is the sequence of events and not the bytes")
    if others > words + unknown:
        partly.append(f"of {others - words - unknown:,}, which the tokenizer alters, that of events")
    text = f"{done}, and with them the bytes of {exact:,} of {counted(len(decoded), 'segment')}; {'; '.join(partly)}."
    return Check(LEVEL, "decoding", PASS, text, details)
