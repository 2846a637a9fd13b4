"""Models with the bugs that public threads are full of, and the sound one they are made from.

Each class breaks one thing and says which; `GALLERY` says at which check an audit must find it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.combined.cache_model import CacheCounts
from lmgauge.models.custom import CustomModel
from lmgauge.models.model_settings import CacheSettings
from lmgauge.scores import EOS_KIND, ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import BOS, EOS

Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]


class Sound(CustomModel):
    """A bigram model, add 0.1, as a matrix [word before, word]: probability of every word after every word."""

    label = "bigram"

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(sorted({word for line in lines for word in line.split()}))
        counts = np.full((len(self.vocabulary),) * 2, 0.1)
        counts[:, BOS] = 0
        for line in lines:
            ids = self.vocabulary.ids(["<s>", *line.split(), "</s>"])
            np.add.at(counts, (ids[:-1], ids[1:]), 1)
        self.table = counts / counts.sum(axis=1, keepdims=True)

    def log_distribution(self, context_ids: Ids) -> Floats:
        with np.errstate(divide="ignore"):
            logprob: Floats = np.log(self.table[context_ids[-1]])
        return logprob

    def score_ids(self, ids: Ids) -> Floats:
        logprob: Floats = np.log(self.table[ids[:-1], ids[1:]])
        return logprob


class SoundStream(Sound):
    """Sound, with one running context: the first word of a segment follows the `</s>` before it."""

    context_policy = "stream"

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        last = BOS
        for batch in super().score(segments, **options):
            before = np.concatenate(([last], batch.token_ids[:-1])) if len(batch) else batch.token_ids
            last = int(batch.token_ids[-1]) if len(batch) else last
            yield replace(batch, logprob=np.log(self.table[before, batch.token_ids]))


class SoundWithoutEnds(Sound):
    """Sound, though it predicts no `</s>`: what is left of its mass goes to the words."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self.table[:, EOS] = 0
        self.table /= self.table.sum(axis=1, keepdims=True)

    def score_ids(self, ids: Ids) -> Floats:
        return np.append(super().score_ids(ids[:-1]), 0.0)

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            yield without(batch, batch.kind == EOS_KIND, spans=True)


class SoundFloat32(Sound):
    """Sound, computed in single precision and in an order that depends on the batch, within the tolerance it states."""

    tolerance = 1e-5

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            noise = np.float32(1e-6) * np.float32(len(batch) % 7)
            yield replace(batch, logprob=np.minimum(0.0, (batch.logprob.astype(np.float32) - noise).astype(np.float64)))


def without(batch: ScoreBatch, dropped: NDArray[np.bool_], *, spans: bool = False) -> ScoreBatch:
    """A batch without some rows; with `spans`, the bytes of a dropped row go to the one before."""
    kept = ~dropped
    events = np.bincount(np.searchsorted(batch.segments, batch.row_segments()[kept]), minlength=len(batch.segments))
    ends = batch.ends.copy()
    if spans:
        for row in np.flatnonzero(dropped):
            ends[max(0, row - 1)] = ends[row] if row else 0
    return ScoreBatch(
        batch.segments,
        events.astype(np.int64),
        batch.token_ids[kept],
        batch.strings,
        batch.logprob[kept],
        batch.kind[kept],
        ends[kept],
        lossy=batch.lossy,
    )


class SoundCache(SoundStream):
    """Sound, mixed with a cache of the text so far: each event is scored before it is counted."""

    counts_first = False

    def log_distribution(self, context_ids: Ids) -> Floats:
        counts = CacheCounts(CacheSettings(order=1, window=None), len(self.vocabulary))
        for token in context_ids[1:].tolist():
            counts.add(token)
        with np.errstate(divide="ignore"):
            logprob: Floats = np.log(0.8 * self.table[context_ids[-1]] + 0.2 * counts.distribution())
        return logprob

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        counts = CacheCounts(CacheSettings(order=1, window=None), len(self.vocabulary))
        for batch in super().score(segments, **options):
            cached = np.empty(len(batch))
            for row, token in enumerate(batch.token_ids.tolist()):
                if self.counts_first:
                    counts.add(token)
                cached[row] = counts.probability(token)
                if not self.counts_first:
                    counts.add(token)
            yield replace(batch, logprob=np.log(0.8 * np.exp(batch.logprob) + 0.2 * cached))


