"""Do tokens spell the bytes they span? They are read by the rules of their unit, not by the tokenizer that made them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lmgauge.evaluation.audit.checks import Check, counted, judge
from lmgauge.evaluation.audit.subject import Rows
from lmgauge.scores import OF_NO_TEXT, OOV, SPELLED, TOKEN
from lmgauge.scores.spans import byte_level, byte_named

CLEAR_SHARE = 0.9
"""A reading that fits this share of the tokens is the right one, and the other tokens are wrong."""

_FEW = 3  # rows that may spell their bytes by chance, moved by one
_SIGN = "\ufffd".encode()  # what programs show for bytes that are not text
_LONGEST_ACROSS = 64  # bytes of given text that a token across its end is looked for in


@dataclass(frozen=True)
class Reading:
    """A rule by which tokens spell bytes."""

    title: str
    bytes_of: Callable[[str], bytes | None]  # a token; None where it is not one of this kind
    token: Callable[[bytes, bytes], bool]  # True if a span may hold these bytes, where those are the token's
    unknown: Callable[[bytes], bool]  # True if the span of an unknown token, or of a spelled one, may hold these bytes
    end: Callable[[bytes], bool]  # the same of `</s>`
    # Tokens that share the bytes of one character are read together: the first has its span, those after it none. Where all
    # tokens together are the text, spans only hand white space to another neighbor: that is right, too.
    shared: bool = False
    begin: bytes = b""  # may precede the text in the first token

    def of(self, rows: Rows) -> list[bool]:
        """Return for each event of a segment whether it spells its span."""
        kinds, pieces = rows.kind.tolist(), _pieces(rows)
        own = [self.bytes_of(name) if kind == TOKEN else None for name, kind in zip(rows.tokens(), kinds, strict=True)]
        if self.shared and self._is_text(rows, kinds, pieces, own):
            return [True] * len(kinds)
        right: list[bool] = []
        first = 0
        for after in range(1, len(kinds) + 1):
            if self.shared and after < len(kinds) and not pieces[after] and kinds[after] not in OF_NO_TEXT:
                continue
            piece, known = b"".join(pieces[first:after]), [part for part in own[first:after] if part is not None]
            if kinds[first] in OF_NO_TEXT:
                good = self.end(piece)
            elif any(kind != TOKEN for kind in kinds[first:after]):
                # White space is predicted before a word that is spelled. A character that was never seen may be a blank.
                blank_behind = kinds[first] == SPELLED and piece.rstrip() not in (b"", piece)
                good = self.unknown(piece) and not blank_behind
            else:
                whole = b"".join(known)
                good = len(known) == after - first and (
                    self.token(piece, whole) or (not first and self.token(piece, whole.removeprefix(self.begin)))
                )
            right += [good] * (after - first)
            first = after
        return right

    def _is_text(self, rows: Rows, kinds: list[int], pieces: list[bytes], own: list[bytes | None]) -> bool:
        known = [part for part in own if part is not None]
        ends = [not piece.strip() for piece, kind in zip(pieces, kinds, strict=True) if kind in OF_NO_TEXT]
        whole = b"".join(known)
        # Line ends may be scored as text: then they are the last token's, or the end of it.
        of_text = {whole, whole.removeprefix(self.begin)} & {rows.text, rows.source}
        return bool(of_text) and all(ends) and len(known) + len(ends) == len(kinds)


def _pieces(rows: Rows) -> list[bytes]:
    ends = rows.ends.tolist()
    return [rows.text[start:end] for start, end in zip([0, *ends][: len(ends)], ends, strict=True)]


def _encoded(token: str) -> bytes:
    return token.encode(errors="replace")


def _named(token: str) -> bytes | None:
    value = byte_named(token)
    return None if value is None else bytes([value])


def _metaspace(token: str) -> bytes:
    named = _named(token)
    return _encoded(token.replace("\u2581", " ")) if named is None else named


def _is_word(piece: bytes, token: bytes) -> bool:
    word = piece.lstrip()
    escaped = token[:1] == b"<" and token == b"<" + word + b">"
    return word == token or escaped or piece.decode(errors="replace").strip().encode() == token


def _is_one_word(piece: bytes) -> bool:
    return len(piece.split()) == 1


def _is_character(piece: bytes) -> bool:
    return len(piece.decode(errors="replace")) == 1


def _is_byte(piece: bytes) -> bool:
    return len(piece) == 1


def _is_shown(piece: bytes, token: bytes) -> bool:
    # True if a token is its piece, U+FFFD in place of what is not text in it: a part of a character.
    shown = piece.decode(errors="replace")
    return piece == token or (
        "\ufffd" in shown and _SIGN in token and shown.encode().replace(_SIGN, b"") == token.replace(_SIGN, b"")
    )


def _is_white(piece: bytes) -> bool:
    return not piece.decode(errors="replace").strip()


def _is_blank(piece: bytes) -> bool:
    return not piece.strip()


READINGS = {
    "character": Reading("characters", _encoded, lambda p, own: _is_character(p) and p == own, _is_character, operator.not_),
    "byte": Reading("bytes", _named, lambda p, own: _is_byte(p) and p == own, _is_byte, operator.not_),
    "word": Reading("words", _encoded, _is_word, _is_one_word, _is_white),
    "piece": Reading("plain pieces", _encoded, _is_shown, bool, _is_blank),
    "byte-level": Reading("byte-level subwords", byte_level, operator.eq, bool, _is_blank, shared=True),
    "metaspace": Reading(
        "subwords with U+2581 for spaces", _metaspace, operator.eq, bool, _is_blank, shared=True, begin=b" "
    ),
}
"""By unit, the simplest first: of readings that fit equally well the first is taken."""
_OF_UNITS = ("character", "byte", "word")  # tokens of these can be read in one way only


def _across(read: Callable[[Rows], list[bool]], rows: Rows) -> list[bool]:
    # Which events spell their spans, the first perhaps with bytes of the text given before the segment.
    right = read(rows)
    for size in range(1, min(len(rows.lead), _LONGEST_ACROSS) + 1) if right and not right[0] else ():
        starts = np.concatenate(([0], rows.starts()[1:] + size))
        longer = replace(rows, text=rows.lead[-size:] + rows.text, begins=starts, ends=rows.ends + size, lead=b"")
        again = read(longer)
        if again[0]:
            return again
    return right


def _decoded(detokenize: Callable[[Sequence[str]], str], rows: Rows) -> list[bool]:
    # A reading by the tokenizer itself, of whole segments.
    tokens = [token for token, kind in zip(rows.tokens(), rows.kind.tolist(), strict=True) if kind not in OF_NO_TEXT]
    shown = [rows.strings.tokens[i] for i in rows.given.tolist()] if rows.lead else []
    whole = detokenize([*shown, *tokens]).encode(errors="replace")
    return [whole in (rows.lead + rows.text, rows.lead + rows.source)] * len(rows)


@dataclass
class _Fit:
    """How well a reading fits the segments so far."""

    title: str
    read: Callable[[Rows], list[bool]]
    tokens: int = 0
    wrong: int = 0
    wrong_segments: int = 0
    first: str = ""


class Spelling:
    """The verdict, segment by segment, on whether tokens spell the text."""

    def __init__(self, unit: str, detokenize: Callable[[Sequence[str]], str] | None = None) -> None:
        self._by_event = unit in _OF_UNITS or detokenize is None
        if unit in _OF_UNITS or detokenize is None:
            own = [unit] if unit in _OF_UNITS else [name for name in READINGS if unit != "subword" or name not in _OF_UNITS]
            self._fits = [_Fit(READINGS[name].title, READINGS[name].of) for name in own]
        else:
            self._fits = [_Fit("what their tokenizer decodes them to", partial(_decoded, detokenize))]
        self._moved = self._segments = self._events = self._tokens = self._unknown = 0
        self.altered = 0

    def add(self, rows: Rows, *, altered: bool = False) -> None:
        """Read the tokens of a segment."""
        unknown = bool((rows.kind == OOV).any())
        if not self._by_event and (unknown or altered):
            self._unknown += unknown and not altered
            self.altered += altered
            return
        read = [np.array(_across(fit.read, rows), bool) for fit in self._fits]
        if altered and not any(right.all() for right in read):
            self.altered += 1
            return
        if self._by_event and len(rows) > _FEW and not any(right.all() for right in read):
            others = [replace(rows, token_ids=np.roll(rows.token_ids, by), kind=np.roll(rows.kind, by)) for by in (-1, 1)]
            self._moved += any(all(fit.read(other)[1:-1]) for fit in self._fits for other in others)
        tokens = rows.kind == TOKEN
        self._segments += 1
        self._events += len(rows)
        self._tokens += int(tokens.sum())
        for fit, right in zip(self._fits, read, strict=True):
            wrong = np.flatnonzero(~right)
            fit.tokens += int(tokens[right].sum())
            fit.wrong += len(wrong)
            fit.wrong_segments += bool(len(wrong))
            if len(wrong) and not fit.first:
                fit.first = _describe(rows, int(wrong[0]) if self._by_event else None)

    def check(self, oov: int, spelled: int = 0) -> Check:
        """Return the verdict over all segments; `oov` counts unknown tokens, `spelled` spelled words, for the evidence."""
        if not self._segments or self.altered > self._segments:
            count = f"{self.altered:,} of {counted(self.altered + self._segments + self._unknown, 'segment')}"
            skipped = (
                f"the tokenizer alters the text, or first tokens have no row: {count} do not come back from their tokens"
            )
            if self.altered <= self._segments:
                skipped = "no segment's tokens can be turned back into its text" + self._left_out()
            altered = {"altered": self.altered, "segments": self._segments}
            return judge("coverage", "spelling", skipped=skipped, details=altered)
        fit = min(self._fits, key=lambda fit: (fit.wrong > 0, -fit.tokens * (fit.wrong > 0)))
        details = {"read_as": fit.title, "segments": self._segments, "oov": oov, "spelled": spelled}
        details |= {"right": self._segments - fit.wrong_segments, "events": self._events}
        details |= {"wrong": fit.wrong, "altered": self.altered}
        events, segments = counted(self._events, "event"), counted(fit.wrong_segments, "segment")
        bad = skipped = ""
        if self._moved > CLEAR_SHARE * self._segments:
            bad = f"In {segments} tokens do not spell the bytes they span, but those of the row before or behind, first in "
            bad += f"{fit.first}."
        elif fit.wrong and len(self._fits) > 1 and fit.tokens < CLEAR_SHARE * self._tokens:
            share = f"as {fit.title}, the best of them, {100 * fit.tokens / self._tokens:.0f} % of the tokens do"
            skipped = f"these tokens spell the text by no rule known here ({share}); "
            skipped += "with their model (-m) its tokenizer decides"
        elif fit.wrong:
            where = f"Read as {fit.title}, {fit.wrong:,} of {events}" if self._by_event else f"In {segments} tokens"
            bad = f"{where} do not spell the bytes they span, first in {fit.first}."
        among = [counted(spelled, "spelled one")] * bool(spelled) + [counted(oov, "unknown token")] * bool(oov)
        unknown = f", {' and '.join(among)} among them" if among else ""
        good = f"Read as {fit.title}, {events} spell the bytes they span{unknown}{self._left_out()}."
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
