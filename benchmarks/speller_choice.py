"""Which speller gives unseen words the most probability: bits per unseen word of held-out texts, by what it is made of.

    python benchmarks/speller_choice.py
    python benchmarks/speller_choice.py --only german,korean

A speller is an n-gram model of characters (or bytes) that learns from words of a training text: those that occur at most so
often, each once, or each as often as it occurs. A figure is what one word of the held-out text that the training text does
not have costs to spell, its end included, once known words are taken out (their share of the speller's probability is in
it): the mean over all such words of the held-out text. The texts are those of the folder LMGAUGE_DATA; those that are not
there are left out. One table for each question, with the other choices as they are by default; lower is better. It prints
no goals.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import harness
from lmgauge.base.choices import SmoothingKind
from lmgauge.base.errors import ModelFileError
from lmgauge.models.combined.spelling.speller import UnseenCharacters
from lmgauge.models.model_settings import SpellerSettings
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_ngram
from lmgauge.text.documents import Corpus
from lmgauge.text.tokenizers import make_tokenizer

ALL = 1 << 60
MULTILINGUAL = "open/multilingual"
TEXTS = {  # name: (training files, bytes of them, held-out file, tokenizer)
    "books 10 MB": (["open/classic-books/train.txt.zst"], 10 << 20, "open/classic-books/test.txt.gz", "whitespace"),
    "books 211 MB": (["open/classic-books/train.txt.zst"], ALL, "open/classic-books/test.txt.gz", "whitespace"),
    "WikiText": (
        ["open/wikitext-103-evalsets/wiki.valid.tokens.gz"],
        ALL,
        "open/wikitext-103-evalsets/wiki.test.tokens.gz",
        "whitespace",
    ),
    "PTB 500 KB": (["restricted/ptb/ptb.train.txt.gz"], 500_000, "restricted/ptb/ptb.test.txt.gz", "whitespace"),
    "German": ([f"{MULTILINGUAL}/de-novels/train.txt.gz"], ALL, f"{MULTILINGUAL}/pud/de.txt", "whitespace"),
    "Czech": ([f"{MULTILINGUAL}/cs-novels/train.txt.gz"], ALL, f"{MULTILINGUAL}/pud/cs.txt", "whitespace"),
    "Korean": ([f"{MULTILINGUAL}/ko-reviews/train.txt.gz"], ALL, f"{MULTILINGUAL}/pud/ko.txt", "whitespace"),
    "Turkish": (
        [f"{MULTILINGUAL}/ud/tr-boun.dev.txt", f"{MULTILINGUAL}/ud/tr-kenet.dev.txt"],
        ALL,
        f"{MULTILINGUAL}/pud/tr.txt",
        "whitespace",
    ),
    "Chinese": ([f"{MULTILINGUAL}/zh/drcd_hant.txt.gz"], ALL, f"{MULTILINGUAL}/pud/zh-Hant.txt", "icu"),
    "Japanese": ([f"{MULTILINGUAL}/ja/soseki.txt.gz"], ALL, f"{MULTILINGUAL}/ud/ja.dev.txt", "icu"),
}


@dataclass(frozen=True)
class Choice:
    """A speller.

    Attributes:
        max_count: it learns from words that occur at most so often.
        order: of its longest n-grams.
        smoothing: of the n-gram model.
        unit: character or byte.
        by_tokens: whether each word is learned as often as it occurs.
    """

    max_count: int = ALL
    order: int = SpellerSettings.order
    smoothing: SmoothingKind = "modified-kneser-ney"
    unit: str = "character"
    by_tokens: bool = False

    def words(self) -> str:
        """Return it as a line for people."""
        learned = "all words" if self.max_count == ALL else f"words that occur at most {self.max_count} times"
        how = "as often as they occur" if self.by_tokens else "each once"
        return f"{learned}, {how}; {self.unit}s, order {self.order}, {self.smoothing}"


DEFAULT = Choice()
COMPARED: tuple[SmoothingKind, ...] = ("modified-kneser-ney", "kneser-ney", "absolute-discounting", "witten-bell")
QUESTIONS: dict[str, dict[str, Choice]] = {
    "words that occur at most so often": {
        str(n) if n < ALL else "all": replace(DEFAULT, max_count=n) for n in (1, 2, 3, 5, 10, ALL)
    },
    "as often as they occur": {
        f"{name}, {how}": replace(DEFAULT, max_count=n, by_tokens=by_tokens)
        for name, n in (("at most 5", 5), ("all", ALL))
        for how, by_tokens in (("once", False), ("by tokens", True))
    },
    "order": {str(order): replace(DEFAULT, order=order) for order in range(3, 11)},
    "order, words that occur once": {str(order): replace(DEFAULT, order=order, max_count=1) for order in range(4, 11, 2)},
    "smoothing": {kind: replace(DEFAULT, smoothing=kind) for kind in COMPARED},
    "smoothing, words that occur once": {kind: replace(DEFAULT, smoothing=kind, max_count=1) for kind in COMPARED},
    "unit": {
        f"{unit}s, order {order}": replace(DEFAULT, unit=unit, order=order)
        for unit, order in (("character", 8), ("byte", 8), ("byte", 10), ("byte", 16))
    },
}


@dataclass(frozen=True)
class Sample:
    """The words of a training text and those of a held-out text that it does not have, each with how often it occurs."""

    known: Counter[str]
    unseen: Counter[str]
    tokens: int  # of the held-out text


def read_sample(name: str) -> Sample:
    """Return the words of a pair of texts."""
    files, size, held_out, tokenizer = TEXTS[name]
    known = Counter[str]()
    for file in files:
        known.update(words(file, size, tokenizer))
    test = Counter(words(held_out, ALL, tokenizer))
    return Sample(known, Counter({word: n for word, n in test.items() if word not in known}), test.total())


def words(name: str, size: int, tokenizer: str) -> Iterator[str]:
    """Return the words of the first bytes of a text."""
    path = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA, name)
    if path.suffix == ".zst":
        path = harness.book_text("train.txt")
    opened: Callable[..., object] = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:  # type: ignore[attr-defined]
        if tokenizer == "whitespace":
            for line in lines:
                yield from line.split()
                size -= len(line)
                if size <= 0:
                    return
        else:
            cut = make_tokenizer(tokenizer)
            for block in Corpus.from_strings(lines):
                yield from (token.decode() for token in cut.tokenize(block).strings())


def bits_per_word(sample: Sample, choice: Choice) -> float:
    """Return what an unseen word costs to spell, bits; NaN where known words leave a speller nothing."""
    learned = [word for word, n in sample.known.items() if n <= choice.max_count]
    text = (word for word in learned for _ in range(sample.known[word] if choice.by_tokens else 1))
    alphabet = sorted(set("".join(sample.known))) if choice.unit == "character" else None
    settings = NgramTrainingSettings(
        choice.smoothing, order=choice.order, tokenizer=choice.unit, words=alphabet, reserved="escape"
    )
    model = train_ngram(settings, Corpus.from_strings(text))
    foreign = UnseenCharacters(alphabet or [], " \t\n\v\f\r\0")

    def logprobs(texts: Sequence[str]) -> np.ndarray:
        totals = [model.sum_block(block) for block in Corpus.from_strings(texts)]
        nats = np.concatenate([np.where(t.zeros > 0, -np.inf, t.nats) for t in totals])
        unseen = np.concatenate([t.unseen for t in totals])
        if choice.unit == "character":
            nats += np.where(unseen > 0, foreign.logprobs(texts), 0.0)
        return nats

    left = -math.expm1(math.log(math.fsum(np.exp(logprobs([*sample.known, ""])).tolist())))
    if left <= 0:
        raise ModelFileError("known words take everything")
    spelled = np.array(logprobs(list(sample.unseen))) - math.log(left)
    return float(-(spelled @ np.array(list(sample.unseen.values()))) / sample.unseen.total() / math.log(2))


def main() -> None:
    """Read the command line, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of texts, or parts of them, divided by commas")
    parser.add_argument("--questions", default="", help="names of tables, or parts of them, divided by commas")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("LMGAUGE_DATA") or harness.DATA)
    asked = [part.lower() for part in arguments.only.split(",")]
    names = [name for name in TEXTS if any(part in name.lower() for part in asked)]
    names = [name for name in names if all((folder / file).exists() for file in [*TEXTS[name][0], TEXTS[name][2]])]
    if not names:
        harness.give_up(f"none of the texts is in {folder}: set LMGAUGE_DATA, or name others of {', '.join(TEXTS)}")
    figures: dict[tuple[Choice, str], float] = {}
    questions = [title for title in QUESTIONS if any(part in title for part in arguments.questions.split(","))]
    for name in names:
        sample = read_sample(name)
        once = sum(n == 1 for n in sample.known.values())
        share = sample.unseen.total() / sample.tokens
        print(f"{name}: {len(sample.known):,} words, {once:,} of them once; {share:.2%} of held-out words are unseen")
        for choice in dict.fromkeys(choice for title in questions for choice in QUESTIONS[title].values()):
            harness.note(f"{name}: {choice}")
            figures[choice, name] = bits_per_word(sample, choice)
    for title in questions:
        print(f"\nBits per unseen word: {title} (otherwise {DEFAULT.words()})\n")
        rows = [[row, *(f"{figures[choice, name]:.2f}" for name in names)] for row, choice in QUESTIONS[title].items()]
        harness.print_table(["", *names], rows)


if __name__ == "__main__":
    main()
