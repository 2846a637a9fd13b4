"""Level 5: the text is compressed to the size that the number claims, and decoded again with only the model and the code.

A range coder (Martin 1979) spends -log2 p bits on an event of probability p. It is driven by `log_distribution` of what
was coded before, which the decoder has too: a model that looks ahead cannot be followed by it, and one whose
probabilities sum to more than one needs more bits than it claims.

A model that gives every text a probability (see `normalization.py`) also codes what is inside of events: the letters of a
word that is not known, and the white space before each. Then all bytes must come back.

What may be batched: the decoder has to make exactly the distributions of the encoder, to the last bit, and it goes token by
token. So the encoder may not show a model a whole segment at once, as `score` does: its distributions would be rounded in
other places (and a model that looks ahead would see the text). But both may ask about the contexts of several segments at a
time, each at the same event: the questions are then the same for both, and none holds what another has to predict.

A code is made of lanes, so that independent segments can be coded side by side. Ending a lane costs up to 33 bits. The
length of the text (segments, events, and events of each segment where no `</s>` ends it) is stated beside the code and is
not part of the code length. The coder knows no probability below 2^-24, so rarer events take fewer bits than they claim: a
code may be shorter than claimed by that much, and never longer.
"""

from __future__ import annotations

import lzma
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import MissingExtraError, needing
from lmgauge.base.progress import listener
from lmgauge.base.threads import go_on, map_in_order, thread_count
from lmgauge.evaluation.audit.checks import Check, counted, judge
from lmgauge.evaluation.audit.subject import NO_WRITER, Extent, Rows, Subject, sampled
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import OOV, SPELLED, unescaped
from lmgauge.scores.context_policy import GrowingContext

COARSEST = 2**-23
"""What the coder may add to the probability of an event: it gives each of two steps 2^-24 at least."""
_MOST_STEPS = 1 << 16  # inside an event: a code that is not one of this model may spell without end


class NoCodeError(Exception):
    """An event cannot be coded, or a code cannot be read; the message says why."""


