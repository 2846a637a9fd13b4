"""Output of KenLM's `query`, with words: `query -v word`, or all that it prints without `-v`."""

# Each word is `WORD=ID ORDER LOG10` and a tab; `Total: LOG10 OOV: N` ends a sentence where sums are printed. Id 0 is
# `<unk>`.

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment, LoggedWord, number, score_of, sentence, shown
from lmgauge.scores.imports.log_file import LogFile
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

_WORD = re.compile(r"(.+)=([0-9]{1,10}) ([0-9]{1,3}) (-?[0-9.e+-]+|-inf|-?nan)", re.DOTALL)
_TOTAL = re.compile(r"Total: (\S+) OOV: ([0-9]{1,18})")
_PERPLEXITIES = ("Perplexity including OOVs:", "Perplexity excluding OOVs:")
_SUMMARY = {*_PERPLEXITIES, "OOVs:", "Tokens:"}
_SUM_TOLERANCE, _PERPLEXITY_TOLERANCE = 1e-5, 1e-4  # relative: KenLM adds in single precision
_END = "</s>"


def recognizes(head: bytes) -> bool:
    """Return True if a file begins as output of `query` with words does."""
    return re.search(rb"(?m)^[^\t\n]+=[0-9]{1,10} [0-9]{1,3} -?[0-9.infae+-]+\t", head) is not None


@dataclass
class _Sums:
    """What the program adds up of a file, of words it knows and of those out of vocabulary."""

    log10: list[float] = field(default_factory=lambda: [0.0, 0.0])
    words: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, words: Sequence[LoggedWord]) -> None:
        for is_unseen in (False, True):
            own = [word.log10 for word in words if (word.kind == OOV) == is_unseen]
            self.log10[is_unseen] += math.fsum(own)
            self.words[is_unseen] += len(own)

    def check(self, printed: dict[str, str], path: str, log: Log) -> None:
        of_all, of_known = (sum(self.log10), sum(self.words)), (self.log10[False], self.words[False])
        for name, (total, count) in zip(_PERPLEXITIES, (of_all, of_known), strict=True):
            stated = number(printed.get(name, "nan"), path)
            if not count or math.isnan(stated) or not math.isfinite(total):
                continue
            if abs(math.log10(stated) + total / count if stated > 0 else math.inf) > _PERPLEXITY_TOLERANCE:
                mine = float(10 ** min(-total / count, 300))
                raise InputError(f"{path}: says '{name} {stated:g}', and its words give {mine:g}: are lines missing?")
        log.remark("KenLM's own perplexities come out of its words again")


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of KenLM's `query`."""
    log.states("log10", "KenLM")
    sums, words, printed = _Sums(), list[LoggedWord](), dict[str, str]()
    label, skipping, ended, first = "", False, True, 0
    unsummed = False  # a last line without a newline, whose words the program counts and does not add
    for line, cell, last in file.cells():
        where, bare = f"{file.path}, line {line}", cell.strip()
        match = None if skipping or label else _WORD.fullmatch(cell)
        if match is not None:
            if words and (words[-1].text == _END or line != first):
                yield _sentence(f"{file.path}, line {first}", words, log, sums)
                words = []
            first = first if words else line
            kind = OOV if int(match[2]) == 0 else EOS_KIND if match[1] == _END else TOKEN
            words.append(LoggedWord(match[1], kind, int(match[3]), score_of(match[4], where)))
            ended = False
        elif label:
            printed[label], label = bare, ""
        elif bare in _SUMMARY:
            label = bare
            unsummed |= bool(words) and words[-1].text != _END
        elif total := _TOTAL.fullmatch(bare):
            _check_total(total, words, where)
            ended = True
        elif bare and words and line == first and not ended:
            raise InputError(f"{where}: {shown(cell)} stands where KenLM writes WORD=ID ORDER LOG10")
        else:
            skipping = bool(bare)  # what KenLM says while it loads a model
        if last:
            skipping, label = False, ""
    if words:
        yield _sentence(f"{file.path}, line {first}", words, log, sums)
    if printed and not unsummed:
        sums.check(printed, str(file.path), log)


def _check_total(total: re.Match[str], words: Sequence[LoggedWord], where: str) -> None:
    mine, stated = math.fsum(word.log10 for word in words), number(total[1], where)
    same = mine == stated or abs(mine - stated) <= _SUM_TOLERANCE * max(1.0, abs(stated))
    if not same or int(total[2]) != sum(word.kind == OOV for word in words):
        raise InputError(f"{where}: says 'Total: {stated:g}', and its words sum to {mine:g}: are words missing?")


def _sentence(where: str, words: Sequence[LoggedWord], log: Log, sums: _Sums) -> LoggedSegment:
    sums.add(words)
    if words[-1].kind != EOS_KIND:
        log.remark("{:,} sentences have no </s>: `query -n`, or a last line without a newline, which KenLM does not add up")
    return sentence(where, words, log)
