"""What programs print of a text: KenLM's `query`, SRILM's `ngram -ppl`, and llama.cpp's `llama-perplexity`.

All print sums, too, and these must come out of what they print of single words and chunks: else something is missing.

KenLM with words (`query -v word`, or all that it prints without `-v`): each word is `WORD=ID ORDER LOG10` and a tab, id 0 is
`<unk>`, and `Total: LOG10 OOV: N` ends a sentence where sums are printed.

SRILM (`ngram -ppl TEXT -debug 2`): each sentence, its words with their probabilities, and what they sum to. A word that is
out of vocabulary is `<unk>` with probability 0, and in none of the sums.

    the cat sat
            p( the | <s> )  = [2gram] 0.1 [ -1 ]
            p( </s> | sat ...)      = [3gram] 0.01 [ -2 ]
    1 sentences, 3 words, 0 OOVs
    0 zeroprobs, logprob= -3 ppl= 5.6 ppl1= 10

llama.cpp: the perplexity after each chunk, `[1]381.2549,[2]415.0472,...`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import number, shown
from lmgauge.scores.imports.log import Log, LogFile, LoggedSegment, ProgramOutput, score_of
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN


class _Word(NamedTuple):
    """A word of a sentence, as toolkits of n-gram models print it."""

    text: str  # bytes that are not UTF-8 as surrogates
    kind: int  # as in the score table
    order: int  # of the n-gram that matched; 0 where it is not known
    log10: float


def _sentence(where: str, words: Sequence[_Word], log: Log) -> LoggedSegment:
    pieces = [word.text.encode("utf-8", "surrogateescape") for word in words]
    logprob: list[float | None] = [log.nats(word.log10, where) for word in words]
    return LoggedSegment(where, pieces, logprob, [word.kind for word in words], [word.order for word in words])


# --- KenLM ---

_KENLM_WORD = re.compile(r"(.+)=([0-9]{1,10}) ([0-9]{1,3}) (-?[0-9.e+-]+|-inf|-?nan)", re.DOTALL)
_KENLM_TOTAL = re.compile(r"Total: (\S+) OOV: ([0-9]{1,18})")
_PERPLEXITIES = ("Perplexity including OOVs:", "Perplexity excluding OOVs:")
_SUMMARY = {*_PERPLEXITIES, "OOVs:", "Tokens:"}
_KENLM_TOLERANCE, _PERPLEXITY_TOLERANCE = 1e-5, 1e-4  # relative: KenLM adds in single precision
_END = "</s>"


def recognizes_kenlm(head: bytes) -> bool:
    """Return True if a file begins as output of `query` with words does."""
    return re.search(rb"(?m)^[^\t\n]+=[0-9]{1,10} [0-9]{1,3} -?[0-9.infae+-]+\t", head) is not None


@dataclass
class _KenlmSums:
    """What the program adds up of a file, of words it knows and of those out of vocabulary."""

    log10: list[float] = field(default_factory=lambda: [0.0, 0.0])
    words: list[int] = field(default_factory=lambda: [0, 0])

    def add(self, words: Sequence[_Word]) -> None:
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
        log.remark("KenLM's own perplexities follow from its words")


def parse_kenlm(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of KenLM's `query`."""
    log.states("log10", "KenLM")
    sums, words, printed = _KenlmSums(), list[_Word](), dict[str, str]()
    label, skipping, ended, first = "", False, True, 0
    unsummed = False  # a last line without a newline, whose words the program counts and does not add
    for line, cell, last in file.cells():
        where, bare = f"{file.path}, line {line}", cell.strip()
        match = None if skipping or label else _KENLM_WORD.fullmatch(cell)
        if match is not None:
            if words and (words[-1].text == _END or line != first):
                yield _kenlm_sentence(f"{file.path}, line {first}", words, log, sums)
                words = []
            first = first if words else line
            kind = OOV if int(match[2]) == 0 else EOS_KIND if match[1] == _END else TOKEN
            words.append(_Word(match[1], kind, int(match[3]), score_of(match[4], where)))
            ended = False
        elif label:
            printed[label], label = bare, ""
        elif bare in _SUMMARY:
            label = bare
            unsummed |= bool(words) and words[-1].text != _END
        elif total := _KENLM_TOTAL.fullmatch(bare):
            _check_kenlm_total(total, words, where)
            ended = True
        elif bare and words and line == first and not ended:
            raise InputError(f"{where}: {shown(cell)} stands where KenLM writes WORD=ID ORDER LOG10")
        else:
            skipping = bool(bare)  # what KenLM says while it loads a model
        if last:
            skipping, label = False, ""
    if words:
        yield _kenlm_sentence(f"{file.path}, line {first}", words, log, sums)
    if printed and not unsummed:
        sums.check(printed, str(file.path), log)


