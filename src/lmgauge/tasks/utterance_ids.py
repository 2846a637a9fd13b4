"""Notice files of speech recognition whose lines hold the ids of utterances, which would be scored as words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmgauge.tasks.texts import References, Texts

_LOOKED_AT = 1000


class _Format(NamedTuple):
    """A format of transcripts: how an id is found in a line, and the option that reads it."""

    name: str
    id_of: Callable[[str], str | None]
    where: str
    option: str


def _first_word(line: str) -> str | None:
    """Return the first word if it may be an id: 1089-134686-0000, spk1_utt2."""
    word = (line.split(maxsplit=1) or [""])[0]
    return word if word.isascii() and re.search("[0-9_]", word) else None


def _last_in_brackets(line: str) -> str | None:
    """Return what stands in round brackets at the end if it may be an id: (4T0C0201), (anna-take)."""
    _, bracket, end = line.rstrip().rpartition("(")
    word = end.removesuffix(")")
    return word if bracket and word != end and re.search("[0-9_-]", word) and not re.search(r"[)\s]", word) else None


_NUMBER = r"[0-9]+(?:\.[0-9]*)?"
_STM = re.compile(rf"(\S+\s+\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER})(?:\s|\Z)")
_CTM = re.compile(rf"(\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+)(?:\s+{_NUMBER})?\s*\Z")


def _times(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def fields(line: str) -> str | None:
        match = pattern.match(line)
        return match and match[1]

    return fields


_FORMATS = (
    _Format("stm", _times(_STM), "begins", "stm"),
    _Format("ctm", _times(_CTM), "begins", "stm"),
    _Format("Kaldi text", _first_word, "begins", "kaldi"),
    _Format("sclite trn", _last_in_brackets, "ends", "trn"),
)
_TIMED = 2
"""The first two have times: references in the one go with outputs in either."""


_NONE = [None for _ in _FORMATS]


class _File:
    """The ids that the first lines of one file hold in each format.

    Attributes:
        lines: how many were looked at.
        ids: of each format; None once a line has no id, or that of another line.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.ids: list[set[str] | None] = [set() for _ in _FORMATS]

    def add(self, texts: Texts) -> None:
        looked_at = 0 if self.ids == _NONE else min(_LOOKED_AT - self.lines, len(texts))
        for line in texts.part(0, looked_at).strings():
            if line.startswith(";;") or "<ALT" in line:  # comments, and marks between the words of ctm
                continue
            self.lines += 1
            for k, known in enumerate(_FORMATS):
                ids, utterance = self.ids[k], known.id_of(line)
                if ids is None or utterance is None or utterance in ids:
                    self.ids[k] = None
                else:
                    ids.add(utterance)

    def ids_in(self, k: int) -> set[str]:
        """Return the ids in format `k`; none if a line has none, or there is but one line."""
        return (self.ids[k] or set()) if self.lines > 1 else set()


class UtteranceIds:
    """Look at the first thousand lines of the references and of each system for ids.

    Ids are there if every line has one of its own, and some are the same in the references and in the system's output.
    """

    def __init__(self, systems: int) -> None:
        """Begin before the first segment of the references and of the systems, whose number is given."""
        self._references = _File()
        self._outputs = [_File() for _ in range(systems)]

    def add(self, references: References, hypotheses: Sequence[Texts]) -> None:
        """Look at further segments, in order; of several references at the first."""
        self._references.add(references.texts.picked(references.offsets[:-1]))
        for file, texts in zip(self._outputs, hypotheses, strict=True):
            file.add(texts)

    def note(self, names: Sequence[str]) -> str | None:
        """Return a sentence that says which files hold ids, and what to do; None if there are none.

        Args:
            names: of the references' file, then of each system's; a line of each is a segment.
        """
        for k, known in enumerate(_FORMATS):
            ids = self._references.ids_in(k)
            outputs = zip(self._outputs, names[1:], strict=True)
            if k < _TIMED and ids:
                with_ids = [name for file, name in outputs if file.ids_in(0) or file.ids_in(1)]
                what = "every line has a recording, a channel and times"
            else:
                with_ids = [name for file, name in outputs if ids & file.ids_in(k)]
                what = f"every line {known.where} with an id ({min(ids, default='')})"
            if with_ids:
                files = " and ".join([names[0], *with_ids])
                return f"{files}: {what}, as in {known.name}, and it is scored as words: give --format {known.option}"
        return None
