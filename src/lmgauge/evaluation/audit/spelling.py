"""Whether tokens spell the bytes they span, read by the rules of their unit and not by the tokenizer that made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted
from lmgauge.evaluation.audit.rows import Rows
from lmgauge.scores import EOS_KIND, OOV

Reading = Callable[[Rows], int]
"""The first event of a segment that does not spell its span; -1 if all do."""

WHOLE = -2
"""No event in particular: the tokens together do not give the text back."""


def _pieces(rows: Rows) -> list[bytes]:
    ends = rows.ends.tolist()
    return [rows.text[start:end] for start, end in zip([0, *ends][: len(ends)], ends, strict=True)]


def _escaped(token: bytes, piece: bytes) -> bool:
    """Whether a token stands for a reserved word that the text has as an ordinary one: `<<unk>>` for `<unk>`."""
    return token[:1] == b"<" and token == b"<" + piece + b">"


def _by_event(rows: Rows, spells: Callable[[bytes, bytes, int], bool]) -> int:
    for j, (piece, token, kind) in enumerate(zip(_pieces(rows), rows.tokens(), rows.kind.tolist(), strict=True)):
        if not spells(piece, token.encode(errors="replace"), kind):
            return j
    return -1


def read_words(rows: Rows) -> int:
    """Words: a span is white space and then the word; an unknown word is one word; `</s>` takes white space."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        word = piece.lstrip()
        if kind == EOS_KIND:
            return not piece.decode(errors="replace").strip()
        if kind == OOV:
            return len(piece.split()) == 1
        return word == token or _escaped(token, word) or piece.decode(errors="replace").strip().encode() == token

    return _by_event(rows, spells)


def read_characters(rows: Rows) -> int:
    """Characters: a span is the token, or one unknown character."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        if kind == EOS_KIND:
            return not piece
        return len(piece.decode(errors="replace")) == 1 if kind == OOV else piece == token

    return _by_event(rows, spells)


def read_bytes(rows: Rows) -> int:
    """Bytes: a span is the one byte that the token names in hexadecimal."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        if kind == EOS_KIND:
            return not piece
        return len(piece) == 1 if kind == OOV else len(piece) == 1 and token == f"<0x{piece[0]:02X}>".encode()

    return _by_event(rows, spells)


@cache
def _byte_alphabet() -> dict[str, int]:
    """The characters that stand for bytes in byte-level pieces (Radford et al. 2019, `bytes_to_unicode`)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def read_byte_level(rows: Rows) -> int:
    """Byte-level subwords: each character of a piece is a byte; together they are the text."""
    alphabet = _byte_alphabet()
    spelled = "".join(_predicted(rows))
    if any(character not in alphabet for character in spelled):
        return WHOLE
    return -1 if bytes(alphabet[character] for character in spelled) == rows.text else WHOLE


def read_metaspace(rows: Rows) -> int:
    """Subwords with U+2581 for a space: together they are the text, but for a space at its begin."""
    pieces = [bytes([int(t[3:5], 16)]) if _names_byte(t) else t.replace("\u2581", " ").encode() for t in _predicted(rows)]
    spelled = b"".join(pieces)
    return -1 if rows.text in (spelled, spelled.removeprefix(b" ")) else WHOLE


def _names_byte(token: str) -> bool:
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")


def _predicted(rows: Rows) -> list[str]:
    return [token for token, kind in zip(rows.tokens(), rows.kind.tolist(), strict=True) if kind != EOS_KIND]


def _back(detokenize: Callable[[Sequence[str]], str]) -> Reading:
    def read(rows: Rows) -> int:
        return -1 if detokenize(_predicted(rows)).encode(errors="replace") == rows.text else WHOLE

    return read


_READINGS: dict[str, tuple[str, Reading]] = {
    "word": ("words", read_words),
    "character": ("characters", read_characters),
    "byte": ("bytes", read_bytes),
    "byte-level": ("byte-level subwords", read_byte_level),
    "metaspace": ("subwords with U+2581 for spaces", read_metaspace),
}


class Spelling:
    """Collects, segment by segment, whether tokens spell the text.

    Args:
        unit: of the tokens; if unknown, or `subword` without `detokenize`, the reading that fits best is taken.
        detokenize: from token strings to text, for subwords.
    """

    def __init__(self, unit: str, detokenize: Callable[[Sequence[str]], str] | None = None) -> None:
        if unit in ("word", "character", "byte"):
            self._readings = {unit: _READINGS[unit]}
        elif detokenize is not None:
            self._readings = {"detokenize": ("what their tokenizer decodes them to", _back(detokenize))}
        else:
            self._readings = {n: r for n, r in _READINGS.items() if unit != "subword" or n in ("byte-level", "metaspace")}
        self._sure = len(self._readings) == 1
        self._read = dict.fromkeys(self._readings, 0)
        self._first: dict[str, str] = {}
        self._segments = self._events = 0
        self._altered = self._unknown = 0

    def add(self, rows: Rows, *, altered: bool = False) -> None:
        """Reads the tokens of a segment; `altered`: its tokenizer says that it does not give the text back."""
        by_event = any(name in ("word", "character", "byte") for name in self._readings)
        unknown = bool((rows.kind == OOV).any())
        if not by_event and (unknown or altered):
            self._unknown += unknown
            self._altered += altered and not unknown
            return
        failed = {}
        for name, (_, read) in self._readings.items():
            bad = read(rows)
            if bad == -1:
                self._read[name] += 1
            else:
                failed[name] = bad
        if altered and len(failed) == len(self._readings):
            self._altered += 1
            return
        self._segments += 1
        self._events += len(rows)
        for name, bad in failed.items():
            if name not in self._first:
                self._first[name] = _describe(rows, bad)

    def check(self, oov: int) -> Check:
        """The verdict over all segments."""
        level, name = "coverage", "spelling"
        if not self._segments:
            return Check(level, name, NOT_CHECKED, "no segment's tokens can be turned back into its text" + self._left_out())
        best = max(self._read, key=lambda reading: self._read[reading])
        right = self._read[best]
        details = {"read_as": self._readings[best][0], "segments": self._segments, "right": right, "oov": oov}
        if right == self._segments:
            text = f"Read as {self._readings[best][0]}, {counted(self._events, 'event')} spell the bytes they span"
            text += f", {counted(oov, 'unknown token')} among them" if oov else ""
            return Check(level, name, PASS, text + self._left_out() + ".", details)
        if not self._sure and 2 * right < self._segments:
            reason = "these tokens spell the text by no rule known here; with their model (-m) its tokenizer decides"
            return Check(level, name, NOT_CHECKED, reason, details)
        wrong = self._segments - right
        text = f"In {counted(wrong, 'segment')} tokens do not spell the bytes they span, first in {self._first[best]}."
        return Check(level, name, FAIL, text, details)

    def _left_out(self) -> str:
        reasons = []
        if self._altered:
            reasons.append(f"{counted(self._altered, 'segment')} that the tokenizer does not give back exactly")
        if self._unknown:
            reasons.append(f"{counted(self._unknown, 'segment')} with unknown tokens")
        return f" (left out: {' and '.join(reasons)})" if reasons else ""


def _describe(rows: Rows, bad: int) -> str:
    where = f"segment {rows.segment + 1}"
    if bad == WHOLE:
        return f"{where}, {rows.text[:60].decode(errors='replace')!r}"
    piece = _pieces(rows)[bad].decode(errors="replace")
    return f"{where}, event {bad + 1}: {rows.tokens()[bad]!r} spans {piece!r}"
