"""The tokens of a log laid on the text they are about, and its segments as batches of the score table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import shown
from lmgauge.scores.imports.log import Log, LoggedSegment, printable
from lmgauge.scores.spans import Piece, approximate, left_out, place, spellings_of
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN, ScoreBatch, Strings

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

_WORD = re.compile(rb"[^ \t\n\v\f\r]+")
_MOST_HEADLESS = 256  # bytes that a first token may have
_NEAR = 40
_ROWS_AT_A_TIME = 1 << 16


def lay(
    segment: LoggedSegment, text: bytes, *, given: bytes = b"", words: bool = False, place_name: str = "the text"
) -> LoggedSegment:
    """Return the tokens of a segment that are its text, with their places."""
    # lay(LoggedSegment("log, line 1", ["the", "Ġcat"], [None, -1.5]), b"the cat").ends -> [3, 7]
    differs = partial(_differs, f"{segment.where}: the log is not about {place_name}")
    if segment.text is not None:
        return _lay_whole(segment, segment.text, text, differs)
    return (_lay_words if words else _lay_pieces)(segment, given + text, differs).behind(len(given))


def fit(segment: LoggedSegment, *texts: bytes) -> LoggedSegment | None:
    """Return those tokens of a segment that give back one of the texts, laid on it; None if none do."""
    # A first token without a score that is not text of the segment is the model's BOS token.
    firsts = (0, 1) if segment.logprob[:1] == [None] and segment.pieces[0].strip() else (0,)
    for generated in segment.generated:
        for text in texts:
            for first in firsts:
                last = len(segment.pieces) - generated
                if first < last and (ends := place(segment.pieces[first:last], text)) is not None:
                    return segment.part(first, last, ends=ends, generated=(generated,), headless=False)
    return None


def without_bos(segment: LoggedSegment, text: bytes) -> LoggedSegment:
    """Return the tokens of a segment that no reading gives the text of: those neither generated nor a BOS token."""
    last = len(segment.pieces) - segment.generated[0]
    first = _bytes(segment.pieces[0]).strip() if segment.logprob[:1] == [None] else b""
    return segment.part(int(bool(first) and not text.lstrip().startswith(first)), last)


def _lay_whole(segment: LoggedSegment, logged: str, text: bytes, differs: Callable[..., InputError]) -> LoggedSegment:
    own = logged.encode("utf-8", "surrogatepass").replace(b"\r\n", b"\n")
    if own != text:
        pairs = enumerate(zip(own, text, strict=False))
        common = next((i for i, (one, other) in pairs if one != other), min(len(own), len(text)))
        raise differs(text, common, "text", own[common:])
    return segment._replace(ends=[len(text)])


def _lay_words(segment: LoggedSegment, text: bytes, differs: Callable[..., InputError]) -> LoggedSegment:
    # Lay words: each begins where the one before ended, white space included, and `</s>` takes what is left.
    kinds = segment.kinds or [TOKEN] * len(segment.pieces)
    ends: list[int] = []
    at = 0
    for number, (piece, kind) in enumerate(zip(segment.pieces, kinds, strict=True), 1):
        if kind == EOS_KIND:
            ends.append(len(text))
            continue
        match = _WORD.search(text, at)
        unknown = kind == OOV and piece == b"<unk>"
        if match is None or (match[0] != piece and not unknown):
            raise differs(text, match.start() if match else len(text), f"word {number}", piece)
        at = match.end()
        ends.append(at)
    if match := _WORD.search(text, at):
        raise differs(text, match.start(), "", b"")
    if ends and kinds[-1] != EOS_KIND:
        ends[-1] = len(text)
    return segment._replace(ends=ends)


def _lay_pieces(segment: LoggedSegment, text: bytes, differs: Callable[..., InputError]) -> LoggedSegment:
    if (laid := fit(segment, text)) is not None:
        return laid
    if segment.headless and (behind := _place_behind(segment.pieces, text)):
        return segment._replace(ends=behind)
    part = without_bos(segment, text)
    if not part.pieces or segment.headless or left_out(part.pieces, text) is not None:
        if segment.pieces and not any(segment.pieces):
            raise UsageError(f"{segment.where}: no column has its tokens, so they have no place in a text: leave out --text")
        first = len(segment.pieces) - segment.generated[0] - len(part.pieces)
        at, number, piece = _first_difference(segment.pieces[first:], text)
        raise differs(text, at, f"token {first + number}", piece)
    return part._replace(ends=approximate(part.pieces, text), exact=False)


def _place_behind(pieces: Sequence[Piece], text: bytes) -> list[int]:
    first = _bytes(pieces[0]) if pieces else b""
    for begin in range(1, _MOST_HEADLESS + 1) if first else ():
        if text.startswith(first, begin) and (ends := place(pieces, text[begin:])) is not None:
            return [begin + end for end in ends]
    return []


def _first_difference(pieces: Sequence[Piece], text: bytes) -> tuple[int, int, Piece]:
    at = 0
    for number, piece in enumerate(pieces, 1):
        known = spellings_of(piece)
        # Programs that drop the space before a word, and tokenizers that set one before the first.
        tried = [spelled for one in known for spelled in (one, b" " + one, one.removeprefix(b" "))]
        match = next((spelled for spelled in tried if text.startswith(spelled, at)), None)
        if match is None:
            return at, number, piece
        at += len(match)
    return at, len(pieces) + 1, ""


def _differs(wrong: str, text: bytes, at: int, what: str, piece: Piece) -> InputError:
    there = f"is {shown(text[at : at + _NEAR])}" if at < len(text) else "ends"
    logged = f"has {what} {shown(_bytes(piece)[:_NEAR])}" if piece else "ends"
    return InputError(
        f"{wrong}: at byte {at:,} of its segment the text {there}, and the log {logged}; name the text that was scored, "
        "read as then (--unit, --field)"
    )


def _bytes(piece: Piece) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace")


# --- rows ---


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
    _say_unscored(unscored, log, "their bytes count, but their bits are missing")


def _is_blank(segment: LoggedSegment) -> bool:
    # True if a log has a segment that is blank in the text: `</s>` alone, or white space.
    if segment.text is not None:
        return not segment.text.strip()
    kinds = segment.kinds or [TOKEN] * len(segment.pieces)
    return all(kind != TOKEN or not piece.strip() for kind, piece in zip(kinds, segment.pieces, strict=True))


def _say_unscored(count: int, log: Log, words: str) -> None:
    log.unscored = count
    log.remark("{:,} first tokens have no score in the log: " + words, count)
