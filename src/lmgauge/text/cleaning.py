"""One block of bytes made valid text: UTF-8 checked, NUL refused, line ends made LF, a byte order mark removed."""

# Whole blocks pass through a few library calls at memory speed; only a block with something wrong in it is looked at
# closely. The text of a segment is changed here or nowhere.

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.records.lines import cut_lines
from lmgauge.records.records import find_problem, what_is_wrong
from lmgauge.text.segments import TextReport

_MANY_CR = re.compile(rb"\r+\n")


@dataclass(slots=True)
class Place:
    """Where a block begins, for messages."""

    source: str
    line: int = 1  # number of the block's first line or record, counted from 1
    byte: int | None = 0  # its offset in the decompressed file, counted from 0; None where a record has no such place
    unit: str = "line"


class CleanBlock(NamedTuple):
    """A block after cleaning."""

    data: bytes
    characters: int
    # int64, indexes of the lines of the block that are still in `data`; None when all are
    line_indexes: NDArray[np.int64] | None = None


def clean_lines(
    block: bytes, place: Place, errors: str, report: TextReport, split: Callable[[bytes], list[bytes]] = cut_lines
) -> CleanBlock:
    """Clean a block of whole lines, each ended by a newline; `split` cuts it into what is left out as a whole."""
    line_indexes = None
    problem, characters = find_problem(block)
    if problem >= 0:
        if errors == "skip":
            block, line_indexes = _without_bad_lines(split(block), report)
        else:
            block = _repaired(block, problem, place, errors, report)
        characters = find_problem(block)[1]
    cleaned = _line_ends_as_lf(block, report)
    return CleanBlock(cleaned, characters - (len(block) - len(cleaned)), line_indexes)


def clean_record(record: bytes, place: Place, errors: str, report: TextReport) -> CleanBlock | None:
    """Clean one record or document, in which newlines are ordinary characters; None if it is left out."""
    clean = clean_lines(record, place, errors, report, split=lambda whole: [whole])
    return clean if clean.line_indexes is None else None


def _repaired(block: bytes, problem: int, place: Place, errors: str, report: TextReport) -> bytes:
    if errors == "fail":
        raise InputError(_problem_message(block, problem, place))
    text = block.decode("utf-8", "replace")
    # What "ignore" leaves out are the ill-formed bytes: the difference counts them.
    report.replaced += len(block) - len(block.decode("utf-8", "ignore").encode()) + block.count(b"\0")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode()


def _problem_message(block: bytes, problem: int, place: Place) -> str:
    line = place.line + (block.count(b"\n", 0, problem) if place.unit == "line" else 0)
    where = f"{place.source}, {place.unit} {line}"
    if place.byte is not None:
        where += f", byte {place.byte + problem}"
    return f"{where}: {what_is_wrong(block, problem)}: convert the file, or choose --errors replace"


def _without_bad_lines(lines: list[bytes], report: TextReport) -> tuple[bytes, NDArray[np.int64]]:
    valid = [i for i, line in enumerate(lines) if find_problem(line)[0] < 0]
    report.skipped += len(lines) - len(valid)
    return b"".join(lines[i] + b"\n" for i in valid), np.array(valid, dtype=np.int64)


def _line_ends_as_lf(block: bytes, report: TextReport) -> bytes:
    # Read CRLF as LF; carriage returns elsewhere are ordinary white space.
    # Several carriage returns before a newline are one line end; otherwise a text that lmgauge wrote would read back
    # differently.
    if b"\r" not in block:
        return block
    report.crlf_lines += block.count(b"\r\n")
    cleaned = _MANY_CR.sub(b"\n", block) if b"\r\r\n" in block else block.replace(b"\r\n", b"\n")
    report.lone_returns += cleaned.count(b"\r")
    return cleaned


def supplied_newline(text: bytes, report: TextReport) -> bytes:
    """Return text behind which a newline was put: a carriage return before it is an old Mac's line end, and no CRLF."""
    report.missing_final_newline += 1
    if not text.endswith(b"\r\n"):
        return text
    bare = text[:-1].rstrip(b"\r")
    report.lone_returns += len(text) - 1 - len(bare)
    return bare + b"\n"
