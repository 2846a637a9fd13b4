"""A note that says in how many segments something happened, so that the notes of parts of a text add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self


class CountedNote(str):
    """A sentence with two numbers: how many segments it is about, and how many there are.

    Attributes:
        template: the sentence, with `{count:,}` and `{total:,}` where the numbers stand.
        number: segments that it is about.

    Example:
        >>> CountedNote.of("{count:,} of {total:,} segments are long", 2, 10)
        '2 of 10 segments are long'
    """

    template: str
    number: int

    @classmethod
    def of(cls, template: str, count: int, total: int) -> Self:
        """Return the note with its numbers.

        Args:
            template: the sentence; braces that are text are doubled.
            count: segments that it is about.
            total: all segments.
        """
        note = cls(template.format(count=count, total=total))
        note.template, note.number = template, count
        return note


def merged_notes(parts: Sequence[Sequence[str]], total: int) -> list[str]:
    """Return the notes on a whole text, from those on its parts.

    Args:
        parts: of each part its notes.
        total: segments of the whole text.

    Example:
        >>> note = CountedNote.of("{count:,} of {total:,} segments are long", 2, 10)
        >>> merged_notes([[note, "fast"], [], [note]], 30)
        ['4 of 30 segments are long', 'fast']
    """
    counts: dict[str, int | None] = {}
    for note in (note for notes in parts for note in notes):
        if isinstance(note, CountedNote):
            counts[note.template] = (counts.get(note.template) or 0) + note.number
        else:
            counts[note] = None
    return [note if count is None else CountedNote.of(note, count, total) for note, count in counts.items()]