class EventCoder:
    """Codes one event of a large vocabulary in two steps, bucket and token in it."""

    # The coder rounds probabilities to multiples of 2^-24 and gives every symbol one at least. Over a vocabulary of 300,000
    # that would cost 2 % of the mass; over buckets of the square root of it, next to nothing.

    def __init__(self, size: int) -> None:
        self._size = size
        # 300,000 tokens: 2^ceil(18.2 / 2) = 1,024 to a bucket, 293 buckets.
        self._width = 1 << max(1, math.ceil(math.log2(max(2, size)) / 2))
        self._buckets = -(-size // self._width)
        self._probability = np.zeros(self._buckets * self._width, np.float64)
        self._constriction = constriction()
        self._prepared, self._sums = np.zeros(0), np.zeros(0)

    def _prepare(self, logprob: NDArray[np.float64]) -> NDArray[np.float64]:
        # Fill in the probabilities and return those of the buckets; what cannot change is not computed again.
        if logprob is self._prepared and not logprob.flags.writeable:
            return self._sums
        np.exp(logprob, out=self._probability[: self._size])
        buckets: NDArray[np.float64] = self._probability.reshape(self._buckets, self._width).sum(axis=1)
        total = float(buckets.sum())
        if not math.isfinite(total):
            value = "NaN" if math.isnan(total) else "infinite probabilities"
            raise NoCodeError(f"log_distribution gives {value}")
        if not total > 0:
            raise NoCodeError(f"the probabilities after a context sum to {total}, so nothing can follow")
        self._prepared, self._sums = logprob, buckets
        return buckets

    def _model(self, weights: NDArray[np.float64]) -> Any:
        return self._constriction.stream.model.Categorical(weights, perfect=False)

    def _inside(self, bucket: int) -> NDArray[np.float64]:
        return self._probability[bucket * self._width : (bucket + 1) * self._width]

    def encode(self, encoder: Any, token: int, logprob: NDArray[np.float64]) -> None:
        """Add a token to a code."""
        # logprob: float64 [vocabulary], nats.
        buckets = self._prepare(logprob)
        bucket, place = divmod(token, self._width)
        if not self._probability[token] > 0:
            raise NoCodeError("log_distribution gives probability zero to an event that score gives more")
        if self._buckets > 1:
            encoder.encode(bucket, self._model(buckets))
        encoder.encode(place, self._model(self._inside(bucket)))

    def decode(self, decoder: Any, logprob: NDArray[np.float64]) -> int:
        """Return the next token of a code."""
        # logprob: float64 [vocabulary], nats.
        buckets = self._prepare(logprob)
        bucket = decoder.decode(self._model(buckets)) if self._buckets > 1 else 0
        inside = self._inside(bucket)
        if not inside.sum() > 0:
            raise NoCodeError("the code leads to an event of probability zero")
        token: int = bucket * self._width + decoder.decode(self._model(inside))
        return token


class Encoder:
    """Adds events, and the steps inside of them, to a code."""

    def __init__(self) -> None:
        self.code, self._coders = constriction().stream.queue.RangeEncoder(), _Coders()
        # How much shorter the code may be than the steps claim, as the coder has no smaller probability.
        self.saved_bits = 0.0

    def event(self, logprob: NDArray[np.float64], token: int) -> int:
        """Code an event, and return it."""
        # logprob: float64 [vocabulary], nats.
        self._coders[len(logprob)].encode(self.code, token, logprob)
        return token

    def choose(self, step: Any) -> int:
        """Code what the text has in a step inside of an event, and return it."""
        logprob = float(step.logprob[step.wanted])
        if not logprob > -math.inf:
            raise NoCodeError(f"a {step.part} that score gives a probability has none step by step")
        # log2(p + 2^-23) - log2(p): how much cheaper the event can become by the coder's rounding, at most.
        self.saved_bits += math.log2(math.exp(logprob) + COARSEST) - nats_to_bits(logprob)
        return self.event(step.logprob, int(step.wanted))


class Decoder:
    """Reads events, and the steps inside of them, from a code."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self._code, self._coders = constriction().stream.queue.RangeDecoder(words), _Coders()
        self._left = 0

    def event(self, logprob: NDArray[np.float64], _: int) -> int:
        """Return the next event."""
        self._left = _MOST_STEPS
        return self._coders[len(logprob)].decode(self._code, logprob)

    def choose(self, step: Any) -> int:
        """Return the next step inside of an event."""
        self._left -= 1
        if self._left < 0:
            raise NoCodeError(f"a {step.part} has no end")
        return self._coders[len(step.logprob)].decode(self._code, step.logprob)


class _Coders(dict[int, EventCoder]):
    """Coders by the number of choices."""

    def __missing__(self, size: int) -> EventCoder:
        return self.setdefault(size, EventCoder(size))


def constriction() -> Any:
    """Return the library of entropy coders."""
    with needing("constriction", extra="audit"):
        import constriction as library
    return library


LEVEL, LENGTH, DECODING = "compression", "code length", "decoding"
RELATIVE_TOLERANCE = 0.001
ABSOLUTE_TOLERANCE_BITS = 64
# Of a lane: its length, segments, events, segments side by side, and whether the events of each segment are stated.
_HEADER_WORDS = 5
_TOKENS_SIDE_BY_SIDE = 1 << 12  # of which a model may keep what it computed
_SHOWN_EVERY = 64
_BITS_PER_LANE = 33_000  # what ending it costs then stays below the relative tolerance
_MOST_LANES = 16

Decoded = tuple[list[int], bytes | None]
"""The tokens of a segment, and its text where the model spells what it does not know."""

_Lane = TypeVar("_Lane")
_Result = TypeVar("_Result")


class _Work:
    """What the lanes share: the model and the progress."""

    def __init__(self, subject: Subject, what: str, events: int) -> None:
        self.subject, self._what, self._events, self._say = subject, what, events, listener()
        self._done = 0

    def step(self) -> None:
        go_on()
        if self._done % _SHOWN_EVERY == 0:
            percent = 100 * self._done // max(1, self._events)
            self._say(f"{LEVEL}: {self._what} event {self._done:,} of {self._events:,} ({percent} %)")
        self._done += 1

    def run(self, work: Callable[[_Lane], _Result], lanes: Sequence[_Lane]) -> list[_Result]:
        threads = thread_count(self.subject.threads) if self.subject.independent else 1
        return list(map_in_order(work, lanes, min(threads, len(lanes))))


@dataclass(frozen=True)
class Lane:
    """The code of consecutive segments."""

    segments: int
    events: int
    side_by_side: int  # number of segments that are coded at a time, event by event
    lengths: list[int]  # events of each segment; empty where each ends with its only `</s>`
    words: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))  # uint32 [n], the code
    # how much shorter it may be than letters and white space claim, as the coder has no smaller probability
    saved_bits: float = 0.0


def encode_segments(subject: Subject, segments: Sequence[Rows]) -> list[Lane]:
    """Return the code of the events of segments."""
    work = _Work(subject, "coding", sum(map(len, segments)))
    return work.run(lambda part: _encode_lane(work, part), _divided(segments, subject.running))


def _divided(segments: Sequence[Rows], running: bool) -> list[list[Rows]]:
    # Divide segments into lanes of about as many events each; all in one where each needs those before it.
    bits = nats_to_bits(-math.fsum(float(rows.logprob.sum()) for rows in segments))
    count = 1 if running else min(_MOST_LANES, len(segments), max(1, int(bits // _BITS_PER_LANE)))
    before = np.cumsum([0, *map(len, segments)])
    bounds = np.searchsorted(before, before[-1] * np.arange(count + 1) / count).tolist()
    return [list(segments[a:b]) for a, b in pairwise([0, *bounds[1:-1], len(segments)])]


def _encode_lane(work: _Work, segments: Sequence[Rows]) -> Lane:
    subject, encoder, lengths = work.subject, Encoder(), [len(rows) for rows in segments]
    at_a_time = max(1, min(subject.contexts_at_a_time, _TOKENS_SIDE_BY_SIDE // max(1, *lengths)))
    closed = all(np.flatnonzero(rows.token_ids == subject.eos).tolist() == [len(rows) - 1] for rows in segments)
    lane = Lane(len(segments), sum(lengths), at_a_time, [] if closed else lengths)
    _code_lane(work, lane, encoder, segments)
    return replace(lane, words=encoder.code.get_compressed(), saved_bits=encoder.saved_bits)


def _code_lane(work: _Work, lane: Lane, coder: Encoder | Decoder, known: Sequence[Rows] = ()) -> list[Decoded]:
    # Go over a lane with who codes, who knows its rows, or with who decodes.
    subject, left = work.subject, iter(range(lane.events))
    writers = [] if subject.writer is None else [subject.writer() for _ in range(lane.segments)]

    def code(segment: int, event: int, logprob: NDArray[np.float64]) -> int:
        if next(left, None) is None:
            raise NoCodeError("the decoder runs on after the last event")
        try:
            token = coder.event(logprob, int(known[segment].token_ids[event]) if known else -1)
            if writers:
                writers[segment].write(token, coder.choose, known[segment].piece(event) if known else None)
            return token
        except (AssertionError, ValueError) as error:  # the library's words for a code that fits no distribution
            raise NoCodeError("it does not fit the distributions that the decoder is given") from error

    def ended(segment: int, tokens: list[int]) -> bool:
        return len(tokens) >= lane.lengths[segment] if lane.lengths else tokens[-1:] == [subject.eos]

    walked = _walk(work, lane.segments, max(1, lane.side_by_side), code, ended)
    return [(tokens, bytes(writers[i].text) if writers else None) for i, tokens in enumerate(walked)]


def _walk(
    work: _Work,
    segments: int,
    at_a_time: int,
    code: Callable[[int, int, NDArray[np.float64]], int],
    ended: Callable[[int, list[int]], bool],
) -> list[list[int]]:
    # Go over the events of a lane in the order of its code: the first of some segments, the second of these, and so on.
    subject = work.subject
    slots = [GrowingContext(subject.bos, runs_on=subject.running) for _ in range(min(at_a_time, segments))]
    walked: list[list[int]] = [[] for _ in range(segments)]
    for first in range(0, segments, at_a_time):
        shown = [slot for slot in range(min(at_a_time, segments - first)) if not ended(first + slot, [])]
        going_on = set(shown)
        while going_on:
            for slot, logprob in zip(shown, subject.distributions([slots[i].ids() for i in shown]), strict=True):
                tokens = walked[first + slot]
                if slot not in going_on:
                    slots[slot].add(subject.eos)  # of no meaning: contexts that are asked about together have one length
                    continue
                work.step()
                tokens.append(code(first + slot, len(tokens), logprob))
                slots[slot].add(tokens[-1])
                if ended(first + slot, tokens):
                    going_on.remove(slot)
            # Not at once: a model may have to compute all again where contexts are left out.
            if 2 * len(going_on) <= len(shown):
                shown = [slot for slot in shown if slot in going_on]
        for context in slots:
            context.end_segment()
    return walked


def decode_segments(subject: Subject, code: Sequence[Lane]) -> list[Decoded]:
    """Return the segments behind a code, from model and code alone."""
    work = _Work(subject, "decoding", sum(lane.events for lane in code))
    return [
        decoded
        for segments in work.run(lambda lane: _code_lane(work, lane, Decoder(lane.words)), code)
        for decoded in segments
    ]


def check_compression(subject: Subject, segments: Sequence[Rows], whole: Extent | None = None) -> list[Check]:
    """Code segments with the model's distributions and decode them again."""
    # segments: as `score` scored them, in order; of a stream from its beginning.
    if any(not (rows.logprob <= 0).all() for rows in segments):
        return [judge(LEVEL, LENGTH, bad="a log-probability is NaN or above 0: that claims no number of bits")]
    # Segments with an event of probability zero are left out, of a stream all from the first such.
    zeros = np.array([(rows.logprob == -np.inf).any() for rows in segments], bool)
    zeros = np.maximum.accumulate(zeros) if subject.running else zeros
    coded = [rows for rows, impossible in zip(segments, zeros.tolist(), strict=True) if not impossible]
    skipped = "" if any(map(len, coded)) else "the text has no event"
    if skipped and zeros.any():
        which = "the first segment has" if subject.running else "every segment has"
        skipped = f"{which} an event of probability zero: infinitely many bits are claimed, and no code is so long"
    try:
        code = [] if skipped else encode_segments(subject, coded)
    except MissingExtraError as error:
        skipped = str(error)
    except NoCodeError as error:
        return [judge(LEVEL, LENGTH, bad=f"the text cannot be coded: {error}")]
    if skipped:
        return [judge(LEVEL, name, skipped=skipped) for name in (LENGTH, DECODING)]
    length = _length_check(coded, int(zeros.sum()), code, whole)
    try:
        return [length, _decoding_check(subject, coded, decode_segments(subject, code))]
    except NoCodeError as error:
        return [length, judge(LEVEL, DECODING, bad=f"The code cannot be decoded: {error}.")]


def _length_check(coded: list[Rows], impossible: int, code: Sequence[Lane], whole: Extent | None) -> Check:
    source, count = b"".join(rows.source for rows in coded), sum(map(len, coded))
    claimed = nats_to_bits(-math.fsum(value for rows in coded for value in rows.logprob.tolist()))
    events = [value for rows in coded for value in rows.event_logprob().tolist()]
    inside = claimed - nats_to_bits(-math.fsum(events)) - math.fsum(lane.saved_bits for lane in code)
    least = inside - math.fsum(math.log2(math.exp(value) + COARSEST) for value in events)  # events of 40 bits cost 24
    text_bytes = max(len(source), whole.bytes if whole else 0)
    bits = 32 * sum(len(lane.words) for lane in code)
    allowed = RELATIVE_TOLERANCE * claimed + ABSOLUTE_TOLERANCE_BITS
    details = {
        "segments": len(coded),
        "events": count,
        "source_bytes": len(source),
        "text_bytes": text_bytes,
        "code_bits": bits,
        "claimed_bits": claimed,
        "allowed_difference_bits": allowed,
        "least_bits": least,
        "header_bits": 32 * (1 + sum(_HEADER_WORDS + len(lane.lengths) for lane in code)),
        "gzip_bytes": len(zlib.compress(source, 9)),
        "xz_bytes": len(lzma.compress(source, preset=9)),
        "impossible_segments": impossible,
    }
    difference = bits - claimed
    percent = f"{100 * difference / claimed:+.3f} %" if claimed else f"{difference:+.0f} bits"
    part = sampled(len(source), text_bytes, "byte").capitalize()
    what = f"{part} ({counted(len(coded), 'segment')}, {counted(count, 'event')})"
    sizes = f"{bits:,} bits where {claimed:,.1f} were claimed ({percent})"
    others = f"gzip makes {details['gzip_bytes']:,} of them, xz {details['xz_bytes']:,}"
    left = f" Left out: {counted(impossible, 'segment')} with an event of probability zero." if impossible else ""
    bad = f"{what} took {sizes}; {allowed:,.0f} bits of difference are allowed: the numbers are not probabilities.{left}"
    good = f"{what} were coded in {sizes}: {bits // 8:,} bytes; {others}.{left}"
    honest = least - allowed <= bits <= claimed + allowed
    return judge(LEVEL, LENGTH, bad="" if honest else bad, good=good, details=details)


def _text_of(subject: Subject, tokens: list[int], source: bytes) -> str:
    # Text of decoded tokens; escaped reserved words lose their brackets, where that gives the source.
    strings = [subject.vocabulary.token(token) for token in tokens if token != subject.eos]
    text = subject.tokenizer.detokenize(strings)
    if text.split() == source.decode().split():
        return text
    return subject.tokenizer.detokenize([unescaped(string) for string in strings])


def _other_than(rows: Rows, tokens: list[int], text: bytes | None) -> str:
    # How a segment that was decoded differs from the one that was coded; empty if it does not.
    where = f"of segment {rows.segment + 1}"
    if rows.token_ids.tolist() != tokens:
        return f"Decoding gave other events, first event {_first_apart(rows.token_ids.tolist(), tokens)} {where}."
    if text is None and (rows.kind == SPELLED).any():
        return f"Of unseen words only events came back, first in segment {rows.segment + 1}: {NO_WRITER}."
    if text is not None and text != rows.text:
        return f"Decoding gave other bytes, first byte {_first_apart(rows.text, text)} {where}."
    return ""


def _first_apart(a: Sequence[int], b: Sequence[int]) -> int:
    # Number, from 1, of the first place where two sequences differ.
    return next((j for j, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))) + 1


