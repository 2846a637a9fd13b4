"""How text is read, as one object: made where a user chooses, and handed on whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from lmgauge.base.choices import ROLES, Boundary, ErrorPolicy, Format, Role, Unit
from lmgauge.base.declaration import chosen, settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count

STORED = ("unit", "field", "group", "document", "id", "format", "errors")
"""What decides which text is read: it is written into run folders, in this order."""
_NAMES = ("group", "document", "id", "given", "join", "chat", "as_turn")
_STORED_IF_CHOSEN = ("lists", "given", "boundary", "join", "keep", "chat", "roles", "as_turn")
_NOT_IN_CHATS = ("unit", "field", "lists", "join", "given", "as_turn")


@settings
class ReadingOptions:
    """How a `Corpus` reads its files.

    Attributes:
        unit: a segment is a line, or a whole file (document); a record is always one segment.
        field: field or column with the text of a record; in CSV and TSV also its number.
        group: the group of a segment: its file, or this field; of turns also their role.
        document: what counts as independent; file, segment, unknown, blank-line, heading, or the name of a field; each of
            several text files if not given.
        id: field or column with the id of a record, for files of rows; its file and line if not given.
        format: format of all texts; taken from their names if not given.
        errors: invalid UTF-8 and NUL bytes: stop (fail), replace by U+FFFD, or leave out the segment (skip: also a record
            without text or with bad JSON).
        block_bytes: bytes to hold at a time, about; the result does not depend on it.
        lists: a JSONL field may hold a list of strings.
        keep_bom: a byte order mark at the start of a text file is text.
        join: what all segments are joined by into one; they stay apart if not given.
        given: field with text that comes before each record; the model sees it, but it is not scored.
        keep: fields or columns to copy into rows; of segments, tokens and words, and whatever reads the run.
        chat: field with the messages of a conversation; each turn of some roles is a segment, its text the content.
        roles: whose turns of a conversation are segments; or all.
        as_turn: each segment is one message of this role, in a conversation of its own.
        boundary: cut given text and what follows it into tokens as one text (joint: a token across is scored whole), or
            apart.

    Example:
        >>> ReadingOptions(unit="document").stored()["unit"]
        'document'
    """

    heading: ClassVar[str] = "Text"
    unit: Unit = "line"
    field: str = "text"
    group: str | None = "file"
    document: str | None = None
    id: str | None = None
    format: Format | None = None
    errors: ErrorPolicy = "fail"
    block_bytes: Count = 1 << 20
    lists: bool = False
    keep_bom: bool = False
    join: str | None = None
    given: str | None = None
    keep: str | Sequence[str] = ()
    boundary: Boundary = "joint"
    chat: str | None = None
    roles: str | Sequence[str] = ("assistant",)
    as_turn: Role | None = None

    def __post_init__(self) -> None:
        strings = {"field": self.field} | {name: getattr(self, name) for name in _NAMES if getattr(self, name) is not None}
        for field in ("keep", "roles"):
            value = getattr(self, field)
            several = [value] if isinstance(value, str) else list(value)
            strings |= {f"{field}[{i}]": name for i, name in enumerate(several)}
            object.__setattr__(self, field, tuple(dict.fromkeys(several)))
        for name, value in strings.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} must be a string; got {type(value).__name__}")
        if self.given is None and self.boundary == "apart":
            raise UsageError("boundary says how given text is cut from its target, and no text is given: name it with given")
        self._check_turns()

    def _check_turns(self) -> None:
        if self.chat is None and "roles" in chosen(self):
            raise UsageError("roles says whose turns of a conversation are segments: name the field of its messages (chat)")
        refused = _NOT_IN_CHATS if self.chat is not None else ("given", "join") if self.as_turn is not None else ()
        for name in chosen(self):
            if name in refused:
                raise UsageError(f"{'as_turn' if self.chat is None else 'chat'} makes turns of segments: leave out {name}")
        object.__setattr__(self, "roles", ROLES if tuple(self.roles) == ("all",) else self.roles)
        for role in self.roles or ("",):
            if role not in ROLES:
                raise UsageError(f"unknown role {role!r}: choose of {', '.join(ROLES)}, or all")

    def stored(self) -> dict[str, Any]:
        """Return the fields that decide which text is read, by name."""
        stored = {field.name: getattr(self, field.name) for field in fields(self) if field.name in STORED}
        chosen = {name: getattr(self, name) for name in _STORED_IF_CHOSEN}
        return stored | {name: value for name, value in chosen.items() if value != getattr(ReadingOptions, name)}
