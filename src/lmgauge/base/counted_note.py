"""A note that says in how many segments something happened, so that the notes of parts of a text add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self


class CountedNote(str):
    """A sentence with two numbers: how many segments it is about, and how many there are."""

    template: str  # the sentence, with `{count:,}` and `{total:,}` where the numbers stand
    number: int

    @classmethod
    def of(cls, template: str, count: int, total: int) -> Self:
        """Return the note with its numbers."""
        note = cls(template.format(count=count, total=total))
        note.template, note.number = template, count
        return note


def merged_notes(parts: Sequence[Sequence[str]], total: int) -> list[str]:
    """Return the notes on a whole text, from those on its parts."""
    counts: dict[str, int | None] = {}
    for note in (note for notes in parts for note in notes):
        if isinstance(note, CountedNote):
            counts[note.template] = (counts.get(note.template) or 0) + note.number
        else:
            counts[note] = None
    return [note if count is None else CountedNote.of(note, count, total) for note, count in counts.items()]
