"""Whether tokens spell the bytes they span, read by the rules of their unit and not by the tokenizer that made them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check, counted
from lmgauge.evaluation.audit.rows import Rows
from lmgauge.scores import EOS_KIND, OOV, TOKEN

Reading = Callable[[Rows], list[bool]]
"""Which events of a segment spell their span."""

CLEAR_SHARE = 0.9
"""A reading that fits this share of the tokens is the right one, and the other tokens are wrong."""

_BYTE_NAME = re.compile("<0x([0-9A-Fa-f]{2})>")


def _pieces(rows: Rows) -> list[bytes]:
    ends = rows.ends.tolist()
    return [rows.text[start:end] for start, end in zip([0, *ends][: len(ends)], ends, strict=True)]


def _escaped(token: bytes, piece: bytes) -> bool:
    """Whether a token stands for a reserved word that the text has as an ordinary one: `<<unk>>` for `<unk>`."""
    return token[:1] == b"<" and token == b"<" + piece + b">"


def _by_event(rows: Rows, spells: Callable[[bytes, bytes, int], bool]) -> list[bool]:
    return [
        spells(piece, token.encode(errors="replace"), kind)
        for piece, token, kind in zip(_pieces(rows), rows.tokens(), rows.kind.tolist(), strict=True)
    ]


def read_words(rows: Rows) -> list[bool]:
    """Words: a span is white space and then the word; an unknown word is one word; `</s>` takes white space."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        word = piece.lstrip()
        if kind == EOS_KIND:
            return not piece.decode(errors="replace").strip()
        if kind == OOV:
            return len(piece.split()) == 1
        return word == token or _escaped(token, word) or piece.decode(errors="replace").strip().encode() == token

    return _by_event(rows, spells)


