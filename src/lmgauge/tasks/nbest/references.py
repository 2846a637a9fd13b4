"""References of utterances by their ids, and who speaks them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from lmgauge.errors import InputError
from lmgauge.readable import first_few
from lmgauge.records.formats import reader_of
from lmgauge.records.jsonl import object_rows
from lmgauge.records.lines import text_lines
from lmgauge.records.records import Fields, Row
from lmgauge.records.sources import find_sources
from lmgauge.tasks.nbest.lines import by_id, cut_ids
from lmgauge.tasks.settings import NbestReading
from lmgauge.tasks.transcripts import Utterance, format_of, marks_notes, read_trn


def references_of(
    ids: Sequence[str], references: str | os.PathLike[str] | Mapping[str, str], reading: NbestReading
) -> tuple[list[str], list[str]]:
    """Return the reference of each utterance, and notes."""
    known, notes = (references, []) if isinstance(references, Mapping) else _read(references, ids, reading)
    name = "the references" if isinstance(references, Mapping) else os.fspath(references)
    absent = [utterance for utterance in ids if utterance not in known]
    if absent:
        present = f"its ids are such as {first_few(list(known), 2)}" if known else "it is empty"
        raise InputError(
            f"{name}: has no reference of {first_few(absent, 3)}; {present}: ids must be those of the n-best lists"
        )
    rest = len(known) - len(set(ids))
    if rest:
        verb = "has no n-best list and is" if rest == 1 else "have no n-best list and are"
        notes = [*notes, f"{name}: {rest:,} of {len(known):,} {verb} not counted"]
    return [known[utterance] for utterance in ids], notes


def speakers_of(ids: Sequence[str], speakers: str | os.PathLike[str] | Mapping[str, str], id_field: str = "id") -> list[str]:
    """Return who speaks each utterance."""
    # speakers_of(["u1", "u2"], {"u1": "anna", "u2": "ben"}) -> ['anna', 'ben']
    named = NbestReading(id=id_field, field="speaker")
    known = speakers if isinstance(speakers, Mapping) else _read(speakers, ids, named, "a speaker")[0]
    absent = [utterance for utterance in ids if not known.get(utterance)]
    if absent:
        name = "speakers" if isinstance(speakers, Mapping) else os.fspath(speakers)
        raise InputError(f"{name}: does not say who speaks {first_few(absent, 3)}; each line is an id and a speaker")
    return [known[utterance] for utterance in ids]


def _read(
    path: str | os.PathLike[str], ids: Sequence[str], reading: NbestReading, what: str = "a text"
) -> tuple[Mapping[str, str], list[str]]:
    # By the ids of utterances what a file says of each, and notes.
    source = find_sources(path)[0]
    notes: list[str] = []
    lines = [one for one in text_lines(source) if one[1].strip()] if source.format in ("text", "tsv") else []
    first = lines[0][1] if lines else ""
    if format_of(source.stored_path, None) == "trn" or (lines and _ends_with_ids(lines, ids)):
        spoken = [(number, one) for number, line in lines for one in _of_trn(line, f"{source.name}:{number}")]
        rows = [(number, one.id, one.text) for number, one in spoken]
        notes = marks_notes(source.name, (one for _, one in spoken))
    elif source.format == "text" and first.lstrip().startswith("{"):
        rows = [_of_row(row, f"{source.name}:{row.number}", reading, what) for row in object_rows(lines, source.name)]
    elif source.format == "text" or (lines and reading.field not in first.split("\t")):
        rows = list(cut_ids(lines))
    else:
        records = reader_of(source, Fields()).rows()
        rows = [_of_row(row, f"{source.name}:{row.number}", reading, what) for row in records]
    return {key: text for key, (_, text) in by_id(rows, source.name).items()}, notes


def _ends_with_ids(lines: Sequence[tuple[int, str]], ids: Sequence[str]) -> bool:
    # True if lines end with something in round brackets, and that is an id of the lists in one at least.
    last = [line.rstrip().rpartition("(")[2] for _, line in lines]
    return all(word.endswith(")") for word in last) and not {*ids}.isdisjoint(word[:-1] for word in last)


def _of_trn(line: str, where: str) -> Iterator[Utterance]:
    # Utterance of a line of a trn file; nothing for a comment.
    for utterance in read_trn(iter([(line, where)])):
        if utterance.lattice is not None:
            raise InputError(f"{where}: the reference has alternatives, and one reading is needed here; write it plainly")
        yield utterance


def _of_row(row: Row, where: str, reading: NbestReading, what: str) -> tuple[int, str, str]:
    utterance, text = row.fields.get(reading.id), row.fields.get(reading.field)
    if isinstance(utterance, bool) or not isinstance(utterance, (str, int)) or not isinstance(text, str):
        raise InputError(f"{where}: a record needs the fields {reading.id!r} (an id) and {reading.field!r} ({what})")
    return row.number, str(utterance), text
