"""Lists of words as files, and as vocabularies: hostile words, doubled ones, reserved ones, other encodings."""

from __future__ import annotations

import random
from pathlib import Path

import lmgauge
from lmgauge import Corpus
from lmgauge.models.ngram.settings import read_word_list
from tests.fuzz.mutations import changed, hostile_text
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.table import Attempt

TEXTS = ["the cat sat on the mat", "", "unheard-of cat the the", "grün 漢字 🙂"]
LINES = ["the cat sat", "a dog", "the mat"]
ENCODINGS = ["utf-8"] * 9 + ["utf-8-sig", "utf-16", "cp1252"]


def prepare(folder: Path) -> Attempt:
    path = folder / "words.txt"

    def attempt(chance: random.Random) -> str:
        words = [
            chance.choice(["the", "cat", "<unk>", "", *4 * [hostile_text(chance, 4)]]) for _ in range(chance.randint(0, 9))
        ]
        words = list(dict.fromkeys(words)) if chance.random() < 0.9 else words
        content = chance.choice(["\n", "\n", "\r\n", " \n"]).join(words).encode(chance.choice(ENCODINGS), "replace")
        path.write_bytes(changed(content, chance, 2) if chance.random() < 0.3 else content)
        vocabulary = chance.choice(["open", "open", "closed"])
        smoothing = chance.choice(["laplace", "witten-bell"])
        lines = [*LINES, *words[:3]] if chance.random() < 0.3 else LINES if vocabulary == "open" else [" ".join(words[:3])]
        corpus = Corpus.from_strings([line.replace("\0", "") for line in lines])
        listed = read_word_list(path)
        model = lmgauge.train(smoothing, corpus, order=2, words=listed, vocabulary=vocabulary, reserved="unk")  # type: ignore[arg-type]
        assert all(word in model.vocabulary for word in listed)
        return check_model(model, chance, TEXTS)

    return attempt
