"""Logs of Inspect, in the form of versions 0.3.108 to 0.3.285."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.records import compression
from lmgauge.tasks.items.table import ItemScores

HEADER = {"version": 2, "status": "success", "eval": {"task": "inspect_evals/arc_easy", "model": "ollama/qwen2.5:0.5b"}}


def sample(name: int | str, value: Any, epoch: int = 1, **changes: Any) -> dict[str, Any]:
    """An attempt at a question with one scorer."""
    scores = {"choice": {"value": value, "answer": "A", "explanation": "ANSWER: A"}}
    return {"id": name, "epoch": epoch, "input": f"Question {name}?", "scores": scores, "metadata": {"topic": "x"}} | changes


def log(*samples: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A log as one object."""
    return HEADER | changes | {"samples": list(samples)}


def imported(path: Path, whole: dict[str, Any], score: str = "choice", **options: Any) -> ItemScores:
    """Scores of a log."""
    path.write_text(json.dumps(whole, indent=2), encoding="utf-8")
    run = lmgauge.tasks.import_items(path, path.parent / "run", score=score, **options)
    assert isinstance(run, ItemScores)
    return run


def test_words_are_numbers_as_inspect_has_them(tmp_path: Path) -> None:
    values = ["C", "I", "P", "N", True, 0.25, "yes", "0.75"]
    run = imported(tmp_path / "log.json", log(*(sample(i, value) for i, value in enumerate(values))), document="topic")
    assert run.score.tolist() == [1.0, 0.0, 0.5, 0.0, 1.0, 0.25, 1.0, 0.75]
    assert ({*run.subset}, {*run.cluster}) == ({"inspect_evals/arc_easy"}, {"x"})
    assert (run.origin.model, run.origin.program, run.origin.notes) == ("ollama/qwen2.5:0.5b", "inspect", ())
    assert len(run.content[0]) == 64


def test_epochs_are_attempts(tmp_path: Path) -> None:
    run = imported(tmp_path / "log.json", log(sample("a", "C"), sample("b", "I"), sample("a", "I", 2), sample("b", "I", 2)))
    assert (run.item, run.sample.tolist(), run.mean) == (["a", "b", "a", "b"], [0, 0, 1, 1], 0.25)
    with pytest.raises(InputError, match=r"log.json, sample 2 \(item 'a'\): is scored twice"):
        imported(tmp_path / "log.json", log(sample("a", "C"), sample("a", "I")))


def test_scorers_of_several_values_and_samples_without_a_score(tmp_path: Path) -> None:
    failed = [sample("b", {"clarity": float("nan")}), sample("c", "C", scores=None, error={"message": "timeout"})]
    run = imported(tmp_path / "log.json", log(sample("a", {"clarity": 0.5}), *failed), "choice/clarity")
    assert (run.item, run.mean) == (["a"], 0.5)
    assert any("attempts without a score, left out: 2, such as " in note for note in run.origin.notes)
    run = imported(tmp_path / "log.json", log(sample("a", "C"), status="error"))
    assert run.origin.notes == ("the log says of its evaluation: error; samples may be missing",)


def test_messages_are_told_apart_by_what_they_say(tmp_path: Path) -> None:
    runs = [
        imported(tmp_path / "log.json", log(sample("a", "C", input=[{"id": drawn, "role": "user", "content": "Hi"}])))
        for drawn in ("4AazUKeMLBkaoiWecV4xco", "bf4Ne3ZPrGu5oYu33HFcSZ")
    ]
    assert runs[0].content == runs[1].content


def written_zip(path: Path, *samples: dict[str, Any], header: bool = True, form: int = zipfile.ZIP_DEFLATED) -> Path:
    """A log as a zip file."""
    with zipfile.ZipFile(path, "w", form) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": HEADER["eval"]}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("summaries.json", "[]")
        if header:
            archive.writestr("header.json", json.dumps(HEADER))
    return path


def test_a_zip_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = written_zip(tmp_path / "log.eval", sample("a", "C"), sample("b", "I"))
    run = lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")
    assert isinstance(run, ItemScores)
    assert (run.item, run.mean, run.origin.notes) == (["a", "b"], 0.5, ())
    if not hasattr(zipfile, "ZIP_ZSTANDARD"):  # before Python 3.14
        monkeypatch.setattr(zipfile, "_check_compression", lambda form: None)
        monkeypatch.setattr(zipfile, "_get_compressor", lambda form, level=None: zstandard.ZstdCompressor().compressobj())
    packed = lmgauge.tasks.import_items(
        written_zip(path, sample("a", "C"), sample("b", "I"), form=93), tmp_path / "run", score="choice"
    )
    assert isinstance(packed, ItemScores)
    assert (packed.item, packed.content, packed.mean) == (run.item, run.content, 0.5)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"a_epoch_1.json") + 40] ^= 255
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"log.eval: is a damaged zip file, or was cut off: samples/a_"):
        lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")


def test_zip_files_that_are_cut_off_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written_zip(tmp_path / "log.eval", sample("a", "C"), header=False)
    run = lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")
    assert "started; samples may be missing" in run.to_dict()["notes"][0]
    monkeypatch.setattr(compression, "_LARGEST_PART", 10)
    with pytest.raises(InputError, match=r"log.eval, _journal/start.json: has more than 10 bytes"):
        lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")
    monkeypatch.undo()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/b_epoch_1.json", '{"id": "b"')
    with pytest.raises(InputError, match=r"log.eval, samples/b_epoch_1.json: is not JSON"):
        lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"log.eval: is a damaged zip file, or was cut off"):
        lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")


@pytest.mark.parametrize(
    ("text", "words"), [('{"version": 2, "status": "success", "samples": [{', "is not JSON"), ("", "empty")]
)
def test_objects_that_are_cut_off(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        lmgauge.tasks.import_items(path, tmp_path / "run", score="choice")


def test_a_log_of_another_form_is_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a log as inspect writes it \(KeyError: 'value'\); was it changed\?"):
        imported(tmp_path / "log.json", log(sample("a", "C", scores={"choice": {}})))
