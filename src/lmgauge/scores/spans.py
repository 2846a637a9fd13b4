"""Where in a text the tokens of another program lie: their strings, as it shows them, held against the bytes of the text."""

# A server shows a token as a string, and not every token is one: a part of a character becomes U+FFFD, or nothing at all,
# or is spelled out (`bytes:\\xe2\\x96`, `<0xE2>`); some show the vocabulary's own spelling (`▁the`, `Ġthe`), some drop the
# space before a word. So the source text is what counts, and a token string is only a witness of which bytes of it are
# meant.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from lmgauge.scores.special_tokens import is_special
from lmgauge.text.tokens import byte_level as byte_level
from lmgauge.text.tokens import byte_named as byte_named

Piece = str | bytes
"""A token as a server shows it; bytes where it tells them."""

_FIRST_NOT_ASCII = 0x80
_NO_TEXT = re.compile("[\ufffd\ud800-\udfff]")  # stands for bytes that are not text on their own
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")
_ESCAPES_FOLLOW = "bytes:"
_SENTENCEPIECE_SPACE = "▁"
_LOOKAHEAD = 64  # bytes by which a tokenizer that alters the text may be off
_MOST_CUT, _MOST_HIDDEN = 4, 6  # bytes of a character cut by two tokens; of its end and another's beginning in one token


