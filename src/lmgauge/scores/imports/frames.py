"""What minicons returns, as it is saved: lists of `token_score` as JSON, and data frames as CSV or TSV."""

# `token_score` gives log-probabilities or surprisals, in nats or (`base_two`) in bits, and a first token without a context
# the score 0. Neither unit nor sign is written down: the unit is read off the names of columns, or named by the user, and
# never guessed.

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from lmgauge.base.choices import LogUnit
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few, visible
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment, ProgramOutput, score_of

_TOKENS = ("token", "word", "piece")
_TEXTS = ("document", "document_id", "doc_id", "doc")
_SENTENCES = ("sentence_id", "sent_id", "sentid", "sentence", "segment", "item", "text_id", "id")
_SCORE = re.compile(r"(?i)(neg_?log_?prob|surprisal|log_?prob(?:ability)?|score)(?:[_ (]*(nats|bits|log10|base_?two)\)?)?")
_OPPOSITE = re.compile("(?i)surprisal|neg|nll|loss")
"""Names of columns that may hold surprisals; what else was named as log-probabilities holds these."""
_BITS = ("base_two", "basetwo", "bits")
_ONE_SEGMENT = (
    "no column tells sentences apart (segment, sentence_id): all rows are one segment, so there is neither interval nor test"
)
_FIRST = "{:,} first tokens have the score 0, which is read as no score, as minicons writes it; they are left out"
_ASK = "name the unit with --log-unit nats or --log-unit bits (minicons: nats, with base_two bits)"


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as lists of tokens and scores."""
    # recognizes(b'[[["the", -1.5]]]') -> True
    return re.match(rb'\s*(?:\[\s*){2,3}"(?:[^"\\]|\\.){0,4096}"\s*,\s*-?[0-9]', head) is not None


def is_table(names: Sequence[str]) -> bool:
    """Return True if some columns are those of a table of tokens and scores."""
    return _columns(names) is not None


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of a file of scores."""
    sentences = _of_json(file) if file.head.lstrip()[:1] == b"[" and not log.column else _of_table(file, log)
    sign = 1 if log.column and not _OPPOSITE.search(log.column) else 0
    for where, document, pieces, values, places in sentences:
        if log.unit is None:
            raise UsageError(f"{where}: the file does not say the unit of its scores; {_ASK}")
        sign = sign or _sign(values, where)
        # The first token of a model that has no BOS token, or the BOS token itself.
        missing = values[:1] == [0.0]
        log.remark(_FIRST, int(missing))
        scores: list[float | None] = [
            log.nats(sign * value, place) if value else 0.0 for value, place in zip(values, places, strict=True)
        ]
        yield LoggedSegment(where, pieces, [None, *scores[1:]] if missing else scores, document=document)


def _sign(values: Sequence[float], where: str) -> int:
    # 1 for log-probabilities and -1 for surprisals, 0 if all are 0.
    if any(value < 0 for value in values):
        return 1
    if any(value > 1 for value in values):
        return -1
    if any(value > 0 for value in values):
        raise InputError(f"{where}: all scores are between 0 and 1: are they probabilities? Save logarithms (prob=False)")
    return 0


_Sentence = tuple[str, str | None, list[str], list[float], list[str]]
"""Where it is, its document, its tokens, their scores, and where each score is."""


def _of_json(file: LogFile) -> Iterator[_Sentence]:
    # Sentences of lists `[[[token, score], ...], ...]`, or of one such sentence.
    everything = list(file.values())
    first = everything[0][1] if everything else None
    if _is_pair(first):
        everything = [(str(file.path), [pair for _, pair in everything])]
    elif isinstance(first, list) and first and _is_sentence(first[0]):
        everything = [(f"{where}.{n}", part) for where, parts in everything for n, part in enumerate(parts, 1)]
    for where, sentence in everything:
        if not _is_sentence(sentence):
            raise InputError(f"{where}: is not a list of tokens with their scores, [[TOKEN, SCORE], ...]")
        values = [score_of(pair[1], where) for pair in sentence]
        yield where, None, [pair[0] for pair in sentence], values, [where] * len(values)


def _is_sentence(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_pair, value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and 2 <= len(value) <= 3 and isinstance(value[0], str)


class _Columns(NamedTuple):
    """Which columns of a table are read."""

    token: str | None  # None if the rows are events without a string
    score: str
    groups: tuple[str | None, str | None]  # of documents, and of sentences
    unit: LogUnit | None


def _columns(names: Sequence[str], chosen: str = "") -> _Columns | None:
    # Columns of a table by their names, that of scores as chosen; None if it has no scores, or unasked no tokens.
    own = {name.lower(): name for name in reversed(names)}
    token, *groups = (next((own[name] for name in known if name in own), None) for known in (_TOKENS, _TEXTS, _SENTENCES))
    scores = [name for name in names if (name == chosen if chosen else _SCORE.fullmatch(name))]
    if not scores or not (token or chosen):
        return None
    units = {name: match[2].lower() for name in scores if (match := _SCORE.fullmatch(name)) and match[2]}
    score = next(iter(units), scores[0])
    unit: Any = "bits" if units.get(score) in _BITS else units.get(score)
    return _Columns(token, score, (groups[0], groups[1]), unit)


def _of_table(file: LogFile, log: Log) -> Iterator[_Sentence]:
    # Sentences of a table: rows that follow each other with the same document and the same sentence.
    names = file.columns()
    columns = _columns(names, log.column)
    if columns is None:
        wanted = f"column {log.column!r}" if log.column else "columns of tokens (token, word) and scores (surprisal)"
        raise InputError(f"{file.path}: its first line names no {wanted}; it has {first_few(names)}")
    if columns.unit is not None:
        log.remark(f"the unit is {columns.unit}, as the column {visible(columns.score.lower())!r} says")
        log.states(columns.unit, f"column {columns.score.lower()!r}")
    log.remark(_ONE_SEGMENT, not any(columns.groups))
    column = f", column {visible(columns.score)!r}"
    for (document, _), rows in groupby(file.rows(), lambda row: [name and row.fields[name] for name in columns.groups]):
        part = list(rows)
        places = [f"{file.path}, line {row.number}{column}" for row in part]
        values = [score_of(row.fields[columns.score], place) for row, place in zip(part, places, strict=True)]
        tokens = [str(row.fields[columns.token]) if columns.token else "" for row in part]
        yield f"{file.path}, line {part[0].number}", document and str(document), tokens, values, places


OUTPUT = ProgramOutput(recognizes, parse)
