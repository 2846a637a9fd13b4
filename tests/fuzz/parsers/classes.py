"""Files of classes, in SRILM's format, over a model that has some of them."""

from __future__ import annotations

import random
from pathlib import Path

import lmgauge
from lmgauge import Corpus
from lmgauge.models import ClassModel
from lmgauge.models.combined.class_model import ClassDefinitions, read_classes
from tests.fuzz.mutations import changed, changed_lines, hostile_text
from tests.fuzz.parsers.checked import check_model
from tests.fuzz.table import Attempt

LINES = ["the ANIMAL sat", "a ANIMAL ran on DAY", "the cat and the ANIMAL", "DAY"]
TEXTS = ["the cat sat on Monday", "", "ANIMAL 漢字", "a dog"]
CLASSES = ["ANIMAL", "ANIMAL", "DAY", "DAY", "NONE", "<unk>", "</s>"]
PROBABILITIES = ["0.5", "0.25", "1", "0.125", "0", "1.5", "-1", "nan", "1e-999", "0x1p-1", "1_0", "", "٣", "inf", "1e-5"]


def prepare(folder: Path) -> Attempt:
    path = folder / "classes.txt"
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)

    def attempt(chance: random.Random) -> str:
        lines = [_line(chance) for _ in range(chance.randint(1, 6))]
        content = chance.choice(["\n", "\n", "\r\n"]).join(lines).encode("utf-8", "surrogatepass")
        content = changed(content, chance, 2) if chance.random() < 0.1 else content
        path.write_bytes(changed_lines(content, chance, 2) if chance.random() < 0.1 else content)
        classes = read_classes(path)
        written = classes.to_text()
        path.write_text(written, encoding="utf-8", newline="\n")
        assert read_classes(path) == ClassDefinitions(classes.expansions, str(path)), "other classes when written and read"
        words = " ".join(word for _, _, word in classes.expansions if "\0" not in word)
        return check_model(ClassModel(model, classes), chance, [*TEXTS, words])

    return attempt


def _line(chance: random.Random) -> str:
    if chance.random() < 0.03:
        return hostile_text(chance, 4)
    name = chance.choice(CLASSES[:4] if chance.random() < 0.97 else CLASSES)
    p = chance.choice(PROBABILITIES[:4] if chance.random() < 0.95 else PROBABILITIES)
    word = chance.choice(["cat", "dog", "Monday", "1", "0.5", "the"])
    word = hostile_text(chance, 1) if chance.random() < 0.2 else word
    return f"{name} {p} {word}"
