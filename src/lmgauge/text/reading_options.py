"""How text is read, as one object: made where a user chooses, and handed on whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from lmgauge.choices import BOUNDARIES, ERROR_POLICIES, UNITS, Boundary, ErrorPolicy, Format, TranscriptFormat, Unit
from lmgauge.errors import UsageError
from lmgauge.option_numbers import check_whole

STORED = ("unit", "field", "group", "document", "id", "format", "errors")
"""What decides which text is read: it is written into run folders, in this order."""
_NAMES = ("group", "document", "id", "given", "join")
_STORED_IF_CHOSEN = ("lists", "given", "boundary", "join", "keep")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a `Corpus` reads its files; `Corpus.from_files` explains each field, with the same names and defaults.

    Attributes:
        unit: a segment of a text file is a "line" or the whole "document".
        field: the JSONL field or the column that holds the text.
        group: "file", the field that names the group of a record, or None for no groups.
        document: what makes up a document, or the field that names it; None for the rule by the number of files.
        id: the field that names a record.
        format: one of `lmgauge.choices.FORMATS` for all files; None to go by their names.
        errors: "fail", "replace" or "skip" where bytes are not valid text.
        block_bytes: bytes to hold at a time, about; the result does not depend on it.
        lists: a JSONL field may hold a list of strings.
        keep_bom: a byte order mark at the start of a text file is text.
        join: what all segments are joined by into one; None to leave them apart.
        given: the field or column with the text that is given before each segment; None for none.
        keep: the fields or columns to carry along into rows of segments, tokens and words: one name, or several.
        boundary: how given text and target are cut into tokens: "joint", as one text, or "apart".

    Example:
        >>> ReadingOptions(unit="document").stored()["unit"]
        'document'
    """

    unit: Unit = "line"
    field: str = "text"
    group: str | None = "file"
    document: str | None = None
    id: str | None = None
    format: Format | TranscriptFormat | None = None
    errors: ErrorPolicy = "fail"
    block_bytes: int = 1 << 20
    lists: bool = False
    keep_bom: bool = False
    join: str | None = None
    given: str | None = None
    keep: str | Sequence[str] = ()
    boundary: Boundary = "joint"

    def __post_init__(self) -> None:
        choices = (
            ("unit", self.unit, UNITS),
            ("errors", self.errors, ERROR_POLICIES),
            ("boundary", self.boundary, BOUNDARIES),
        )
        for name, value, known in choices:
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}: choose one of {', '.join(known)}")
        strings = {"field": self.field} | {name: getattr(self, name) for name in _NAMES if getattr(self, name) is not None}
        carried = [self.keep] if isinstance(self.keep, str) else list(self.keep)
        strings |= {f"keep[{i}]": name for i, name in enumerate(carried)}
        object.__setattr__(self, "keep", tuple(dict.fromkeys(carried)))
        for name, value in strings.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} must be a string; got {type(value).__name__}")
        if self.given is None and self.boundary != "joint":
            raise UsageError("boundary says how given text is cut from its target, and no text is given: name it with given")
        check_whole("block_bytes", self.block_bytes, 1)

    def stored(self) -> dict[str, Any]:
        """Return the fields that decide which text is read, by name."""
        stored = {field.name: getattr(self, field.name) for field in fields(self) if field.name in STORED}
        chosen = {name: getattr(self, name) for name in _STORED_IF_CHOSEN}
        return stored | {name: value for name, value in chosen.items() if value != getattr(ReadingOptions, name)}
