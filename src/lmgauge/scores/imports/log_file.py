"""A file of another program, read in pieces: its beginning, its lines, its cells, its JSON values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lmgauge.errors import InputError
from lmgauge.json_text import from_json
from lmgauge.scores.imports.log import shown

HEAD_BYTES = 1 << 20
LARGEST_VALUE = 1 << 28
"""Bytes of a line or a JSON value: what a parser holds at a time."""
_LONGEST_CELL = 1 << 22
_CHUNK = 1 << 20


@dataclass(frozen=True)
class LogFile:
    """A file that a program wrote."""

    path: Path

    @cached_property
    def head(self) -> bytes:
        """Return the first bytes, by which the program is recognized."""
        try:
            with self.path.open("rb") as file:
                head = file.read(HEAD_BYTES)
        except (OSError, ValueError) as error:
            raise InputError(f"{self.path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if not head.strip():
            raise InputError(f"{self.path}: is empty")
        return head.removeprefix(b"\xef\xbb\xbf")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers, counted from 1, without their ends; bytes that are not UTF-8 as surrogates."""
        try:
            with self.path.open("rb") as file:
                number = 0
                while line := file.readline(LARGEST_VALUE + 1):
                    number += 1
                    if len(line) > LARGEST_VALUE:
                        raise InputError(f"{self.path}, line {number}: is longer than {LARGEST_VALUE:,} bytes")
                    start = 3 if number == 1 and line.startswith(b"\xef\xbb\xbf") else 0
                    yield number, line[start:].rstrip(b"\r\n").decode("utf-8", "surrogateescape")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror or error}") from error

    def cells(self) -> Iterator[tuple[int, str, bool]]:
        """Yield what stands between tabs and ends of lines."""
        # The line's number, the cell, and whether it is the line's last.
        # A line may be as long as the file; it is never held whole.
        line, rest = 1, b""
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    *parts, rest = re.split(rb"([\t\n])", rest + chunk)
                    for cell, end in zip(parts[::2], parts[1::2], strict=True):
                        yield line, cell.decode("utf-8", "surrogateescape"), end == b"\n"
                        line += end == b"\n"
                    if len(rest) > _LONGEST_CELL:
                        raise InputError(f"{self.path}, line {line}: has {len(rest):,} bytes without a tab; is it a log?")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        if rest:
            yield line, rest.decode("utf-8", "surrogateescape"), True

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield JSON values and where they are: those of JSON lines, the items of one array, or one value."""
        whole = self._one_value()
        if whole is None:
            for number, line in self.lines():
                if line.strip():
                    yield f"{self.path}, line {number}", parsed(line, f"{self.path}, line {number}")
        elif isinstance(whole, list):
            for number, item in enumerate(whole, 1):
                yield f"{self.path}, item {number}", item
        else:
            yield str(self.path), whole

    def _one_value(self) -> Any:
        # File's only JSON value; None if it is JSON lines: its first line is a value, and another follows.
        first, _, more = self.head.partition(b"\n")
        if more.strip() or len(self.head) == HEAD_BYTES:
            try:
                if not isinstance(from_json(first), list) or more.lstrip()[:1] in (b"[", b"{"):
                    return None
            except ValueError:
                pass  # a value goes on over the end of the line
        size = self.path.stat().st_size
        if size > LARGEST_VALUE:
            raise InputError(f"{self.path}: is one JSON value of {size:,} bytes; write it as JSON lines, a record each")
        return parsed(self.path.read_bytes().decode("utf-8-sig", "surrogateescape"), str(self.path))


def parsed(text: str | bytes, where: str) -> Any:
    """Return a JSON value."""
    # parsed("[1]", "file, line 1") -> [1]
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}") from error


def of_object(value: Any, name: str, kind: type | tuple[type, ...], where: str) -> Any:
    """Return what an object of JSON has under a name, once it is known to be of a kind."""
    # kind: type, or types, that it must have.
    # of_object({"resps": []}, "resps", list, "file, line 1") -> []
    member = value.get(name) if isinstance(value, dict) else None
    if not isinstance(member, kind):
        what = f"{name} is {shown(member)}" if isinstance(value, dict) and name in value else f"has no {name}"
        raise InputError(f"{where}: {what}; was it written by the program that it was read as?")
    return member