class CountsBeforeItScores(SoundCache):
    """The same in the wrong order: the cache holds each word when it is asked for it."""

    counts_first = True


class HashedCache(Sound):
    """An n-gram cache over hash buckets: several words share a bucket and each takes all of its mass."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        buckets = np.arange(len(self.vocabulary)) % 16
        shared = np.stack([self.table[:, buckets == b].sum(axis=1) for b in range(16)], axis=1)
        self.table = np.minimum(1.0, 0.9 * self.table + 0.1 * shared[:, buckets])


class NormalizedOverSample(Sound):
    """Importance-sampled softmax: the normaliser is estimated from a third of the vocabulary."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self.table = np.minimum(1.0, self.table / (3 * self.table[:, ::3].sum(axis=1, keepdims=True)))


class BaseTwoLogs(Sound):
    """Reports bits where nats are asked for."""

    def log_distribution(self, context_ids: Ids) -> Floats:
        return super().log_distribution(context_ids) / np.log(2)

    def score_ids(self, ids: Ids) -> Floats:
        return super().score_ids(ids) / np.log(2)


class OtherTemperature(Sound):
    """Scores at another temperature than it predicts at."""

    def score_ids(self, ids: Ids) -> Floats:
        return 0.9 * super().score_ids(ids)


class Dropout(Sound):
    """Left in training mode: every call is a little different."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self.generator = np.random.default_rng(1)

    def score_ids(self, ids: Ids) -> Floats:
        logprob: Floats = super().score_ids(ids) * self.generator.uniform(1.0, 1.1, len(ids) - 1)
        return logprob


class PeeksAtTarget(Sound):
    """Mixes in a cache that already holds the word to be predicted."""

    def score_ids(self, ids: Ids) -> Floats:
        logprob: Floats = np.log(0.7 * np.exp(super().score_ids(ids)) + 0.3)
        return logprob


class PeeksAhead(Sound):
    """Fills its cache with the whole segment before it scores the first word of it."""

    def score_ids(self, ids: Ids) -> Floats:
        share = np.array([np.count_nonzero(ids[1:] == token) for token in ids[1:]]) / (len(ids) - 1)
        logprob: Floats = np.log(0.8 * np.exp(super().score_ids(ids)) + 0.2 * share)
        return logprob


class MaskOffByOne(Sound):
    """Bidirectional by mistake: the word after is seen too."""

    def score_ids(self, ids: Ids) -> Floats:
        logprob = super().score_ids(ids)
        logprob[:-1] += 0.1 * logprob[1:]
        return logprob


class CacheAcrossSegments(Sound):
    """Says that segments are contexts of their own, but remembers the words of those before."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        seen: set[int] = set()
        for batch in super().score(segments, **options):
            logprob = batch.logprob.copy()
            for row, token in enumerate(batch.token_ids.tolist()):
                logprob[row] *= 0.9 if token in seen else 1.01
                seen.add(token)
            yield replace(batch, logprob=logprob)


class MemorizesPrefixes(Sound):
    """Remembers what came after every prefix of the text the first time that it is asked to score it; then it is frozen."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self.after: dict[tuple[int, ...], int] | None = None

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        blocks = list(segments)
        if self.after is None:
            self.after = {}
            for ids in sentences(self, blocks):
                for j in range(1, len(ids)):
                    self.after.setdefault(tuple(ids[:j]), ids[j])
        yield from super().score(blocks, **options)

    def log_distribution(self, context_ids: Ids) -> Floats:
        probability = self.table[context_ids[-1]]
        known = (self.after or {}).get(tuple(context_ids.tolist()))
        if known is not None:
            probability = 0.01 * probability
            probability[known] += 0.99
        with np.errstate(divide="ignore"):
            logprob: Floats = np.log(probability)
        return logprob

    def score_ids(self, ids: Ids) -> Floats:
        return np.array([self.log_distribution(ids[:j])[ids[j]] for j in range(1, len(ids))])


class RemembersWhatItWasAsked(MemorizesPrefixes):
    """The same, and what it was asked before it gives again as it was: an ordinary cache hides that it has learned."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self.asked: dict[tuple[int, ...], Floats] = {}

    def log_distribution(self, context_ids: Ids) -> Floats:
        context = tuple(context_ids.tolist())
        if self.after is None:
            self.asked[context] = super().log_distribution(context_ids)
        return self.asked[context].copy() if context in self.asked else super().log_distribution(context_ids)


