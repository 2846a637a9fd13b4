"""Logs of scores of items: recognized by their content, read by the importer of their program, checked, and made runs."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few, listed
from lmgauge.base.option_numbers import number, shown
from lmgauge.base.plugins import Plugins
from lmgauge.scores.imports.log import LogFile, printable
from lmgauge.tasks.items.table import ItemScores, ItemsOrigin
from lmgauge.text.reading_options import ReadingOptions

COLUMNS = "columns"
ITEM_IMPORTERS = Plugins(
    "item_importers",
    """
    lm-evaluation-harness = lmgauge.tasks.items.harness:harness
    inspect = lmgauge.tasks.items.inspect:inspect
    helm = lmgauge.tasks.items.helm:helm
    promptfoo = lmgauge.tasks.items.evals:promptfoo
    openai-evals = lmgauge.tasks.items.evals:openai_evals
    columns = lmgauge.tasks.items.columns:columns
    """,
)
"""An importer by the name of its program: a function of a `LogFile` that yields a `LoggedItem` for each attempt at an item,
and none for a file of another program. The first line of its docstring is its description. They are tried in this order, a
table of columns last."""
SUBSETS_OF_FILES = "if they are one task, give it one name; lm-evaluation-harness has it in that of samples_TASK_DATE.jsonl"
_MOST_NAMES = 12
_STRINGS = ("subset", "prompt", "content", "model", "note")
_TRUTH = {"true": 1.0, "false": 0.0}
_Key = tuple[str, str]
"""An item: its subset, and its id there."""


class LoggedItem(NamedTuple):
    """What a log says of one attempt at an item."""

    where: str  # file and line, for messages
    item: Any  # its id, a string or a number; None where it has none
    # by name: a number, true or false; None where the program gave no score, and nothing at all where it failed
    scores: Mapping[str, Any]
    fields: Mapping[str, Any]  # what else the log says of it, where fields are looked up
    sample: Any = 0  # which attempt it is, where the log counts them
    subset: str = ""  # task or split that it is of
    cluster: Any = None  # what makes it depend on others
    prompt: str = ""  # hex digest of what the model was asked
    content: str = ""  # hex digest of the item as the task has it
    model: str = ""
    lower_is_better: Sequence[str] = ()  # names of scores
    note: str = ""  # what a reader must know of the file


def read_log_items(
    files: Sequence[LogFile], scores: Sequence[str], reading: ReadingOptions, scale: Sequence[float], model: str = ""
) -> list[ItemScores]:
    """Read all files of one program; return the score of each model, or several columns of a table, one model each."""
    # reading: its id, group and document are fields of the log; scale: lowest and highest score there can be.
    known = list(map(_recognized, files))
    program, *others = dict.fromkeys(program for program, _ in known)
    if others:
        raise UsageError(f"the files are of {listed([program, *others])}: import those of each on their own")
    if (several := len(scores) > 1) and program != COLUMNS:
        raise UsageError(f"several scores are columns of a table, each of a model: import those of {program} on their own")
    log = _Log(reading, scale)
    for file, (_, items) in zip(files, known, strict=True):
        models = set[str]()
        for logged in items:
            models.add(logged.model)
            for score in scores:
                log.add(logged, score, score if several else model or logged.model, file.path)
        if model and (several or len(models) > 1):
            raise UsageError("a name is of one model, and there are several, each with its own: leave it out")
    path = files[0].path
    if unknown := [score for score in scores if score not in log.names]:
        raise UsageError(f"{path}: has no score {unknown[0]!r}; it has {first_few([*log.names], _MOST_NAMES) or 'none'}")
    log.refuse_problems(scores[0])
    if program != COLUMNS:
        log.compare_subsets()
    better, names = not log.names[scores[0]], tuple(file.path.name for file in files)
    about = "score" if several else scores[0], program, names, better, scale[0], scale[1], log.notes()
    return [log.run(label, ItemsOrigin(model or label or path.stem, *about)) for label in log.items]


def names_of_scores(files: Sequence[LogFile]) -> list[str]:
    """Return the names of the scores that logs have; none of tables, whose columns may hold anything."""
    with suppress(InputError):
        read = [items for program, items in map(_recognized, files) if program != COLUMNS]
        return list(dict.fromkeys(name for items in read for logged in items for name in logged.scores))
    return []


def _recognized(file: LogFile) -> tuple[str, Iterator[LoggedItem]]:
    for program in sorted(ITEM_IMPORTERS.names(), key=COLUMNS.__eq__):
        items = _read(file, program)
        if (first := next(items, None)) is not None:
            return program, chain([first], items)
    programs = ", ".join(name for name in ITEM_IMPORTERS.names() if name != COLUMNS)
    raise InputError(f"{file.path}: is neither a log with items' scores ({programs}) nor a table of named columns with rows")


def _read(file: LogFile, program: str) -> Iterator[LoggedItem]:
    # Importers take a log to be as its program writes it.
    try:
        for logged in ITEM_IMPORTERS.find(program)(file) or ():
            hash((logged.sample, *logged.scores))
            yield logged._replace(**{name: printable(str(getattr(logged, name))) for name in _STRINGS})
    except (LookupError, TypeError, AttributeError) as error:
        wrong = f"{type(error).__name__}: {error}"
        raise InputError(f"{file.path}: is not a log as {program} writes it ({wrong}); was it changed?") from error


def beside(file: LogFile, name: str) -> Any:
    """Return the JSON of a file in the same folder, which a program writes beside its log; {} where there is none."""
    path = file.path.with_name(name)
    return next(value for _, value in LogFile(path).values()) if path.is_file() else {}


class _Log:
    """What is found out while logs are read."""

    def __init__(self, reading: ReadingOptions, scale: Sequence[float]) -> None:
        self.reading, self.scale = reading, scale
        self.names: dict[str, bool] = {}  # of all scores, and whether a lower one is better
        # by model: columns of `ItemScores`; of each item where it is first, its content and its prompt, and its attempts
        self.rows: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.items: defaultdict[str, dict[_Key, tuple[str, str, str]]] = defaultdict(dict)
        self.attempts: defaultdict[str, dict[_Key, set[object]]] = defaultdict(dict)
        # what is wrong, what a reader must know, and where
        self.problems: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.remarks: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def add(self, logged: LoggedItem, score: str, model: str, path: Path) -> None:
        """Take what a log says of an attempt at an item."""
        group = None if self.reading.group == "file" else self.reading.group
        item = self._field(logged, self.reading.id, logged.item)
        subset = self._field(logged, group, logged.subset)
        cluster = self._field(logged, self.reading.document, logged.cluster)
        where = f"{logged.where} (item {shown(item)})"
        if not item:
            self.problems["has no id: name its field with --id"][where] = None
        if group is not None and logged.subset:
            item = f"{logged.subset}/{item}"  # ids of one task may be those of another
        self.names.update((name, name in logged.lower_is_better) for name in logged.scores)
        if logged.note:
            self.remarks[logged.note] = {}
        if logged.scores:
            self._check_same(logged, model, (subset, item), where)
        if logged.scores.get(score, logged.scores or None) is None:
            self.remarks["attempts without a score, left out"][where] = None
        if score not in logged.scores:
            return
        attempts, value = self.attempts[model].setdefault((subset, item), set()), logged.scores[score]
        if value is not None:
            if (path, logged.sample) in attempts:
                self.problems["is scored twice; in a table, a column sample tells attempts at an item apart"][where] = None
            number = self._number(value, f"{logged.where} (item {shown(item)}, {score} {shown(value)})")
            self.rows[model].append((item, number, len(attempts), subset, cluster, logged.prompt, logged.content))
            attempts.add((path, logged.sample))

    def _field(self, logged: LoggedItem, name: str | None, own: Any) -> str:
        # What the log says of an item in a field that the user named, or in that of its program.
        value = own if name is None else logged.fields.get(name)
        if name is not None and value in (None, ""):
            names = first_few(list(logged.fields), _MOST_NAMES)
            self.problems[f"has no field {name!r}; it has {names}"][logged.where] = None
        return printable(value) if isinstance(value, str) else "" if value is None else json.dumps(value)

    def _check_same(self, logged: LoggedItem, model: str, key: _Key, where: str) -> None:
        _, content, prompt = self.items[model].setdefault(key, (where, logged.content, logged.prompt))
        if content != logged.content or (prompt != logged.prompt and not content):
            what = "text" if content != logged.content else "prompt"
            self.problems[f"has another {what} than the item that was scored under this id before"][where] = None
        elif prompt != logged.prompt:
            self.remarks["attempts in other prompts than the first at the item"][where] = None

    def _number(self, value: Any, where: str) -> float:
        score, (low, high) = math.nan, self.scale
        with suppress(InputError):
            score = number(_TRUTH.get(str(value).lower(), value), where)
        if not low <= score <= high:
            what = "is not a number" if math.isnan(score) else f"is not from {low:g} to {high:g} (--scale)"
            self.problems[what][where] = None
        return score

    def refuse_problems(self, score: str) -> None:
        """Refuse the log if something is wrong with it, with the first three places."""
        for model, items in self.items.items():
            lacking = {place: None for key, (place, *_) in items.items() if key not in self.attempts[model]}
            if lacking:
                self.problems[f"has no score {score!r}"] = lacking
        for what, places in self.problems.items():
            first, *more = places
            raise InputError(f"{first}: {what}" + (f"; {len(more):,} more like it: {', '.join(more[:2])}" if more else ""))

    def compare_subsets(self) -> None:
        """Note where files may be of one task and count as several, by their names."""
        for items in self.items.values():
            contents = defaultdict[str, dict[str, str]](dict)  # by subset and id
            for (subset, item), (_, content, _) in items.items():
                contents[subset][item] = content
            first, *others = contents.values()
            if others and all(other == first for other in others):
                self.remarks[f"the same ids count as {len(contents)} subsets: {SUBSETS_OF_FILES}"] = {}

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know, with the first three places."""
        places = {what: f": {len(own):,}, such as {', '.join([*own][:3])}" for what, own in self.remarks.items() if own}
        return tuple(what + places.get(what, "") for what in self.remarks)

    def run(self, model: str, origin: ItemsOrigin) -> ItemScores:
        """Return the scores of a model."""
        if not self.rows[model]:
            raise InputError(f"{origin.files[0]}: no item has a score {origin.score!r}")
        item, score, sample, *strings = map(list, zip(*self.rows[model], strict=True))
        return ItemScores(origin, item, np.array(score), np.array(sample), *strings)
