"""Texts, and n-gram models of words, characters and bytes that give each of them a probability: for tables of exact bits.

Texts are unpacked, and models are trained, once; both stay in the cache folder (harness.py), where other runs find them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import harness
import lmgauge

ALL_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
ORDERS = {"word": 5, "character": 12, "byte": 12}
SMOOTHING = "modified-kneser-ney"
HELD_OUT = 20  # one in this number of lines, of a training text that has no held-out part


@dataclass(frozen=True)
class Texts:
    """What models learn from and what they are measured on.

    Attributes:
        name: as tables and `--text` have it.
        train: one file.
        held_out: what the training of a network is watched on.
        test: one file.
        tokenizer: of the models of words.
        reserved: what a `<unk>` in the text is to models of words: escape, a word like others, or unk, an unknown one.
    """

    name: str
    train: Path
    held_out: Path
    test: Path
    tokenizer: str = "whitespace"
    reserved: Literal["escape", "unk"] = "escape"

    def corpus(self) -> lmgauge.Corpus:
        """Return what is measured; its lines are not known to be independent."""
        return lmgauge.Corpus.from_files(self.test, document="unknown")


@dataclass(frozen=True)
class Language:
    """Where a language's training text lies in the folder open/multilingual, and how its words are told apart."""

    train: tuple[str, ...]
    tokenizer: str = "whitespace"


# Only English has a training text of another folder: plain prose, as PUD is.
LANGUAGES = {
    "en": Language(("../classic-books/train.txt.zst",)),
    "de": Language(("de-novels/train.txt.gz", "ud/de.dev.txt")),
    "cs": Language(("cs-novels/train.txt.gz", "ud/cs.dev.txt")),
    "tr": Language(("ud/tr-boun.dev.txt", "ud/tr-kenet.dev.txt")),
    "ar": Language(("ar/tashkeela_val.txt.gz",)),
    "ko": Language(("ko-reviews/train.txt.gz", "ud/ko.dev.txt", "ud/ko-kaist.dev.txt")),
    "th": Language(("ud/th.train.txt.gz", "ud/th.dev.txt"), "icu"),
    "zh": Language(("zh/drcd_hant.txt.gz", "ud/zh-Hant.dev.txt"), "icu"),
}
PUD_OF = {"zh": "zh-Hant"}


def books(megabytes: float, test_megabytes: float | None = None) -> Texts:
    """Return the first megabytes of the books to learn from; all of their test part, or its first megabytes."""
    train = beginning(harness.book_text("train.txt"), megabytes)
    test = harness.book_text("test.txt")
    return Texts("books", train, beginning(harness.book_text("valid.txt"), 1.0),
                 beginning(test, test_megabytes) if test_megabytes else test)  # fmt: skip


def treebank() -> Texts:
    """Return the Penn Treebank as published, `<unk>` a word like others."""
    return Texts("PTB", *(harness.treebank_text(part) for part in ("train", "valid", "test")))


def wikitext() -> Texts:
    """Return WikiText-2 as published, `<unk>` a word like others."""
    return Texts("WikiText-2", *(harness.open_corpus(f"wikitext-2/{part}.txt.gz") for part in ("train", "valid", "test")))


def wikitext_with_all_words() -> Texts:
    """Return WikiText-2 to learn from, its `<unk>` an unknown word, and its test articles with the words themselves."""
    part = wikitext()
    name = "wikitext-103-evalsets/wiki.{}.tokens.gz"
    held_out, test = (harness.open_corpus(name.format(which)) for which in ("valid", "test"))
    return Texts("WikiText-2, all words", part.train, held_out, test, reserved="unk")


def shakespeare() -> Texts:
    """Return tinyshakespeare: the usual 90 % to learn from, the last tenth halved into held-out and test."""
    lines = harness.open_corpus("tinyshakespeare/input.txt.gz").read_bytes().splitlines(keepends=True)
    first, second = int(len(lines) * 0.9), int(len(lines) * 0.95)
    parts = {"train": lines[:first], "valid": lines[first:second], "test": lines[second:]}
    return Texts("Shakespeare", *(_written(f"shakespeare.{name}.txt", part) for name, part in parts.items()))