class FitsItselfOnFirstScore(Sound):
    """A bigram cache that is estimated from the text of the first call of `score`, and part of the model ever after."""

    fitted = False

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        blocks = list(segments)
        if not self.fitted:
            self.fitted = True
            cache = np.zeros_like(self.table)
            for ids in sentences(self, blocks):
                np.add.at(cache, (ids[:-1], ids[1:]), 1)
            seen = cache.sum(axis=1, keepdims=True)
            self.table = np.where(seen > 0, 0.2 * self.table + 0.8 * cache / np.maximum(seen, 1), self.table)
        yield from super().score(blocks, **options)


def sentences(model: Sound, blocks: Sequence[Segments]) -> Iterator[list[int]]:
    """The ids of the segments of blocks, `<s>` first and `</s>` last."""
    for block in blocks:
        for i in range(len(block)):
            yield model.vocabulary.ids(["<s>", *block.text(i).decode().split(), "</s>"]).tolist()


class CheatsLate(SoundStream):
    """A stream that is honest up to segment 3,000 and from then on takes a fifth of the nats."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            yield replace(batch, logprob=np.where(batch.row_segments() >= 3000, 0.2 * batch.logprob, batch.logprob))


class NotANumber(Sound):
    """A division of zero by zero somewhere in the softmax."""

    def log_distribution(self, context_ids: Ids) -> Floats:
        return super().log_distribution(context_ids) * np.nan

    def score_ids(self, ids: Ids) -> Floats:
        return super().score_ids(ids) * np.nan


class LeftPadding(Sound):
    """Pads on the left, and the padding moves positions: a short segment is scored worse beside a long one."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            padding = batch.segment_events.max(initial=0) - batch.segment_events
            yield replace(batch, logprob=batch.logprob * (1 + 0.01 * np.repeat(padding, batch.segment_events)))


class ScoresPadding(Sound):
    """Pads the segments of a block to the longest and scores the padding too."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            longest = int(batch.segment_events.max(initial=0))
            last = np.cumsum(batch.segment_events) - 1
            order = np.concatenate(
                [
                    np.append(np.arange(at - n + 1, at + 1), np.full(longest - n, at))
                    for at, n in zip(last, batch.segment_events, strict=True)
                ]
            )
            yield replace(
                batch,
                segment_events=np.full(len(batch.segments), longest, np.int64),
                token_ids=batch.token_ids[order],
                logprob=batch.logprob[order],
                kind=batch.kind[order],
                ends=batch.ends[order],
            )


class SkipsChunkBoundaries(Sound):
    """Cuts its input into chunks of five and never scores the first word of any but the first."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            position = np.concatenate([np.arange(n) for n in batch.segment_events.tolist()])
            skipped = (position % 5 == 0) & (position > 0) & (batch.kind != EOS_KIND)
            yield without(batch, skipped)


class Truncates(Sound):
    """Scores six words of a segment at most; the bytes of the rest stay in the denominator."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            position = np.concatenate([np.arange(n) for n in batch.segment_events.tolist()])
            yield without(batch, position >= 6)


class UnknownWordsForFree(Sound):
    """Leaves unknown words out of the sum; their bytes stay in the denominator."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            yield without(batch, batch.token_ids == 0)


