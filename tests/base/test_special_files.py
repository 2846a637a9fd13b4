"""Pipes and devices in folders from elsewhere: refused in words, and never waited for or read without end."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import lmgauge
from lmgauge import Corpus, LmgaugeError
from lmgauge.base.files import is_special, read_regular, regular
from lmgauge.evaluation.runs import open_run
from lmgauge.work.manifest import content_fingerprint

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")

SECONDS = 30
TEXT = "the cat sat on the mat\nthe dog sat on the cat\n"


def put_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def put_zeros(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


SPECIAL = {"pipe": put_pipe, "endless device": put_zeros}


def refusal(work: Callable[[], object]) -> str:
    """Return the message of work that is refused; whoever waits for a pipe is a failure and not a hang of the tests."""
    words: list[str] = []

    def run() -> None:
        try:
            work()
        except LmgaugeError as error:
            words.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive(), "waits for a pipe"
    return words[0] if words else ""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    lmgauge.spell(
        lmgauge.train("kneser-ney", Corpus.from_strings(TEXT.splitlines())), Corpus.from_strings(["a zebra"])
    ).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def run(model: Path, text: Path, tmp_path: Path) -> Path:
    lmgauge.evaluate(model, text, output=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "spelling/config.json", "spelling/characters/config.json"]
)
def test_a_model_with_a_special_file_is_refused(model: Path, name: str, special: str) -> None:
    SPECIAL[special](model / name)
    assert "is a pipe or a device" in refusal(lambda: lmgauge.load_model(model))


@pytest.mark.parametrize("special", SPECIAL)
def test_a_network_with_a_special_file_is_refused(tmp_path: Path, special: str) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    SPECIAL[special](tmp_path / "tokenizer.json")
    assert "tokenizer.json: is a pipe or a device" in refusal(lambda: lmgauge.load_model(tmp_path))


def test_a_config_is_read_up_to_a_bound(model: Path) -> None:
    with (model / "config.json").open("ab") as file:
        file.truncate(1 << 25)
    assert "has more than the 16 MiB that such a file may have" in refusal(lambda: lmgauge.load_model(model))


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("name", ["evaluation.json", "scores.parquet"])
def test_a_run_with_a_special_file_is_refused(run: Path, name: str, special: str) -> None:
    other = shutil.copytree(run, run.with_name("other"))
    SPECIAL[special](run / name)
    for open_it in (lmgauge.report, lmgauge.diagnose, lmgauge.audit_run, lambda path: lmgauge.compare([other, path])):
        assert f"{name}: is a pipe or a device" in refusal(lambda: open_it(run))  # noqa: B023 - called at once


@pytest.mark.parametrize("kind", ["pipe", "device", "system"])
def test_a_text_that_a_run_names_is_a_file(run: Path, tmp_path: Path, kind: str) -> None:
    named = {"pipe": tmp_path / "pipe", "device": Path("/dev/zero"), "system": Path("/proc/kmsg")}[kind]
    if kind == "pipe":
        os.mkfifo(named)
    file = run / "evaluation.json"
    content = json.loads(file.read_bytes())
    content["settings"]["text"]["paths"] = [str(named)]
    content["fingerprint"] = content_fingerprint(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    assert open_run(run).corpus() is None
    refusal(lambda: lmgauge.report(run))


def test_what_the_system_makes_up_is_special() -> None:
    if not os.path.ismount("/proc"):
        pytest.skip("no /proc here")
    assert Path("/proc/self/status").is_file()
    assert is_special("/proc/self/status")


def test_a_text_that_the_user_names_may_be_a_pipe(model: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT, "utf-8"), daemon=True)
    writer.start()
    assert lmgauge.evaluate(model, pipe).events == 14
    writer.join(SECONDS)


def test_shards_of_strangers(model: Path, tmp_path: Path, text: Path) -> None:
    job = lmgauge.sharding.EvaluationJob(model, [text])
    lmgauge.sharding.run_shard(job, 0, 1, tmp_path / "shards")
    record = next((tmp_path / "shards").rglob("*.json"))
    put_pipe(record)
    assert refusal(lambda: lmgauge.merge(tmp_path / "shards"))


def test_a_file_is_opened_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"1234")
    assert read_regular(file, 4) == b"1234"
    with pytest.raises(OSError, match="has more than"):
        read_regular(file, 3)
    with open(file, "rb", opener=regular) as opened:
        assert opened.read() == b"1234"
    put_pipe(file)
    with pytest.raises(OSError, match="is a pipe or a device"):
        read_regular(file)
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_regular(file)
