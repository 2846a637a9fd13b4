"""Substitutions of words and phrases in transcripts, from a file of pairs: spellings, abbreviations, numbers.

e-mail<TAB>email          a pair on each line; TAB, or => as in the GLM files of NIST's tools
gonna => going to         whole words only, phrases too; nothing on the right takes the words out
;; a comment
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lmgauge.base.errors import InputError, UsageError

_COMMENT = ";;"
_GLM_CONTEXT = re.compile(r"\s/\s*\[\s*\]\s*__\s*\[\s*\]\s*\Z")
# Between the words of one text; no text holds NUL, which stands between two.
_BETWEEN = re.compile(r"([\s\0]+)")

Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Substitutions:
    """Words and phrases, and what takes their place."""

    pairs: tuple[tuple[Phrase, Phrase], ...]  # phrase and what takes its place, both as words
    _by_first: Mapping[str, list[tuple[Phrase, Phrase]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Order the phrases for look-up: by their first word, the longest first.
        by_first: dict[str, list[tuple[Phrase, Phrase]]] = {}
        for pair in sorted(self.pairs, key=lambda pair: -len(pair[0])):
            by_first.setdefault(pair[0][0], []).append(pair)
        object.__setattr__(self, "_by_first", by_first)

    @classmethod
    def of(cls, given: Substitutions | Mapping[str, str] | str | os.PathLike[str]) -> Substitutions:
        """Return substitutions of pairs, or of a file of pairs."""
        if isinstance(given, Substitutions):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls._of_file(os.fspath(given))
        if not isinstance(given, Mapping):
            raise UsageError(f"substitutions are the path of a file or a dict of strings, not {type(given).__name__}")
        if not all(isinstance(text, str) for pair in given.items() for text in pair) or not all(map(str.split, given)):
            raise UsageError("substitutions are a dict from words or phrases to strings; no phrase may be blank")
        return cls(tuple((tuple(old.split()), tuple(new.split())) for old, new in given.items()))

    @classmethod
    def _of_file(cls, path: str) -> Substitutions:
        from lmgauge.text.documents import Corpus  # only with a file: settings are made for help pages too

        corpus = Corpus.from_files(path, group=None, format="text")
        name, known = corpus.sources[0].name, dict[Phrase, Phrase]()
        for lines in corpus:
            for i in range(len(lines)):
                line, place = lines.text(i).decode(), f"{name}:{lines.line(i)}"
                if not line.strip() or line.startswith(_COMMENT):
                    continue
                old, new = _pair(line, place)
                if known.setdefault(old, new) != new:
                    raise InputError(f"{place}: {' '.join(old)!r} was substituted otherwise in an earlier line")
        if not known:
            raise InputError(f"{name}: holds no substitution: write a pair on each line, with a TAB between")
        return cls(tuple(known.items()))

    @property
    def digest(self) -> str:
        """Return the first 8 hexadecimal digits of the SHA-256 of all pairs; the order of lines changes nothing."""
        from lmgauge.base.files import digest

        return digest("\n".join(sorted(f"{' '.join(old)}\t{' '.join(new)}" for old, new in self.pairs)))[:8]

    def lowered(self) -> Substitutions:
        """Return the same in lower case, for texts in lower case."""
        lower = {tuple(word.lower() for word in old): tuple(word.lower() for word in new) for old, new in self.pairs}
        return Substitutions(tuple(lower.items()))

    def applied(self, whole: str) -> str:
        r"""Return texts with their phrases substituted, from left to right, the longest that fits."""
        # None is looked at again.
        pieces = _BETWEEN.split(whole)
        parts: list[str] = []
        at = 0  # words have even places, what stands between them odd ones
        while at < len(pieces):
            pair = next((pair for pair in self._by_first.get(pieces[at], ()) if _fits(pair[0], pieces, at)), None)
            if pair is None:
                parts.append(pieces[at])
            else:
                parts.append(" ".join(pair[1]))
                at += 2 * len(pair[0]) - 2
            parts += pieces[at + 1 : at + 2]
            at += 2
        return "".join(parts)


def _fits(phrase: Phrase, pieces: list[str], at: int) -> bool:
    end = at + 2 * len(phrase) - 1
    return tuple(pieces[at:end:2]) == phrase and not any("\0" in between for between in pieces[at + 1 : end - 1 : 2])


def _pair(line: str, place: str) -> tuple[Phrase, Phrase]:
    old, separator, new = line.partition("\t") if "\t" in line else _GLM_CONTEXT.sub("", line).partition("=>")
    sides = [_unbracketed(side.strip()) for side in (old, new)]
    if not separator or not sides[0] or "\t" in new.strip():
        raise InputError(f"{place}: a word or phrase, a TAB (or =>) and what takes its place are needed")
    if "=>" in separator and re.search(r"[{}\[\]]|\s/\s", " ".join(sides)):
        raise InputError(f"{place}: contexts and alternatives of GLM files are not read: write word => word")
    return tuple(sides[0].split()), tuple(sides[1].split())


def _unbracketed(side: str) -> str:
    return side[1:-1].strip() if side.startswith("[") and side.endswith("]") else side
