"""N-best lists from files, a reader for each format; and what files say of utterances by their ids: references, speakers.

    Kaldi                               ESPnet
    nbest/text     utt1-1 a dog barks   1best_recog/text    utt1 a dog barks
    nbest/ac_cost  utt1-1 5120.3        1best_recog/score   utt1 tensor(-7.31)
    nbest/lm_cost  utt1-1 31.7          2best_recog/text    utt1 a dock barks

Records (JSONL, CSV, Parquet) are a hypothesis each, or an utterance each with the list of its hypotheses.

Kaldi's scripts (steps/rnnlmrescore.sh and what follows it) call the words `words_text`, and the costs that nbest-to-linear
writes `acwt`, `lmwt.nolm` and the like. Costs are negative logs.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lmgauge.base.choices import FORMATS
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.progress import say_progress
from lmgauge.records.formats import COMPRESSIONS, reader_of
from lmgauge.records.jsonl import object_rows
from lmgauge.records.lines import text_lines
from lmgauge.records.records import Fields, Row
from lmgauge.records.sources import Source, find_sources
from lmgauge.tasks.metrics.protocol import Floats
from lmgauge.tasks.parallel import paths_of
from lmgauge.tasks.settings import NbestReading, PairsFile
from lmgauge.tasks.texts import Integers
from lmgauge.tasks.transcripts import format_of, marks_notes, read_trn

NO_WORDS = frozenset(("<eps>", "<s>", "</s>"))
"""What decoders write where there is no word; left out of every hypothesis."""

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_MOST = 1e100  # what no sum of logs of probabilities reaches

Hypothesis = str | tuple[str, float] | tuple[str, Mapping[str, float]]
"""A text, with its score or its scores by their names."""


class Heard(NamedTuple):
    """A hypothesis as a file or a program has it, whatever the format."""

    utterance: str
    text: str
    scores: Mapping[str, float]  # by name; costs as they are
    where: str  # for messages
    source: str = ""  # the file or folder that has all hypotheses of the utterance


@dataclass(frozen=True)
class NbestLists:
    """Hypotheses in the order of the recognizer, list after list."""

    ids: tuple[str, ...]  # of the utterances, one for each list
    offsets: Integers  # int64 [lists + 1], rising: list i has the hypotheses `offsets[i]` to `offsets[i + 1]` (excluded)
    texts: tuple[str, ...]
    score_names: tuple[str, ...]
    # float64 [score names, hypotheses], logs of probabilities (or what else grows with how good a hypothesis is)
    scores: Floats
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, hypotheses: Iterable[Heard], what: str) -> NbestLists:
        """Return hypotheses as lists, those of an utterance together, in the order of their appearance."""
        lists: dict[str, list[tuple[str, list[float]]]] = {}
        source_of: dict[str, str] = {}
        names: tuple[str, ...] | None = None
        signs = 0
        for utterance, text, scores, where, source in hypotheses:
            if source_of.setdefault(utterance, source) != source:
                other = source_of[utterance]
                raise InputError(f"{where}: utterance {utterance!r} is in {other} too; each utterance needs one list")
            own = tuple(scores)
            names = own if names is None else names
            if own != names and {*own} != {*names}:
                this, before = (first_few(some) if some else "none" for some in (own, names))
                raise InputError(f"{where}: has the scores {this}, hypotheses before have {before}")
            if _NOT_TEXT.search(text):
                raise InputError(
                    f"{where}: the text holds NUL or a lone surrogate, which is not text; decode the source as UTF-8"
                )
            values = [_log_score(name, scores[name], where) for name in names]
            words, left_out = _words_of(text)
            signs += left_out
            lists.setdefault(utterance, []).append((words, values))
        if names is None:
            raise InputError(f"{what}: there are no hypotheses; is this the file of n-best lists?")
        flat = [one for several in lists.values() for one in several]
        note = f"{signs:,} signs for no word ({', '.join(sorted(NO_WORDS))}) are left out of the hypotheses"
        return cls(
            ids=tuple(lists),
            offsets=np.append(0, np.cumsum([len(several) for several in lists.values()])).astype(np.int64),
            texts=tuple(text for text, _ in flat),
            score_names=names,
            scores=np.array([values for _, values in flat], dtype=np.float64).reshape(len(flat), -1).T.copy(),
            notes=(note,) if signs else (),
        )

    @classmethod
    def of_hypotheses(cls, lists: Mapping[str, Sequence[Hypothesis]]) -> NbestLists:
        """Return lists that a program has in memory."""
        # NbestLists.of_hypotheses({"u1": [("a dog", -3.0), ("a dock", -2.5)]}).scores -> [[-3.0, -2.5]]
        return cls.of(_of_program(lists), "the lists")


def _of_program(lists: Mapping[str, Sequence[Hypothesis]]) -> Iterator[Heard]:
    for name, hypotheses in lists.items():
        if isinstance(hypotheses, str) or not isinstance(hypotheses, Sequence):
            raise UsageError(f"utterance {name!r}: a list of hypotheses is needed, not {type(hypotheses).__name__}")
        for i, one in enumerate(hypotheses, 1):
            pair = (one, {}) if isinstance(one, str) else one
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
                raise UsageError(f"utterance {name!r}: hypothesis {i} is not a text, (text, score) or (text, scores)")
            text, scores = pair
            named = scores if isinstance(scores, Mapping) else {"score": scores}
            yield Heard(str(name), text, named, f"utterance {name!r}, hypothesis {i}")
        if not len(hypotheses):
            raise InputError(f"utterance {name!r}: its list is empty; leave it out, or give an empty text")


def _words_of(text: str) -> tuple[str, int]:
    # Text on one line, and how many signs for no word were left out of it.
    if "\n" in text:
        text = " ".join(text.split())
    if "<" not in text:
        return text.strip(), 0
    words = text.split()
    rest = [word for word in words if word not in NO_WORDS]
    left_out = len(words) - len(rest)
    return (" ".join(rest) if left_out else text.strip()), left_out


def is_cost(name: str) -> bool:
    """Return True if a score of this name is a cost: the less the better."""
    return "cost" in name or name.startswith(("acwt", "lmwt"))


def _log_score(name: str, value: float, where: str) -> float:
    # Score that grows with how good a hypothesis is: costs change their sign.
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _MOST
    if not usable:
        raise InputError(
            f"{where}: the score {name!r} is {str(value)[:40]!r}, not a finite number; leave the hypothesis out"
        )
    return -float(value) if is_cost(name) else float(value)


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
        for number in (number for number, one in spoken if one.readings):
            what = "the reference has alternatives, and one reading is needed here; write it plainly"
            raise InputError(f"{source.name}:{number}: {what}")
        rows = [(number, one.id, one.text) for number, one in spoken]
        notes = list(marks_notes(source.name, dict(spoken).values()))
    elif source.format == "text" or (lines and reading.field not in lines[0][1].split("\t")):
        rows = _cut_ids(lines)
    else:
        rows = _said_in_records(reader_of(source, Fields()).rows(), source.name, reading, what)
    return {key: text for key, (_, text) in by_id(rows, source.name).items()}, notes


def _said_in_records(rows: Iterable[Row], name: str, reading: NbestReading, what: str) -> Iterator[Said]:
    for number, fields in rows:
        key, text = fields.get(reading.id), fields.get(reading.field)
        if isinstance(key, bool) or not isinstance(key, (str, int)) or not isinstance(text, str):
            needed = f"the fields {reading.id!r} (an id) and {reading.field!r} ({what})"
            raise InputError(f"{name}:{number}: a record needs {needed}")
        yield number, str(key), text


NbestPaths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Lists = Mapping[str, Sequence[Hypothesis]]

LISTS = ("nbest", "hypotheses", "hyps")
"""Fields that hold the hypotheses of an utterance, where none is named."""

SCORES = ("score", "scores")
"""Fields that hold scores, where none is named: a number, or an object (in a list of texts: a list) of numbers."""

KALDI_TEXTS = ("text", "words_text", *(f"text{ending}" for ending in COMPRESSIONS))
"""Files of words with the ids of hypotheses, as Kaldi's scripts call them."""

