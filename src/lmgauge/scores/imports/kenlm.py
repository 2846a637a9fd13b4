"""Output of KenLM's `query`, with words: `query -v word`, or all that it prints without `-v`."""

# Each word is `WORD=ID ORDER LOG10` and a tab; `Total: LOG10 OOV: N` ends a sentence where sums are printed. Id 0 is
# `<unk>`.

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment, number, shown
from lmgauge.scores.imports.log_file import LogFile
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

_WORD = re.compile(r"(.+)=([0-9]{1,10}) ([0-9]{1,3}) (-?[0-9.e+-]+|-inf|-?nan)", re.DOTALL)
_TOTAL = re.compile(r"Total: (\S+) OOV: ([0-9]{1,18})")
_SUMMARY = {"Perplexity including OOVs:", "Perplexity excluding OOVs:", "OOVs:", "Tokens:"}
_SUM_TOLERANCE, _PERPLEXITY_TOLERANCE = 1e-5, 1e-4  # relative: KenLM adds in single precision
_END = "</s>"


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as output of `query` with words does."""
    return re.search(rb"(?m)^[^\t\n]+=[0-9]{1,10} [0-9]{1,3} -?[0-9.infae+-]+\t", head) is not None


@dataclass
class _Sums:
    """What the program adds up of a file."""

    total: float = 0.0  # log10 of all tokens but those of lines without an end
    of_oov: float = 0.0
    tokens: int = 0
    oov: int = 0
    unsummed: int = 0  # tokens of a last line without a newline, which the program counts and does not add
    printed: dict[str, str] = field(default_factory=dict)

    def add(self, words: list[tuple[int, float]]) -> None:
        # Add the words of a sentence: id and log10 of each.
        self.total += math.fsum(value for _, value in words)
        self.of_oov += math.fsum(value for number_, value in words if number_ == 0)
        self.tokens += len(words)
        self.oov += sum(number_ == 0 for number_, _ in words)

    def check(self, path: str, log: Log) -> None:
        if not self.printed or self.unsummed:
            return
        mine = {
            "Perplexity including OOVs:": (self.total, self.tokens),
            "Perplexity excluding OOVs:": (self.total - self.of_oov, self.tokens - self.oov),
        }
        for name, (total, count) in mine.items():
            stated = number(self.printed.get(name, "nan"), path)
            if not count or math.isnan(stated) or not math.isfinite(total):
                continue
            if abs(math.log10(stated) + total / count if stated > 0 else math.inf) > _PERPLEXITY_TOLERANCE:
                raise InputError(
                    f"{path}: says '{name} {stated:g}', and its words give {_perplexity(total, count):g}: are lines missing?"
                )
        log.remark("KenLM's own perplexities come out of its words again")


def _perplexity(log10: float, count: int) -> float:
    return float(10 ** min(-log10 / count, 300))


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of KenLM's `query`."""
    log.states("log10", "KenLM")
    sums, label, skipping, ended = _Sums(), "", False, True
    words: list[tuple[str, int, int, float]] = []
    first = 0
    for line, cell, last in file.cells():
        where = f"{file.path}, line {line}"
        match = None if skipping or label else _WORD.fullmatch(cell)
        if match is not None:
            if words and (words[-1][0] == _END or line != first):
                yield _sentence(file, first, words, log, sums)
                words = []
            first = first if words else line
            words.append((match[1], int(match[2]), int(match[3]), _log10(match[4], where)))
            ended = False
        elif label:
            sums.printed[label], label = cell.strip(), ""
        elif cell.strip() in _SUMMARY:
            label = cell.strip()
            sums.unsummed += len(words) if words and words[-1][0] != _END else 0
        elif total := _TOTAL.fullmatch(cell.strip()):
            _check_total(total, words, where)
            ended = True
        elif cell.strip() and words and line == first and not ended:
            raise InputError(f"{where}: {shown(cell)} stands where KenLM writes WORD=ID ORDER LOG10")
        else:
            skipping = bool(cell.strip())  # what KenLM says while it loads a model
        if last:
            skipping, label = False, ""
    if words:
        yield _sentence(file, first, words, log, sums)
    sums.check(str(file.path), log)


def _log10(text: str, where: str) -> float:
    value = number(text, where)
    if math.isnan(value):
        raise InputError(f"{where}: a log-probability is NaN; the model is damaged")
    return value


def _check_total(total: re.Match[str], words: list[tuple[str, int, int, float]], where: str) -> None:
    mine, stated = math.fsum(value for *_, value in words), number(total[1], where)
    same = mine == stated or abs(mine - stated) <= _SUM_TOLERANCE * max(1.0, abs(stated))
    if not same or int(total[2]) != sum(identifier == 0 for _, identifier, _, _ in words):
        raise InputError(f"{where}: says 'Total: {stated:g}', and its words sum to {mine:g}: are words missing?")


def _sentence(file: LogFile, line: int, words: list[tuple[str, int, int, float]], log: Log, sums: _Sums) -> LoggedSegment:
    where = f"{file.path}, line {line}"
    sums.add([(identifier, value) for _, identifier, _, value in words])
    kinds = [OOV if identifier == 0 else EOS_KIND if word == _END else TOKEN for word, identifier, _, _ in words]
    if kinds[-1] != EOS_KIND:
        log.remark("{:,} sentences have no </s>: `query -n`, or a last line without a newline, which KenLM does not add up")
    return LoggedSegment(
        where,
        [word.encode("utf-8", "surrogateescape") for word, *_ in words],
        [log.nats(value, where) for *_, value in words],
        kinds,
        [order for _, _, order, _ in words],
    )
