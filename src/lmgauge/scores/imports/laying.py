"""Laying the tokens of a log on the text they are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import LoggedSegment, shown
from lmgauge.scores.spans import Piece, approximate, left_out, place, spellings_of
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

_WORD = re.compile(rb"[^ \t\n\v\f\r]+")
_MOST_HEADLESS = 256  # bytes that a first token may have
_NEAR = 40


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
