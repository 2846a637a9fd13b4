"""Texts: line ends of all kinds, byte order marks, other encodings, NUL, ill-formed bytes; plain, packed, from a stream."""

from __future__ import annotations

import random
import re
from pathlib import Path

from lmgauge.base.errors import InputError
from lmgauge.text.reading_options import ReadingOptions
from tests.fuzz.mutations import changed, hostile_text
from tests.fuzz.parsers.reading import PACKERS, check_reading, outcome
from tests.fuzz.table import Attempt

LINE_ENDS = ["\n", "\n", "\n", "\r\n", "\r", "\r\r\n", "\n\n", "\u2028", "\x0b"]
ENCODINGS = ["utf-8"] * 12 + ["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252", "gb18030"]


def prepare(folder: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        content = _drawn(chance)
        options = ReadingOptions(
            unit=chance.choice(["line", "line", "document"]),
            errors=chance.choice(["fail", "fail", "replace", "skip"]),
            keep_bom=chance.random() < 0.2,
            join=chance.choice(["\n", "\n\n", " "]) if chance.random() < 0.1 else None,
        )
        if chance.random() < 0.15:
            return _damaged_member(folder, content, options, chance)
        end = check_reading(folder / "text.txt", content, options, chance)
        if options.errors == "fail" and options.unit == "line" and options.join is None:
            _check_against_twin(folder / "text.txt", content, options)
        return end

    return attempt


def _drawn(chance: random.Random) -> bytes:
    lines = [hostile_text(chance, 12) for _ in range(chance.randint(0, 12))]
    if chance.random() < 0.8:
        lines = [line.replace("\0", "") for line in lines]
    text = "".join(line + chance.choice(LINE_ENDS) for line in lines) + (hostile_text(chance, 5) if lines else "")
    content = text.encode(chance.choice(ENCODINGS), "replace")
    return changed(content, chance, 2) if chance.random() < 0.3 else content


def _check_against_twin(path: Path, content: bytes, options: ReadingOptions) -> None:
    """Hold the lines against the sentence that says what they are."""
    mark = b"\xef\xbb\xbf"
    text = content if options.keep_bom else content.removeprefix(mark)
    text = re.sub(rb"\r+\n", b"\n", text if text.endswith(b"\n") or not text else text + b"\n")
    read = outcome(str(path), options)
    assert not isinstance(read, InputError)
    assert read[0] == text.split(b"\n")[:-1]


def _damaged_member(folder: Path, content: bytes, options: ReadingOptions, chance: random.Random) -> str:
    """Read a packed text whose packed bytes are changed: refused, or read the same each time."""
    ending = chance.choice(list(PACKERS))
    path = folder / f"packed.txt{ending}"
    path.write_bytes(changed(PACKERS[ending](content) + chance.choice([b"", PACKERS[ending](content)]), chance, 2))
    first, second = outcome(str(path), options), outcome(str(path), options)
    if isinstance(first, InputError):
        assert str(first) == str(second)
        raise first
    assert first == second
    return "read"