def _check_kenlm_total(total: re.Match[str], words: Sequence[_Word], where: str) -> None:
    mine, stated = math.fsum(word.log10 for word in words), number(total[1], where)
    same = mine == stated or abs(mine - stated) <= _KENLM_TOLERANCE * max(1.0, abs(stated))
    if not same or int(total[2]) != sum(word.kind == OOV for word in words):
        raise InputError(f"{where}: says 'Total: {stated:g}', and its words sum to {mine:g}: are words missing?")


def _kenlm_sentence(where: str, words: Sequence[_Word], log: Log, sums: _KenlmSums) -> LoggedSegment:
    sums.add(words)
    if words[-1].kind != EOS_KIND:
        log.remark("{:,} sentences have no </s>: `query -n`, or a last line without a newline, which KenLM does not add up")
    return _sentence(where, words, log)


# --- SRILM ---

_SRILM_COUNTS = re.compile(r"(?:file .*: )?([0-9]{1,18}) sentences, ([0-9]{1,18}) words, ([0-9]{1,18}) OOVs")
_SRILM_SUMS = re.compile(r"([0-9]{1,18}) zeroprobs, logprob= (\S+) ppl= (\S+) ppl1= (\S+)")
_SRILM_ORDER = re.compile(r"\[([0-9]{1,3})gram\]")
_SRILM_TOLERANCE = 2e-5  # relative: SRILM prints six or seven digits
_LONGEST_LINE = 1 << 16


def recognizes_srilm(head: bytes) -> bool:
    """Return True if a file has lines as `ngram -debug 2` writes them."""
    # recognizes_srilm(b"the cat\\n\\tp( the | <s> ) \\t= [2gram] 0.1 [ -1 ]\\n") -> True
    return re.search(rb"(?m)^\s*p\( \S+ \| [^\n]{0,4096}= [^\n]{0,4096}\[ [^\s\]]+ \]", head) is not None


def _srilm_sums(words: Sequence[_Word]) -> Counter[str]:
    # What SRILM adds up of some words, in the order in which it prints it.
    finite = [word for word in words if word.log10 != -math.inf]
    ends = sum(word.kind == EOS_KIND for word in words)
    unseen = sum(word.kind == OOV and word.log10 == -math.inf for word in words)
    total: Any = math.fsum(word.log10 for word in finite)
    zeros = len(words) - len(finite) - unseen
    return Counter(sentences=ends, words=len(words) - ends, OOVs=unseen, zeroprobs=zeros, logprob=total)