def read_characters(rows: Rows) -> list[bool]:
    """Characters: a span is the token, which is one, or one unknown character."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        if kind == EOS_KIND:
            return not piece
        return len(piece.decode(errors="replace")) == 1 and (kind == OOV or piece == token)

    return _by_event(rows, spells)


def read_pieces(rows: Rows) -> list[bool]:
    """Pieces as they stand: a span is the token, white space and all."""

    def spells(piece: bytes, token: bytes, kind: int) -> bool:
        if kind == EOS_KIND:
            return not piece.strip()
        return bool(piece) if kind == OOV else piece == token

    return _by_event(rows, spells)


def read_bytes(rows: Rows) -> list[bool]:
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


def read_byte_level(rows: Rows) -> list[bool]:
    """Byte-level subwords: each character of a piece is a byte."""
    alphabet = _byte_alphabet()

    def spelled(token: str) -> bytes | None:
        values = [alphabet.get(character, -1) for character in token]
        return None if -1 in values else bytes(values)

    return _by_group(rows, spelled, "")


def read_metaspace(rows: Rows) -> list[bool]:
    """Subwords with U+2581 for a space, which the text need not have at its begin."""

    def spelled(token: str) -> bytes:
        value = byte_named(token)
        return token.replace("\u2581", " ").encode(errors="replace") if value is None else bytes([value])

    return _by_group(rows, spelled, " ")


def _by_group(rows: Rows, spelled: Callable[[str], bytes | None], begin: str) -> list[bool]:
    """Reads pieces together that share the bytes of one character: the first has its span, those after it none.

    Where all pieces together are the text, the spans only hand white space to another neighbour: that is right, too.
    `begin` is what the first may have more than the text.
    """
    kinds, pieces = rows.kind.tolist(), _pieces(rows)
    parts = [spelled(token) if kind == TOKEN else None for token, kind in zip(rows.tokens(), kinds, strict=True)]
    ends = [not piece.strip() for piece, kind in zip(pieces, kinds, strict=True) if kind == EOS_KIND]
    if all(part is not None for part, kind in zip(parts, kinds, strict=True) if kind != EOS_KIND) and all(ends):
        whole = b"".join(part for part in parts if part is not None)
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
    """The byte that a token such as `<0x0A>` names; None if it names none.

    >>> byte_named("<0x0A>"), byte_named("<0xZZ>")
    (10, None)
    """
    found = _BYTE_NAME.fullmatch(token)
    return int(found[1], 16) if found else None


def _predicted(rows: Rows) -> list[str]:
    return [token for token, kind in zip(rows.tokens(), rows.kind.tolist(), strict=True) if kind != EOS_KIND]


def _back(detokenize: Callable[[Sequence[str]], str]) -> Reading:
    def read(rows: Rows) -> list[bool]:
        return [detokenize(_predicted(rows)).encode(errors="replace") in (rows.text, rows.source)] * len(rows)

    return read


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
    """How well a reading fits what was read."""

    tokens: int = 0
    wrong: int = 0
    wrong_segments: int = 0
    first: str = ""


class Spelling:
    """Collects, segment by segment, whether tokens spell the text.

    Args:
        unit: of the tokens; if unknown, or `subword` without `detokenize`, the reading that fits best is taken.
        detokenize: from token strings to text, for subwords.

    Attributes:
        altered: segments that the tokenizer does not give back, left out.
    """

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
        """Reads the tokens of a segment; `altered`: its tokenizer says that it does not give the text back."""
        unknown = bool((rows.kind == OOV).any())
        if not self._by_event and (unknown or altered):
            self._unknown += unknown and not altered
            self.altered += altered
            return
        read = {name: reading(rows) for name, (_, reading) in self._readings.items()}
        if altered and not any(all(right) for right in read.values()):
            self.altered += 1
            return
        tokens = rows.kind == TOKEN
        self._segments += 1
        self._events += len(rows)
        self._tokens += int(tokens.sum())
        for name, right in read.items():
            self._add(self._fit[name], rows, np.array(right, bool), tokens)

    def _add(self, fit: _Fit, rows: Rows, right: NDArray[np.bool_], tokens: NDArray[np.bool_]) -> None:
        fit.tokens += int((right & tokens).sum())
        wrong = np.flatnonzero(~right)
        fit.wrong += len(wrong)
        fit.wrong_segments += bool(len(wrong))
        if len(wrong) and not fit.first:
            fit.first = _describe(rows, int(wrong[0]) if self._by_event else None)

    def check(self, oov: int) -> Check:
        """The verdict over all segments."""
        level, name = "coverage", "spelling"
        if self.altered > self._segments:
            count = f"{self.altered:,} of {counted(self.altered + self._segments + self._unknown, 'segment')}"
            reason = f"the tokenizer alters the text: {count} do not come back from their tokens"
            return Check(level, name, NOT_CHECKED, reason, {"altered": self.altered, "segments": self._segments})
        if not self._segments:
            return Check(level, name, NOT_CHECKED, "no segment's tokens can be turned back into its text" + self._left_out())
        best = next((n for n, fit in self._fit.items() if not fit.wrong), "")
        best = best or max(self._fit, key=lambda reading: self._fit[reading].tokens)
        fit, read_as = self._fit[best], self._readings[best][0]
        details = {"read_as": read_as, "segments": self._segments, "right": self._segments - fit.wrong_segments, "oov": oov}
        details |= {"events": self._events, "wrong": fit.wrong, "altered": self.altered}
        if not fit.wrong:
            text = f"Read as {read_as}, {counted(self._events, 'event')} spell the bytes they span"
            text += f", {counted(oov, 'unknown token')} among them" if oov else ""
            return Check(level, name, PASS, text + self._left_out() + ".", details)
        if not self._sure and fit.tokens < CLEAR_SHARE * self._tokens:
            fitting = f"as {read_as}, the best of them, {100 * fit.tokens / self._tokens:.0f} % of the tokens do"
            reason = (
                f"these tokens spell the text by no rule known here ({fitting}); with their model (-m) its tokenizer decides"
            )
            return Check(level, name, NOT_CHECKED, reason, details)
        if self._by_event:
            what = f"Read as {read_as}, {fit.wrong:,} of {counted(self._events, 'event')} do not spell the bytes they span"
        else:
            what = f"In {counted(fit.wrong_segments, 'segment')} tokens do not spell the bytes they span"
        return Check(level, name, FAIL, f"{what}, first in {fit.first}.", details)

    def _left_out(self) -> str:
        reasons = []
        if self.altered:
            reasons.append(f"{counted(self.altered, 'segment')} that the tokenizer alters")
        if self._unknown:
            reasons.append(f"{counted(self._unknown, 'segment')} with unknown tokens")
        return f" (left out: {' and '.join(reasons)})" if reasons else ""


def _describe(rows: Rows, bad: int | None) -> str:
    """An event that does not spell its span; None: the tokens together do not give the text back."""
    where = f"segment {rows.segment + 1}"
    if bad is None:
        return f"{where}, {rows.text[:60].decode(errors='replace')!r}"
    piece = _pieces(rows)[bad].decode(errors="replace")
    return f"{where}, event {bad + 1}: {rows.tokens()[bad]!r} spans {piece!r}"
