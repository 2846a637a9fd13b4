"""N-best lists in records: one for each hypothesis, or one for each utterance with the list of its hypotheses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lmgauge.errors import InputError
from lmgauge.readable import first_few
from lmgauge.records.records import Row
from lmgauge.records.sources import Source
from lmgauge.tasks.nbest.lists import ListBuilder
from lmgauge.tasks.nbest.srilm import as_number
from lmgauge.tasks.settings import NbestReading

LISTS = ("nbest", "hypotheses", "hyps")
"""Fields that hold the hypotheses of an utterance, where none is named."""

SCORES = ("score", "scores")
"""Fields that hold scores, where none is named: a number, or an object (in a list of texts: a list) of numbers."""


def read_rows(rows: Iterable[Row], source: Source, reading: NbestReading, builder: ListBuilder) -> None:
    """Add the lists of a file of records."""
    for number, record in rows:
        where = f"{source.name}:{number}"
        cells = {name: cell for name in reading.score or SCORES if isinstance(cell := record.get(name), str)}
        record = record | {name: as_number(cell, "a number", where) for name, cell in cells.items()}
        utterance = record.get(reading.id)
        if isinstance(utterance, bool) or not isinstance(utterance, (str, int)):
            raise InputError(f"{where}: {_missing(record, reading.id, 'the id of the utterance', '--id')}")
        name = str(utterance)
        field = reading.hypotheses or next((name for name in LISTS if name in record), None)
        if field is None:
            builder.add(name, *_hypothesis(record, reading, where), where, source.name)
            continue
        several = record.get(field)
        if not isinstance(several, list) or not several:
            raise InputError(
                f"{where}: field {field!r} holds no list of hypotheses; name the field that does (--hypotheses)"
            )
        for place, one in enumerate(_with_scores(several, record, reading), 1):
            inside = f"{where}, hypothesis {place}"
            builder.add(name, *_hypothesis(one, reading, inside), inside, source.name)


def _with_scores(several: Sequence[Any], record: dict[str, Any], reading: NbestReading) -> list[Any]:
    # Hypotheses as records: texts get their scores from the lists beside them.
    if not all(isinstance(one, str) for one in several):
        return list(several)
    names = [name for name in reading.score or SCORES if isinstance(record.get(name), list)]
    columns = {name: record[name] for name in names if len(record[name]) == len(several)}
    return [{reading.field: text} | {name: own[i] for name, own in columns.items()} for i, text in enumerate(several)]


def _hypothesis(record: Any, reading: NbestReading, where: str) -> tuple[str, dict[str, float]]:
    if not isinstance(record, dict):
        raise InputError(f"{where}: a text, or an object with a text, is needed")
    text = record.get(reading.field)
    if not isinstance(text, str):
        raise InputError(f"{where}: {_missing(record, reading.field, 'the text', '--field')}")
    if not reading.score:
        named = next((record[name] for name in SCORES if name in record), None)
        return text, {} if named is None else dict(named) if isinstance(named, dict) else {"score": named}
    inside = record.get("scores")
    beside = inside if isinstance(inside, dict) else {}
    absent = [name for name in reading.score if name not in record and name not in beside]
    if absent:
        raise InputError(f"{where}: {_missing(record, absent[0], 'a score', '--score')}")
    return text, {name: record[name] if name in record else beside[name] for name in reading.score}


def _missing(record: dict[str, Any], field: str, what: str, option: str) -> str:
    names = first_few(list(record), 8) if record else "none"
    state = "holds something else than" if field in record else "is missing, which holds"
    return f"field {field!r} {state} {what}; the fields are {names}: name the right one ({option})"
