"""The texts of a batch of documents, made valid as all text is, and what is wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.text.cleaning import Place, clean_record, find_problem, what_is_wrong
from lmgauge.text.segments import Segments, TextReport, is_white_space

if TYPE_CHECKING:
    import pyarrow as pa

BAD_RECORD = "bad record"
NO_TEXT = "no text"
INVALID = "invalid text"
_NEWLINE = ord("\n")


@dataclass(frozen=True)
class Documents:
    """Documents of a batch, one after another; those that cannot be used have no segment."""

    count: int  # how many there are, those that cannot be used included
    segments: Segments  # the texts of the others, one segment each
    rows: NDArray[np.int64]  # int64 [segments], the number of each among all, from 0
    problems: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        texts: Sequence[str | bytes | None],
        source: str = "<documents>",
        problems: Mapping[int, tuple[str, str]] | None = None,
    ) -> Self:
        """Return texts as documents."""
        wrong = dict(problems or {})
        rows, encoded = [], []
        for row, text in enumerate(texts):
            if text is None:
                wrong.setdefault(row, (NO_TEXT, "null"))
                continue
            rows.append(row)
            encoded.append(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        whole = b"\n".join(encoded)  # no two of them make something valid, or something to be cleaned, together
        if find_problem(whole)[0] >= 0 or b"\r" in whole:
            rows, encoded = _cleaned(rows, encoded, source, wrong)
            whole = b"\n".join(encoded)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        ends = np.cumsum(lengths + 1) - 1
        segments = Segments(np.frombuffer(whole, np.uint8), ends - lengths, ends, source)
        return cls(len(texts), segments, np.array(rows, np.int64), wrong)

    @classmethod
    def of_column(cls, column: pa.Array | pa.ChunkedArray, source: str = "<table>") -> Self:
        """Return a column of strings as documents; no bytes are copied where all of them are clean."""
        import pyarrow as pa

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_null(kind):  # a batch in which no document has a text
            return cls.of([None] * len(column), source)
        if not is_text(kind):
            raise InputError(f"{source}: the column of the text holds {kind}, not strings: name another field")
        strings = column.cast(pa.large_string())
        rows = (
            np.flatnonzero(strings.is_valid().to_numpy(zero_copy_only=False))
            if strings.null_count
            else np.arange(len(strings))
        )
        problems = (
            {int(row): (NO_TEXT, "null") for row in np.setdiff1d(np.arange(len(strings)), rows)}
            if strings.null_count
            else {}
        )
        offsets = np.frombuffer(strings.buffers()[1], np.int64)[strings.offset : strings.offset + len(strings) + 1]
        buffer = strings.buffers()[2]
        data = np.frombuffer(buffer if buffer is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
        starts, ends = offsets[:-1][rows] - offsets[0], offsets[1:][rows] - offsets[0]
        if not _is_clean(data, starts, ends):
            texts: list[bytes | None] = [None] * len(strings)
            for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
                texts[row] = data[start:end].tobytes()
            return cls.of(texts, source, problems)
        return cls(len(strings), Segments(data, starts, ends, source), rows.astype(np.int64), problems)

    def byte_counts(self) -> NDArray[np.int64]:
        """Return the bytes of each document, int64 [count]; 0 for one that cannot be used."""
        counts = np.zeros(self.count, np.int64)
        counts[self.rows] = self.segments.ends - self.segments.starts
        return counts

    def with_words(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Return which usable documents have one of some words between ASCII white space, bool [segments]."""
        has_one = np.zeros(len(self.segments), bool)
        data, starts, ends = self.segments.data, self.segments.starts, self.segments.ends
        whole, white = data.tobytes(), is_white_space(data)
        for word in words:
            places = np.array([match.start() for match in re.finditer(re.escape(word.encode()), whole)], np.int64)
            owner = np.searchsorted(starts, places, side="right") - 1
            behind = places + len(word.encode())
            inside = (owner >= 0) & (behind <= ends[owner])
            opens = (places == starts[owner]) | white[places - 1]
            closes = (behind == ends[owner]) | white[np.minimum(behind, len(white) - 1)]
            has_one[owner[inside & opens & closes]] = True
        return has_one

    def only(self, chosen: NDArray[np.bool_]) -> Documents:
        """Return some of the usable documents, under their numbers."""
        # chosen: bool [segments].
        segments = replace(self.segments, starts=self.segments.starts[chosen], ends=self.segments.ends[chosen])
        return Documents(self.count, segments, self.rows[chosen])


def split_lines(segments: Segments) -> tuple[Segments, NDArray[np.int64]]:
    r"""Return each line of documents as a segment of its own, and the document that it is of, int64 [lines]."""
    # Lines are cut at newlines alone, and an empty one is a line, too.
    newlines = np.flatnonzero(segments.data == _NEWLINE)
    first, last = np.searchsorted(newlines, segments.starts), np.searchsorted(newlines, segments.ends)
    inside = last - first
    if not inside.any():
        return segments, np.arange(len(segments))
    owner = np.repeat(np.arange(len(segments)), inside + 1)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(inside + 1) - inside - 1, inside + 1)  # number of the line
    begins, stops = segments.starts[owner], segments.ends[owner]
    later, earlier = within > 0, within < inside[owner]
    begins[later] = newlines[(first[owner] + within - 1)[later]] + 1
    stops[earlier] = newlines[(first[owner] + within)[earlier]]
    return replace(segments, starts=begins, ends=stops), owner


def _cleaned(
    rows: list[int], texts: list[bytes], source: str, problems: dict[int, tuple[str, str]]
) -> tuple[list[int], list[bytes]]:
    valid_rows, valid = [], []
    for row, text in zip(rows, texts, strict=True):
        problem = find_problem(text)[0]
        if problem >= 0:
            problems[row] = INVALID, what_is_wrong(text, problem)
            continue
        clean = clean_record(text, Place(source, row + 1, None, "document"), "fail", TextReport())
        assert clean is not None
        valid_rows.append(row)
        valid.append(clean.data)
    return valid_rows, valid


def _is_clean(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    whole = data.tobytes()
    begins = starts[ends > starts]
    # Two ill-formed texts can join to a well-formed one: then one of them begins with a continuation byte.
    torn = bool(np.any((data[begins] & 0xC0) == 0x80))
    return find_problem(whole)[0] < 0 and not torn and b"\r" not in whole


def is_text(kind: pa.DataType) -> bool:
    """Return True if values of a type are strings.

    >>> import pyarrow as pa
    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def label_of(value: object) -> str | None:
    """Return the value of a field that names a group or chooses a model: strings and whole numbers do."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)


def labels_of(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return what `label_of` makes of each value of a column; bytes that are not text are named by their numbers."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_text(kind):
        encoded = column.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
        return [None if value is None else value.decode("utf-8", "backslashreplace") for value in encoded]
    return [label_of(value) for value in column.to_pylist()] if pa.types.is_integer(kind) else [None] * len(column)
