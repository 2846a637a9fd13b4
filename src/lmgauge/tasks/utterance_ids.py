"""Recognize files of speech tools by the ids of utterances in their lines, and notice ids that would be scored as words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lmgauge.choices import TRANSCRIPT_FORMATS, TranscriptFormat
from lmgauge.errors import InputError
from lmgauge.records.sources import find_sources
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import References, Texts
from lmgauge.tasks.transcripts import Utterance, format_of, lines_of, read_kaldi, read_trn

_LOOKED_AT = 1000
_LEAST = 20
_READERS: Mapping[TranscriptFormat, Callable[[Iterator[tuple[str, str]]], Iterator[Utterance]]] = {
    "kaldi": read_kaldi,
    "trn": read_trn,
}
_ID = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z_-])\w(?:[\w.:/-]*\w)?", re.ASCII)
"""What is taken for an id where no other file says what ids look like: anna-1, test001, but neither 12 nor anna."""


def formats_of(paths: Sequence[str], reading: Reading) -> dict[str, TranscriptFormat | None]:
    """Return the format of each file: by the option, by its name, or by its ids; None for texts and records."""
    # A text has ids if each of its lines has one of its own. Beside a file whose name says that it has ids, some of them
    # must be the same. Where no name says so, all files must have the same ids, which look like ids, and words beside them.
    if not paths or any(map(os.path.isdir, paths)):
        return {path: format_of(path, reading.format) for path in paths}
    sources = find_sources(paths, None if reading.format in TRANSCRIPT_FORMATS else reading.format)
    formats = {source.path: format_of(source.path, reading.format) for source in sources}
    unnamed = [source for source in sources if formats[source.path] is None]
    is_told = reading.format or reading.id or reading.ref_field or reading.unit != "line" or "stm" in formats.values()
    readable = not any(source.one_shot for source in sources) and all(source.format == "text" for source in unnamed)
    if is_told or not unnamed or not readable:
        return formats
    named = [(path, form) for path, form in formats.items() if form is not None]
    for path, form in named[:1] or [(unnamed[0].path, form) for form in _READERS]:
        wanted = _ids(path, form, reading, by_look=not named)
        for source in unnamed if wanted else []:
            read = ((own, _ids(source.path, own, reading, by_look=not named)) for own in _READERS)
            formats[source.path] = next((own for own, ids in read if ids & wanted and (named or ids == wanted)), None)
        if all(formats.values()):
            return formats
    return formats if named else dict.fromkeys(formats)


def _ids(path: str, form: TranscriptFormat, reading: Reading, by_look: bool) -> set[str]:
    # Ids of a file in this format; none if it is not, or if they do not look like ids.
    ids: set[str] = set()
    spoken = 0
    with suppress(InputError):
        for one in _READERS[form](lines_of(path, reading, lambda _: None)):
            if one.id in ids or (by_look and not _ID.fullmatch(one.id)):
                return set()
            ids.add(one.id)
            spoken += bool(one.text)
        if not by_look or 2 * spoken >= len(ids) > 1:
            return {name.lower() for name in ids}
    return set()


class _Format(NamedTuple):
    """A format of transcripts: how the id in a line is found, and the option that reads it."""

    name: str
    id: re.Pattern[str]  # the first group is the id
    where: str
    option: str


_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_FORMATS = (
    _Format("stm", re.compile(rf"(\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER})(?:\s|\Z)"), "begins", "stm"),
    _Format("ctm", re.compile(rf"(\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+)(?:\s+{_NUMBER})?\s*\Z"), "begins", "stm"),
    # 1089-134686-0000, spk1_utt2
    _Format("Kaldi text", re.compile(r"\s*(?=\S*[0-9_])([!-~]+)(?:\s|\Z)"), "begins", "kaldi"),
    _Format("sclite trn", re.compile(r".*\((?=[^()\s]*[0-9_-])([^()\s]+)\)\s*\Z", re.DOTALL), "ends", "trn"),
    _Format("Kaldi text", re.compile(r"\s*(\S+)\s+\S"), "begins", "kaldi"),
)
_TIMED = 2
"""The first two have times: references in the one go with outputs in either."""
_DOUBTFUL = 4
"""The last takes any word for an id: many lines must have one of their own, and all files the same ones."""


def _ids_in(lines: Sequence[str], form: _Format) -> set[str]:
    # Ids of lines; none if a line has none of its own, or there is but one line.
    ids = {match[1] for line in lines if (match := form.id.match(line)) is not None}
    return ids if len(ids) == len(lines) > 1 else set()


class UtteranceIds:
    """Look at the first thousand lines of the references and of each system for ids."""

    # Ids are there if every line has one of its own, and some are the same in the references and in the system's output.

    def __init__(self, systems: int) -> None:
        # Begin before the first segment of the references and of the systems, whose number is given.
        self._lines: list[list[str]] = [[] for _ in range(1 + systems)]

    def add(self, references: References, hypotheses: Sequence[Texts]) -> None:
        """Look at further segments, in order; of several references at the first."""
        for lines, texts in zip(self._lines, (references.texts.picked(references.offsets[:-1]), *hypotheses), strict=True):
            first = texts.part(0, min(_LOOKED_AT - len(lines), len(texts))).strings()
            # without comments, and marks between the words of ctm
            lines += [line for line in first if not line.startswith(";;") and "<ALT" not in line]

    def note(self, names: Sequence[str]) -> str | None:
        """Return a sentence that says which files hold ids, and what to do; None if there are none."""
        for k, known in enumerate(_FORMATS):
            ids, *outputs = (_ids_in(lines, known) for lines in self._lines)
            of_systems = zip(names[1:], outputs, strict=True)
            if k < _TIMED and ids:
                timed = zip(names[1:], self._lines[1:], strict=True)
                with_ids = [name for name, lines in timed if any(_ids_in(lines, form) for form in _FORMATS[:_TIMED])]
                what = "every line has a recording, a channel and times"
            elif k == _DOUBTFUL:
                with_ids = [name for name, own in of_systems if len(ids) >= _LEAST and ids == own]
                what = f"every line begins with a word of its own ({min(ids, default='')}), the same ones: perhaps ids"
            else:
                with_ids = [name for name, own in of_systems if ids & own]
                what = f"every line {known.where} with an id ({min(ids, default='')})"
            if with_ids:
                files = " and ".join([names[0], *with_ids])
                way_out = f"take it out, or, for wer and cer, give --format {known.option}"
                return f"{files}: {what}, as in {known.name}, and it is scored as words: {way_out}"
        return None