_ESPNET_FOLDER = re.compile(r"[1-9][0-9]*best_recog")
_KALDI_ID = re.compile(r"(.+)-([0-9]{1,9})")
_TENSOR = re.compile(r"\Atensor\(([^,()]+)(,.*)?\)\Z")


def nbest_lists(given: NbestPaths | Lists, reading: NbestReading, like: NbestLists | None = None) -> NbestLists:
    """Return lists from files, or of a program; they must have the scores of others that they are to be `like`."""
    if not isinstance(given, Mapping):
        say_progress("reading n-best lists")
    lists = NbestLists.of_hypotheses(given) if isinstance(given, Mapping) else read_nbest(given, reading)
    if like is not None and {*lists.score_names} != {*like.score_names}:
        both = [first_few(one.score_names) if one.score_names else "none" for one in (lists, like)]
        raise UsageError(
            f"the lists to tune on have the scores {both[0]}, the others {both[1]}; name the same ones (--score)"
        )
    return lists


def read_nbest(paths: NbestPaths, reading: NbestReading) -> NbestLists:
    """Read n-best lists; each path is a file or a folder of a format of its own."""
    named = paths_of(paths)
    if not named:
        raise UsageError("there is no n-best list to read: name a file or a folder")
    return NbestLists.of((one for path in named for one in _of_path(path, reading)), first_few(named, 1))


