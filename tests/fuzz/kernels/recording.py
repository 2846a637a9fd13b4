"""Calls of the compiled functions, as real use makes them: what is changed begins with these."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lmgauge
from lmgauge import Corpus, tasks
from lmgauge._kernels import _native
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.reading import read_text
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_partitions
from lmgauge.settings import Outputs
from lmgauge.work.engine import Engine

CALLS_OF_ONE = 12
"""Calls that are remembered of one function: of as many shapes as there are."""
LARGEST = 8 << 20
"""Bytes of arrays of a call that is remembered."""
WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "dog's",
    "grün",
    "漢字",
    ".",
    ",",
    "<unknown>",
    "isn't",
    "1",
    "2",
    "3",
]

Call = tuple[Any, ...]


def functions() -> list[str]:
    """Return the names of all compiled functions."""
    return [name for name in dir(_native) if name[0].islower() and callable(getattr(_native, name))]


def record(folder: Path) -> dict[str, list[Call]]:
    """Use the package in many ways, and return what each compiled function was called with; files are made in `folder`."""
    calls: dict[str, list[Call]] = {}
    with _recording(calls):
        lines = _lines()
        (folder / "train.txt").write_text("\n".join(lines * 2) + "\n", encoding="utf-8")
        (folder / "test.txt").write_text("\n".join(lines[::3]) + "\n", encoding="utf-8")
        models = _train(lines)
        _train_in_partitions(folder, lines)
        _use(folder, models, lines[::3])
        _keep(folder, models[0], lines)
        _overlap(folder)
        _translations(lines)
        _call_by_hand(calls)
    return calls


@contextmanager
def _recording(calls: dict[str, list[Call]]) -> Iterator[None]:
    shapes: set[Any] = set()

    def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def _call(*arguments: Any) -> Any:
            known = calls.setdefault(name, [])
            shape = (name, _shape(arguments))
            if shape not in shapes and len(known) < CALLS_OF_ONE and _size(arguments) <= LARGEST:
                shapes.add(shape)
                known.append(copied(arguments))
            return function(*arguments)

        return _call

    originals = {name: getattr(_native, name) for name in functions()}
    try:
        for name, function in originals.items():
            setattr(_native, name, _watched(name, function))
        yield
    finally:
        for name, function in originals.items():
            setattr(_native, name, function)


def copied(value: Any) -> Any:
    """Return arguments with their arrays copied."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if isinstance(value, list):
        return [copied(part) for part in value]
    if isinstance(value, tuple):
        return tuple(copied(part) for part in value)
    return value if callable(value) else copy.copy(value)


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(_size(part) for part in value) if isinstance(value, tuple | list) else 0


