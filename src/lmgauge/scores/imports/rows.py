"""Segments of a log as batches of the score table, laid on the text where that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.errors import InputError
from lmgauge.scores.imports.laying import lay
from lmgauge.scores.imports.log import Log, LoggedSegment, printable, shown
from lmgauge.scores.table import TOKEN, ScoreBatch, Strings

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

_ROWS_AT_A_TIME = 1 << 16


def _scored(tokens: LoggedSegment, *, laid: bool) -> tuple[LoggedSegment, bool]:
    # Those that have a score, and whether the first of the text has none: then they do not give all of it back.
    missing = tokens.logprob[:1] == [None]
    lacking = missing or tokens.headless
    scored = tokens.part(int(missing), **{"exact": False} if laid and lacking else {})
    if None in scored.logprob:
        piece = shown(scored.pieces[scored.logprob.index(None)])
        raise InputError(f"{tokens.where}: the token {piece} has no log-probability; only the first may have none")
    return scored, lacking


def _batch(first: int, parts: Sequence[LoggedSegment], documents: dict[str, int]) -> ScoreBatch:
    # Rows of segments from `first` on; `documents` has the numbers of those met before, and grows.
    strings: dict[str, int] = {}
    ids = [strings.setdefault(printable(piece), len(strings)) for part in parts for piece in part.pieces]
    contexts = [context for part in parts for context in part.contexts or ()]
    of_rows: list[int] = []
    for part in parts:
        if part.document is not None:
            of_rows += [documents.setdefault(part.document, len(documents))] * len(part.pieces)
    optional = {"context": contexts, "document": of_rows}
    return ScoreBatch(
        np.arange(first, first + len(parts), dtype=np.int64),
        np.array([len(part.pieces) for part in parts], np.int64),
        np.array(ids, np.uint32),
        Strings(list(strings) or [""]),
        np.array([score for part in parts for score in part.logprob], np.float64),
        np.array([kind for part in parts for kind in part.kinds or [TOKEN] * len(part.pieces)], np.uint8),
        np.array([end for part in parts for end in part.ends], np.int64),
        {name: np.array(values, np.int64) for name, values in optional.items() if values and len(values) == len(ids)},
        np.array([not part.exact for part in parts], bool),
    )


def rows(segments: Iterable[LoggedSegment], log: Log) -> Iterator[ScoreBatch]:
    """Yield the rows of a log without a text: tokens have no spans."""
    # Raises InputError: a token after the first has no score.
    documents: dict[str, int] = {}
    parts: list[LoggedSegment] = []
    first = count = unscored = 0
    for segment in segments:
        scored, lacking = _scored(segment.part(0, len(segment.pieces) - segment.generated[0]), laid=False)
        parts.append(scored)
        count, unscored = count + len(scored.pieces), unscored + lacking
        if count >= _ROWS_AT_A_TIME:
            yield _batch(first, parts, documents)
            first, count, parts = first + len(parts), 0, []
    if parts:
        yield _batch(first, parts, documents)
    _say_unscored(unscored, log, "BOS tokens, or the first of the text")


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
        parts: list[LoggedSegment] = []
        for i in range(len(block)):
            text = block.text(i)
            if not text.strip() and (segment is None or not _is_blank(segment)):
                parts.append(LoggedSegment("", [], []))
                blank += 1
                continue
            if segment is None:
                raise InputError(
                    f"{where}: is the last of {block.first + i - blank:,} segments, and the text has more: {block.source}, "
                    f"line {block.line(i)} has no scores; name the text that was scored, read as it was then (--unit)"
                )
            laid = lay(segment, text, given=block.given_text(i), words=words, place_name=block.place(i))
            scored, lacking = _scored(laid, laid=True)
            parts.append(scored)
            unscored += lacking
            inexact += not laid.exact
            crossing += laid.crosses
            where, segment = segment.where, next(waiting, None)
        yield _batch(block.first, parts, documents), block
    if segment is not None:
        raise InputError(
            f"{segment.where}: the text ends before this segment of the log; was it read as it was then (--unit)?"
        )
    log.remark("{:,} blank segments of the text have no scores in the log", blank)
    log.remark("{:,} tokens begin in the given text and end behind it: they are scored whole", crossing)
    log.remark("{:,} segments are not spelled exactly by their tokens: where these lie is approximate", inexact)
    _say_unscored(unscored, log, "their bytes count, and their bits are missing")


def _is_blank(segment: LoggedSegment) -> bool:
    # True if a log has a segment that is blank in the text: `</s>` alone, or white space.
    if segment.text is not None:
        return not segment.text.strip()
    kinds = segment.kinds or [TOKEN] * len(segment.pieces)
    return all(kind != TOKEN or not piece.strip() for kind, piece in zip(kinds, segment.pieces, strict=True))


def _say_unscored(count: int, log: Log, words: str) -> None:
    log.unscored = count
    log.remark("{:,} first tokens have no score in the log: " + words, count)
