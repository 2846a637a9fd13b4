r"""SRILM's n-best lists: a file for each utterance, in one of the three formats of its page nbest-format(5).

    NBestList1.0                      NBestList2.0
    (-8231) a dog barks               (-8231) a ( st: 0.00 et: 0.11 g: -93 a: -1204 ) dog ( st: 0.12 ... )

    -5120.3 -12.41 3 a dog barks      acoustic score, language model's score, number of words: logs of base 10

The scores of the first two are bytelogs: logarithms to base 1.0001, divided by 1024. All scores become natural logs. The
first format has one score, of recognizer and language model together; in the second a unit that begins before the last word
ends is a part of that word (a phone or a state), which is neither a word nor scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import PurePath

from lmgauge.errors import InputError
from lmgauge.readable import first_few
from lmgauge.records.sources import STDIN, Source
from lmgauge.tasks.nbest.lists import ListBuilder
from lmgauge.tasks.settings import NbestReading

DECIPHER = "NBestList"
_NATS_IN_BYTELOG = 1024.0 / 10000.5  # 1 / ln(1.0001) is 10000.5, as SRILM has it
_NATS_IN_LOG10 = math.log(10.0)
_UNIT = 11  # word ( st: 0.00 et: 0.11 g: -93 a: -1204 )
_SIGNS = {1: "(", 2: "st:", 4: "et:", 6: "g:", 8: "a:", 10: ")"}
_HINT = "see SRILM's page nbest-format(5)"


def read_srilm(lines: Iterable[tuple[int, str]], source: Source, reading: NbestReading, builder: ListBuilder) -> None:
    """Add the list of one file; the utterance is called as the file, without packing."""
    # Raises InputError: a line is not of the format that the first one has.
    utterance = "stdin" if source.path == STDIN else PurePath(source.stored_path).name.removesuffix(source.compression)
    version = 0
    for number, line in lines:
        if line.startswith(DECIPHER):
            version = _version(line, f"{source.name}:{number}")
            continue
        words = line.split()
        where = f"{source.name}:{number}"
        if version == 2:
            text, scores = _with_times(words, where)
        elif version == 1 or words[0].startswith("("):
            text, scores = " ".join(words[1:]), {"score": _NATS_IN_BYTELOG * _in_brackets(words[0], where)}
        else:
            text, scores = _with_columns(words, where)
        builder.add(utterance, text, chosen_scores(scores, reading, where), where, source.name)


def chosen_scores(scores: dict[str, float], reading: NbestReading, where: str) -> dict[str, float]:
    """Return the scores that are asked for; all, if none is named."""
    absent = [name for name in reading.score if name not in scores]
    if absent:
        raise InputError(f"{where}: has no score {absent[0]!r}; its scores are {first_few(list(scores))} (--score)")
    return {name: scores[name] for name in reading.score or scores}


def _version(line: str, where: str) -> int:
    number = line.strip().removeprefix(DECIPHER)
    if number not in ("1.0", "2.0"):
        raise InputError(f"{where}: {line.strip()[:40]!r} is neither NBestList1.0 nor NBestList2.0; {_HINT}")
    return int(number[0])


def _in_brackets(word: str, where: str) -> float:
    if not (word.startswith("(") and word.endswith(")")):
        raise InputError(f"{where}: {word[:40]!r} is not a score in round brackets; {_HINT}")
    return as_number(word[1:-1], "a number", where)


def as_number(word: str, what: str, where: str) -> float:
    """Return a word as a number."""
    try:
        return float(word)
    except ValueError:
        raise InputError(f"{where}: {word[:40]!r} is not {what}") from None


def _with_columns(words: list[str], where: str) -> tuple[str, dict[str, float]]:
    # Hypothesis with the scores of the recognizer and of its language model before it.
    if len(words) < 3:
        raise InputError(f"{where}: acoustic score, language model's score, number of words and words are needed; {_HINT}")
    acoustic, language, _ = (as_number(word, "a number", where) for word in words[:3])
    return " ".join(words[3:]), {"acoustic": _NATS_IN_LOG10 * acoustic, "language": _NATS_IN_LOG10 * language}


def _with_times(words: list[str], where: str) -> tuple[str, dict[str, float]]:
    _in_brackets(words[0], where)
    units = [words[i : i + _UNIT] for i in range(1, len(words), _UNIT)]
    said, acoustic, language, last_end = list[str](), 0.0, 0.0, -1.0
    for unit in units:
        if len(unit) != _UNIT or any(unit[at] != sign for at, sign in _SIGNS.items()):
            raise InputError(f"{where}: {' '.join(unit)[:60]!r} is not a word ( st: .. et: .. g: .. a: .. ); {_HINT}")
        begin, end, grammar, sound = (as_number(unit[at], "a number", where) for at in (3, 5, 7, 9))
        if begin <= last_end:
            continue
        said.append(unit[0])
        acoustic, language, last_end = acoustic + sound, language + grammar, end
    return " ".join(said), {"acoustic": _NATS_IN_BYTELOG * acoustic, "language": _NATS_IN_BYTELOG * language}
