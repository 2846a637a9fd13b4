"""Output of SRILM's `ngram -ppl TEXT -debug 2`: each sentence, its words with their probabilities, and what they sum to.

    the cat sat
            p( the | <s> )  = [2gram] 0.1 [ -1 ]
            p( </s> | sat ...)      = [3gram] 0.01 [ -2 ]
    1 sentences, 3 words, 0 OOVs
    0 zeroprobs, logprob= -3 ppl= 5.6 ppl1= 10

A word that is out of vocabulary is `<unk>` with probability 0, and in none of the sums.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment, LoggedWord, number, score_of, sentence, shown
from lmgauge.scores.imports.log_file import LogFile
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

_COUNTS = re.compile(r"(?:file .*: )?([0-9]{1,18}) sentences, ([0-9]{1,18}) words, ([0-9]{1,18}) OOVs")
_SUMS = re.compile(r"([0-9]{1,18}) zeroprobs, logprob= (\S+) ppl= (\S+) ppl1= (\S+)")
_ORDER = re.compile(r"\[([0-9]{1,3})gram\]")
_TOLERANCE = 2e-5  # relative: SRILM prints six or seven digits
_LONGEST = 1 << 16


def recognizes(head: bytes) -> bool:
    """Return True if a file has lines as `ngram -debug 2` writes them."""
    # recognizes(b"the cat\\n\\tp( the | <s> ) \\t= [2gram] 0.1 [ -1 ]\\n") -> True
    return re.search(rb"(?m)^\s*p\( \S+ \| [^\n]{0,4096}= [^\n]{0,4096}\[ [^\s\]]+ \]", head) is not None


def _sums(words: Sequence[LoggedWord]) -> Counter[str]:
    # What SRILM adds up of some words, in the order in which it prints it.
    finite = [word for word in words if word.log10 != -math.inf]
    ends = sum(word.kind == EOS_KIND for word in words)
    unseen = sum(word.kind == OOV and word.log10 == -math.inf for word in words)
    total: Any = math.fsum(word.log10 for word in finite)
    zeros = len(words) - len(finite) - unseen
    return Counter(sentences=ends, words=len(words) - ends, OOVs=unseen, zeroprobs=zeros, logprob=total)


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of SRILM's `ngram -ppl -debug 2`."""
    log.states("log10", "SRILM")
    words, whole, of_sentence = list[LoggedWord](), _sums([]), _sums([])
    before = source = ""
    counts: re.Match[str] | None = None
    of_file, first = False, 0
    for line, text in file.lines():
        where, bare = f"{file.path}, line {line}", text.strip()
        if bare.startswith("p( ") and len(text) <= _LONGEST:
            if not words:
                source, first = before, line
            words.append(_word(bare, where))
        elif match := _COUNTS.fullmatch(bare):
            counts, of_file = match, bare.startswith("file ")
            if words:
                of_sentence = _sums(words)
                whole.update(of_sentence)
                yield _sentence(f"{file.path}, line {first}", source, words, log)
                words = []
        elif counts is not None and (match := _SUMS.fullmatch(bare)):
            _check(counts, match, whole if of_file else of_sentence, where)
            if of_file:
                log.remark("SRILM's own counts, logprob and ppl come out of its words again")
                whole = _sums([])
            counts, of_sentence = None, _sums([])
        before = text
    if words:  # cut off
        log.remark("{:,} sentences at the end of a file have no sums: was the output cut off?")
        yield _sentence(f"{file.path}, line {first}", source, words, log)


def _word(line: str, where: str) -> LoggedWord:
    # Word: `p( WORD | CONTEXT ...) = [2gram] PROBABILITY [ LOG10 ]`, with ` / SUM` behind it from -debug 3 on.
    left, _, right = line.rpartition("= ")
    cells = right.split(" / ")[0].split()
    if not left or len(cells) < 4 or cells[-3] != "[" or cells[-1] != "]":
        raise InputError(f"{where}: {shown(line)} is not a word of `ngram -ppl -debug 2`")
    word = left.split(" ", 2)[1]
    name = "".join(cells[:-4])
    order = _ORDER.fullmatch(name)
    kind = OOV if word == "<unk>" or name == "[OOV]" else EOS_KIND if word == "</s>" else TOKEN
    return LoggedWord(word, kind, int(order[1]) if order else 0, score_of(cells[-2], where))


def _check(counts: re.Match[str], stated: re.Match[str], sums: Counter[str], where: str) -> None:
    printed = [*map(int, counts.groups()), int(stated[1]), number(stated[2], where)]
    for theirs, (name, ours) in zip(printed, sums.items(), strict=True):
        if not abs(theirs - ours) <= (_TOLERANCE * max(1.0, abs(ours)) if name == "logprob" else 0):
            raise InputError(f"{where}: says {theirs:g} {name}, and its words give {ours:g}: are lines missing?")


def _sentence(where: str, source: str, words: list[LoggedWord], log: Log) -> LoggedSegment:
    # Sentence; unseen words get their own strings where SRILM printed the sentence before its words.
    own = [word for word in re.split("[ \t\r\n]+", source) if word]
    if len(own) == sum(word.kind != EOS_KIND for word in words):
        words[: len(own)] = [word._replace(text=text) for word, text in zip(words, own, strict=False)]
    zeros = sum(word.kind == OOV and word.log10 == -math.inf for word in words)
    log.remark("{:,} OOV words have probability 0; SRILM leaves them out: its ppl is perplexity_without_zeros", zeros)
    return sentence(where, words, log)
