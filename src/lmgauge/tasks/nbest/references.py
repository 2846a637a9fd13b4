"""What files say of utterances by their ids: the reference of each, who speaks it, and tables of Kaldi's tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmgauge.errors import InputError
from lmgauge.readable import first_few
from lmgauge.records.formats import reader_of
from lmgauge.records.lines import text_lines
from lmgauge.records.records import Fields, Row
from lmgauge.records.sources import find_sources
from lmgauge.tasks.settings import NbestReading, PairsFile
from lmgauge.tasks.transcripts import format_of, marks_notes, read_trn

Said = tuple[int, str, str]
"""The number of a line or record, an id, and what is said of it."""


def references_of(ids: Sequence[str], references: PairsFile, reading: NbestReading) -> tuple[list[str], list[str]]:
    """Return the reference of each utterance, and notes."""
    known, notes = (references, []) if isinstance(references, Mapping) else _read(references, reading)
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


def speakers_of(ids: Sequence[str], speakers: PairsFile, id_field: str = "id") -> list[str]:
    """Return who speaks each utterance."""
    # speakers_of(["u1", "u2"], {"u1": "anna", "u2": "ben"}) -> ['anna', 'ben']
    named = NbestReading(id=id_field, field="speaker")
    known = speakers if isinstance(speakers, Mapping) else _read(speakers, named, "a speaker")[0]
    absent = [utterance for utterance in ids if not known.get(utterance)]
    if absent:
        name = "speakers" if isinstance(speakers, Mapping) else os.fspath(speakers)
        raise InputError(f"{name}: does not say who speaks {first_few(absent, 3)}; each line is an id and a speaker")
    return [known[utterance] for utterance in ids]


def read_table(path: str | os.PathLike[str]) -> dict[str, tuple[int, str]]:
    """Return by the id that begins each line of a file its number and what follows the id."""
    source = find_sources(path, "text")[0]
    return by_id(_cut_ids(text_lines(source)), source.name)


def by_id(rows: Iterable[Said], name: str) -> dict[str, tuple[int, str]]:
    """Return numbered texts by their ids."""
    table: dict[str, tuple[int, str]] = {}
    for number, key, text in rows:
        if key in table:
            raise InputError(f"{name}:{number}: the id {key!r} is on line {table[key][0]} too; each id needs one line")
        table[key] = (number, text)
    return table


def _cut_ids(lines: Iterable[tuple[int, str]]) -> Iterator[Said]:
    # Lines that begin with an id, blank ones left out.
    # list(_cut_ids([(1, "u1\ta dog "), (2, ""), (3, "u2")])) -> [(1, 'u1', 'a dog'), (3, 'u2', '')]
    parts = ((number, line.strip().replace("\t", " ", 1).partition(" ")) for number, line in lines)
    return ((number, key, rest.strip()) for number, (key, _, rest) in parts if key)


def _read(path: str | os.PathLike[str], reading: NbestReading, what: str = "a text") -> tuple[Mapping[str, str], list[str]]:
    # By the ids of utterances what a file says of each, and notes.
    source = find_sources(path)[0]
    notes: list[str] = []
    rows: Iterable[Said]
    lines = [one for one in text_lines(source) if one[1].strip()] if source.format in ("text", "tsv") else []
    if format_of(source.stored_path, None) == "trn":
        spoken = [(number, one) for number, line in lines for one in read_trn(iter([(line, f"{source.name}:{number}")]))]
        rows = [(number, one.id, one.text) for number, one in spoken]
        notes = list(marks_notes(source.name, dict(spoken).values()))
        if several := sum(one.readings is not None for _, one in spoken):
            count = "1 reference has" if several == 1 else f"{several:,} references have"
            notes.append(f"{source.name}: {count} alternatives, of which the first is taken")
    elif source.format == "text" or (lines and reading.field not in lines[0][1].split("\t")):
        rows = _cut_ids(lines)
    else:
        rows = _of_records(reader_of(source, Fields()).rows(), source.name, reading, what)
    return {key: text for key, (_, text) in by_id(rows, source.name).items()}, notes


def _of_records(rows: Iterable[Row], name: str, reading: NbestReading, what: str) -> Iterator[Said]:
    for number, fields in rows:
        key, text = fields.get(reading.id), fields.get(reading.field)
        if isinstance(key, bool) or not isinstance(key, (str, int)) or not isinstance(text, str):
            needed = f"the fields {reading.id!r} (an id) and {reading.field!r} ({what})"
            raise InputError(f"{name}:{number}: a record needs {needed}")
        yield number, str(key), text
