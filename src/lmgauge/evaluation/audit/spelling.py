"""Do tokens spell the bytes they span? They are read by the rules of their unit, not by the tokenizer that made them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from lmgauge.evaluation.audit.results import Check, counted, judge
from lmgauge.evaluation.audit.rows import Rows
from lmgauge.scores import EOS_KIND, OOV, SPELLED, TOKEN

Reading = Callable[[Rows], list[bool]]
"""Returns for each event of a segment whether it spells its span."""

CLEAR_SHARE = 0.9
"""A reading that fits this share of the tokens is the right one, and the other tokens are wrong."""

_SIGN = "\ufffd".encode()  # what programs show for bytes that are not text
_LONGEST_ACROSS = 64  # bytes of given text that a token across its end is looked for in
_BYTE_NAME = re.compile("<0x([0-9A-Fa-f]{2})>")


def _pieces(rows: Rows) -> list[bytes]:
    ends = rows.ends.tolist()
    return [rows.text[start:end] for start, end in zip([0, *ends][: len(ends)], ends, strict=True)]


def _escaped(token: bytes, piece: bytes) -> bool:
    return token[:1] == b"<" and token == b"<" + piece + b">"


def _by_event(
    token: Callable[[bytes, bytes], bool],
    unknown: Callable[[bytes], bool],
    end: Callable[[bytes], bool],
    spelled: Callable[[bytes], bool] = lambda piece: False,
) -> Reading:
    # Reading of one event at a time, from what may span which bytes: a token, an unknown one, `</s>`, letters.

    def read(rows: Rows) -> list[bool]:
        return [
            end(piece)
            if kind == EOS_KIND
            else unknown(piece)
            if kind == OOV
            else spelled(piece)
            if kind == SPELLED
            else token(piece, name.encode(errors="replace"))
            for piece, name, kind in zip(_pieces(rows), rows.tokens(), rows.kind.tolist(), strict=True)
        ]

    return read


def _is_word(piece: bytes, token: bytes) -> bool:
    word = piece.lstrip()
    return word == token or _escaped(token, word) or piece.decode(errors="replace").strip().encode() == token


def _is_byte(piece: bytes) -> bool:
    return len(piece) == 1


def _is_character(piece: bytes) -> bool:
    return len(piece.decode(errors="replace")) == 1


def _is_spelled(piece: bytes) -> bool:
    # True for a word with the white space before it, of which a speller can give every byte back.
    return len(piece.split()) == 1 and piece == piece.rstrip()


def _is_shown(piece: bytes, token: bytes) -> bool:
    # True if a token is its piece, U+FFFD in place of what is not text in it: a part of a character.
    shown = piece.decode(errors="replace")
    return piece == token or (
        "\ufffd" in shown and _SIGN in token and shown.encode().replace(_SIGN, b"") == token.replace(_SIGN, b"")
    )


def _is_white(piece: bytes) -> bool:
    return not piece.decode(errors="replace").strip()


read_words = _by_event(_is_word, lambda p: len(p.split()) == 1, _is_white, _is_spelled)
"""Words: a span is white space and then the word; an unknown or spelled word is one word; `</s>` takes white space."""
read_characters = _by_event(lambda p, token: _is_character(p) and p == token, _is_character, operator.not_, _is_character)
"""Characters: a span is the token, which is one, or one unknown character."""
read_pieces = _by_event(_is_shown, bool, lambda p: not p.strip())
"""Pieces as they stand: a span is the token, white space included; a part of a character is U+FFFD."""
read_bytes = _by_event(lambda p, token: _is_byte(p) and token == b"<0x%02X>" % p[0], _is_byte, operator.not_)
"""Bytes: a span is the one byte that the token names in hexadecimal."""


@cache
def _byte_alphabet() -> dict[str, int]:
    # Byte that each character of a byte-level piece stands for (Radford et al. 2019, `bytes_to_unicode`).
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def read_byte_level(rows: Rows) -> list[bool]:
    """Read byte-level subwords: each character of a piece is a byte.

    >>> from lmgauge.scores import Strings
    >>> zero = np.zeros(1, np.int64)
    >>> rows = Rows(zero, zero + 1, zero, Strings(["a"]), zero, zero, zero + 1, text=b"a")
    >>> read_byte_level(rows)
    [True]
    """
    # rows: of a segment, [n].
    alphabet = _byte_alphabet()

    def spelled(token: str) -> bytes | None:
        values = [alphabet.get(character, -1) for character in token]
        return None if -1 in values else bytes(values)

    return _by_group(rows, spelled, "")


def read_metaspace(rows: Rows) -> list[bool]:
    """Read subwords with U+2581 for a space, which the text need not have at its beginning."""
    # rows: of a segment, [n].

    def spelled(token: str) -> bytes:
        value = byte_named(token)
        return token.replace("\u2581", " ").encode(errors="replace") if value is None else bytes([value])

    return _by_group(rows, spelled, " ")


def _by_group(rows: Rows, spelled: Callable[[str], bytes | None], begin: str) -> list[bool]:
    # Read pieces together that share the bytes of one character: the first has its span, those after it none.
    # Where all pieces together are the text, the spans only hand white space to another neighbor: that is right, too.
    # `begin` may precede the text in the first piece.
    kinds, pieces = rows.kind.tolist(), _pieces(rows)
    parts = [spelled(token) if kind == TOKEN else None for token, kind in zip(rows.tokens(), kinds, strict=True)]
    ends = [not piece.strip() for piece, kind in zip(pieces, kinds, strict=True) if kind == EOS_KIND]
    spelled_parts = [part for part in parts if part is not None]
    if len(spelled_parts) + len(ends) == len(kinds) and all(ends):
        whole = b"".join(spelled_parts)
        # Line ends may be scored as text: then they are the last token's, or the end of it.
        if not {whole, whole.removeprefix(begin.encode())}.isdisjoint((rows.text, rows.source)):
            return [True] * len(kinds)
    right: list[bool] = []
    first = 0
    for j in range(1, len(kinds) + 1):
        if j < len(kinds) and not pieces[j] and kinds[j] != EOS_KIND:
            continue
        group = range(first, j)
        own = b"".join(parts[i] or b"" for i in group)
        piece = b"".join(pieces[i] for i in group)
        if kinds[first] == EOS_KIND:
            good = not piece.strip()
        elif any(kinds[i] == OOV for i in group):
            good = bool(piece)
        else:
            good = None not in [parts[i] for i in group] and (
                own == piece or (first == 0 and own.removeprefix(begin.encode()) == piece)
            )
        right += [good] * len(group)
        first = j
    return right


def byte_named(token: str) -> int | None:
    """Return the byte that a token such as `<0x0A>` names; None if it names none."""
    match = _BYTE_NAME.fullmatch(token)
    return int(match[1], 16) if match else None


def _back(detokenize: Callable[[Sequence[str]], str]) -> Reading:
    def read(rows: Rows) -> list[bool]:
        tokens = [token for token, kind in zip(rows.tokens(), rows.kind.tolist(), strict=True) if kind != EOS_KIND]
        shown = [rows.strings.tokens[i] for i in rows.given.tolist()] if rows.lead else []
        whole = detokenize([*shown, *tokens]).encode(errors="replace")
        return [whole in (rows.lead + rows.text, rows.lead + rows.source)] * len(rows)

    return read


def _across(reading: Reading, rows: Rows) -> list[bool]:
    # Which events spell their spans, the first perhaps with bytes of the text given before the segment.
    right = reading(rows)
    for size in range(1, min(len(rows.lead), _LONGEST_ACROSS) + 1) if right and not right[0] else ():
        starts = np.concatenate(([0], rows.starts()[1:] + size))
        longer = replace(rows, text=rows.lead[-size:] + rows.text, begins=starts, ends=rows.ends + size, lead=b"")
        again = reading(longer)
        if again[0]:
            return again
    return right


_READINGS: dict[str, tuple[str, Reading]] = {
    "character": ("characters", read_characters),
    "byte": ("bytes", read_bytes),
    "word": ("words", read_words),
    "piece": ("plain pieces", read_pieces),
    "byte-level": ("byte-level subwords", read_byte_level),
    "metaspace": ("subwords with U+2581 for spaces", read_metaspace),
}
"""By unit, the simplest first: of readings that fit equally well the first is taken."""


@dataclass
class _Fit:
    """How well a reading fits the segments so far."""

    tokens: int = 0
    wrong: int = 0
    wrong_segments: int = 0
    first: str = ""


class Spelling:
    """The verdict, segment by segment, on whether tokens spell the text."""

    def __init__(self, unit: str, detokenize: Callable[[Sequence[str]], str] | None = None) -> None:
        self._by_event = unit in ("word", "character", "byte") or detokenize is None
        if unit in ("word", "character", "byte"):
            self._readings = {unit: _READINGS[unit]}
        elif detokenize is not None:
            self._readings = {"detokenize": ("what their tokenizer decodes them to", _back(detokenize))}
        else:
            subwords = ("piece", "byte-level", "metaspace")
            self._readings = {n: r for n, r in _READINGS.items() if unit != "subword" or n in subwords}
        self._sure = len(self._readings) == 1
        self._fit = {name: _Fit() for name in self._readings}
        self._segments = self._events = self._tokens = self._unknown = 0
        self.altered = 0

    def add(self, rows: Rows, *, altered: bool = False) -> None:
        """Read the tokens of a segment."""
        unknown = bool((rows.kind == OOV).any())
        if not self._by_event and (unknown or altered):
            self._unknown += unknown and not altered
            self.altered += altered
            return
        read = {name: _across(reading, rows) for name, (_, reading) in self._readings.items()}
        if altered and not any(all(right) for right in read.values()):
            self.altered += 1
            return
        tokens = rows.kind == TOKEN
        self._segments += 1
        self._events += len(rows)
        self._tokens += int(tokens.sum())
        for name, right in read.items():
            fit, wrong = self._fit[name], np.flatnonzero(~np.array(right, bool))
            fit.tokens += int(tokens[right].sum())
            fit.wrong += len(wrong)
            fit.wrong_segments += bool(len(wrong))
            if len(wrong) and not fit.first:
                fit.first = _describe(rows, int(wrong[0]) if self._by_event else None)

    def check(self, oov: int, spelled: int = 0) -> Check:
        """Return the verdict over all segments; `oov` counts unknown tokens, `spelled` spelled words, for the evidence."""
        if not self._segments or self.altered > self._segments:
            count = f"{self.altered:,} of {counted(self.altered + self._segments + self._unknown, 'segment')}"
            skipped = f"the tokenizer alters the text: {count} do not come back from their tokens"
            if self.altered <= self._segments:
                skipped = "no segment's tokens can be turned back into its text" + self._left_out()
            altered = {"altered": self.altered, "segments": self._segments}
            return judge("coverage", "spelling", skipped=skipped, details=altered)
        best = next((n for n, fit in self._fit.items() if not fit.wrong), "")
        best = best or max(self._fit, key=lambda reading: self._fit[reading].tokens)
        fit, read_as = self._fit[best], self._readings[best][0]
        details: dict[str, object] = {"read_as": read_as, "segments": self._segments, "oov": oov, "spelled": spelled}
        details["right"] = self._segments - fit.wrong_segments
        details |= {"events": self._events, "wrong": fit.wrong, "altered": self.altered}
        events = counted(self._events, "event")
        bad = skipped = ""
        if fit.wrong and not self._sure and fit.tokens < CLEAR_SHARE * self._tokens:
            share = f"as {read_as}, the best of them, {100 * fit.tokens / self._tokens:.0f} % of the tokens do"
            skipped = f"these tokens spell the text by no rule known here ({share}); "
            skipped += "with their model (-m) its tokenizer decides"
        elif fit.wrong and self._by_event:
            bad = f"Read as {read_as}, {fit.wrong:,} of {events} do not spell the bytes they span, first in {fit.first}."
        elif fit.wrong:
            segments = counted(fit.wrong_segments, "segment")
            bad = f"In {segments} tokens do not spell the bytes they span, first in {fit.first}."
        among = [counted(spelled, "spelled one")] * bool(spelled) + [counted(oov, "unknown token")] * bool(oov)
        unknown = f", {' and '.join(among)} among them" if among else ""
        good = f"Read as {read_as}, {events} spell the bytes they span{unknown}{self._left_out()}."
        return judge("coverage", "spelling", bad=bad, skipped=skipped, good=good, details=details)

    def _left_out(self) -> str:
        reasons = []
        if self.altered:
            reasons.append(f"{counted(self.altered, 'segment')} that the tokenizer alters")
        if self._unknown:
            reasons.append(f"{counted(self._unknown, 'segment')} with unknown tokens")
        return f" (left out: {' and '.join(reasons)})" if reasons else ""


def _describe(rows: Rows, bad: int | None) -> str:
    # Describe an event that does not spell its span; None: the tokens together do not restore the text.
    where = f"segment {rows.segment + 1}"
    if bad is None:
        return f"{where}, {rows.text[:60].decode(errors='replace')!r}"
    piece = _pieces(rows)[bad].decode(errors="replace")
    return f"{where}, event {bad + 1}: {rows.tokens()[bad]!r} spans {piece!r}"
