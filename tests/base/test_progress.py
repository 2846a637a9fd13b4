"""Notes on parts of a text add up to the note on the whole."""

from __future__ import annotations

from lmgauge.base.progress import CountedNote, merged_notes

LONG = "{count:,} of {total:,} segments are {{long}}"


def test_notes_add_up() -> None:
    parts = [[CountedNote.of(LONG, 2, 5), "fast"], ["fast"], [CountedNote.of(LONG, 1_000, 2_000)]]
    whole = merged_notes(parts, 2_010)
    assert whole == ["1,002 of 2,010 segments are {long}", "fast"]
    assert isinstance(whole[0], CountedNote)
    assert whole[0].number == 1_002
    assert merged_notes([[], []], 3) == []
