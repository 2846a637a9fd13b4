"""The ladder against the single functions: training, evaluating and compressing one by one."""

from __future__ import annotations

import gzip
import json
import lzma
import math
from itertools import pairwise
from pathlib import Path

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, NotEnoughMemoryError, UsageError
from lmgauge.evaluation.diagnosis import compressors
from lmgauge.models.ngram import training
from lmgauge.results import Ladder

DATA = Path(__file__).parents[1] / "data"
SMALL = {"order": 3, "character_order": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of three documents, and a model and a run of its."""
    folder = tmp_path_factory.mktemp("ladder")
    lines = (DATA / "classic-books.train.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.txt").write_text("".join(lines[:300]), encoding="utf-8")
    for name, part in {"a": lines[300:340], "b": lines[340:380], "c": lines[380:430]}.items():
        (folder / f"test-{name}.txt").write_text("".join(part), encoding="utf-8")
    model = lmgauge.train("witten-bell", folder / "train.txt", order=2, tokenizer="character", vocabulary="spelled")
    model.save(folder / "wb2")
    lmgauge.evaluate(model, texts_of(folder), output=folder / "run")
    return folder


def texts_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("test-?.txt"))


@pytest.fixture(scope="module")
def ladder(folder: Path) -> Ladder:
    return lmgauge.baseline(folder / "train.txt", texts_of(folder), models=[folder / "wb2", folder / "run"], **SMALL)  # type: ignore[arg-type]


def test_models_are_those_of_train_and_evaluate(folder: Path, ladder: Ladder) -> None:
    text = folder / "train.txt"
    words = lmgauge.train("modified-kneser-ney", text, order=3, vocabulary="spelled", min_count=2, reserved="escape")
    characters = lmgauge.train(
        "modified-kneser-ney", text, order=4, tokenizer="character", vocabulary="spelled", reserved="escape"
    )
    for name, model in {"word 3-gram": words, "character 4-gram": characters}.items():
        alone = lmgauge.evaluate(model, texts_of(folder))
        rung = ladder.rung(name)
        assert (rung.bits_per_byte, rung.bound, rung.trained) == (alone.bits_per_byte, False, True)
    assert ladder.rung("byte 4-gram").bits_per_byte == pytest.approx(ladder.rung("character 4-gram").bits_per_byte, rel=0.1)
    assert (ladder.bytes, ladder.words, ladder.segments) == (alone.bytes, alone.words, alone.segments)


def test_compressors_are_those_of_the_library(folder: Path, ladder: Ladder) -> None:
    data = b"".join(path.read_bytes() for path in texts_of(folder))
    assert ladder.rung("gzip -9").bits == 8 * len(gzip.compress(data, 9, mtime=0))

    def xz(size: int, text: bytes) -> int:
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": max(size, 1 << 16)}]
        return len(lzma.compress(text, lzma.FORMAT_XZ, filters=filters))

    assert ladder.rung("xz -9e").bits == 8 * xz(len(data), data)
    assert not ladder.rung("xz -9e").trained


def test_the_order_the_steps_and_your_models(folder: Path, ladder: Ladder) -> None:
    assert all(above.bits <= below.bits for above, below in pairwise(ladder.rungs))
    own = [rung for rung in ladder.rungs if rung.own]
    assert [rung.name for rung in own] == ["wb2", "wb2+spelled"]
    assert own[0].bits == own[1].bits
    tested = [rung.name for rung in ladder.rungs if rung.interval is not None]
    assert [(step.better, step.worse) for step in ladder.steps] == list(pairwise(tested))
    paths = [folder / "w3", folder / "c4"]
    words = {"order": 3, "vocabulary": "spelled", "min_count": 2}
    options = words, {"order": 4, "tokenizer": "character", "vocabulary": "spelled"}
    for path, keywords in zip(paths, options, strict=True):
        model = lmgauge.train("modified-kneser-ney", folder / "train.txt", reserved="escape", **keywords)  # type: ignore[call-overload]
        lmgauge.evaluate(model, texts_of(folder), output=path)
    compared = lmgauge.compare(paths, text=texts_of(folder))[0]
    step = {frozenset((one.better, one.worse)): one for one in ladder.steps}.get(
        frozenset(("word 3-gram", "character 4-gram"))
    )
    if step is not None:
        difference = next(one for one in compared.differences if one.metric == "bits_per_byte")
        assert abs(step.difference) == pytest.approx(abs(difference.difference), abs=1e-12)
        assert step.p_value == pytest.approx(compared.p_value)


def test_runs_and_the_ladder_are_kept(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "ladder"
    for _ in range(2):  # the second replaces the first
        made = lmgauge.baseline(folder / "train.txt", texts_of(folder), output=out, **SMALL)  # type: ignore[arg-type]
    runs = ["word-3-gram", "character-4-gram", "byte-4-gram"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*runs, "ladder.json"])
    compared = lmgauge.compare([out / name for name in runs])
    assert compared.runs == ("word 3-gram", "character 4-gram", "byte 4-gram")
    stored = json.loads((out / "ladder.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in stored["rungs"]] == [rung.name for rung in made.rungs]


def test_within_memory_it_is_the_same(folder: Path, ladder: Ladder) -> None:
    within = lmgauge.baseline(folder / "train.txt", texts_of(folder), memory="2G", **SMALL)  # type: ignore[arg-type]
    for name in ("word 3-gram", "character 4-gram", "byte 4-gram"):
        assert within.rung(name).bits == ladder.rung(name).bits


def test_what_comes_of_no_memory(folder: Path, monkeypatch: pytest.MonkeyPatch, ladder: Ladder) -> None:
    def refuse(*arguments: object, **others: object) -> None:
        raise NotEnoughMemoryError("too large")

    monkeypatch.setattr(training, "train_ngram", refuse)
    again = lmgauge.baseline(folder / "train.txt", texts_of(folder), **SMALL)  # type: ignore[arg-type]
    assert again.rung("word 3-gram").bits == ladder.rung("word 3-gram").bits


def test_texts_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    train, test = folder / "train.txt", texts_of(folder)
    with pytest.raises(InputError, match="in the training text and in the test text"):
        lmgauge.baseline(train, [*test, train])
    (tmp_path / "copy.txt").write_bytes(train.read_bytes())
    with pytest.raises(InputError, match="the test text is the training text"):
        lmgauge.baseline(train, tmp_path / "copy.txt", **SMALL)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="another text"):
        lmgauge.baseline(train, test[0], models=folder / "run")
    with pytest.raises(UsageError, match="test text is read several times"):
        lmgauge.baseline(train, Corpus.from_strings(line for line in ["a b"]))
    with pytest.raises(InputError):
        lmgauge.baseline(train, Corpus.from_strings([]), **SMALL)  # type: ignore[arg-type]
    for options in ({"order": 0}, {"character_order": 65}):
        with pytest.raises(UsageError):
            lmgauge.baseline(train, test, **options)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("a")
    with pytest.raises(InputError, match="not written by lmgauge"):
        lmgauge.baseline(train, test, output=tmp_path / "full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.txt", "full"]


def test_an_interrupt_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compressors, "compressed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        lmgauge.baseline(folder / "train.txt", texts_of(folder), output=tmp_path / "out", **SMALL)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_zeros_or_unseen_words(folder: Path) -> None:
    closed = lmgauge.train("mle", folder / "train.txt", order=1, tokenizer="character")
    opened = lmgauge.train("witten-bell", folder / "train.txt", order=1)
    made = lmgauge.baseline(folder / "train.txt", texts_of(folder), models={"zero": closed, "oov": opened}, **SMALL)  # type: ignore[arg-type]
    assert {rung.name for rung in made.rungs if rung.own} == {"zero", "oov"}
    assert made.rung("oov").bound
    assert any(note.startswith("≥") for note in made.notes)
    assert "oov" not in {name for step in made.steps for name in (step.better, step.worse)}
    assert math.isinf(made.rung("zero").bits) or made.rung("zero").bits > 0
    assert "≥" in str(made)
    assert len(made.to_pandas()) == len(made.rungs)


def test_diagnose_and_report_show_the_rungs(folder: Path) -> None:
    found = lmgauge.diagnose(folder / "run", text=texts_of(folder), train=folder / "train.txt", only=["baselines"])
    made = {one.name: one for one in found.baselines}
    words = lmgauge.train(
        "modified-kneser-ney", folder / "train.txt", order=5, vocabulary="spelled", min_count=2, reserved="escape"
    )
    assert made["word 5-gram"].bits_per_byte == lmgauge.evaluate(words, texts_of(folder)).bits_per_byte
    assert "the same bytes without a network" in str(found)
    page = lmgauge.report(folder / "run", text=texts_of(folder), train=folder / "train.txt").html()
    assert "character 10-gram" in page
