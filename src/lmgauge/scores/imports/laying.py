"""Laying the tokens of a log on the text they are about."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import LoggedSegment, shown
from lmgauge.scores.spans import Piece, approximate, left_out, place, spellings_of
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

_WORD = re.compile(rb"[^ \t\n\v\f\r]+")
_MOST_HEADLESS = 256  # bytes that a first token may have
_NEAR = 40


@dataclass(frozen=True, slots=True)
class Laid:
    """Tokens of a segment with their places."""

    first: int  # number of the first token that is text
    ends: Sequence[int]  # where each token from there on ends, bytes; tokens behind these are not text
    exact: bool = True  # True if the tokens give the text back
    beheaded: bool = False  # True if the text begins before the first of them
    crosses: bool = False  # True if the first begins in the text that is given before the segment

    def behind(self, given: int) -> Laid:
        """Return the tokens that end behind given text, with their places in what follows it."""
        # Laid(0, [3, 7, 11]).behind(5) -> Laid(first=1, ends=[2, 6], exact=True, beheaded=False, crosses=True)
        before = bisect_right(self.ends, given)
        begin = self.ends[before - 1] if before else 0
        ends = [end - given for end in self.ends[before:]]
        return Laid(self.first + before, ends, self.exact, self.beheaded and not before, begin < given)


def lay(
    segment: LoggedSegment, text: bytes, *, given: bytes = b"", words: bool = False, place_name: str = "the text"
) -> Laid:
    """Return where the tokens of a segment are in its text."""
    # lay(LoggedSegment("log, line 1", ["the", "Ġcat"], [None, -1.5]), b"the cat").ends -> [3, 7]
    differs = partial(_differs, f"{segment.where}: the log is not about {place_name}")
    if segment.text is not None:
        return _lay_whole(segment.text, text, differs)
    laid = (_lay_words if words else _lay_pieces)(segment, given + text, differs)
    return laid.behind(len(given)) if given else laid


def _lay_whole(logged: str, text: bytes, differs: Callable[..., InputError]) -> Laid:
    own = logged.encode("utf-8", "surrogatepass").replace(b"\r\n", b"\n")
    if own != text:
        pairs = enumerate(zip(own, text, strict=False))
        common = next((i for i, (one, other) in pairs if one != other), min(len(own), len(text)))
        raise differs(text, common, "text", own[common:])
    return Laid(0, [len(text)])


def _lay_words(segment: LoggedSegment, text: bytes, differs: Callable[..., InputError]) -> Laid:
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
    return Laid(0, ends)


def _lay_pieces(segment: LoggedSegment, text: bytes, differs: Callable[..., InputError]) -> Laid:
    pieces = segment.pieces
    # A first token without a score that is not text of the segment is the model's BOS token.
    firsts = (0, 1) if segment.logprob[:1] == [None] and pieces[0].strip() else (0,)
    for generated in segment.generated:
        for first in firsts:
            part = pieces[first : len(pieces) - generated]
            if part and (ends := place(part, text)) is not None:
                return Laid(first, ends)
        part = pieces[: len(pieces) - generated]
        if segment.headless and part and (ends := _place_behind(part, text)):
            return Laid(0, ends, beheaded=True)
    first = int(len(firsts) == 2 and not text.lstrip().startswith(_bytes(pieces[0]).strip()))
    last = len(pieces) - segment.generated[0]
    part = pieces[first:last]
    if not part or segment.headless or left_out(part, text) is not None:
        at, number, piece = _first_difference(pieces[first:], text)
        raise differs(text, at, f"token {first + number}", piece)
    return Laid(first, approximate(part, text), exact=False)


def _place_behind(pieces: Sequence[Piece], text: bytes) -> list[int]:
    first = _bytes(pieces[0])
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
