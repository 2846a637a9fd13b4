"""All shards of a job on an engine: merged, they give the result of the whole, whatever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.api.sharding import EvaluationJob
from lmgauge.api.sharding.evaluation import compute_shard
from lmgauge.base.errors import LmgaugeError
from lmgauge.cli.main import main
from lmgauge.text import work_units
from lmgauge.work.ray_engine import run_tasks

TEXT = Path(__file__).resolve().parent.parent.parent / "data" / "classic-books.test.txt"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> EvaluationJob:
    folder = tmp_path_factory.mktemp("models") / "laplace"
    lmgauge.train("laplace", Corpus.from_files(TEXT), order=2).save(folder)
    return EvaluationJob(folder, str(TEXT))


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_in_processes_give_the_result_of_the_whole(
    job: EvaluationJob, tmp_path: Path, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = lmgauge.evaluate(job.model, job.text)

    for workers, unit in ((1, work_units.UNIT_BYTES), (2, 1 << 18)):  # other processes cut a text into units as always
        monkeypatch.setattr(work_units, "UNIT_BYTES", unit)
        done = run_tasks("shards", "computing shards", compute_shard, (job, shards), shards, workers=workers, ray=None)
        for number, files in enumerate(done):
            folder = tmp_path / str(workers) / str(number)
            folder.mkdir(parents=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
        assert lmgauge.merge(tmp_path / str(workers)) == whole


def test_an_error_of_a_shard_is_the_error_of_the_work(tmp_path: Path) -> None:
    with pytest.raises(LmgaugeError, match="nowhere"):
        compute_shard(0, (EvaluationJob("nowhere/", str(TEXT)), 1))


def test_the_command_refuses_a_wrong_address_and_options_that_do_not_go_together(
    job: EvaluationJob, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, problem in (
        (["--ray", "127.0.0.1:1"], "no Ray cluster answers at 127.0.0.1:1"),
        (["--ray", "local", "--shard", "1/2"], "--ray does not go with"),
        (["--ray", "local", "--per-token", "-"], "--per-token does not go with --ray"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["eval", "-m", str(job.model), str(TEXT), *options])
        assert ended.value.code == 2
        assert problem in capsys.readouterr().err
