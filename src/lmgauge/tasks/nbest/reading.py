"""N-best lists from files: which format they have, and a reader for each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lmgauge.choices import FORMATS, NbestFormat
from lmgauge.errors import InputError, UsageError
from lmgauge.progress import say_progress
from lmgauge.readable import first_few
from lmgauge.records.formats import reader_of
from lmgauge.records.jsonl import object_rows
from lmgauge.records.lines import text_lines
from lmgauge.records.records import Fields
from lmgauge.records.sources import Source, find_sources
from lmgauge.tasks.nbest.lists import Hypothesis, ListBuilder, NbestLists
from lmgauge.tasks.nbest.rows import read_rows
from lmgauge.tasks.nbest.srilm import DECIPHER, read_srilm
from lmgauge.tasks.nbest.tables import KALDI_TEXTS, read_espnet, read_kaldi
from lmgauge.tasks.parallel import paths_of
from lmgauge.tasks.settings import NbestReading

NbestPaths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Lists = Mapping[str, Sequence[Hypothesis]]
_NBEST_FOLDER = re.compile(r"[1-9][0-9]*best_recog")


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
    builder = ListBuilder()
    named = paths_of(paths)
    if not named:
        raise UsageError("there is no n-best list to read: name a file or a folder")
    for path in _matches(named):
        if os.path.isdir(path):
            _read_folder(path, reading, builder)
        else:
            for source in find_sources(path, reading.format if reading.format in FORMATS else None):
                _read_file(source, reading, builder)
    return builder.lists(first_few(named, 1))


def _matches(paths: list[str]) -> Iterator[str]:
    # Paths, and in place of a pattern the folders that it matches; files of a pattern are found by their reader.
    for path in paths:
        folders = sorted(match for match in _glob(path) if os.path.isdir(match))
        yield from folders or [path]


def _glob(path: str) -> list[str]:
    import glob

    return glob.glob(path) if glob.has_magic(path) and not os.path.lexists(path) else []


def _read_folder(path: str, reading: NbestReading, builder: ListBuilder) -> None:
    folder = Path(path)
    try:
        names = sorted(entry for entry in os.listdir(folder) if not entry.startswith("."))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    kind = reading.format or _folder_format(names)
    if kind == "espnet":
        read_espnet(folder, [name for name in names if _NBEST_FOLDER.fullmatch(name)], reading, builder)
    elif kind == "kaldi":
        read_kaldi(folder, names, reading, builder)
    else:
        files = [name for name in names if (folder / name).is_file()]
        if not files:
            raise InputError(
                f"{path}: holds no n-best lists: neither files, nor a `text` with scores (Kaldi), nor 1best_recog (ESPnet)"
            )
        for name in files:
            _read_file(find_sources(str(folder / name))[0], reading, builder)


def _folder_format(names: list[str]) -> NbestFormat | None:
    # Format of a folder that is a list as a whole; None for a folder of files.
    if any(_NBEST_FOLDER.fullmatch(name) for name in names):
        return "espnet"
    return "kaldi" if any(name in names for name in KALDI_TEXTS) else None


def _read_file(source: Source, reading: NbestReading, builder: ListBuilder) -> None:
    if reading.format in ("kaldi", "espnet"):
        raise InputError(f"{source.name}: lists of {reading.format} are folders; name the folder that the file is in")
    if source.format != "text" and reading.format != "srilm":
        read_rows(reader_of(source, Fields()).rows(), source, reading, builder)
        return
    lines = [(number, line) for number, line in text_lines(source) if line and not line.isspace()]
    if (reading.format or _format(lines, source.name)) == "srilm":
        read_srilm(lines, source, reading, builder)
    else:
        read_rows(object_rows(lines, source.name), source, reading, builder)


def _format(lines: list[tuple[int, str]], name: str) -> NbestFormat:
    number, first = next(iter(lines), (1, ""))
    if first.lstrip().startswith("{"):
        return "jsonl"
    if first.startswith(DECIPHER) or re.match(r"\s*(\(-?\d|-?[\d.][\d.eE+-]*\s+-?[\d.][\d.eE+-]*\s+\d+(\s|$))", first):
        return "srilm"
    if not first:
        raise InputError(f"{name}: the file is empty")
    raise InputError(
        f"{name}:{number}: is not a line of an n-best list: it is neither a JSON object, nor SRILM's (score) and "
        "words, nor two scores, a number of words and words. Kaldi's and ESPnet's lists are folders: name the folder"
    )
