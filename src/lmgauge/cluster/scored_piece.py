"""The scores of a piece of the text as a shard stores them, and back to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.cluster.record import ShardRecord, StoredParts
from lmgauge.errors import InputError
from lmgauge.scores import KINDS, ScoreBatch, Strings, TokenStrings
from lmgauge.text.segments import Segments

_NONE = Strings([])


@dataclass(frozen=True)
class ScoredPiece:
    """A batch of the score table; the strings of its tokens are stored once for all pieces."""

    batch: ScoreBatch
    strings: int  # which of the strings of the shard
    tokens: list[bytes]  # of those, where they are new


class PieceEncoder:
    """Turns batches into what is stored."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, TokenStrings]] = {}  # with the strings: another object could get their id

    def __call__(self, batch: ScoreBatch) -> ScoredPiece:
        strings, new = batch.strings, len(self._numbers)
        number = self._numbers.setdefault(id(strings), (new, strings))[0]
        tokens = [token.encode("utf-8", "surrogatepass") for token in strings.tokens] if number == new else []
        return ScoredPiece(replace(batch, strings=_NONE), number, tokens)


class PieceDecoder:
    """Turns what the shards of a text have stored into batches, once they are known to be of a block."""

    def __init__(self, records: Sequence[ShardRecord]) -> None:
        self.parts = StoredParts(records, ScoredPiece, {TokenStrings: _NONE})
        self._shared: dict[tuple[bytes, ...], TokenStrings] = {}  # by their bytes, so that equal ones are one object
        self._strings: list[list[TokenStrings]] = [[] for _ in records]

    def __call__(self, unit: int, block: Segments) -> ScoreBatch:
        """Return the scores of the next piece of the text, which is this block."""
        owner, piece = self.parts.take(unit, f"scores of {block.place(0)}")
        own = self._strings[owner]
        try:
            if piece.strings == len(own):
                tokens = [token.decode("utf-8", "surrogatepass") for token in piece.tokens]
                own.append(self._shared.setdefault(tuple(piece.tokens), Strings(tokens)))
            batch = replace(piece.batch, strings=own[piece.strings])
            _check(batch, block)
        except (IndexError, ValueError, TypeError) as error:
            raise InputError(f"the stored scores are not those of {block.place(0)}: {error}") from error
        return batch


def _check(batch: ScoreBatch, block: Segments) -> None:
    # What other code indexes with must fit.
    segments, events, before = batch.segments, batch.segment_events, batch.before
    rows, listed, most = len(batch.logprob), len(segments), len(batch.strings.tokens)
    inside = listed == 0 or (block.first <= segments[0] and segments[-1] < block.first + len(block))
    _require(inside and bool((np.diff(segments) > 0).all()), "segments")
    _require(len(events) == listed and bool((events >= 0).all()) and int(events.sum()) == rows, "numbers of events")
    plain = (segments, events, batch.logprob, batch.token_ids, batch.kind, batch.ends, batch.begins, batch.lossy)
    wide = [name for name, column in batch.extra.items() if column.ndim != (2 if name.startswith("top_") else 1)]
    _require(all(column.ndim == 1 for column in plain) and not wide, "columns")
    of_rows: list[NDArray[Any]] = [batch.token_ids, batch.kind, *batch.extra.values()]
    _require(all(column.shape[:1] == (rows,) for column in of_rows), "columns are not as long")
    _require(all(len(column) in (0, rows) for column in (batch.ends, batch.begins)), "spans")
    _require(len(batch.lossy) in (0, listed), "lossy segments")
    _require(rows == 0 or (batch.token_ids.max() < most and batch.kind.max() < len(KINDS)), "ids of tokens")
    top = batch.extra.get("top_ids")
    _require(top is None or not top.size or (top.dtype.kind == "u" and top.max() < most), "ids of tokens")
    if before is not None:
        _require(all(len(column) == listed for column in (before.counts, before.lengths, before.crossing)), "given text")
        fits = bool((before.counts >= 0).all()) and int(before.counts.sum()) == len(before.ids)
        _require(fits and not (len(before.ids) and before.ids.max() >= most), "given text")


def _require(fact: bool, what: str) -> None:
    if not fact:
        raise ValueError(what)
