"""Training within a given memory, in folders: threads, processes, stopped runs, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.memory import parse_size
from lmgauge.models.ngram import training
from lmgauge.models.ngram.limits import MemoryLimits
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_within
from lmgauge.work.engine import FolderEngine

SETTINGS = NgramTrainingSettings("modified-kneser-ney", order=4)
MEMORY = 1 << 30


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real text, which several blocks of reading and several chunks hold."""
    lines = (Path(__file__).parents[2] / "data" / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:300]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if memory were so small that three partitions and many chunks are needed."""
    monkeypatch.setattr(training, "number_of_partitions", lambda *types, **sizes: 3)
    monkeypatch.setattr(training, "tokens_of_chunk", lambda memory: 3000)


def in_memory(text: Path, **options: Any) -> NgramModel:
    return lmgauge.train("modified-kneser-ney", Corpus.from_files([text]), order=4, **options)


def within(text: Path, output: Path, settings: NgramTrainingSettings = SETTINGS, **limits: Any) -> NgramModel:
    return train_within(settings, Corpus.from_files([text], block_bytes=20_000), output, MemoryLimits(MEMORY, **limits))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("limits", [{}, {"workers": 3}, {"workers": 2, "processes": True}])
def test_the_folder_is_that_of_training_in_memory(text: Path, tmp_path: Path, limits: dict[str, Any]) -> None:
    in_memory(text).save(tmp_path / "whole")
    within(text, tmp_path / "parts", **limits)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "whole"]


@pytest.mark.parametrize("stop", ["route", "adjust", "estimate-3", "deal-lower-4", "stage-3", "place-4"])
def test_a_stopped_run_goes_on(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str) -> None:
    run, names = FolderEngine.run, []

    def _run(self: FolderEngine, name: str, *arguments: Any) -> Any:
        names.append(name)
        if names.count(stop) == 1 and name == stop:
            raise KeyboardInterrupt
        return run(self, name, *arguments)

    monkeypatch.setattr(FolderEngine, "run", _run)
    settings = NgramTrainingSettings("modified-kneser-ney", order=4, interpolate=False, min_count=2)
    with pytest.raises(KeyboardInterrupt):
        within(text, tmp_path / "model", settings)
    assert [path.name for path in tmp_path.iterdir()] == ["model.parts"]
    with pytest.raises(UsageError, match="--resume"):
        within(text, tmp_path / "model", settings)
    model = within(text, tmp_path / "model", settings, resume=True, workers=2)
    assert model.fingerprint == in_memory(text, interpolate=False, min_count=2).fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_another_text_is_not_resumed(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "text.txt"
    other.write_text("a b\n", encoding="utf-8")

    def _stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train_partitions", _stop)
    with pytest.raises(KeyboardInterrupt):
        within(other, tmp_path / "model")
    other.write_text("a b c\n", encoding="utf-8")
    with pytest.raises(UsageError, match="other work"):
        within(other, tmp_path / "model", resume=True)
    with pytest.raises(UsageError, match="other work"):
        within(other, tmp_path / "model", NgramTrainingSettings("kneser-ney", order=4), resume=True)


def test_more_ngrams_than_a_model_can_have_are_refused_before_they_are_counted(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "most_entries", lambda last: 1000)
    with pytest.raises(UsageError, match=r"n-grams of order 2 are more than a model can have, 1,000; use --cutoffs"):
        within(text, tmp_path / "model")


def test_what_is_in_the_way_is_found_before_the_work(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("x")
    monkeypatch.setattr(training, "read_text", None)
    with pytest.raises(InputError, match="exists and was not written by lmgauge"):
        within(text, tmp_path / "model")


def test_a_text_that_cannot_be_used_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"a b\n\xff\n")
    with pytest.raises(InputError, match="line 2"):
        within(tmp_path / "text.txt", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_the_error_of_too_little_memory_says_what_is_enough(tmp_path: Path) -> None:
    settings = NgramTrainingSettings("laplace", order=2)
    text = Corpus.from_strings([" ".join(f"w{i}" for i in range(k, k + 100)) for k in range(0, 150_000, 100)])
    limits = MemoryLimits(10 << 20, workers=2)
    with pytest.raises(UsageError, match=r"do not hold a vocabulary of 150,003 words for 2 workers: give --memory") as said:
        train_within(settings, text, tmp_path / "model", limits)
    (enough,) = re.findall("--memory ([0-9]+M) or more with --resume", str(said.value))
    train_within(settings, text, tmp_path / "model", replace(limits, memory=parse_size(enough), resume=True))
