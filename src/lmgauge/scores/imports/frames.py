"""What minicons returns, as it is saved: lists of `token_score` as JSON, and data frames as CSV or TSV."""

# `token_score` gives log-probabilities or surprisals, in nats or (`base_two`) in bits, and a first token without a context
# the score 0. Neither unit nor sign is written down, so that they are read off names of columns and a stated perplexity, or
# named by the user, and never guessed.

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lmgauge.choices import LOG_UNITS, LogUnit
from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.units import bits_to_nats, log10_to_nats
from lmgauge.readable import first_few, visible
from lmgauge.scores.imports.log import Log, LoggedSegment, number
from lmgauge.scores.imports.log_file import LogFile

_TOKENS = ("token", "word", "piece")
_SENTENCES = ("sentence_id", "sent_id", "sentid", "sentence", "segment", "item", "text_id", "id")
_PERPLEXITIES = ("perplexity", "ppl")
_SCORE = re.compile(r"(?i)(neg_?log_?prob|surprisal|log_?prob(?:ability)?|score)(?:[_ (]*(nats|bits|log10|base_?two)\)?)?")
_BITS = ("base_two", "basetwo", "bits")
_CLOSE = 1e-3  # relative: of a stated perplexity
_FIRST = "{:,} first tokens have the score 0, which is minicons' sign for none; they are not scored"
_ASK = "name the unit with --log-unit nats or --log-unit bits (minicons: nats, with base_two bits)"


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as lists of tokens and scores, or as a table with columns of both."""
    # recognizes(b'[[["the", -1.5]]]'), recognizes(b"token,surprisal_bits\\nthe,2.5\\n") -> (True, True)
    if re.match(rb'\s*(?:\[\s*){2,3}"(?:[^"\\]|\\.){0,4096}"\s*,\s*-?[0-9]', head):
        return True
    return _columns(head.partition(b"\n")[0].decode("utf-8", "replace").strip()) is not None


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of a file of scores."""
    sentences = _of_json(file) if file.head.lstrip()[:1] == b"[" and not log.column else _of_table(file, log)
    sign = 0
    for where, pieces, values in sentences:
        if log.unit is None:
            raise UsageError(f"{where}: the file does not say the unit of its scores; {_ASK}")
        sign = sign or _sign(values, where)
        # The first token of a model that has no BOS token, or the BOS token itself.
        missing = values[:1] == [0.0]
        log.remark(_FIRST, int(missing))
        scores = [log.nats(sign * value, where) if value else 0.0 for value in values]
        yield LoggedSegment(where, pieces, [None, *scores[1:]] if missing else scores)


def _sign(values: Sequence[float], where: str) -> int:
    # 1 for log-probabilities and -1 for surprisals, 0 if all are 0.
    if any(value < 0 for value in values):
        return 1
    if any(value > 1 for value in values):
        return -1
    if any(value > 0 for value in values):
        raise InputError(f"{where}: all scores are between 0 and 1: are they probabilities? Save logarithms (prob=False)")
    return 0


_Sentence = tuple[str, list[str], list[float]]


def _of_json(file: LogFile) -> Iterator[_Sentence]:
    # Sentences of lists `[[[token, score], ...], ...]`, or of one such sentence.
    everything = list(file.values())
    if everything and _is_pair(everything[0][1]):
        everything = [(str(file.path), [pair for _, pair in everything])]
    elif everything and isinstance(everything[0][1], list) and everything[0][1][:1] and _is_list(everything[0][1][0]):
        everything = [(f"{where}.{n}", part) for where, parts in everything for n, part in enumerate(parts, 1)]
    for where, sentence in everything:
        if not isinstance(sentence, list) or not all(_is_pair(pair) for pair in sentence):
            raise InputError(f"{where}: is not a list of tokens with their scores, [[TOKEN, SCORE], ...]")
        yield where, [pair[0] for pair in sentence], [_finite(pair[1], where) for pair in sentence]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and 2 <= len(value) <= 3 and isinstance(value[0], str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_pair, value))


def _finite(value: object, where: str) -> float:
    score = number(value, where)
    if math.isnan(score):
        raise InputError(f"{where}: a score is NaN")
    return score


@dataclass(frozen=True)
class _Columns:
    """Where a table has what is read."""

    delimiter: str
    token: int
    score: int
    sentence: int | None
    perplexity: int | None
    unit: LogUnit | None
    name: str