def language(code: str, tokenizer: str | None = None, megabytes: float = 20.0) -> Texts:
    """Return a language's 1,000 parallel sentences (PUD), and other text of that language to learn from."""
    chosen = LANGUAGES[code]
    lines = [line for part in chosen.train for line in _lines_of(part, megabytes)]
    train = [line for i, line in enumerate(lines) if i % HELD_OUT]
    paths = (_written(f"pud.{code}.train.txt", train), _written(f"pud.{code}.valid.txt", lines[::HELD_OUT]))
    test = harness.open_corpus_as_is(f"multilingual/pud/{PUD_OF.get(code, code)}.txt")
    words = tokenizer or chosen.tokenizer
    name = f"PUD {code}" + (f", {words}" if words != "whitespace" else "")
    return Texts(name, *paths, test, words)


@dataclass(frozen=True)
class Trained:
    """A model of the cache folder.

    Attributes:
        path: its folder.
        cpu: seconds of CPU that the training took; None if it was there.
    """

    path: Path
    cpu: float | None


def trained(texts: Texts, unit: str, *, order: int | None = None, min_count: int = 1) -> Trained:
    """Return an n-gram model of words, characters or bytes that gives every text a probability.

    Args:
        texts: what it learns from.
        unit: word, character or byte.
        order: of its longest n-grams; None for that of `ORDERS`.
        min_count: of words: those that occur less often are spelled.
    """
    order = order or ORDERS[unit]
    words = unit == "word"
    path = models_folder(texts) / f"{unit}-{order}{f'-min{min_count}' if min_count > 1 else ''}"
    if (path / "config.json").exists():
        return Trained(path, None)
    harness.note(f"{texts.name}: training {path.name}")
    began = time.process_time()
    # All bytes write every text, and nothing else has to be left for; unknown words and characters are spelled.
    how: dict[str, Any] = (
        {"words": ALL_BYTES, "vocabulary": "closed"} if unit == "byte" else {"vocabulary": "spelled", "min_count": min_count}
    )
    tokenizer = texts.tokenizer if words else unit
    reserved = texts.reserved if words else "escape"
    model = lmgauge.train(SMOOTHING, texts.train, order=order, tokenizer=tokenizer, reserved=reserved, **how)
    cpu = time.process_time() - began
    model.save(str(path))
    return Trained(path, cpu)


def loaded(texts: Texts, path: Path) -> lmgauge.LanguageModel:
    """Return a model of `trained`, or a network, to measure a text with."""
    return lmgauge.load_model(str(path), reserved=texts.reserved if path.name.startswith("word") else "escape")


def models_folder(texts: Texts) -> Path:
    """Return where the models of a text are; texts of other sizes have folders of their own."""
    name = f"{texts.name.replace(', ', '-').replace(' ', '-')}-{texts.train.stat().st_size}"
    return harness.cache_folder() / "exact-bits" / name


def _lines_of(name: str, megabytes: float) -> list[bytes]:
    packed = name.startswith("../")
    if packed:
        path = beginning(harness.book_text("train.txt"), megabytes)
    elif name.endswith(".gz"):
        path = harness.open_corpus(f"multilingual/{name}")
    else:
        path = harness.open_corpus_as_is(f"multilingual/{name}")
    return path.read_bytes().splitlines(keepends=True)


def beginning(path: Path, megabytes: float) -> Path:
    """Return a file with the first megabytes of a text, up to the end of a line."""
    target = path.with_name(f"{path.stem}-{megabytes:g}MB.txt")
    if not target.exists():
        with path.open("rb") as source:
            block = source.read(int(megabytes * 1e6))
        target.write_bytes(block[: block.rindex(b"\n") + 1])
    return target


def _written(name: str, lines: Sequence[bytes]) -> Path:
    target = harness.cache_folder() / name
    content = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
    if not target.exists() or target.read_bytes() != content:
        target.write_bytes(content)
    return target
