"""ARPA files, of several orders and smoothings, whole ones and ones put together at random, with bytes and lines changed."""

from __future__ import annotations

import random
from pathlib import Path

import lmgauge
from lmgauge import Corpus
from tests.fuzz.mutations import PIECES, changed, changed_lines, drawn_number
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.table import Attempt

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog", "the mat", "grün 漢字"]
ARPA = [
    b"\\data\\",
    b"\\end\\",
    b"\\1-grams:",
    b"\\2-grams:",
    b"\\65-grams:",
    b"ngram 1=3",
    b"ngram 2=99999999999",
    b"-99",
    b"-0.3",
    b"1.5",
    b"nan",
]


def prepare(folder: Path) -> Attempt:
    whole = []
    for kind, order in (("modified-kneser-ney", 3), ("witten-bell", 2), ("kneser-ney", 1)):
        path = folder / "whole.arpa"
        lmgauge.models.write_arpa(lmgauge.train(kind, Corpus.from_strings(LINES * 3), order=order), path)  # type: ignore[arg-type]
        whole.append(path.read_bytes())

    def attempt(chance: random.Random) -> str:
        content = chance.choice([*whole, _drawn(chance)])
        if chance.random() < 0.4:
            content = changed_lines(content, chance)
        if chance.random() < 0.4:
            content = changed(content, chance, 3, [*PIECES, *ARPA])
        path = folder / "changed.arpa"
        path.write_bytes(content)
        return check_model(lmgauge.load_model(path), chance)

    return attempt


def _drawn(chance: random.Random) -> bytes:
    """Return a file whose n-grams are drawn: some without their contexts, some twice, with numbers at the limits."""
    words = ["<s>", "</s>", "<unk>", "the", "cat", "sat", "a"]
    order = chance.randint(1, 3)
    sections = []
    for length in range(1, order + 1):
        grams = [" ".join(chance.choice(words) for _ in range(length)) for _ in range(chance.randint(0, 8))]
        grams = [*words, *grams] if length == 1 and chance.random() < 0.8 else grams
        sections.append(sorted(set(grams)) if chance.random() < 0.9 else grams)
    lines = ["\\data\\", *(f"ngram {length}={len(grams)}" for length, grams in enumerate(sections, 1)), ""]
    for length, grams in enumerate(sections, 1):
        lines += [
            f"\\{length}-grams:",
            *(f"{_log10(chance)}\t{gram}" + _weight(chance, length < order) for gram in grams),
            "",
        ]
    return "\n".join([*lines, "\\end\\", ""]).encode()


def _log10(chance: random.Random) -> str:
    return str(drawn_number(chance)) if chance.random() < 0.02 else f"{-3 * chance.random():.6g}"


def _weight(chance: random.Random, below: bool) -> str:
    return f"\t{_log10(chance)}" if below != (chance.random() < 0.1) else ""
