"""Files to read: names and globs, formats and compressions by their endings, short names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import cast

from lmgauge.base.choices import FORMATS, Format
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import reason_of
from lmgauge.base.paths import expand, file_states
from lmgauge.base.remote.addresses import FileState, is_remote, shown_name
from lmgauge.records.formats import BY_SUFFIX, FORMATS_OF_RECORDS, RECORD_ENDINGS, format_of, reader_of, split_compression
from lmgauge.records.records import Fields, Row

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """One file (or standard input) to read."""

    path: str  # as given by the user, "-" for standard input; a local path, or an address, which may hold a password
    format: Format
    compression: str  # ".gz", ".bz2", ".xz", ".zst" or ""
    label: str  # short name, unique among the files of a corpus
    one_shot: bool  # whether it can be read only once (standard input, a pipe)
    shown: str = ""  # the name of a remote file to show and store, unique among the files of a corpus; "" for a local one
    # size and version of a remote file, which it must keep while it is read; None for a local one
    state: FileState | None = None

    @property
    def name(self) -> str:
        """Return the name that messages show."""
        return "<stdin>" if self.path == STDIN else self.stored_path

    @property
    def stored_path(self) -> str:
        """Return the path or address that may be stored: without user, password and query."""
        return self.shown or self.path


def find_sources(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None = None
) -> list[Source]:
    """Turn paths and globs into files to read, in the order given (the matches of a glob sorted)."""
    if format is not None and format not in FORMATS:
        raise UsageError(f"unknown format {format!r}: choose one of {', '.join(FORMATS)}")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    names = [name for path in listed for name in ([STDIN] if path == STDIN else expand(os.fspath(path)))]
    if not names:
        raise UsageError("no text to read: name at least one file, or - for standard input")
    if names.count(STDIN) > 1:
        raise UsageError("standard input (-) is named twice, but can be read only once")
    shown = _unique_names(names)
    labels = _labels(shown)
    remote = list(dict.fromkeys(filter(is_remote, names)))
    states = dict(zip(remote, file_states(remote), strict=True))
    return [
        _source(name, format, label, known if name in states else "", states.get(name))
        for name, known, label in zip(names, shown, labels, strict=True)
    ]


def table_rows(path: str | os.PathLike[str], what: str, *, quotes: bool = False) -> Iterator[Row]:
    """Return the rows of a table; `what` is read from which files, for whoever names a file of lines."""
    source = find_sources(path)[0]
    if source.format == "text":
        raise UsageError(f"{source.name}: {what} {RECORD_ENDINGS}")
    return reader_of(source, Fields(quotes=quotes)).rows()


def _unique_names(names: list[str]) -> list[str]:
    # Names that may be shown; those of different addresses differ, also where only their queries do.
    owners: dict[str, dict[str, int]] = {}  # by the name shown, the number of each address, from 1
    unique = []
    for name in names:
        shown = shown_name(name)
        same = owners.setdefault(shown, {})
        number = same.setdefault(name, len(same) + 1)
        unique.append(shown if number == 1 else f"{shown} ({number})")
    return unique


def _source(path: str, format: str | None, label: str, shown: str, state: FileState | None) -> Source:
    one_shot = state is None and (path == STDIN or not stat.S_ISREG(_mode(path)))
    compression = split_compression(shown_name(path))[1]
    form = cast(Format, format) if format else format_of(shown_name(path))
    if (one_shot or compression) and not FORMATS_OF_RECORDS[form].streams:
        reason = "a pipe" if one_shot else f"a {compression} file"
        raise InputError(f"{shown or path}: {form.title()} cannot be read from {reason}: save it as a plain file first")
    return Source(path, form, compression, label, one_shot, shown, state)


def _mode(path: str) -> int:
    # File's type bits; raise InputError if there is nothing to read under that name.
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{path!r}: {reason_of(error)}") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a directory: name its files, or a glob such as {os.path.join(path, '*.txt')}")
    return mode


def _labels(names: list[str]) -> list[str]:
    # Label per file: its stem, or the path as given where different files share a stem.
    stems = [_stem(name) for name in names]
    owners: dict[str, set[str]] = {}
    for stem, name in zip(stems, names, strict=True):
        owners.setdefault(stem, set()).add(name)
    return [stem if len(owners[stem]) == 1 else name for stem, name in zip(stems, names, strict=True)]


def _stem(name: str) -> str:
    if name == STDIN:
        return "stdin"
    base = split_compression(PurePath(name).name)[0]
    bare, suffix = os.path.splitext(base)
    return bare if suffix.lower() in BY_SUFFIX else base
