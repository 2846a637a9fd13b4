"""How well training text covers a test text: for each word its count, and the longest n-gram that ends with it.

>>> from lmgauge.text.documents import Corpus
>>> train, test = Corpus.from_strings(["a b c", "b"]), Corpus.from_strings(["a b", "c b x"])
>>> coverage = find_training_coverage(train, test)
>>> coverage.counts.tolist(), coverage.longest.tolist()
([1, 2, 1, 2, 0], [1, 2, 1, 1, 0])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import check_whole
from lmgauge.base.progress import say_progress
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import WhitespaceTokenizer
from lmgauge.text.vocabulary import EOS, VocabularyBuilder

MAX_ORDER = 255
_NONE = np.uint32(0xFFFFFFFF)
_SLOTS_PER_NGRAM = 1.4


@dataclass(frozen=True)
class TrainingCoverage:
    """For each word of a test text, in reading order, how often and in how long an n-gram the training text has it."""

    # Words are runs of bytes that are not ASCII white space, as they stand (`<unk>` in a text is a word like any other).
    # N-grams lie within a segment, in the test as in the training text, and do not include sentence ends.

    counts: NDArray[np.int64]  # int64 [words], how often the word occurs in the training text
    # uint8 [words], the length of the longest n-gram of at most `max_order` words that ends with this word, begins in its
    # segment, and occurs in a segment of the training text; 0 where the word itself does not
    longest: NDArray[np.uint8]
    # int64 [segments + 1]; the words of segment i are `first_words[i]` up to `first_words[i + 1]`
    first_words: NDArray[np.int64]
    max_order: int  # length of the longest n-grams searched for, in words
    train_words: int  # number of words in the training text
    train_sha256: str

    def of(self, block: Segments) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
        """Return the figures of consecutive segments of the test, such as a block of its corpus."""
        # -> `counts` (int64 [words]) and `longest` (uint8 [words]) of their words, and int64 [segments], words of each.
        firsts = self.first_words[block.first : block.first + len(block) + 1]
        words = slice(int(firsts[0]), int(firsts[-1]))
        return self.counts[words], self.longest[words], np.diff(firsts)


def find_training_coverage(
    train: Corpus, test: Iterable[Segments], *, max_order: int = 5, threads: int | None = None
) -> TrainingCoverage:
    """Read a test text into memory and a training text block by block, and find the one in the other."""
    # Memory is bounded by the test: about 50 bytes a word of it, at the default order.
    # train: the training text; read once; test: the test text; read once; threads: number of threads; nothing depends on
    # it.
    check_whole("max_order", max_order, 1, MAX_ORDER)
    tokenizer, builder = WhitespaceTokenizer(), VocabularyBuilder()
    parts = [
        encode(block, tokenizer, builder, bos=False, reserved="escape").ids for block in (block.alone() for block in test)
    ]
    ids = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
    parts.clear()
    is_word = ids != EOS
    if not is_word.any():
        raise InputError("the test text has no words: is it the right file?")
    vocabulary = builder.finish()
    # numbers[k - 2][i] is the number of the k-gram that ends at token i; the kernel sets flags[k - 2] of that number where
    # the training text has the k-gram.
    numbers, keys = _number_ngrams(ids, is_word, max_order)
    flags = [np.zeros(len(table), np.uint8) for table in keys]

    def mark(block: Segments) -> tuple[NDArray[np.int64], int, int]:
        words = encode(block.alone(), tokenizer, vocabulary, bos=False, reserved="escape").ids
        _native.mark_ngrams(words, keys, flags)
        return np.bincount(words, minlength=len(vocabulary)), len(words) - len(block), block.byte_count()

    counts, train_words, done = np.zeros(len(vocabulary), np.int64), 0, 0
    for block_counts, words, size in map_in_order(mark, train, thread_count(threads)):
        counts += block_counts
        train_words += words
        done += size
        say_progress(f"read {done / 1e6:,.0f} MB of training text")
    if not train_words:
        raise InputError("the training text has no words: is it the right file?")
    counts[: EOS + 1] = 0
    of_word = counts[ids[is_word]]
    longest = (of_word > 0).astype(np.uint8)
    for order, (number, flag) in enumerate(zip(numbers, flags, strict=True), start=2):
        of_words = number[is_word]
        longest[(of_words != _NONE) & (flag[np.minimum(of_words, len(flag) - 1)] > 0)] = order
    ends = np.flatnonzero(~is_word)
    first_words = np.concatenate(([0], ends - np.arange(len(ends)))).astype(np.int64)
    return TrainingCoverage(of_word, longest, first_words, max_order, train_words, train.report.sha256)


def _number_ngrams(
    ids: NDArray[np.uint32], is_word: NDArray[np.bool_], max_order: int
) -> tuple[list[NDArray[np.uint32]], list[NDArray[np.uint64]]]:
    # For each order from 2 on the number of the n-gram that ends at each token, and the table of its keys.
    number = np.where(is_word, ids, _NONE)
    numbers, keys = [], []
    for _ in range(2, max_order + 1):
        table = np.zeros(int(_SLOTS_PER_NGRAM * len(ids)) + 64, np.uint64)
        longer = np.empty_like(number)
        _native.number_ngrams(ids, number, table, longer)
        numbers.append(longer)
        keys.append(table)
        number = longer
    return numbers, keys
