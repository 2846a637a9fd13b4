"""Segments of a log as batches of the score table, laid on the text where that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.errors import InputError
from lmgauge.scores.imports.laying import Laid, lay
from lmgauge.scores.imports.log import Log, LoggedSegment, printable
from lmgauge.scores.spans import Piece
from lmgauge.scores.table import TOKEN, ScoreBatch, Strings

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

_ROWS_AT_A_TIME = 1 << 16


class _Batch:
    """Rows in the making."""

    def __init__(self, first: int, documents: dict[str, int]) -> None:
        self._first, self._documents = first, documents
        self._events: list[int] = []
        self._lossy: list[bool] = []
        self._ids: list[int] = []
        self._strings: dict[str, int] = {}
        self._logprob: list[float] = []
        self._kinds: list[int] = []
        self._ends: list[int] = []
        self._contexts: list[int] = []
        self._of_document: list[int] = []

    @property
    def segments(self) -> int:
        return len(self._events)

    @property
    def rows(self) -> int:
        return len(self._ids)

    def add(self, segment: LoggedSegment | None, laid: Laid | None = None) -> int:
        # Add the rows of a segment; none where the log has nothing of it. Return how many first tokens have no score.
        # Raises InputError: a token after the first has no score.
        before, unscored = self.rows, 0
        if segment is not None:
            first, last = (0, len(segment.pieces)) if laid is None else (laid.first, laid.first + len(laid.ends))
            scores = list(segment.logprob[first:last])
            missing = int(scores[:1] == [None])
            if None in scores[missing:]:
                number = first + scores.index(None, missing) + 1
                raise InputError(f"{segment.where}: token {number} has no log-probability; only the first may have none")
            unscored = int(missing or (segment.headless if laid is None else laid.beheaded))
            chosen = slice(first + missing, last)
            self._logprob += [score for score in scores[missing:] if score is not None]
            self._ids += [self._id(piece) for piece in segment.pieces[chosen]]
            self._kinds += segment.kinds[chosen] if segment.kinds is not None else [TOKEN] * (self.rows - before)
            self._contexts += segment.contexts[chosen] if segment.contexts is not None else []
            self._ends += laid.ends[missing:] if laid is not None else []
            if segment.document is not None:
                document = self._documents.setdefault(segment.document, len(self._documents))
                self._of_document += [document] * (self.rows - before)
        self._events.append(self.rows - before)
        self._lossy.append(laid is not None and bool(unscored or not laid.exact))
        return unscored

    def _id(self, piece: Piece) -> int:
        return self._strings.setdefault(printable(piece), len(self._strings))

    def made(self) -> ScoreBatch:
        extra: dict[str, Any] = {}
        if self._contexts and len(self._contexts) == self.rows:
            extra["context"] = np.array(self._contexts, np.int64)
        if self._of_document and len(self._of_document) == self.rows:
            extra["document"] = np.array(self._of_document, np.int64)
        return ScoreBatch(
            np.arange(self._first, self._first + self.segments, dtype=np.int64),
            np.array(self._events, np.int64),
            np.array(self._ids, np.uint32),
            Strings(list(self._strings) or [""]),
            np.array(self._logprob, np.float64),
            np.array(self._kinds, np.uint8),
            np.array(self._ends, np.int64),
            extra,
            np.array(self._lossy, bool),
        )


def rows(segments: Iterable[LoggedSegment], log: Log) -> Iterator[ScoreBatch]:
    """Yield the rows of a log without a text: tokens have no spans."""
    # Raises InputError: a token after the first has no score.
    documents: dict[str, int] = {}
    batch, first, unscored = _Batch(0, documents), 0, 0
    for segment in segments:
        last = len(segment.pieces) - segment.generated[0]
        unscored += batch.add(_cut(segment, last))
        if batch.rows >= _ROWS_AT_A_TIME:
            first += batch.segments
            yield batch.made()
            batch = _Batch(first, documents)
    if batch.segments:
        yield batch.made()
    _say_unscored(unscored, log, "BOS tokens, or the first of the text")


def _cut(segment: LoggedSegment, last: int) -> LoggedSegment:
    if last == len(segment.pieces):
        return segment
    return replace(segment, pieces=segment.pieces[:last], logprob=segment.logprob[:last])


def rows_on_text(
    segments: Iterable[LoggedSegment], corpus: Corpus, log: Log, *, words: bool = False
) -> Iterator[tuple[ScoreBatch, Segments]]:
    """Yield the rows of a log and the block of text that they are about; every token has its span."""
    # Blank segments of the text, of which many programs write nothing, have no rows then.
    # segments: of the log, in the order of the text.
    waiting = iter(segments)
    segment = next(waiting, None)
    documents: dict[str, int] = {}
    blank = unscored = inexact = crossing = 0
    where = "the log"
    for block in corpus:
        batch = _Batch(block.first, documents)
        for i in range(len(block)):
            text = block.text(i)
            if not text.strip() and (segment is None or not _is_blank(segment)):
                batch.add(None)
                blank += 1
                continue
            if segment is None:
                raise InputError(
                    f"{where}: is the last of {block.first + i - blank:,} segments, and the text has more: {block.source}, "
                    f"line {block.line(i)} has no scores; name the text that was scored, read as it was then (--unit)"
                )
            laid = lay(segment, text, given=block.given_text(i), words=words, place_name=block.place(i))
            unscored += batch.add(segment, laid)
            inexact += not laid.exact
            crossing += laid.crosses
            where, segment = segment.where, next(waiting, None)
        yield batch.made(), block
    if segment is not None:
        raise InputError(
            f"{segment.where}: the text ends before this segment of the log; was it read as it was then (--unit)?"
        )
    log.remark("{:,} blank segments of the text have no scores in the log", blank)
    log.remark("{:,} tokens begin in the given text and end behind it: they are scored whole", crossing)
    log.remark("{:,} segments are not spelled exactly by their tokens: where these lie is approximate", inexact)
    _say_unscored(unscored, log)


def _is_blank(segment: LoggedSegment) -> bool:
    # True if a log has a segment that is blank in the text: `</s>` alone, or white space.
    if segment.text is not None:
        return not segment.text.strip()
    kinds = segment.kinds or [TOKEN] * len(segment.pieces)
    return all(kind != TOKEN or not piece.strip() for kind, piece in zip(kinds, segment.pieces, strict=True))


def _say_unscored(count: int, log: Log, words: str = "their bytes count, and their bits are missing") -> None:
    log.unscored = count
    log.remark("{:,} first tokens have no score in the log: " + words, count)
