"""A corpus: the text of files, standard input or strings as segments, with a report and a fingerprint.

>>> corpus = Corpus.from_strings(["ein Satz", "noch einer"])
>>> [segments.text(i) for segments in corpus for i in range(len(segments))]
[b'ein Satz', b'noch einer']
>>> corpus.report.segments, corpus.report.bytes, len(corpus.report.fingerprint)
(2, 18, 6)
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from lmgauge.choices import UNITS, ErrorPolicy, Format, Unit
from lmgauge.errors import UsageError
from lmgauge.text.cleaning import check_policy
from lmgauge.text.readers import Reading, read_document, read_jsonl, read_lines, read_records, utf8
from lmgauge.text.segments import Segments, TextReport, count_characters, count_words
from lmgauge.text.streams import Source, find_sources

__all__ = ["Corpus", "Segments", "TextReport", "count_characters", "count_words"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Reader = Callable[[Reading], Iterator[Segments]]

GROUP_BY_FILE = "file"


class Corpus:
    """Text to read, as an iterable of `Segments`; make one with `from_files` or `from_strings`.

    Files and lists can be iterated over again and give the same each time; standard input, pipes and iterators only
    once.

    Attributes:
        report: counts and fingerprint of the latest pass, complete once that pass came to its end.
        group_names: names of the groups by their code; for groups from a field they are found while reading.
        sources: the files to read, in order; empty for strings.
        settings: what `from_files` needs to read the same text again; empty for strings.
    """

    def __init__(
        self,
        readers: Iterable[Reader],
        *,
        errors: str,
        block_bytes: int,
        field: str = "text",
        group_field: str | None = None,
        file_labels: list[str] | None = None,
        one_shot: str | None = None,
        sources: Iterable[Source] = (),
        settings: Mapping[str, Any] | None = None,
        lists: bool = False,
        keep_bom: bool = False,
    ) -> None:
        """Keep what the class methods `from_files` and `from_strings` have checked; use those."""
        self.report = TextReport()
        self.group_names: list[str] = list(dict.fromkeys(file_labels or ()))
        self.sources = tuple(sources)
        self.settings = dict(settings or {})
        self._readers = list(readers)
        self._errors = errors
        self._block_bytes = block_bytes
        self._field = field
        self._group_field = group_field
        self._file_labels = file_labels
        self._one_shot = one_shot
        self._lists = lists
        self._keep_bom = keep_bom
        self._used = False

    @classmethod
    def from_files(
        cls,
        paths: Paths,
        *,
        unit: Unit = "line",
        field: str = "text",
        group: str | None = GROUP_BY_FILE,
        format: Format | None = None,
        errors: ErrorPolicy = "fail",
        block_bytes: int = 1 << 20,
        lists: bool = False,
        keep_bom: bool = False,
    ) -> Corpus:
        """Return the text of files as a corpus; the files are looked for now and read when it is iterated over.

        Args:
            paths: one path or several; globs are expanded (sorted), "-" is standard input; .gz, .bz2, .xz and .zst
                are unpacked, .jsonl, .ndjson, .tsv and .parquet read as records.
            unit: what a segment of a text file is: "line" (between newlines, blank ones included) or "document" (the
                whole file). A record of JSONL, TSV or Parquet always is a segment.
            field: name of the JSONL field or the column that holds the text; of a TSV column without name its number.
            group: "file" labels segments by the name of their file, another name by that field or column, None not.
            format: read all files as "text", "jsonl", "tsv" or "parquet", whatever their names.
            errors: "fail" at the first byte that is not valid text, "replace" such bytes by U+FFFD, or "skip" the
                segment; both are counted in `report`.
            block_bytes: about how many bytes to hold at a time; changes nothing in the result.
            lists: a JSONL field may hold a list of strings; each is a segment with its record's line number.
            keep_bom: count a byte order mark at the head of a text file as text, as sacreBLEU and jiwer do; otherwise it is
                dropped.

        Returns:
            The corpus.

        Raises:
            InputError: a file is missing or a directory, or a glob matches nothing.
            UsageError: options that are unknown or contradict each other.
        """
        if unit not in UNITS:
            raise UsageError(f"unknown unit {unit!r}: choose one of {', '.join(UNITS)}")
        _check_common(errors, block_bytes)
        sources = find_sources(paths, format)
        group_field = None if group in (None, GROUP_BY_FILE) else group
        plain = next((source for source in sources if source.format == "text"), None)
        if group_field is not None and plain is not None:
            raise UsageError(f"{plain.name}: plain text has no field {group_field!r} to group by: use file, or none")
        once = next((source.name for source in sources if source.one_shot), None)
        return cls(
            [_file_reader(source, unit) for source in sources],
            errors=errors,
            block_bytes=block_bytes,
            field=field,
            group_field=group_field,
            file_labels=[source.label for source in sources] if group == GROUP_BY_FILE else None,
            one_shot=once,
            sources=sources,
            settings={
                "paths": [source.path for source in sources],
                "unit": unit,
                "field": field,
                "group": group,
                "format": format,
                "errors": errors,
            },
            lists=lists,
            keep_bom=keep_bom,
        )

    @classmethod
    def from_strings(
        cls,
        texts: Iterable[str],
        *,
        groups: Iterable[str] | None = None,
        errors: ErrorPolicy = "fail",
        block_bytes: int = 1 << 20,
    ) -> Corpus:
        """Return strings as a corpus, each string one record.

        Args:
            texts: the strings; a list can be read again, an iterator once.
            groups: the name of the group of each string, or None.
            errors: as in `from_files` (a string is invalid if it holds NUL or a lone surrogate).
            block_bytes: about how many bytes to hold at a time.

        Raises:
            UsageError: `texts` is a single string.
        """
        if isinstance(texts, (str, bytes)):
            raise UsageError("texts is one string: give a list of strings, or a path to from_files")
        _check_common(errors, block_bytes)
        once = any(isinstance(given, Iterator) for given in (texts, groups))

        def read(reading: Reading) -> Iterator[Segments]:
            return _read_strings(texts, groups, reading)

        return cls([read], errors=errors, block_bytes=block_bytes, one_shot="this iterator" if once else None)

    @property
    def rereadable(self) -> bool:
        """Whether the corpus can be iterated over more than once."""
        return self._one_shot is None

    def __iter__(self) -> Iterator[Segments]:
        """Begin a pass over the text.

        Raises (also while iterating):
            UsageError: a second pass over what can be read only once.
            InputError: text that cannot be used, with file, line and byte.
        """
        if self._used and self._one_shot is not None:
            raise UsageError(f"{self._one_shot} can be read only once, and has been: save the text in a file first")
        self._used = True
        self.report = TextReport()
        if self._file_labels is None:
            self.group_names = []
        return self._pass(self.report, self.group_names)

    def _pass(self, report: TextReport, names: list[str]) -> Iterator[Segments]:
        codes = {name: code for code, name in enumerate(names)}

        def group_code(name: str) -> int:
            if name not in codes:
                codes[name] = len(names)
                names.append(name)
            return codes[name]

        choices = (self._errors, self._block_bytes, report, self._lists, self._keep_bom)
        reading = Reading(self._field, self._group_field, group_code, *choices)
        digest = hashlib.sha256()
        for i, read in enumerate(self._readers):
            report.files += bool(self.sources)
            # One file is one group: no codes are needed then.
            code = codes[self._file_labels[i]] if self._file_labels and len(names) > 1 else None
            for part in read(reading):
                groups = part.groups if code is None else np.full(len(part), code, dtype=np.int32)
                segments = replace(part, first=report.segments, groups=groups)
                report.segments += len(segments)
                report.bytes += segments.byte_count()
                _update_digest(digest.update, segments)
                yield segments
        report.sha256 = digest.hexdigest()


def _check_common(errors: str, block_bytes: int) -> None:
    check_policy(errors)
    if block_bytes < 1:
        raise UsageError(f"block_bytes is {block_bytes}, but has to be at least 1")


def _file_reader(source: Source, unit: Unit) -> Reader:
    def read(reading: Reading) -> Iterator[Segments]:
        if source.format == "jsonl":
            return read_jsonl(source, reading)
        if source.format == "tsv":
            from lmgauge.text.tsv import read_tsv

            return read_tsv(source, reading)
        if source.format == "parquet":
            from lmgauge.text.parquet import read_parquet

            return read_parquet(source, reading)
        return read_lines(source, reading) if unit == "line" else read_document(source, reading)

    return read


def _read_strings(texts: Iterable[str], groups: Iterable[str] | None, reading: Reading) -> Iterator[Segments]:
    """Yield strings in batches of about `block_bytes`."""
    batch: list[bytes] = []
    codes: list[int] | None = None if groups is None else []
    labels = None if groups is None else iter(groups)
    first, size = 1, 0
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UsageError(f"text {number} is {type(text).__name__}, not a string")
        batch.append(utf8(text))
        size += len(batch[-1])
        if labels is not None and codes is not None:
            label = next(labels, None)
            if label is None:
                raise UsageError(f"there are more texts than groups: text {number} has none")
            codes.append(reading.group_code(label))
        if size >= reading.block_bytes:
            yield from read_records(batch, range(first, number + 1), codes, "<strings>", reading)
            batch, codes, first, size = [], None if groups is None else [], number + 1, 0
    if batch:
        yield from read_records(batch, range(first, first + len(batch)), codes, "<strings>", reading)
    if labels is not None and next(labels, None) is not None:
        raise UsageError("there are more groups than texts")


def _update_digest(update: Callable[[bytes | memoryview], None], segments: Segments) -> None:
    """Hash segments: lines as their bytes with newlines, records as 8-byte little-endian length and bytes.

    Neither depends on how the text was cut into blocks; the length keeps ["ab", "c"] apart from ["a", "bc"].
    """
    view = segments.data.data
    if segments.terminator:
        update(view)
        return
    bounds = zip(segments.starts.tolist(), segments.ends.tolist(), strict=True)
    for start, end in cast(Iterable[tuple[int, int]], bounds):
        update(struct.pack("<q", end - start))
        update(view[start:end])