def place(pieces: Sequence[Piece], text: bytes) -> list[int] | None:
    """Return where in a text each token ends."""
    # -> one past the last byte of each token, never falling, the last `len(text)`; None where the tokens do not give the
    # text back. Bytes that no token shows go to the first of the tokens that hide them.
    # place([" the", " cat"], b"the cat"), place(["the", " dog"], b"the cat") -> ([3, 7], None)
    plain = [piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogatepass") for piece in pieces]
    decoded = [named for piece in pieces if isinstance(piece, str) and (named := byte_level(piece)) is not None]
    for spelled in (plain, decoded):
        if len(spelled) == len(pieces) and b"".join(spelled) == text:
            return list(accumulate(map(len, spelled)))
    for shown in (pieces, *_without_first_space(pieces)):
        # A token shown as nothing mostly is a part of a character, but may be one that has no text at all. What is shown
        # of a token mostly is all of it, but the part of a character at its end may be left out.
        # From the strictest reading to the loosest: the first that gives the text back is taken.
        for loose, least in ((False, 1), (False, 0), (True, 1), (True, 0)):
            walk = _Walk(text, least, loose=loose)
            if all(walk.step(_parts(piece)) for piece in shown) and walk.finish():
                return walk.ends
    return None


def _without_first_space(pieces: Sequence[Piece]) -> list[list[Piece]]:
    # Tokens without the space that some tokenizers set before the first word, if there is such a space.
    first = pieces[0] if pieces else b""
    if first.startswith(b" ") if isinstance(first, bytes) else first.startswith((" ", _SENTENCEPIECE_SPACE)):
        return [[first[1:] or b"", *pieces[1:]]]
    return []


def approximate(pieces: Sequence[Piece], text: bytes) -> list[int]:
    """Return about where in a text the tokens of a tokenizer that alters it end: `place` without its promise, yet tiling."""
    # approximate(["the", "cat"], b"a cat.") -> [0, 6]
    at, ends = 0, []
    for piece in pieces:
        for candidate in spellings_of(piece):
            shown = candidate.strip()
            begin = text.find(shown, at, at + len(shown) + _LOOKAHEAD) if shown else -1
            if begin >= 0:
                at = begin + len(shown)
                break
        ends.append(at)
    if ends:
        ends[-1] = len(text)
    return ends


def left_out(pieces: Sequence[Piece], text: bytes) -> str | None:
    """Say what is wrong with tokens that do not give a text back, beyond what a tokenizer does that alters it."""
    # Compared are the characters that can be seen, without case, accents and white space, which tokenizers do alter.
    folded = [(shown, character.isascii()) for character in text.decode() for shown in _folded(character)]
    whole = "".join(shown for shown, _ in folded)
    shown = [_folded_spellings(piece) for piece in pieces]
    wrong = _left_out(pieces, shown, folded, whole)
    for spelling in (0, -1) if wrong else ():
        together = "".join(spellings[spelling] for spellings in shown)
        if together and together in whole:
            return f"tokens for only part of the prompt ({len(together):,} of {len(whole):,} visible characters)"
    return wrong


def _left_out(
    pieces: Sequence[Piece], shown: Sequence[tuple[str, ...]], folded: Sequence[tuple[str, bool]], whole: str
) -> str | None:
    at = seen = foreign = hiding = 0
    unknown = False  # a token before here shows what the text has not, and may stand for what it has here
    for piece, spellings in zip(pieces, shown, strict=True):
        if not any(spellings) or is_special(piece):
            unknown |= any(spellings)
            hiding += not any(spellings)
            continue
        matches = [(whole.find(s, at, at + len(s) + _LOOKAHEAD), len(s)) for s in spellings if s]
        begin, length = min((place for place in matches if place[0] >= 0), default=(-1, 0))
        if begin < 0:
            if at == len(whole):
                return "tokens that continue after the end of the prompt"
            unknown, foreign = True, foreign + 1
            continue
        if not (unknown or _may_hide(folded[at:begin], hiding)):
            next_ = whole[begin : begin + length]
            return f"no token for {_beginning(whole[at:begin])!r}, which the prompt has before {_beginning(next_)!r}"
        at, unknown, hiding, seen = begin + length, False, 0, seen + length
    if not (unknown or _may_hide(folded[at:], hiding)):
        return f"no token for the end of the prompt ({len(whole) - at:,} of {len(whole):,} visible characters)"
    if foreign and 2 * seen < len(whole):
        return f"tokens of another text than the prompt ({_beginning(shown[0][0])!r} for {_beginning(whole)!r})"
    return None


def _folded_spellings(piece: Piece) -> tuple[str, ...]:
    spellings = spellings_of(piece)
    if isinstance(piece, str) and (piece.startswith(_ESCAPES_FOLLOW) or byte_named(piece) is not None):
        spellings = spellings[-1:]  # what it spells out is not text
    return tuple(dict.fromkeys(_folded(spelling.decode("utf-8", "ignore")) for spelling in spellings))


def _folded(text: str) -> str:
    if text.isascii() and text.isalnum():
        return text.lower()
    folded = unicodedata.normalize("NFKD", text.casefold()).casefold()
    return "".join(c for c in folded if c != "\ufffd" and unicodedata.category(c)[0] not in "MZC")


def _may_hide(folded: Sequence[tuple[str, bool]], tokens: int) -> bool:
    # True if tokens that show nothing can stand for some characters: parts of ones that are not ASCII.
    return len(folded) <= _MOST_HIDDEN * tokens and not any(is_ascii for _, is_ascii in folded)


def _beginning(text: str) -> str:
    return text if len(text) <= 20 else text[:20] + "..."


class _Walk:
    """Goes along a text token by token."""

    def __init__(self, text: bytes, least: int, *, loose: bool) -> None:
        self._text, self._least, self._none = text, least, 0 if loose else None
        self._at = 0  # where what comes next begins, hidden bytes left aside
        self._hidden = self._none  # least count of bytes hidden from there on; None if none may be
        self._most = _MOST_CUT  # and the highest: else what a server leaves out of a reply would pass for hidden
        self._open = 0  # tokens whose end is not known yet
        self.ends: list[int] = []

    def step(self, parts: Sequence[tuple[bytes, ...] | None]) -> bool:
        # Take the next token; False if it is not what the text has here.
        for i, part in enumerate(parts):
            if part is None:
                self._hide(1)
                continue
            span = self._find(part)
            if span is None:
                return False
            self._close(span[0])
            if i == 0 and self.ends:
                self.ends[-1] = span[0]  # what the token before hid at its end
            self._at, self._hidden, self._most = span[1], self._none, _MOST_CUT
        if not parts:
            self._hide(self._least)
        if not parts or parts[-1] is None:
            self._open += 1
        else:
            self.ends.append(self._at)
        return True

    def finish(self) -> bool:
        end = len(self._text)
        if self._hidden is None or self._most == _MOST_CUT:  # no token is left to hide anything
            return self._at == end
        fits = end - self._at >= self._hidden and self._run_end() == end
        self._close(end)
        if not self.ends:
            return self._at == end
        self.ends[-1] = end
        return fits

    def _hide(self, least: int) -> None:
        # Note a token, or a part of one, that shows nothing of at least this number of bytes.
        self._hidden = (self._hidden or 0) + least
        self._most += _MOST_HIDDEN

    def _close(self, begin: int) -> None:
        # End the tokens that hid the bytes before `begin`.
        count, hidden = self._open, begin - self._at
        # Three tokens for the three bytes of ▁ have a byte each; with fewer or more bytes than tokens, nobody knows, and
        # all end where the hidden bytes do.
        bytewise = hidden == count
        self.ends += [self._at + i + 1 if bytewise else begin for i in range(count)]
        self._open = 0

    def _find(self, spellings: tuple[bytes, ...]) -> tuple[int, int] | None:
        # First and one past the last byte of a part: here, or behind hidden bytes, which are never ASCII.
        first = self._at + (self._hidden or 0)
        last = self._at if self._hidden is None else self._run_end()
        for begin in range(first, last + 1):
            for spelling in spellings:
                end = self._end_of(spelling, begin)
                if end is not None:
                    return begin, end
        return None

    def _end_of(self, spelling: bytes, begin: int) -> int | None:
        text = self._text
        if text.startswith(spelling, begin):
            return begin + len(spelling)
        if text[begin : begin + 1] == b" " and text.startswith(spelling, begin + 1):
            return begin + 1 + len(spelling)  # servers that drop the space before a word
        return None

    def _run_end(self) -> int:
        end = self._at
        last = min(len(self._text), self._at + self._most)
        while end < last and self._text[end] >= _FIRST_NOT_ASCII:
            end += 1
        return end


def _parts(piece: Piece) -> list[tuple[bytes, ...] | None]:
    if isinstance(piece, bytes) or not _NO_TEXT.search(piece):
        return [spellings_of(piece)] if isinstance(piece, bytes) or piece else []
    parts: list[tuple[bytes, ...] | None] = []
    for i, shown in enumerate(_NO_TEXT.split(piece)):
        if i:
            parts.append(None)
        if shown:
            parts.append((_encoded(shown),))
    return parts


@lru_cache(maxsize=1 << 16)
def spellings_of(piece: Piece) -> tuple[bytes, ...]:
    """Return bytes that a token string may stand for, the likeliest first."""
    # spellings_of("Ġcafé")[-1], spellings_of("<0xE2>")[-1] -> (b' caf\xe9', b'\xe2')
    if isinstance(piece, bytes):
        return (piece,)
    spellings = [_encoded(piece)]
    if piece.startswith(_ESCAPES_FOLLOW) and _ESCAPED.search(piece):
        shown = re.split(_ESCAPED, piece.removeprefix(_ESCAPES_FOLLOW))  # text and hexadecimal digits by turns
        spellings.append(b"".join(bytes.fromhex(part) if i % 2 else _encoded(part) for i, part in enumerate(shown)))
    if (byte := byte_named(piece)) is not None:
        spellings.append(bytes([byte]))
    if _SENTENCEPIECE_SPACE in piece:
        spellings.append(_encoded(piece.replace(_SENTENCEPIECE_SPACE, " ")))
    named = byte_level(piece)
    return tuple(dict.fromkeys(spellings if named is None else [*spellings, named]))


def _encoded(shown: str) -> bytes:
    return shown.encode("utf-8", "replace")
