"""Logs of scores of items: recognized by their content, read by the importer of their program, checked, and made runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import counted, first_few
from lmgauge.base.option_numbers import number, shown
from lmgauge.base.plugins import Plugins
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.table import ItemScores, ItemsOrigin

COLUMNS = "columns"
ITEM_IMPORTERS = Plugins(
    "item_importers",
    """
    lm-evaluation-harness = lmgauge.tasks.items.harness:harness
    columns = lmgauge.tasks.items.columns:columns
    """,
)
"""An importer by the name of its program: a function that takes a `LogFile` and returns an iterator of `LoggedItem`, or None
for a file of another program. The first line of its docstring is its description. A table of columns is tried last."""
_NAMES_SHOWN = 12
_TRUTH = {"true": 1.0, "false": 0.0}
_TWICE = "is scored twice; in a table, a column sample tells attempts at an item apart"


class LoggedItem(NamedTuple):
    """What a log says of one attempt at an item."""

    where: str  # file and line, for messages
    item: Any  # its id, a string or a number; None where it has none
    scores: Mapping[str, Any]  # by name: a number, true or false; None where the program gave no score
    fields: Mapping[str, Any]  # what else the log says of it, where fields are looked up
    sample: Any = 0  # which attempt it is, where the log counts them
    subset: str = ""  # task or split that it is of
    cluster: Any = None  # what makes it depend on others
    prompt: str = ""  # hex digest of what the model was asked
    content: str = ""  # hex digest of the item as the task has it
    model: str = ""
    lower_is_better: Sequence[str] = ()  # names of scores
    note: str = ""  # what a reader must know of the file


@dataclass(frozen=True)
class ItemReading:
    """How logs are read."""

    scores: Sequence[str]  # names of those that are wanted
    id: str | None = None  # fields of the log in place of what its importer takes
    subset: str | None = None
    cluster: str | None = None
    scale: tuple[float, float] = (0.0, 1.0)  # lowest and highest score there can be
    lower_is_better: bool = False
    model: str = ""  # its name, in place of the log's


def read_log_items(files: Sequence[LogFile], reading: ItemReading) -> list[ItemScores]:
    """Read all files of one program; return the scores of each model, and of each score that is wanted."""
    twice = next((file.path for place, file in enumerate(files) if file.path in [one.path for one in files[:place]]), None)
    if twice is not None:
        raise UsageError(f"{twice} is named twice, and would be read as two attempts at each item: leave one out")
    known = list(map(_recognized, files))
    program, logs = known[0][0], _Logs(reading, str(files[0].path))
    for file, (own, _) in zip(files, known, strict=True):
        if own != program:
            raise UsageError(f"{files[0].path} is of {program}, and {file.path} of {own}: import those of each on their own")
    for place, (_, items) in enumerate(known):
        for logged in items:
            logs.add(logged, place)
    return logs.runs_of(program, tuple(file.path.name for file in files))


def names_of_scores(files: Sequence[LogFile]) -> list[str]:
    """Return the names of the scores that logs have; none of tables, whose columns may hold anything."""
    known = [read for file in files if (read := _read(file)) is not None and read[0] != COLUMNS]
    return list(dict.fromkeys(name for _, items in known for logged in items for name in logged.scores))


def _read(file: LogFile) -> tuple[str, Iterator[LoggedItem]] | None:
    for name in sorted(ITEM_IMPORTERS.names(), key=COLUMNS.__eq__):
        if (items := ITEM_IMPORTERS.find(name)(file)) is not None:
            return name, items
    return None


def _recognized(file: LogFile) -> tuple[str, Iterator[LoggedItem]]:
    if (read := _read(file)) is not None:
        return read
    programs = ", ".join(name for name in ITEM_IMPORTERS.names() if name != COLUMNS)
    raise InputError(f"{file.path}: is neither a log that has scores of items ({programs}) nor a table with named columns")


def beside(file: LogFile, name: str) -> Any:
    """Return the JSON of a file in the same folder, which a program writes beside its log; None where there is none."""
    path = file.path.with_name(name)
    return next((value for _, value in LogFile(path).values()), None) if path.is_file() else None


@dataclass
class _Run:
    """The scores of one name of one model, as they are read."""

    rows: list[tuple[str, float, int, str, str, str, str]] = field(default_factory=list)  # columns of `ItemScores`
    attempts: dict[tuple[str, str], set[object]] = field(default_factory=dict)  # of each item, by its subset and id
    unscored: list[str] = field(default_factory=list)  # where the program gave no score
    lower_is_better: bool = False


class _Logs:
    """What is found out while logs are read."""

    def __init__(self, reading: ItemReading, path: str) -> None:
        self.reading, self.path = reading, path
        self.runs: dict[tuple[str, str], _Run] = {}  # by model, and by name of the score
        self.items: dict[str, dict[tuple[str, str], LoggedItem]] = {}  # of each model, and what was first said of each
        self.names: dict[str, None] = {}  # of all scores
        self.notes: dict[str, None] = {}
        self.problems: dict[str, list[str]] = {}  # what is wrong, and where

    def add(self, logged: LoggedItem, file: int) -> None:
        """Take what a log says of an attempt at an item."""
        reading = self.reading
        item = self._field(logged, reading.id, logged.item, logged.where, "has no id: name its field with --id")
        where = f"{logged.where} (item {shown(item)})"
        cluster = self._field(logged, reading.cluster, logged.cluster, where)
        subset = self._field(logged, reading.subset, logged.subset, where)
        if reading.subset is not None and logged.subset:
            item = f"{logged.subset}/{item}"  # ids of one task may be those of another
        key = subset, item
        self._check_same(logged, self.items.setdefault(logged.model, {}).setdefault(key, logged), where)
        self.names.update(dict.fromkeys(logged.scores))
        self.notes.update(dict.fromkeys(filter(None, (logged.note,))))
        for name, value in logged.scores.items():
            if not any(_is_called(name, wanted) for wanted in reading.scores):
                continue
            run = self.runs.setdefault((logged.model, name), _Run())
            run.lower_is_better = reading.lower_is_better or name in logged.lower_is_better
            attempts = run.attempts.setdefault(key, set())
            if (file, logged.sample) in attempts:
                self._problem(_TWICE, where)
            score = self._score(value, f"{logged.where} (item {shown(item)}, {name} {shown(value)})")
            if score is None:
                run.unscored.append(where)
            else:
                run.rows.append((item, score, len(attempts), subset, cluster, logged.prompt, logged.content))
                attempts.add((file, logged.sample))

    def _problem(self, what: str, where: str) -> None:
        self.problems.setdefault(what, []).append(where)

    def _field(self, logged: LoggedItem, name: str | None, own: Any, where: str, missing: str = "") -> str:
        # What the log says of an item in a field that the user named, or in that of its program.
        value = own if name is None else logged.fields.get(name)
        if value in (None, ""):
            if name is not None:
                missing = f"has no field {name!r}; it has {first_few(list(logged.fields), _NAMES_SHOWN)}"
            if missing:
                self._problem(missing, where)
            return ""
        return value if isinstance(value, str) else json.dumps(value)

    def _check_same(self, logged: LoggedItem, first: LoggedItem, where: str) -> None:
        if logged.content and first.content:
            if logged.content != first.content:
                self._problem("is not the item that was scored under this id before", where)
            elif logged.prompt != first.prompt:
                self.notes["attempts at an item differ in their prompts, as in few-shot examples or a chat template"] = None
        elif logged.prompt != first.prompt:
            self._problem("has another prompt than the item that was scored under this id before", where)

    def _score(self, value: Any, where: str) -> float | None:
        low, high = self.reading.scale
        if value is None:
            return None
        try:
            score = _TRUTH.get(str(value).lower()) if isinstance(value, (bool, str)) else None
            score = number(value, where) if score is None else score
        except InputError:
            score = math.nan
        if not low <= score <= high:
            self._problem("is not a number" if math.isnan(score) else f"is not from {low:g} to {high:g} (--scale)", where)
        return score

    def runs_of(self, program: str, files: tuple[str, ...]) -> list[ItemScores]:
        """Return what was read, if nothing is wrong with it."""
        reading = self.reading
        names = [self._name(wanted) for wanted in reading.scores]
        for (model, items), name in product(self.items.items(), names):
            scored = self.runs.get((model, name), _Run()).attempts
            for key in items.keys() - scored.keys():
                self._problem(f"has no score {name!r}", f"{items[key].where} (item {shown(key[1])})")
        for what, places in self.problems.items():
            more = f"; {len(places) - 1:,} more like it: {', '.join(places[1:3])}" if len(places) > 1 else ""
            raise InputError(f"{places[0]}: {what}{more}")
        of_models = program == COLUMNS and len(names) > 1  # each column is of one
        if reading.model and (of_models or len(self.items) > 1):
            raise UsageError("a name is of one model, and the log has several, each with its own: leave it out")
        runs = []
        for model, name in product(self.items, names):
            run, label = self.runs[model, name], reading.model or (name if of_models else model or Path(files[0]).stem)
            if not run.rows:
                raise InputError(f"{self.path}: no item has a score {name!r}")
            shown_name, notes = "score" if of_models else name, tuple(self._notes(run))
            origin = ItemsOrigin(label, shown_name, program, files, not run.lower_is_better, *reading.scale, notes)
            item, score, sample, *strings = map(list, zip(*run.rows, strict=True))
            runs.append(ItemScores(origin, item, np.array(score), np.array(sample), *strings))
        return runs

    def _name(self, wanted: str) -> str:
        # The score that is meant, by its whole name or by its beginning.
        names = [name for name in self.names if name == wanted] or [name for name in self.names if _is_called(name, wanted)]
        if not names:
            raise UsageError(f"{self.path}: has no score {wanted!r}; it has {first_few(list(self.names), _NAMES_SHOWN)}")
        if len(names) > 1:
            raise UsageError(f"{self.path}: {wanted!r} may be {first_few(names, _NAMES_SHOWN)}: name one of these")
        return names[0]

    def _notes(self, run: _Run) -> Iterator[str]:
        yield from self.notes
        if run.unscored:
            yield f"{counted(len(run.unscored), 'attempt')} without a score left out: {', '.join(run.unscored[:3])}"
        if several := sum(len(attempts) > 1 for attempts in run.attempts.values()):
            yield f"{counted(several, 'item')} with several scores, up to {max(map(len, run.attempts.values()))} each"


def _is_called(name: str, wanted: str) -> bool:
    # True for the name of a score, or its metric, where lm-evaluation-harness has METRIC,FILTER (none is the plain one).
    return wanted in (name, name.partition(",")[0], f"{name},none")
