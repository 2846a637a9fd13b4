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
from collections.abc import Iterator
from dataclasses import dataclass, field

from lmgauge.errors import InputError
from lmgauge.scores.imports.log import Log, LoggedSegment, number, shown
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


@dataclass
class _Words:
    """Words with their probabilities, since a sum was last printed."""

    words: list[str] = field(default_factory=list)  # as SRILM shows them; `<unk>` where it does not know one
    log10: list[float] = field(default_factory=list)  # of each; -inf for those of probability 0
    kinds: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


@dataclass
class _Sums:
    """What SRILM adds up."""

    sentences: int = 0
    words: int = 0
    oov: int = 0
    zeros: int = 0
    log10: float = 0.0

    @classmethod
    def of(cls, part: _Words) -> _Sums:
        impossible = [value == -math.inf for value in part.log10]
        unseen = sum(zero and kind == OOV for zero, kind in zip(impossible, part.kinds, strict=True))
        finite = math.fsum(value for value, zero in zip(part.log10, impossible, strict=True) if not zero)
        ends = part.kinds.count(EOS_KIND)
        return cls(ends, len(part.words) - ends, unseen, sum(impossible) - unseen, finite)

    def __iadd__(self, other: _Sums) -> _Sums:
        self.sentences, self.words = self.sentences + other.sentences, self.words + other.words
        self.oov, self.zeros, self.log10 = self.oov + other.oov, self.zeros + other.zeros, self.log10 + other.log10
        return self


def parse(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of SRILM's `ngram -ppl -debug 2`."""
    log.states("log10", "SRILM")
    part, whole, of_sentence = _Words(), _Sums(), _Sums()
    before = sentence = ""
    counts: re.Match[str] | None = None
    of_file, first = False, 0
    for line, text in file.lines():
        where, bare = f"{file.path}, line {line}", text.strip()
        if bare.startswith("p( ") and len(text) <= _LONGEST:
            if not part.words:
                sentence, first = before, line
            _take_word(bare, part, where)
        elif match := _COUNTS.fullmatch(bare):
            counts, of_file = match, bare.startswith("file ")
            if part.words:
                of_sentence = _Sums.of(part)
                whole += of_sentence
                yield _sentence(f"{file.path}, line {first}", sentence, part, log)
                part = _Words()
        elif counts is not None and (match := _SUMS.fullmatch(bare)):
            _check(counts, match, whole if of_file else of_sentence, where)
            if of_file:
                log.remark("SRILM's own counts, logprob and ppl come out of its words again")
                whole = _Sums()
            counts, of_sentence = None, _Sums()
        before = text
    if part.words:  # cut off
        log.remark("{:,} sentences at the end of a file have no sums: was the output cut off?")
        yield _sentence(f"{file.path}, line {first}", sentence, part, log)


def _take_word(line: str, part: _Words, where: str) -> None:
    # Add a word: `p( WORD | CONTEXT ...) = [2gram] PROBABILITY [ LOG10 ]`, with ` / SUM` behind it from -debug 3 on.
    left, _, right = line.rpartition("= ")
    cells = right.split(" / ")[0].split()
    if not left or len(cells) < 4 or cells[-3] != "[" or cells[-1] != "]":
        raise InputError(f"{where}: {shown(line)} is not a word of `ngram -ppl -debug 2`")
    word = left.split(" ", 2)[1]
    log10 = number(cells[-2], where)
    if math.isnan(log10):
        raise InputError(f"{where}: a log-probability is NaN; the model is damaged")
    order = _ORDER.fullmatch("".join(cells[:-4]))
    unseen = word == "<unk>" or "".join(cells[:-4]) == "[OOV]"
    part.words.append(word)
    part.log10.append(log10)
    part.kinds.append(OOV if unseen else EOS_KIND if word == "</s>" else TOKEN)
    part.orders.append(int(order[1]) if order else 0)


def _check(counts: re.Match[str], stated: re.Match[str], sums: _Sums, where: str) -> None:
    printed = [*map(int, counts.groups()), int(stated[1]), number(stated[2], where)]
    mine = [sums.sentences, sums.words, sums.oov, sums.zeros, sums.log10]
    names = ["sentences", "words", "OOVs", "zeroprobs", "logprob"]
    for name, theirs, ours in zip(names, printed, mine, strict=True):
        if not abs(theirs - ours) <= (_TOLERANCE * max(1.0, abs(ours)) if name == "logprob" else 0):
            raise InputError(f"{where}: says {theirs:g} {name}, and its words give {ours:g}: are lines missing?")


def _sentence(where: str, sentence: str, part: _Words, log: Log) -> LoggedSegment:
    # Sentence; unseen words get their own strings where SRILM printed the sentence before its words.
    source = [word for word in re.split("[ \t\r\n]+", sentence) if word]
    if len(source) == sum(kind != EOS_KIND for kind in part.kinds):
        part.words[: len(source)] = source
    zeros = sum(kind == OOV and value == -math.inf for kind, value in zip(part.kinds, part.log10, strict=True))
    log.remark(
        "{:,} OOV words have probability 0; SRILM leaves them out: its ppl is perplexity_without_zeros",
        zeros,
    )
    return LoggedSegment(
        where,
        [word.encode("utf-8", "surrogateescape") for word in part.words],
        [log.nats(value, where) for value in part.log10],
        part.kinds,
        part.orders,
    )
