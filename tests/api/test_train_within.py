"""Training beyond memory, at both doors: when it is chosen, what is said, and what is refused."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused, run

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import NotEnoughMemoryError, UsageError
from lmgauge.base.files import OutputError
from lmgauge.models.ngram import limits as limits_module
from lmgauge.models.ngram import memory_needs, training
from lmgauge.models.ngram.limits import MemoryLimits
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.models.ngram.training import train_ngram

TEXT = ["the cat sat on the mat", "the dog sat", "a cat and a dog"] * 20
KN = "kneser-ney"


@dataclass
class Within:
    """In place of training within memory: notes how it was called, and trains in memory."""

    calls: list[tuple[MemoryLimits, dict[str, Any]]] = field(default_factory=list)
    error: BaseException | None = None

    def __call__(self, settings: Any, corpus: Corpus, output: Path, limits: MemoryLimits, **options: Any) -> Any:
        self.calls.append((limits, options))
        if self.error is not None:
            limits.work_folder(output).mkdir()
            (limits.work_folder(output) / "ids").touch()
            raise self.error
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_needs, "free_memory", lambda: None)
            train_ngram(settings, corpus).save(output)
        return load_ngram_model(output)


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> Within:
    stand_in = Within()
    monkeypatch.setattr(training, "train_within", stand_in)
    return stand_in


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    return tmp_path / "text.txt"


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little memory is free."""
    monkeypatch.setattr(memory_needs, "free_memory", lambda: 4 << 20)
    monkeypatch.setattr(limits_module, "free_memory", lambda: 30 << 20)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_both_doors_hand_on_the_same(within: Within, text: Path, tmp_path: Path) -> None:
    options = ["--memory", "1G", "--temp", tmp_path, "--workers", 2, "--resume", "--threads", 1]
    printed = json.loads(ok("train", KN, text, "-o", tmp_path / "shell", *options, "--json").stdout)
    model = lmgauge.train(
        KN, text, output=tmp_path / "python", memory="1G", temp=tmp_path, workers=2, resume=True, threads=1
    )
    assert [limits for limits, _ in within.calls] == 2 * [MemoryLimits(1 << 30, tmp_path, True, 2, True, None)]
    assert [options["threads"] for _, options in within.calls] == [1, 1]
    assert printed["fingerprint"] == model.fingerprint
    assert model.tables.source == str(tmp_path / "python")
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")


def test_where_it_fits_it_is_trained_in_memory_and_saved(within: Within, text: Path, tmp_path: Path) -> None:
    ok("train", KN, text, "-o", tmp_path / "shell")
    lmgauge.train(KN, text, output=tmp_path / "python")
    lmgauge.train(KN, text).save(tmp_path / "saved")
    lmgauge.train(KN, text, output=tmp_path / "python.arpa")
    assert within.calls == []
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python") == files_of(tmp_path / "saved")
    assert lmgauge.load_model(tmp_path / "python.arpa").order == 3


def test_where_it_does_not_fit_it_is_trained_within_memory_and_said(
    within: Within, little: None, text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shell = ok("train", KN, text, "-o", tmp_path / "shell")
    note = rf"through {tmp_path / 'shell'}.parts"
    assert "lmgauge: training in memory needs about 4.2 MB of memory, and 4.2 MB are free" in shell.stderr
    assert note in shell.stderr
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="lmgauge"):
        lmgauge.train(KN, text, output=tmp_path / "python", temp=tmp_path)
    assert "are free: training within 25.2 MB, through" in caplog.text
    assert [limits.memory for limits, _ in within.calls] == [24 << 20, 24 << 20]
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")


def test_ids_that_do_not_fit_are_not_read_to_the_end(
    within: Within, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_needs, "free_memory", lambda: 1000)
    monkeypatch.setattr(limits_module, "free_memory", lambda: 1 << 30)
    said = ok("train", KN, text, "-o", tmp_path / "model").stderr
    assert "training in memory needs more than 3.2 kB of memory, and 2.6 kB are free" in said
    assert len(within.calls) == 1


@pytest.mark.parametrize("name", ["kn.arpa", "kn.binary"])
def test_a_file_is_refused_with_what_to_do(within: Within, little: None, text: Path, tmp_path: Path, name: str) -> None:
    said = refused("train", KN, text, "-o", tmp_path / name)
    assert "needs about 4.21 MB of memory" in said
    assert "train into a folder, which needs less memory (`lmgauge convert` makes a file from it)" in said
    assert "train into a folder, then `lmgauge convert` it" in refused(
        "train", KN, text, "-o", tmp_path / name, "--memory", "2G"
    )
    with pytest.raises(NotEnoughMemoryError, match="train into a folder"):
        lmgauge.train(KN, text)
    assert within.calls == []


def test_a_text_that_comes_once_is_refused_with_the_memory_to_give(within: Within, little: None, tmp_path: Path) -> None:
    done = run("train", KN, "-o", tmp_path / "model", stdin=text_bytes())
    assert done.exit_code == 2
    assert "can be read only once, and has been: give --memory 24M from the beginning" in done.stderr
    assert ok("train", KN, "-", "-o", tmp_path / "model", "--memory", "24M", stdin=text_bytes()).exit_code == 0
    assert len(within.calls) == 1


def text_bytes() -> bytes:
    return "".join(f"{line}\n" for line in TEXT).encode()


