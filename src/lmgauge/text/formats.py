"""The formats that text is read from, a row each: the endings of file names, and the function that reads such a file.

A reader takes a `Source` and a `ReadingPass` and yields `Segments`; it is imported when a file of its format is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from lmgauge.choices import Format

if TYPE_CHECKING:
    from lmgauge.text.readers import ReadingPass
    from lmgauge.text.segments import Segments
    from lmgauge.text.streams import Source


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How files of one format are recognized and read."""

    suffixes: tuple[str, ...]  # endings of file names, lower case, in front of that of a compression
    reader: str

    def load_reader(self) -> Callable[[Source, ReadingPass], Iterator[Segments]]:
        """Return the function that reads a file."""
        module, _, name = self.reader.partition(":")
        function: Callable[[Source, ReadingPass], Iterator[Segments]] = getattr(import_module(module), name)
        return function


TEXT_FORMATS: dict[Format, TextFormat] = {
    "text": TextFormat((".txt", ".text"), "lmgauge.text.readers:read_text"),
    "jsonl": TextFormat((".jsonl", ".ndjson"), "lmgauge.text.readers:read_jsonl"),
    "tsv": TextFormat((".tsv",), "lmgauge.text.tsv:read_tsv"),
    "parquet": TextFormat((".parquet",), "lmgauge.text.parquet:read_parquet"),
}
BY_SUFFIX: dict[str, Format] = {suffix: name for name, known in TEXT_FORMATS.items() for suffix in known.suffixes}
