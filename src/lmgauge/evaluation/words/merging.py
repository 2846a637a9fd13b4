"""Units of a text, words or regions, and rows of the score table merged to them by bytes.

A file or rows name regions: a span of bytes each, or strings that follow one another in the text.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.escaping import visible
from lmgauge.base.files import digest
from lmgauge.base.remote.addresses import PATHS, PathLike
from lmgauge.records.sources import table_rows
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.segments import Segments, is_character_start, is_white_space

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """The units of a block of text, in reading order; none lie in one another."""

    starts: Ints  # starts, ends: int64 [u], bytes in the block's `data`; a unit neither begins nor ends with white space
    ends: Ints
    owners: Ints  # int64 [u], the segment of each, counted from 0 in the block
    between: NDArray[np.bool_]  # bool [bytes], the bytes of `data` that a token may bring along: white space around units
    regions: Sequence[Region] | None = None  # [u], as the units were named; None where they are words

    def __len__(self) -> int:
        return len(self.starts)

    def numbers(self) -> Ints:
        """Return the place of each unit among those of its segment, int64 [u], from 1."""
        # owners [0, 0, 2] -> firsts [0, 0, 2] -> numbers [1, 2, 1]
        firsts = np.searchsorted(self.owners, self.owners)
        return np.arange(len(self)) - firsts + 1


def words_of(block: Segments, tokenizer: Tokenizer) -> Units:
    """Return the words of a block."""
    cut = tokenizer.tokenize(block)
    # +1 where a word begins, -1 behind its end: the running sum is 1 within words.
    edges = np.zeros(len(block.data) + 1, np.int8)
    np.add.at(edges, cut.starts, 1)
    np.add.at(edges, cut.ends, -1)
    between = np.cumsum(edges[:-1], dtype=np.int8) == 0
    return Units(cut.starts, cut.ends, np.repeat(np.arange(len(block)), cut.counts), between)


def at_white_space(block: Segments, units: Units) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which units begin, and which end, where a word does: at white space (ASCII) or at an end of the text."""
    # -> two arrays bool [u].
    # One more at the end, which is also what index -1 finds before the first byte: both ends of the text part words.
    white = np.append(is_white_space(block.data), True)
    first = block.starts if block.given_starts is None else block.given_starts
    begins = (units.starts == first[units.owners]) | white[units.starts - 1]
    return begins, (units.ends == block.ends[units.owners]) | white[units.ends]