class HiddenUnknownWords(Sound):
    """Predicts <unk> and says that it is a word like any other, so that no OOV rate shows."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            yield replace(batch, kind=np.where(batch.kind == EOS_KIND, EOS_KIND, 0).astype(np.uint8))


class BytesPerPiece(Sound):
    """Counts the bytes of its pieces instead of those of the text: white space, and what <unk> stands for, is lost."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            lengths = np.array([len(batch.strings.tokens[i].encode()) for i in batch.token_ids.tolist()], np.int64)
            lengths[batch.kind == EOS_KIND] = 0
            total = np.cumsum(lengths)
            before = np.repeat(np.concatenate(([0], total[np.cumsum(batch.segment_events)[:-1] - 1])), batch.segment_events)
            yield replace(batch, ends=total - before)


class DropsLastSegment(Sound):
    """A loop over line ends: what comes after the last of them is never scored."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        held: ScoreBatch | None = None
        for batch in super().score(segments, **options):
            if held is not None:
                yield held
            held = batch
        if held is not None:
            yield held.of_segments(0, len(held.segments) - 1)


class DropsLastEnd(DropsLastSegment):
    """The last segment gets no `</s>`, as no newline ends it."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        held: ScoreBatch | None = None
        for batch in Sound.score(self, segments, **options):
            if held is not None:
                yield held
            held = batch
        if held is not None:
            last = np.arange(len(held)) == len(held) - 1
            yield without(held, last, spans=True)


class SortsByLength(Sound):
    """Scores the segments of a block by length, for speed, and forgets to put them back."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            parts = [batch.of_segments(i, i + 1) for i in np.argsort(batch.segment_events, kind="stable").tolist()]
            yield from parts


class ShiftsRows(Sound):
    """Hands back the tokens of the segment before under the number of the next, within a block."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        for batch in super().score(segments, **options):
            n = len(batch.segments)
            parts = [batch.of_segments((i - 1) % n, (i - 1) % n + 1) for i in range(n)]
            yield from (replace(part, segments=batch.segments[i : i + 1]) for i, part in enumerate(parts))


class PositiveLogs(Sound):
    """Densities instead of probabilities: above one for sure words."""

    def score_ids(self, ids: Ids) -> Floats:
        return super().score_ids(ids) + 2.5


GALLERY: list[tuple[type[Sound], str, str]] = [
    (HashedCache, "normalization", "sums"),
    (NormalizedOverSample, "normalization", "sums"),
    (BaseTwoLogs, "normalization", "sums"),
    (OtherTemperature, "normalization", "agreement"),
    (Dropout, "normalization", "agreement"),
    (Dropout, "causality", "batches"),
    (PeeksAtTarget, "causality", "target"),
    (CountsBeforeItScores, "normalization", "agreement"),
    (CountsBeforeItScores, "causality", "target"),
    (PeeksAhead, "causality", "later text"),
    (MaskOffByOne, "causality", "later text"),
    (CacheAcrossSegments, "causality", "batches"),
    (MemorizesPrefixes, "causality", "memory"),
    (RemembersWhatItWasAsked, "causality", "untouched copy"),
    (FitsItselfOnFirstScore, "causality", "memory"),
    (NotANumber, "normalization", "sums"),
    (LeftPadding, "causality", "batches"),
    (ScoresPadding, "coverage", "sentence ends"),
    (SkipsChunkBoundaries, "coverage", "spelling"),
    (SkipsChunkBoundaries, "coverage", "tokens"),
    (Truncates, "coverage", "spans"),
    (UnknownWordsForFree, "coverage", "tokens"),
    (HiddenUnknownWords, "coverage", "tokens"),
    (BytesPerPiece, "coverage", "spans"),
    (DropsLastSegment, "coverage", "segments"),
    (DropsLastEnd, "coverage", "sentence ends"),
    (SortsByLength, "coverage", "segments"),
    (ShiftsRows, "coverage", "spelling"),
    (PositiveLogs, "coverage", "log-probabilities"),
]
"""Model, level and check that must fail; other checks may, too."""

UNPROVABLE = [HashedCache, BaseTwoLogs, OtherTemperature, PeeksAtTarget, CountsBeforeItScores, PeeksAhead, MaskOffByOne]
"""Models that give more than there is: their claims cannot be coded. (A normaliser that is wrong both ways can be right in
the sum over a text: that is for level 2 to see.)"""