def columns_of(head: bytes) -> list[str]:
    """Return the names of columns in the first line of a file."""
    # columns_of(b'token,"model a"\\nthe,-2.5\\n') -> ['token', 'model a']
    header = head.partition(b"\n")[0].decode("utf-8", "replace").strip()
    return [name.strip().strip('"') for name in header.split("\t" if "\t" in header else ",")]


def _columns(header: str, chosen: str = "") -> _Columns | None:
    # Columns of a table by its header, that of scores as chosen; None if it has no tokens or no scores.
    delimiter = "\t" if "\t" in header else ","
    own = columns_of(header.encode())
    names = [name.lower() for name in own]
    token = next((names.index(name) for name in _TOKENS if name in names), None)
    scores = [i for i, name in enumerate(own) if (name == chosen if chosen else _SCORE.fullmatch(name))]
    if token is None or not scores:
        return None
    units = {i: match[2].lower() for i in scores if (match := _SCORE.fullmatch(names[i])) and match[2]}
    score = next(iter(units), scores[0])
    unit: Any = "bits" if units.get(score) in _BITS else units.get(score)
    sentence = next((names.index(name) for name in _SENTENCES if name in names), None)
    perplexity = next((names.index(name) for name in _PERPLEXITIES if name in names), None)
    return _Columns(delimiter, token, score, sentence, perplexity, unit, names[score])


def _of_table(file: LogFile, log: Log) -> Iterator[_Sentence]:
    # Sentences of a table: rows that follow each other with the same sentence.
    lines = file.lines()
    columns = _columns(next(lines)[1].strip(), log.column)
    if columns is None:
        found, wanted = columns_of(file.head), "columns of tokens (token, word) and scores (surprisal)"
        if log.column:
            wanted = "column of tokens (token, word)" if log.column in found else f"column {log.column!r}"
        raise InputError(f"{file.path}: its first line names no {wanted}; it has {first_few(found)}")
    if columns.unit is not None:
        log.remark(f"the unit is {columns.unit}, as the column {visible(columns.name)!r} says")
        log.states(columns.unit, f"column {columns.name!r}")
    for _, rows in groupby(_rows(file, lines, columns), key=lambda row: row[1]):
        part = list(rows)
        where, values = part[0][0], [score for *_, score, _ in part]
        stated = part[0][4]
        if stated is not None and log.unit is None:
            log.unit = _unit_of(values, number(stated, where))
            if log.unit is not None:
                log.remark(f"the unit is {log.unit}: so the scores give the perplexity that the file states")
        yield where, [token for _, _, token, _, _ in part], values


_Row = tuple[str, str, str, float, str | None]


def _rows(file: LogFile, lines: Iterator[tuple[int, str]], columns: _Columns) -> Iterator[_Row]:
    # Of each row: where it is, its sentence, token, score, and the perplexity it states.
    needed = max(columns.token, columns.score, columns.sentence or 0, columns.perplexity or 0)
    reader = csv.reader((line + "\n" for _, line in lines), delimiter=columns.delimiter)
    try:
        for row in reader:
            where = f"{file.path}, line {reader.line_num + 1}"
            if not row:
                continue
            if len(row) <= needed:
                raise InputError(f"{where}: has {len(row)} columns, and the header has {needed + 1} or more")
            sentence = "" if columns.sentence is None else row[columns.sentence]
            stated = None if columns.perplexity is None else row[columns.perplexity]
            yield where, sentence, row[columns.token], _finite(row[columns.score], where), stated
    except csv.Error as error:
        raise InputError(f"{file.path}, line {reader.line_num + 1}: is not a row of a table: {error}") from error


def _unit_of(values: Sequence[float], perplexity: float) -> LogUnit | None:
    # One unit in which scores give a perplexity; None if none does, or several do.
    scored = [abs(value) for value in values if value]
    if not scored or not 1 < perplexity < math.inf:
        return None
    mean = math.fsum(scored) / len(scored)
    in_nats = {"nats": mean, "bits": bits_to_nats(mean), "log10": log10_to_nats(mean)}
    fits = [unit for unit in LOG_UNITS if abs(in_nats[unit] - math.log(perplexity)) <= _CLOSE]
    return fits[0] if len(fits) == 1 else None