class WordFrequencies:
    """The counts of words in a text, in lower case and without punctuation at their ends."""

    # text: blocks, read once.

    def __init__(self, text: Iterable[Segments], tokenizer: Tokenizer) -> None:
        self._counts: Counter[str] = Counter()
        for block in text:
            self._counts.update(map(bare, strings_of(block, words_of(block, tokenizer))))
        # van Heuven et al. (2014): log10 of the count, one more, per billion of tokens and types.
        self._scale = 9 - math.log10(max(1, self._counts.total() + len(self._counts)))

    def of(self, words: Iterable[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the frequency and the count of words."""
        # -> float64 [n], on the Zipf scale (log10 of occurrences per billion words, each count one more), and int64 [n].
        counts = np.array([self._counts[bare(word)] for word in words], np.int64)
        return np.log10(counts + 1) + self._scale, counts


def bare(word: str) -> str:
    """Return a word in lower case, without what is neither letter nor digit at its ends."""
    # The word itself if nothing stays.
    places = [i for i, character in enumerate(word) if character.isalnum()]
    return word[places[0] : places[-1] + 1].lower() if places else word


def strings_of(block: Segments, units: Units) -> list[str]:
    """Return the text of each unit of a block."""
    data = block.data.tobytes()
    return [data[start:end].decode() for start, end in zip(units.starts.tolist(), units.ends.tolist(), strict=True)]


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
ENTROPY, BOUNDARY = "entropy", "word_boundary"
"""Columns of the score table that the entropy before a unit and the corrected figure are made of."""


@dataclass(frozen=True)
class Owners:
    """Which unit has each row: a row belongs to the unit that its bytes are in, with the white space before it."""

    of_row: Ints  # int64 [n], a unit, or -1 for what is in none: line ends, `</s>`, text outside all regions
    shared: Flags  # bool [u], a token lies in this unit and in what is next to it; the token counts for the first of them
    unscored: Flags  # bool [u], a token of this unit has no row, as first tokens are left unscored
    crossing: Ints  # int64, the rows whose token lies in more than one unit, or in a unit and in text outside all of them


@dataclass(frozen=True)
class Merged(Owners):
    """What a model makes of each unit; NaN where a figure is missing."""

    pieces: Ints  # int64 [u], rows
    nats: Floats  # float64 [u], minus the sum of their log-probabilities
    corrected: Floats  # float64 [u], nats: minus the log-probability of the unit as a word (or words) with its ends
    entropy: Floats  # float64 [u], nats: of the distribution at the unit's first row
    oov: Flags  # bool [u], the model does not know some of it: it is `<unk>`, or spelled
    without_end: Flags  # bool [u], there is no event behind the unit that would say whether its last word ends
    # impossible_before, impossible_after: bool [u], no word could begin, or end, there: the mass is zero
    impossible_before: Flags
    impossible_after: Flags
    rest: float  # float, nats of the rows in no unit


def find_owners(block: Segments, batch: ScoreBatch, units: Units, policy: ContextPolicy) -> Owners:
    """Return which unit has each row."""
    place = batch.row_segments() - block.first
    start, end = block.starts[place] + batch.starts(), block.starts[place] + batch.ends
    # `a bc` and a token ` b` at bytes 1 to 3: content [0, 2, 3], first 1, last 2 -> its text begins at 2 and stops at 3, so
    # that it is of the word `bc`, with the space before it.
    content = np.flatnonzero(~units.between)
    first, last = np.searchsorted(content, start), np.searchsorted(content, end)
    padded = np.append(content, len(block.data))
    # Where the row's text begins behind its white space; for a row of white space, where the next text does.
    begin, stop = padded[first], np.where(last > first, padded[last - 1] + 1, padded[first] + 1)
    (from_unit, from_inside), (to_unit, to_inside) = _unit_at(units, begin), _unit_at(units, stop - 1)
    lowest = np.where(from_inside, from_unit, from_unit + 1)
    touched = to_unit >= lowest
    whole = from_inside & to_inside & (from_unit == to_unit)
    of_row = np.where(touched, lowest, -1)
    has_text = last > first
    of_row[~has_text & (begin >= block.ends[place])] = -1
    crossing = has_text & touched & ~whole
    unscored = np.zeros(len(units), bool)
    if policy.first_bytes_move:
        _leave_first_tokens(batch, of_row, to_unit, crossing, unscored, policy)
    _join_empty_rows(block, batch, of_row, (start == end), policy)
    shared = np.zeros(len(units), bool)
    for row in np.flatnonzero(crossing).tolist():
        shared[of_row[row] : to_unit[row] + 1] = True
    return Owners(of_row, shared, unscored, np.flatnonzero(crossing))


def _unit_at(units: Units, positions: Ints) -> tuple[Ints, Flags]:
    # For each position the last unit that begins at or before it, and whether the position is inside that unit.
    number = np.searchsorted(units.starts, positions, side="right") - 1
    inside = (number >= 0) & (positions < np.append(units.ends, 0)[number])
    return number, inside


def _leave_first_tokens(
    batch: ScoreBatch, of_row: Ints, last_unit: Ints, crossing: Flags, unscored: Flags, policy: ContextPolicy
) -> None:
    # Mark the units of tokens without a row: their bytes are in the span of the row behind them, a segment's first.
    scored = batch.segment_events > 0
    firsts = (np.cumsum(batch.segment_events) - batch.segment_events)[scored]
    if policy.runs_on:
        firsts = firsts[batch.segments[scored] == 0]
    for row in firsts[of_row[firsts] >= 0].tolist():
        if crossing[row]:
            unscored[of_row[row] : last_unit[row]] = True
            of_row[row], crossing[row] = last_unit[row], False
        else:
            unscored[of_row[row]] = True


def _join_empty_rows(block: Segments, batch: ScoreBatch, of_row: Ints, empty: Flags, policy: ContextPolicy) -> None:
    # Give rows without bytes to the unit of the row before, whose character they share; line ends and `</s>` to none.
    firsts = np.cumsum(batch.segment_events) - batch.segment_events
    line_ends = batch.of_no_text()
    if policy.line_ends == "text" and block.terminator:
        lasts = (firsts + batch.segment_events - 1)[batch.segment_events > 0]
        line_ends[lasts] |= empty[lasts]
    of_row[line_ends] = -1
    # The row with bytes at or before each row, if it is of the same segment.
    rows = np.arange(len(batch))
    # empty [0, 1, 1, 0] -> before [0, 0, 0, 3]
    before = np.maximum.accumulate(np.where(empty, -1, rows))
    inside = empty & ~line_ends & (before >= np.repeat(firsts, batch.segment_events))
    of_row[inside] = of_row[before[inside]]


def merge(block: Segments, batch: ScoreBatch, units: Units, policy: ContextPolicy) -> Merged:
    """Return what a model makes of the units of a block."""
    # The corrected figure is that of Pimentel & Meister (2024) and Oh & Schuler (2024): -ln p(pieces | c) + ln B(c) - ln
    # B(c unit), B as in the column `word_boundary`. An end of a unit within a word of the text (ICU's words, regions) has
    # no such term, so that the figures of a word's parts add up to that of the word.
    owners = find_owners(block, batch, units, policy)
    rows = np.flatnonzero(owners.of_row >= 0)
    unit, size = owners.of_row[rows], len(units)
    pieces = np.bincount(unit, minlength=size).astype(np.int64)
    nats = np.bincount(unit, weights=-batch.logprob[rows], minlength=size).astype(np.float64)
    nats[(pieces == 0) | owners.unscored] = np.nan
    first, behind = np.full(size, -1), np.full(size, -1)
    # Assigned backwards, so that the first row of a unit is what stays: rows [3, 4, 5] of units [0, 0, 1] -> first [3, 5],
    # behind [5, 6].
    first[unit[::-1]] = rows[::-1]
    behind[unit] = rows + 1
    place = np.append(batch.row_segments() - block.first, -1)
    # The row behind the last one of a segment is of another segment, where this word's end says nothing.
    behind[place[behind] != units.owners] = -1
    oov = np.zeros(size, bool)
    oov[unit[batch.unseen()[rows]]] = True
    before, after = _boundaries(block, batch, units, first, behind)
    with np.errstate(invalid="ignore"):  # where no word could begin, none has a probability
        corrected = np.where(owners.shared | np.isneginf(before), np.nan, nats + before - after)
    return Merged(
        **vars(owners),
        pieces=pieces,
        nats=nats,
        corrected=corrected,
        entropy=_column(batch, ENTROPY, first),
        oov=oov,
        without_end=np.isnan(after) & (behind < 0) & (pieces > 0) & (BOUNDARY in batch.extra),
        impossible_before=np.isneginf(before),
        impossible_after=np.isneginf(after),
        rest=float(-batch.logprob[owners.of_row < 0].sum()),
    )


def _boundaries(block: Segments, batch: ScoreBatch, units: Units, first: Ints, behind: Ints) -> tuple[Floats, Floats]:
    # ln B at the first row of each unit and at the row behind it, float64 [u]; 0 within a word, NaN if unknown.
    begins, ends = at_white_space(block, units)
    with np.errstate(divide="ignore"):
        before, after = (np.log(_column(batch, BOUNDARY, rows)) for rows in (first, behind))
    return np.where(begins, before, 0.0), np.where(ends, after, 0.0)


def _column(batch: ScoreBatch, name: str, rows: Ints) -> Floats:
    # Column at some rows, float64; NaN where a row is -1, or there is no such column.
    values = batch.extra.get(name, np.full(len(batch), np.nan))
    return np.append(np.asarray(values, np.float64), np.nan)[np.where(rows < 0, len(batch), rows)]


_ID_COLUMNS = ("text_id", "id", "item")
_WHITE = b" \t\n\v\f\r"
_SHOWN = 40
_MOST_DIGITS = 12


@dataclass(frozen=True)
class Region:
    """A region as it was named."""

    where: str  # the file and the line, for messages
    line: int  # the line alone, or the row, from 1
    name: str
    start: int | None  # start, end: bytes in the UTF-8 text; None where only the string is named
    end: int | None
    text: bytes | None  # the string, in UTF-8; None where only the span is named


class Regions:
    """The regions of texts, by the id of the text."""

    def __init__(self, by_text: Mapping[str, list[Region]]) -> None:
        self._by_text = by_text
        content = sorted((key, [(one.name, one.start, one.end, one.text) for one in by_text[key]]) for key in by_text)
        self.fingerprint = digest(repr(content))[:6]
        self._waiting = dict.fromkeys(by_text)
        self.texts_without = 0

    @classmethod
    def of(cls, regions: PathLike | Iterable[Mapping[str, Any]] | Any) -> Regions:
        """Return the regions of a file, of a data frame, or of rows, each a mapping with the fields that a file has."""
        rows: Iterable[tuple[int, Mapping[str, Any]]]
        if isinstance(regions, PATHS):
            source = os.fspath(regions)
            place, rows = f"{source}, line", table_rows(source, "regions are read from")
        else:
            source, place = "regions", "regions, row"
            rows = enumerate(regions.to_dict("records") if hasattr(regions, "to_dict") else regions, 1)
        by_text: dict[str, list[Region]] = {}
        for line, row in rows:
            text_id, region = _region(line, f"{place} {line}", row)
            own = by_text.setdefault(text_id, [])
            own.append(region if region.name else replace(region, name=str(len(own) + 1)))
        if not by_text:
            raise InputError(f"{source}: no region is named in it")
        return cls(by_text)

    def lay(self, block: Segments) -> Units:
        """Return the regions of the texts of a block as units."""
        spans: list[tuple[int, int, int, Region]] = []
        for i, identifier in enumerate(block.identifiers()):
            keys = [identifier] if block.ids is not None else [identifier, str(block.first + i + 1)]
            key = next((key for key in keys if key in self._by_text), None)
            if key is None:
                self.texts_without += 1
                continue
            if key not in self._waiting:
                raise InputError(f"regions: two texts have the id {_short(key)}; give each an id of its own (--id)")
            self._waiting.pop(key)
            spans += [(*span, i, region) for span, region in _placed(self._by_text[key], block, i, key)]
        starts, ends, owners = (np.array([span[k] for span in spans], np.int64) for k in range(3))
        return Units(starts, ends, owners, is_white_space(block.data), [region for *_, region in spans])

    def check_all_laid(self) -> None:
        """Check that each text that a region names was there."""
        for text_id in self._waiting:
            where = self._by_text[text_id][0].where
            raise InputError(
                f"{where}: there is no text {_short(text_id)}; a text is named by its id (--id), or by its number, from 1"
            )


def _region(line: int, where: str, row: Mapping[str, Any]) -> tuple[str, Region]:
    identifier = next((_cell(row, name) for name in _ID_COLUMNS if _cell(row, name)), "")
    if not identifier:
        raise InputError(f"{where}: names no text; give its id in a column text_id")
    start, end, text = (_cell(row, name) for name in ("start", "end", "text"))
    if bool(start) != bool(end) or not (start or text):
        raise InputError(f"{where}: names no region; give start and end (bytes), or its text")
    span = [_offset(value, where) if value else None for value in (start, end)]
    try:
        string = text.encode().strip(_WHITE) if text else None
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: its text holds a lone surrogate, which no UTF-8 text can") from error
    if string == b"":
        raise InputError(f"{where}: its text is white space alone")
    return identifier, Region(where, line, _cell(row, "region"), span[0], span[1], string)


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():  # a data frame's whole numbers beside missing ones
        value = int(value)
    return "" if value is None or value != value else str(value)


def _offset(value: str, where: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
        raise InputError(f"{where}: {_short(value)} is not a number of bytes; start and end count from 0")
    return int(value)


def _placed(regions: list[Region], block: Segments, i: int, key: str) -> list[tuple[tuple[int, int], Region]]:
    # Regions of a text with their spans in the block's data, in the order of the text.
    text, base = block.text(i), int(block.starts[i])
    placed: list[tuple[int, int, Region]] = []
    at = 0
    for region in regions:
        start, end = _by_span(region, text, key) if region.start is not None else _by_string(region, text, at, key)
        placed.append((start, end, region))
        at = end
    placed.sort(key=lambda item: item[0])
    for (_, before, earlier), (start, _, later) in pairwise(placed):
        if start < before:
            raise InputError(f"{later.where}: region {_short(later.name)} overlaps that of line {earlier.line}")
    return [((base + start, base + end), region) for start, end, region in placed]


def _by_span(region: Region, text: bytes, key: str) -> tuple[int, int]:
    start, end = region.start or 0, region.end or 0
    what = f"{region.where}: region {_short(region.name)}"
    if not start < end <= len(text):
        raise InputError(f"{what}, bytes {start} to {end}, is not in text {_short(key)}, which has {len(text)} bytes")
    begins = np.append(is_character_start(np.frombuffer(text, np.uint8)), True)
    if not (begins[start] and begins[end]):
        raise InputError(f"{what} cuts a character of text {_short(key)}: start and end count bytes of UTF-8")
    piece = text[start:end]
    core = piece.strip(_WHITE)
    if not core:
        raise InputError(f"{what}, bytes {start} to {end} of text {_short(key)}, is white space alone")
    if region.text not in (None, core):
        raise InputError(f"{what}: bytes {start} to {end} of text {_short(key)} are {_short(core.decode())}, not its text")
    start += len(piece) - len(piece.lstrip(_WHITE))
    return start, start + len(core)


def _by_string(region: Region, text: bytes, at: int, key: str) -> tuple[int, int]:
    string = region.text or b""
    start = len(text) - len(text[at:].lstrip(_WHITE))
    if not text.startswith(string, start):
        there = text[start : start + 4 * _SHOWN].decode(errors="ignore")
        raise InputError(
            f"{region.where}: text {_short(key)} continues with {_short(there)} at byte {start}, not with "
            f"{_short(string.decode())}; name the regions of a text one after another from its beginning, or give "
            "start and end"
        )
    return start, start + len(string)


def _short(text: str) -> str:
    shown = visible(text)
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...")