def parse_srilm(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the sentences of an output of SRILM's `ngram -ppl -debug 2`."""
    log.states("log10", "SRILM")
    words, whole, of_sentence = list[_Word](), _srilm_sums([]), _srilm_sums([])
    before = source = ""
    counts: re.Match[str] | None = None
    of_file, first = False, 0
    for line, text in file.lines():
        where, bare = f"{file.path}, line {line}", text.strip()
        if bare.startswith("p( ") and len(text) <= _LONGEST_LINE:
            if not words:
                source, first = before, line
            words.append(_srilm_word(bare, where))
        elif match := _SRILM_COUNTS.fullmatch(bare):
            counts, of_file = match, bare.startswith("file ")
            if words:
                of_sentence = _srilm_sums(words)
                whole.update(of_sentence)
                yield _srilm_sentence(f"{file.path}, line {first}", source, words, log)
                words = []
        elif counts is not None and (match := _SRILM_SUMS.fullmatch(bare)):
            _check_srilm_sums(counts, match, whole if of_file else of_sentence, where)
            if of_file:
                log.remark("SRILM's own counts, logprob and ppl follow from its words")
                whole = _srilm_sums([])
            counts, of_sentence = None, _srilm_sums([])
        before = text
    if words:  # cut off
        log.remark("{:,} sentences at the end of a file have no sums: was the output cut off?")
        yield _srilm_sentence(f"{file.path}, line {first}", source, words, log)


def _srilm_word(line: str, where: str) -> _Word:
    # Word: `p( WORD | CONTEXT ...) = [2gram] PROBABILITY [ LOG10 ]`, with ` / SUM` behind it from -debug 3 on.
    left, _, right = line.rpartition("= ")
    cells = right.split(" / ")[0].split()
    if not left or len(cells) < 4 or cells[-3] != "[" or cells[-1] != "]":
        raise InputError(f"{where}: {shown(line)} is not a word of `ngram -ppl -debug 2`")
    word = left.split(" ", 2)[1]
    name = "".join(cells[:-4])
    order = _SRILM_ORDER.fullmatch(name)
    kind = OOV if word == "<unk>" or name == "[OOV]" else EOS_KIND if word == "</s>" else TOKEN
    return _Word(word, kind, int(order[1]) if order else 0, score_of(cells[-2], where))


def _check_srilm_sums(counts: re.Match[str], stated: re.Match[str], sums: Counter[str], where: str) -> None:
    printed = [*map(int, counts.groups()), int(stated[1]), number(stated[2], where)]
    for theirs, (name, ours) in zip(printed, sums.items(), strict=True):
        if not abs(theirs - ours) <= (_SRILM_TOLERANCE * max(1.0, abs(ours)) if name == "logprob" else 0):
            raise InputError(f"{where}: says {theirs:g} {name}, and its words give {ours:g}: are lines missing?")


def _srilm_sentence(where: str, source: str, words: list[_Word], log: Log) -> LoggedSegment:
    # Sentence; unseen words get their own strings where SRILM printed the sentence before its words.
    own = [word for word in re.split("[ \t\r\n]+", source) if word]
    if len(own) == sum(word.kind != EOS_KIND for word in words):
        words[: len(own)] = [word._replace(text=text) for word, text in zip(words, own, strict=False)]
    zeros = sum(word.kind == OOV and word.log10 == -math.inf for word in words)
    log.remark("{:,} OOV words have probability 0; SRILM leaves them out: its ppl is perplexity_without_zeros", zeros)
    return _sentence(where, words, log)


# --- llama.cpp ---

_RUNNING = re.compile(r"\[([0-9]{1,9})\]([0-9]{1,30}\.[0-9]{1,9}|inf|-?nan),")
_WINDOW = re.compile(r"n_ctx=([0-9]{1,9})\b")
_FINAL = re.compile(r"Final estimate: PPL = ([0-9]{1,30}\.[0-9]{1,9})")
_HALF_DIGIT = 0.5e-4
_CHUNKS = "each is one row, the mean of the {tokens} tokens that llama.cpp scores in a chunk of {window}"


def recognizes_llama_cpp(head: bytes) -> bool:
    """Return True if a file has running perplexities of chunks."""
    # recognizes_llama_cpp(b"[1]381.2549,[2]415.0472,") -> True
    return re.search(rb"\[1\](?:[0-9]{1,30}\.[0-9]{4}|inf|-?nan),", head) is not None


def parse_llama_cpp(file: LogFile, log: Log) -> Iterator[LoggedSegment]:
    """Yield the chunks, each with one row: the mean log-probability of its scored tokens."""
    # Every chunk has the same number of scored tokens, so that this mean follows from the perplexities before and after it,
    # and the perplexity over the rows is the perplexity over the tokens.
    log.states("nats", "llama.cpp")
    seen, total, last, window, final = 0, 0.0, math.nan, 0, ""
    for line, text in file.lines():
        if found := _WINDOW.search(text):
            window = int(found[1])
        if found := _FINAL.search(text):
            final = found[1]
        for match in _RUNNING.finditer(text):
            where = f"{file.path}, line {line}"
            seen, last = seen + 1, float(match[2])
            if int(match[1]) != seen:
                raise InputError(f"{where}: chunk {match[1]} stands where chunk {seen} should; is it one whole output?")
            if not 1 <= last < math.inf:
                raise InputError(f"{where}: the perplexity after chunk {seen} is {match[2]}; the model is damaged")
            after = seen * math.log(last)
            # Of probability one within the rounding of four decimals, of what was and what is.
            if after < total - 2 * seen * _HALF_DIGIT:
                raise InputError(f"{where}: the perplexity falls so far with chunk {seen} that it would be below 1")
            yield LoggedSegment(where, [""], [-max(after - total, 0.0)])
            total = after
    if not seen:
        raise InputError(f"{file.path}: has no perplexities of chunks")
    if final and abs(float(final) - last) > 2 * _HALF_DIGIT:
        raise InputError(f"{file.path}: the final estimate is {final}, and that after its last chunk {last:.4f}")
    scored = window - window // 2 - 1
    of_tokens = _CHUNKS.format(tokens=f"{scored:,}", window=f"{window:,}") if scored > 0 else "each is one row, their mean"
    log.remark(
        "{:,} chunks are known by their perplexity only, to four decimals: " + of_tokens + "; events are chunks, and the "
        "first half of each chunk, and the tail of the text behind the last, have no score",
        seen,
    )


OF_LLAMA_CPP = ProgramOutput(recognizes_llama_cpp, parse_llama_cpp, unit="chunk", places=False)
OF_SRILM = ProgramOutput(recognizes_srilm, parse_srilm, unit="word", words=True)
OF_KENLM = ProgramOutput(recognizes_kenlm, parse_kenlm, unit="word", words=True)