def _of_path(path: str, reading: NbestReading) -> Iterator[Heard]:
    # A pattern stands for the folders that it matches, or else for files.
    is_pattern = glob.has_magic(path) and not os.path.lexists(path)
    folders = sorted(filter(os.path.isdir, glob.glob(path) if is_pattern else [path]))
    for folder in folders:
        yield from _of_folder(Path(folder), reading)
    for source in [] if folders else find_sources(path, reading.format if reading.format in FORMATS else None):
        yield from _of_file(source, reading)


def _of_folder(folder: Path, reading: NbestReading) -> Iterator[Heard]:
    try:
        names = sorted(entry for entry in os.listdir(folder) if not entry.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    ranks = [name for name in names if _ESPNET_FOLDER.fullmatch(name)]
    texts = [name for name in KALDI_TEXTS if name in names]
    if reading.format == "espnet" or (ranks and reading.format is None):
        yield from _of_espnet(folder, ranks, reading)
    elif reading.format == "kaldi" or (texts and reading.format is None):
        yield from _of_kaldi(folder, names, texts, reading)
    else:
        files = [name for name in names if (folder / name).is_file()]
        if not files:
            raise InputError(
                f"{folder}: holds no n-best lists: neither files, nor a `text` with scores (Kaldi), nor 1best_recog (ESPnet)"
            )
        for name in files:
            yield from _of_file(find_sources(str(folder / name))[0], reading)


def _of_file(source: Source, reading: NbestReading) -> Iterator[Heard]:
    if reading.format in ("kaldi", "espnet"):
        raise InputError(f"{source.name}: lists of {reading.format} are folders; name the folder that the file is in")
    if source.format != "text":
        return _of_records(reader_of(source, Fields()).rows(), source, reading)
    lines = [(number, line) for number, line in text_lines(source) if line and not line.isspace()]
    if not lines:
        raise InputError(f"{source.name}: the file is empty")
    number, first = lines[0]
    if not first.lstrip().startswith("{"):
        raise InputError(
            f"{source.name}:{number}: is not a line of an n-best list, as it is not a JSON object. Kaldi's and ESPnet's "
            'lists are folders: name the folder; of others make records: {"id": "u1", "text": "a dog", "score": -3.2}'
        )
    return _of_records(object_rows(lines, source.name), source, reading)


def _of_espnet(folder: Path, ranks: Sequence[str], reading: NbestReading) -> Iterator[Heard]:
    if not ranks:
        raise InputError(f"{folder}: has no folder 1best_recog, as ESPnet writes them")
    for rank in sorted(ranks, key=lambda name: (len(name), name)):
        titles = reading.score or [name for name in ("score",) if (folder / rank / name).is_file()]
        yield from _of_tables(folder / rank / "text", titles, str(folder))


def _of_kaldi(folder: Path, names: Sequence[str], texts: Sequence[str], reading: NbestReading) -> Iterator[Heard]:
    if not texts:
        raise InputError(f"{folder}: has no file `text` or `words_text` with the hypotheses of Kaldi's lists")
    scores = [name for name in names if is_cost(_bare(name)) or _bare(name) in SCORES]
    titles = reading.score or [name for name in scores if (folder / name).is_file()]
    ranked: dict[str, list[tuple[int, Heard]]] = {}
    for one in _of_tables(folder / texts[0], titles, str(folder)):
        match = _KALDI_ID.fullmatch(one.utterance)
        if match is None:
            raise InputError(
                f"{one.where}: {one.utterance!r} is not the id of a hypothesis, such as utt1-1: is this a transcript?"
            )
        ranked.setdefault(match[1], []).append((int(match[2]), one._replace(utterance=match[1])))
    for several in ranked.values():
        yield from (one for _, one in sorted(several, key=lambda pair: pair[0]))


def _of_tables(texts: Path, titles: Sequence[str], source: str) -> Iterator[Heard]:
    # Texts by ids, and beside them a file with the scores of each name, by the same ids.
    table = read_table(texts)
    columns = {_bare(title): _scores(texts.with_name(title), table, texts) for title in titles}
    for key, (line, text) in table.items():
        yield Heard(key, text, {title: column[key] for title, column in columns.items()}, f"{texts}:{line}", source)


def _bare(name: str) -> str:
    return next((name.removesuffix(ending) for ending in COMPRESSIONS if name.endswith(ending)), name)


def _scores(path: Path, texts: Mapping[str, object], beside: Path) -> dict[str, float]:
    table = read_table(path)
    absent = [key for key in texts if key not in table]
    if absent:
        raise InputError(f"{path}: has no score of {first_few(absent, 1)}, which {beside} has")
    return {key: _number(_TENSOR.sub(r"\1", rest), f"{path}:{line}") for key, (line, rest) in table.items()}


def _number(word: str, where: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"{where}: {word[:40]!r} is not a number") from None


def _of_records(rows: Iterable[Row], source: Source, reading: NbestReading) -> Iterator[Heard]:
    for number, record in rows:
        where = f"{source.name}:{number}"
        cells = {name: cell for name in reading.score or SCORES if isinstance(cell := record.get(name), str)}
        record = record | {name: _number(cell, where) for name, cell in cells.items()}
        utterance = record.get(reading.id)
        if isinstance(utterance, bool) or not isinstance(utterance, (str, int)):
            raise InputError(f"{where}: {_missing(record, reading.id, 'the id of the utterance', '--id')}")
        field = reading.hypotheses or next((name for name in LISTS if name in record), None)
        if field is None:
            yield Heard(str(utterance), *_text_and_scores(record, reading, where), where, source.name)
            continue
        several = record.get(field)
        if not isinstance(several, list) or not several:
            raise InputError(
                f"{where}: field {field!r} holds no list of hypotheses; name the field that does (--hypotheses)"
            )
        for place, one in enumerate(_with_scores(several, record, reading), 1):
            inside = f"{where}, hypothesis {place}"
            yield Heard(str(utterance), *_text_and_scores(one, reading, inside), inside, source.name)


def _with_scores(several: list[Any], record: dict[str, Any], reading: NbestReading) -> list[Any]:
    # Hypotheses as records: texts get their scores from the lists beside them.
    if not all(isinstance(one, str) for one in several):
        return several
    beside = {name: record.get(name) for name in reading.score or SCORES}
    columns = {name: own for name, own in beside.items() if isinstance(own, list) and len(own) == len(several)}
    return [{reading.field: text} | {name: own[i] for name, own in columns.items()} for i, text in enumerate(several)]


def _text_and_scores(record: Any, reading: NbestReading, where: str) -> tuple[str, dict[str, float]]:
    if not isinstance(record, dict):
        raise InputError(f"{where}: a text, or an object with a text, is needed")
    text = record.get(reading.field)
    if not isinstance(text, str):
        raise InputError(f"{where}: {_missing(record, reading.field, 'the text', '--field')}")
    if not reading.score:
        named = next((record[name] for name in SCORES if name in record), None)
        return text, {} if named is None else dict(named) if isinstance(named, dict) else {"score": named}
    inside = record.get("scores")
    known = (inside if isinstance(inside, dict) else {}) | record
    absent = [name for name in reading.score if name not in known]
    if absent:
        raise InputError(f"{where}: {_missing(record, absent[0], 'a score', '--score')}")
    return text, {name: known[name] for name in reading.score}


def _missing(record: dict[str, Any], field: str, what: str, option: str) -> str:
    names = first_few(list(record), 8) if record else "none"
    state = "holds something else than" if field in record else "is missing, which holds"
    return f"field {field!r} {state} {what}; the fields are {names}: name the right one ({option})"