def _shape(value: Any) -> Any:
    """Return what makes a call unlike another: types, which arrays are empty, and small numbers."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.size == 0
    if isinstance(value, tuple | list):
        return tuple(_shape(part) for part in value[:4])
    return value if isinstance(value, bool) or (isinstance(value, int) and value < 8) else type(value).__name__


def _lines() -> list[str]:
    chance = random.Random("lines")
    return [" ".join(chance.choices(WORDS, range(len(WORDS), 0, -1), k=chance.randint(1, 12))) for _ in range(60)]


def _train(lines: list[str]) -> list[Any]:
    text = Corpus.from_strings(lines)
    options: list[tuple[str, dict[str, Any]]] = [
        ("modified-kneser-ney", {"order": 3, "min_count": 2}),
        ("modified-kneser-ney", {"order": 4, "cutoffs": (0, 1, 1), "threads": 2}),
        ("kneser-ney", {"order": 3, "interpolate": False, "prune": 1e-3}),
        ("witten-bell", {"order": 3, "tokenizer": "character"}),
        ("laplace", {"order": 3, "reserved": "escape"}),
        ("witten-bell", {"order": 2, "interpolate": False, "tokenizer": "byte"}),
        ("mle", {"order": 2}),
        ("good-turing", {"order": 3}),
        ("modified-kneser-ney", {"order": 3, "vocabulary": "spelled"}),
    ]
    train: Any = lmgauge.train
    return [train(kind, text, **chosen) for kind, chosen in options]


def _train_in_partitions(folder: Path, lines: list[str]) -> None:
    settings = NgramTrainingSettings("modified-kneser-ney", order=3)
    for partitions, chunk, memory in ((2, 40, 200), (3, 1000, 1 << 20)):
        engine = Engine()
        text = read_text(engine, settings, Corpus.from_strings(lines), chunk, threads=1)
        train_partitions(engine, settings, text, folder / f"parts{partitions}", partitions=partitions, memory=memory)


def _use(folder: Path, models: list[Any], lines: list[str]) -> None:
    text = Corpus.from_strings(lines)
    for model in models:
        lmgauge.evaluate(model, text)
        lmgauge.score_text(model, "the cat sat on the mat")
    for model in (models[0], models[4]):
        list(lmgauge.sample(model, 2, seed=1, top_k=3))
        model.begin()
    lmgauge.divergence(models[1], models[2], text)
    test, train, runs = folder / "test.txt", folder / "train.txt", []
    for number in (0, 1, 4):
        runs.append(folder / f"run{number}")
        columns = Outputs(runs[-1], columns=("entropy", "rank", "top3"))
        lmgauge.evaluate(models[number], test, output=columns)
    lmgauge.diagnose(runs[0], train=train, model=models[0])
    lmgauge.compare(runs[:2], train=train)
    lmgauge.score_documents(models[0], test, folder / "scored.jsonl")


def _keep(folder: Path, model: Any, lines: list[str]) -> None:
    from lmgauge.models.ngram.kenlm.writer import write_kenlm

    lmgauge.models.write_arpa(model, folder / "whole.arpa")
    lmgauge.load_model(folder / "whole.arpa")
    model.save(folder / "whole")
    lmgauge.load_model(folder / "whole")
    forms = [KenlmForm(), KenlmForm(True), KenlmForm(True, (4, 4))]
    for number, form in enumerate(forms):
        path = folder / f"{number}.binary"
        write_kenlm(model, path, form)
        kept: Any = lmgauge.load_model(path)
        text = Corpus.from_strings(lines[::3])
        lmgauge.evaluate(kept, text)
        lmgauge.score_text(kept, "the cat")
        list(lmgauge.sample(kept, 1, seed=1))
        kept.begin()
        lmgauge.score_documents(kept, folder / "test.txt", folder / f"{number}.jsonl")
        if form.trie:
            lmgauge.models.write_arpa(kept, folder / f"{number}.arpa")


def _overlap(folder: Path) -> None:
    test, train = folder / "test.txt", folder / "train.txt"
    lmgauge.overlap(train, test, n=3)
    lmgauge.overlap(train, test, n=2)


def _translations(lines: list[str]) -> None:
    chance = random.Random("translations")
    outputs = [" ".join(chance.sample(line.split(), len(line.split()))) for line in lines]
    references = [[line, *others] for line, others in zip(lines, (lines[i : i + i % 3] for i in range(60)), strict=True)]
    for tokenizer in ("13a", "zh", "char", "intl"):
        tasks.bleu(hypotheses=outputs, references=references, tokenizer=tokenizer)
    tasks.chrf(hypotheses=outputs, references=references, word_order=2)
    tasks.ter(hypotheses=outputs, references=references)
    tasks.wer(hypotheses=outputs, references=lines)
    tasks.cer(hypotheses=outputs, references=lines)
    tasks.align(lines[0], outputs[0])
    drawn = tasks.ComparisonSettings(significance="sacrebleu")
    tasks.score_systems(tasks.BLEU(), hypotheses={"a": outputs, "b": lines}, references=lines, settings=drawn)
    tasks.score_systems(tasks.WER(), hypotheses={"a": outputs, "b": lines}, references=lines, settings=drawn)


def _call_by_hand(calls: dict[str, list[Call]]) -> None:
    """Call what a short use does not reach, with parts of other calls."""
    for source, contexts in [call[:2] for call in calls["fill_distributions"]]:
        _native.divergences(source, contexts, source, contexts, np.empty(len(contexts)))
