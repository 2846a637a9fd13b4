"""Texts larger than what can be had: real text as far as it goes, then text drawn from a model of the books.

    python benchmarks/large_texts.py --words 120 --real     # the open corpora first, 120 million words in all
    python benchmarks/large_texts.py --words 1000           # 1,000 million words, all of them drawn

The model is interpolated absolute discounting of order 5 (Ney, Essen & Kneser 1994), with the discount of each order
estimated from the counts of the books. A state is a place in the books and how many words before it count as context. A
step goes to a random place with the same context and takes the next word there; a word that follows c times is refused
with probability D/c, and the step is tried again with one word of context less. So nothing is looked up. Where even the
single word is refused, a new word is made of the beginning of one word and the end of another, so the vocabulary grows.
What the process forgets by backing off stays forgotten, where a model would look whether a longer context exists.

Blocks of the drawn text depend on the seed and their number only, so a shorter text is the beginning of a longer one.
N-grams of drawn text grow otherwise than those of real text: measure both (`growth.py`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

import harness

REAL = (  # under open/; books first
    "classic-books/train.txt.zst",
    "tinyshakespeare/input.txt.gz",
    "multilingual/de-novels/train.txt.gz",
    "multilingual/cs-novels/train.txt.gz",
    "multilingual/ko-reviews/train.txt.gz",
)
MILLION = 10**6
SEQUENCES, STEPS = 1 << 14, 1000  # drawn at a time; the words of a sequence before it is cut by the end of a line
LINE_END = 0  # its id

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Books:
    """A text as a process to draw from; its places are numbered in the order of what stands before them, read backwards.

    Attributes:
        words: the word types as bytes; the first is the end of a line.
        word: uint32 [places], id of the word at each place.
        after: uint32 [places], the place that follows in the text.
        begins: of each context length from 1, uint32 [places]: first of the places with the same words before and at it.
        sizes: the same: how many there are; one length more, as counts of the longest n-grams.
        discounts: of n-grams of length 1, 2, ...
    """

    words: list[bytes]
    word: Ids
    after: Ids
    begins: list[Ids]
    sizes: list[Ids]
    discounts: list[float]

    @property
    def order(self) -> int:
        return len(self.sizes)


def read_ids(text: Path) -> tuple[list[bytes], Ids]:
    """The word types of a text, and the ids of its words, with the end of a line after each line."""
    numbers: dict[bytes, int] = {b"\n": LINE_END}
    pieces = []
    with text.open("rb") as lines:
        while block := lines.readlines(1 << 24):
            tokens = b"".join(block).replace(b"\n", b" \n ").split(b" ")
            pieces.append(np.array([numbers.setdefault(token, len(numbers)) for token in tokens if token], np.uint32))
    return list(numbers), np.concatenate(pieces)


def prepare(text: Path, order: int) -> Books:
    """Number the places of a text by their contexts, and count the n-grams up to `order`."""
    words, ids = read_ids(text)
    ranks = [ids]
    for length in range(2, order + 1):
        before = np.roll(ids, length - 1)
        ranks.append(_dense(ranks[-1].astype(np.uint64) << np.uint64(32) | before)[0])
    place_of, place = np.empty(len(ids), np.uint32), _dense(ranks[-1])[1]
    place_of[place] = np.arange(len(ids), dtype=np.uint32)
    begins, sizes, discounts = [], [], []
    for _ in range(order):
        ordered = ranks.pop(0)[place]
        firsts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        counts = np.diff(np.r_[firsts, len(ids)])
        begins.append(np.repeat(firsts.astype(np.uint32), counts))
        sizes.append(np.repeat(counts.astype(np.uint32), counts))
        once, twice = (int(np.count_nonzero(counts == count)) for count in (1, 2))
        discounts.append(once / (once + 2 * twice))
    return Books(words, ids[place], place_of[(place + 1) % len(ids)], begins[:-1], sizes, discounts)


def _dense(keys: NDArray[np.unsignedinteger]) -> tuple[Ids, Ids]:
    """The rank of each key among the different keys, and the order that sorts them."""
    order = np.argsort(keys).astype(np.uint32)
    ordered = keys[order]
    ranks = np.empty(len(keys), np.uint32)
    ranks[order] = np.cumsum(np.r_[False, ordered[1:] != ordered[:-1]], dtype=np.uint32)
    return ranks, order


@dataclass(frozen=True)
class Drawn:
    """One block: ids of words, uint32 [sequences, steps]; ids beyond the vocabulary are new words, in this order."""

    ids: Ids
    new: list[bytes]


def draw(books: Books, seed: int, block: int) -> Drawn:
    """Draw one block of sequences; each begins as a line does."""
    random = np.random.default_rng([seed, block])
    ids = np.empty((STEPS, SEQUENCES), np.uint32)
    line_ends = books.begins[0][np.searchsorted(books.word, LINE_END)]  # places are sorted by their word first
    places = np.full(SEQUENCES, line_ends, np.uint32)
    lengths = np.ones(SEQUENCES, np.int8)
    new: list[bytes] = []
    for step in ids:
        refused = _step(books, random, places, lengths)
        step[:] = books.word[places]
        step[refused] = len(books.words) + len(new) + np.arange(len(refused))
        lengths[step == LINE_END] = 1
        new += [_new_word(books, random) for _ in refused]
    return Drawn(ids.T.copy(), new)


def _step(books: Books, random: np.random.Generator, places: Ids, lengths: NDArray[np.int8]) -> NDArray[np.intp]:
    """Move every sequence on by a word, in place; return those that get a new word."""
    waiting = np.arange(len(places))
    for length in range(books.order - 1, -1, -1):
        able = np.flatnonzero(lengths[waiting] >= length)
        tried = waiting[able]
        if length:
            now = places[tried]
            begins, sizes = books.begins[length - 1][now], books.sizes[length - 1][now]
        else:
            begins, sizes = np.uint32(0), np.uint32(len(books.word))
        chosen = begins + (random.random(len(tried)) * sizes).astype(np.uint32)
        following = books.after[chosen]
        taken = random.random(len(tried)) * books.sizes[length][following] >= books.discounts[length]
        places[tried[taken]] = following[taken]
        lengths[tried[taken]] = min(length + 1, books.order - 1)
        waiting = np.delete(waiting, able[taken])
    lengths[waiting] = 0
    return waiting


def _new_word(books: Books, random: np.random.Generator) -> bytes:
    """The first half of one word and the second half of another, cut between characters."""
    first, second = (books.words[1 + int(random.integers(len(books.words) - 1))].decode(errors="replace") for _ in range(2))
    return (first[: (len(first) + 1) // 2] + second[len(second) // 2 :]).encode()


def blocks(books: Books, seed: int, words: int) -> Iterator[bytes]:
    """The drawn text in pieces, until it has `words` words; the last line may be cut."""
    left, block = words, 0
    while left > 0:
        drawn = draw(books, seed, block)
        spellings = books.words + drawn.new
        for sequence in drawn.ids:
            real = np.flatnonzero(sequence != LINE_END)
            if len(real) > left:
                sequence = sequence[: real[left]]
            left -= min(len(real), left)
            line = b" ".join([spellings[word] for word in sequence.tolist()])
            yield line.replace(b" \n ", b"\n").removesuffix(b"\n").removesuffix(b" ") + b"\n"
            if not left:
                break
        block += 1


def copy_real(out: BinaryIO, most: int) -> list[tuple[str, int]]:
    """Write the open corpora until there are `most` words; names and words of each."""
    copied = []
    for name in REAL:
        source = harness.open_corpus(name)
        words = 0
        with source.open("rb") as lines:
            for line in lines:
                out.write(line)
                words += len(line.split())
                if words >= most:
                    break
        copied.append((name, words))
        most -= words
        if most <= 0:
            break
    return copied


def large_text(words: int, *, real: bool, seed: int, folder: Path) -> Path:
    """The path of a text of this many million words, made if it is not there yet."""
    target = folder / f"large-{words}{'-real' if real else ''}-{seed}.txt"
    if target.exists():
        return target
    part = target.with_suffix(".part")
    left = words * MILLION
    with part.open("wb") as out:
        if real:
            for name, copied in copy_real(out, left):
                harness.note(f"{copied:,} words of {name}")
                left -= copied
        start = time.perf_counter()
        if left > 0:
            books = prepare(harness.book_text("train.txt"), order=5)
            harness.note(f"prepared in {time.perf_counter() - start:.0f} s; discounts {books.discounts}")
            start = time.perf_counter()
            for piece in blocks(books, seed, left):
                out.write(piece)
        harness.note(f"{max(left, 0):,} words drawn in {time.perf_counter() - start:.0f} s")
    part.rename(target)
    return target


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--words", type=int, required=True, metavar="M", help="million words")
    options.add_argument("--real", action="store_true", help="the open corpora first")
    options.add_argument("--seed", type=int, default=12345)
    options.add_argument("--folder", type=Path, help="where the text is written (default: the cache folder)")
    arguments = options.parse_args()
    folder = arguments.folder or harness.cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    print(large_text(arguments.words, real=arguments.real, seed=arguments.seed, folder=folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