def _decoding_check(subject: Subject, coded: list[Rows], decoded: list[Decoded]) -> Check:
    # Check that the decoded events are those coded, and say whether bytes, words or only events came back with them.
    exact = size = words = unknown = 0
    events = sum(map(len, coded))
    details = {"segments": len(decoded), "events": events}
    for rows, (tokens, written) in zip(coded, decoded, strict=True):
        bad = _other_than(rows, tokens, written)
        if bad:
            return judge(LEVEL, DECODING, bad=bad, details=details)
        text = "" if written is not None else _text_of(subject, tokens, rows.text)
        if written is not None or text.encode(errors="replace") in (rows.text, rows.source):
            exact += 1
            size += len(rows.source)
        elif text.split() == rows.text.decode().split():
            words += 1
        else:
            unknown += bool((rows.kind == OOV).any())
    details |= {"exact_segments": exact, "exact_bytes": size, "words_only_segments": words, "unknown_word_segments": unknown}
    good = f"All {counted(events, 'event')} came back from model and code alone, and with them "
    altered = len(decoded) - exact - words - unknown
    lost = "but not all white space" if subject.tokenizer.name == "whitespace" else "and the tokenizer alters the rest"
    partly = [f"of {words:,} the words came back, {lost}"] if words else []
    if unknown:
        partly.append(f"of {unknown:,}, with unknown words, only the sequence of events is verified, not the bytes")
    if altered:
        partly.append(f"of {altered:,}, which the tokenizer alters, that of events")
    some = f"the bytes of {exact:,} of {counted(len(decoded), 'segment')}; {'; '.join(partly)}."
    return judge(LEVEL, DECODING, good=good + (some if partly else f"all {counted(size, 'byte')}."), details=details)
