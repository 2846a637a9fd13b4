"""One shard after another: complete ones are left alone, what is killed leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import lmgauge
from lmgauge.api.sharding import EvaluationJob
from lmgauge.base.errors import UsageError


def test_a_complete_shard_is_left_alone(shards: Path, text: Path, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = EvaluationJob(model, text)
    folder = shards / "2-of-3"
    before = (folder / "parts.zst").stat().st_mtime_ns
    again = lmgauge.sharding.run_shard(job, 1, 3, shards)
    assert (again.computed, again.parts > 0, again.folder) == (False, True, str(folder))
    assert (folder / "parts.zst").stat().st_mtime_ns == before
    whole = (folder / "parts.zst").read_bytes()
    (folder / "parts.zst").write_bytes(whole[:-1])
    assert lmgauge.sharding.run_shard(job, 1, 3, shards).computed
    assert (folder / "parts.zst").read_bytes() == whole
    assert "was changed after it was written" in caplog.text


def test_a_shard_of_another_job_is_refused(shards: Path, text: Path, model: Path, tmp_path: Path) -> None:
    for job, name in (
        (EvaluationJob(model, text, by_group=True), "settings: by"),
        (EvaluationJob(model, text, columns=("rank",)), "settings: columns"),
        (
            EvaluationJob(model, lmgauge.Corpus.from_files(text, document="segment")),
            "settings: text: document",
        ),
        (
            EvaluationJob(lmgauge.train("laplace", lmgauge.Corpus.from_files(text), order=1), text),
            "model: model",
        ),
    ):
        with pytest.raises(UsageError, match=f"holds other work: {name} is .* there, and .* here; give the same"):
            lmgauge.sharding.run_shard(job, 0, 3, shards)
    text.write_text(text.read_text() + "more\n")
    with pytest.raises(UsageError, match="holds other work: text is "):
        lmgauge.sharding.run_shard(EvaluationJob(model, text), 0, 3, shards)
    for rank, count in ((3, 3), (-1, 3), (0, 0)):
        with pytest.raises(UsageError, match="give a number from 1 to the number of shards"):
            lmgauge.sharding.run_shard(EvaluationJob(model, text), rank, count, tmp_path / "new")


def test_more_shards_than_text(text: Path, model: Path, tmp_path: Path) -> None:
    job = EvaluationJob(model, text)
    parts = [lmgauge.sharding.run_shard(job, rank, 40, tmp_path / "many").parts for rank in range(40)]
    assert parts.count(0) > 20
    assert lmgauge.merge(tmp_path / "many") == lmgauge.evaluate(model, text)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different on Windows")
def test_a_killed_shard_leaves_nothing(text: Path, tmp_path: Path) -> None:
    program = (
        "import sys, time, lmgauge\n"
        "from lmgauge.text import work_units\n"
        "work_units.UNIT_BYTES = 60\n"
        "class Slow(lmgauge.CustomModel):\n"
        "    def log_distribution(self, ids):\n"
        "        print('scoring', flush=True); time.sleep(60)\n"
        "text = sys.argv[1]\n"
        "model = Slow(lmgauge.train('laplace', lmgauge.Corpus.from_files(text), order=1).vocabulary)\n"
        "lmgauge.sharding.run_shard(lmgauge.sharding.EvaluationJob(model, text), 0, 2, sys.argv[2])\n"
    )
    command = [sys.executable, "-c", program, str(text), str(tmp_path / "shards")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "scoring\n"
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "shards" / "1-of-2").exists()
    job = EvaluationJob(lmgauge.train("laplace", lmgauge.Corpus.from_files(text), order=1), text)
    assert lmgauge.sharding.run_shard(job, 0, 2, tmp_path / "shards").computed
    assert [path.name for path in (tmp_path / "shards").iterdir()] == ["1-of-2"]