def test_work_that_was_left_is_named_and_how_it_goes_on(within: Within, text: Path, tmp_path: Path) -> None:
    within.error = OutputError(f"{tmp_path}/model.parts: the disk is full")
    command = ["train", KN, text, "-o", tmp_path / "model", "--memory", "1G"]
    hint = f"the same command with --memory 1024M --resume continues from {tmp_path}/model.parts"
    assert refused(*command) == f"lmgauge: error: {tmp_path}/model.parts: the disk is full; then {hint}\n"
    within.error = None
    ok(*command, "--resume")
    assert [limits.resume for limits, _ in within.calls] == [False, True]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_so_it_is_where_somebody_stops_it(
    within: Within, text: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, stop: type[BaseException]
) -> None:
    within.error = stop()
    with pytest.raises(stop), caplog.at_level(logging.WARNING, logger="lmgauge"):
        lmgauge.train(KN, text, output=tmp_path / "model", memory=50_000_001, temp=tmp_path)
    assert f"--memory 50000001 --resume continues from {tmp_path}/model.parts" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kneser-ney", "--resume"], "resume: training in memory has no stages to resume; give --memory"),
        (["kneser-ney", "--memory", "2 elephants"], "'2 elephants' is not a size"),
        (["kneser-ney", "--memory", "2G", "--temp", "nowhere"], "temp: nowhere is not a folder"),
        (["kneser-ney", "--workers", "0"], "Invalid value for '--workers'"),
        (["lstm", "--memory", "2G"], "--memory is for n-gram models; lstm does not take it"),
        (["gru", "--workers", "2"], "--workers is for n-gram models"),
        (["gru", "--temp", "."], "--temp is for n-gram models"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], message: str, text: Path, tmp_path: Path) -> None:
    assert message in refused("train", *arguments, text, "-o", tmp_path / "model")


def test_nothing_that_is_read_is_replaced(within: Within, text: Path, tmp_path: Path) -> None:
    (tmp_path / "model.parts").mkdir()
    inside = text.rename(tmp_path / "model.parts" / "text.txt")
    with pytest.raises(UsageError, match="would replace what this command reads"):
        lmgauge.train(KN, inside, output=tmp_path / "model", memory="1G", resume=True)
    with pytest.raises(UsageError, match="would replace what this command reads"):
        lmgauge.train(KN, inside, output=inside)
    assert within.calls == []


def test_the_model_is_that_of_training_in_memory(text: Path, tmp_path: Path, little: None) -> None:
    options = ["--order", 3, "--threads", 1]
    ok("train", KN, text, "-o", tmp_path / "asked", *options, "--memory", "1G", "--temp", tmp_path)
    ok("train", KN, "-", "-o", tmp_path / "piped", *options, "--memory", "1G", stdin=text.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits_module, "free_memory", lambda: 1 << 30)
        assert "training within" in ok("train", KN, text, "-o", tmp_path / "chosen", *options).stderr
        patch.setattr(memory_needs, "free_memory", lambda: None)
        ok("train", KN, text, "-o", tmp_path / "memory", *options)
    expected = files_of(tmp_path / "memory")
    assert [files_of(tmp_path / name) == expected for name in ("asked", "piped", "chosen")] == [True] * 3
    assert list(tmp_path.glob("*.parts")) == []


def test_what_was_left_of_it_is_resumed(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["train", KN, text, "-o", tmp_path / "model", "--memory", "1G"]

    def fail(*arguments: object, **options: object) -> None:
        raise OutputError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "packed_model", fail)
        said = refused(*command)
    assert said.endswith(f"; then the same command with --memory 1024M --resume continues from {tmp_path}/model.parts\n")
    assert "holds the unfinished work of an earlier run" in refused(*command)
    resumed = ok(*command, "--resume", "--json").stdout
    assert json.loads(resumed)["fingerprint"] == lmgauge.train(KN, text).fingerprint
    assert not (tmp_path / "model.parts").exists()


# -- spelled vocabularies -----------------------------------------------------------------------------------------------
def test_a_spelled_model_that_does_not_fit_is_trained_in_parts(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise NotEnoughMemoryError("it does not fit")

    monkeypatch.setattr("lmgauge.models.ngram.training.train_ngram", too_large)
    with pytest.raises(NotEnoughMemoryError, match="train into a folder"):
        lmgauge.train(KN, text, vocabulary="spelled")
    model = lmgauge.train(KN, text, output=tmp_path / "model", vocabulary="spelled")
    assert isinstance(model, lmgauge.models.SpelledModel)
    assert lmgauge.load_model(tmp_path / "model").fingerprint == model.fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"model", "text.txt"}


def test_a_spelled_model_appears_whole_or_not_at_all(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lmgauge.models.combined.spelling.learn.learn_parts", stopped)
        with pytest.raises(KeyboardInterrupt):
            lmgauge.train(KN, text, output=tmp_path / "model", vocabulary="spelled", memory="100M")
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}
    model = lmgauge.train(KN, text, output=tmp_path / "model", vocabulary="spelled", memory="100M", resume=True)
    assert model.fingerprint == lmgauge.train(KN, text, vocabulary="spelled").fingerprint


def test_the_parts_of_a_spelled_model_lie_beside_it(within: Within, text: Path, tmp_path: Path) -> None:
    within.error = OutputError("the disk is full")
    with pytest.raises(OutputError, match=r"--resume continues from .*model\.parts"):
        lmgauge.train(KN, text, output=tmp_path / "model", vocabulary="spelled", memory="1G")
    assert {path.name for path in tmp_path.iterdir()} == {"model.parts", "text.txt"}
