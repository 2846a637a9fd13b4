"""A text shared out among processes: the digits of one, in order, and nobody left behind whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge.base.errors import LmgaugeError, ModelFileError, UsageError
from lmgauge.models.network.engine import Job
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.parallel import Workers, score_in_order, workers_for
from lmgauge.text import work_units

ROOT = Path(__file__).resolve().parents[3]
FATAL, SLOW, BAD, MISSING = -1, -2, -3, -4
"""Ids that kill the process, take long, give NaN, or stand for a failure to load."""


class FakeEngine:
    """Scores an id as minus itself, and says in the first score which process did it."""

    journal: Any = None
    computes_elsewhere = False
    seconds = 60.0
    """What is slow takes so long."""

    def __init__(self) -> None:
        self.count = 0
        self.progress: Callable[[int], None] = lambda tokens: None

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        self.count = count
        yield

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        for job in jobs:
            if FATAL in job.ids and os.getpid() != int(job.targets[0]):
                os.kill(os.getpid(), signal.SIGKILL)
            if SLOW in job.ids and os.getpid() != int(job.targets[0]):
                time.sleep(self.seconds)
            if BAD in job.ids:
                raise ModelFileError(f"gives NaN in segment {job.segment + 1}")
        return [np.concatenate(([os.getpid(), self.count], -job.targets)).astype(np.float64) for job in jobs]


def load(options: ScoringOptions) -> Any:
    if options.device == "missing":
        raise UsageError("device 'missing': cannot be used here")
    return SimpleNamespace(engine=FakeEngine(), label="fake")


def job(*ids: int, targets: Sequence[int] = (), segment: int = 0) -> Job:
    return Job(np.array(ids), np.array(targets or ids), segment)


def pool(processes: int = 2, label: str = "fake", device: str = "cpu") -> Workers:
    return Workers(load, [ScoringOptions(device=device)] * (processes - 1), label)


def gone(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with suppress(OSError):  # no such folder on this system, or the process ended just now
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("processes", [2, 3])
def test_groups_come_back_in_order_and_all_processes_work(processes: int) -> None:
    groups = [(n, [job(n, n + 1), job(n + 2, n + 3, n + 4)]) for n in range(0, 200, 5)]
    done: list[int] = []
    engine, workers = FakeEngine(), pool(processes)
    engine.progress = done.append
    found = list(score_in_order(engine, workers, groups, threads=7))
    workers.kill()
    assert [tag for tag, _ in found] == [tag for tag, _ in groups]
    for (tag, (first, second)), (_, jobs) in zip(found, groups, strict=True):
        assert first[2:].tolist() == (-jobs[0].targets).tolist() == [-tag, -tag - 1]
        assert second[2:].tolist() == (-jobs[1].targets).tolist()
    assert {scores[0][1] for _, scores in found} == {7 // processes}  # threads of each
    by = {scores[0][0] for _, scores in found}
    assert os.getpid() in by
    assert len(by) == processes


def test_one_group_starts_no_process() -> None:
    workers = pool()
    assert [tag for tag, _ in score_in_order(FakeEngine(), workers, [("a", [job(1)])], threads=2)] == ["a"]
    assert list(score_in_order(FakeEngine(), workers, [], threads=2)) == []
    assert workers._workers.value == []


def test_the_next_group_is_made_while_a_gpu_computes() -> None:
    made = threading.Event()

    class Elsewhere(FakeEngine):
        computes_elsewhere = True

        def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
            assert made.wait(60)
            return super().score(jobs)

    def groups() -> Iterator[tuple[str, list[Job]]]:
        yield "a", [job(1)]
        made.set()
        yield "b", [job(2)]

    found = list(score_in_order(Elsewhere(), None, groups(), threads=2))
    assert [(tag, scores[0][2:].tolist()) for tag, scores in found] == [("a", [-1]), ("b", [-2])]


def test_no_more_groups_are_read_than_processes_need() -> None:
    read: list[int] = []

    def groups() -> Iterator[tuple[int, list[Job]]]:
        for n in range(100):
            read.append(n)
            yield n, [job(n)]

    workers = pool()
    scored = score_in_order(FakeEngine(), workers, groups(), threads=2)
    next(scored)
    assert len(read) <= 8
    scored.close()  # type: ignore[attr-defined]


def test_the_first_error_of_the_text_is_raised_and_no_process_stays() -> None:
    groups = [(n, [job(BAD if n in (3, 4, 5) else n, segment=n)]) for n in range(20)]
    workers = pool()
    scored = score_in_order(FakeEngine(), workers, groups, threads=2)
    pids = [next(scored)[1][0][0] for _ in range(3)]
    with pytest.raises(ModelFileError, match=r"gives NaN in segment 4$"):
        list(scored)
    assert all(gone(int(pid)) for pid in set(pids) - {os.getpid()})
    assert workers._workers.value == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different on Windows")
def test_a_killed_process_is_one_line_and_the_next_call_starts_anew() -> None:
    workers, own = pool(), os.getpid()
    groups = [(n, [job(FATAL if n == 1 else n, targets=[own])]) for n in range(6)]
    with pytest.raises(LmgaugeError, match=r"its process was killed by signal 9, perhaps for lack of memory: use fewer"):
        list(score_in_order(FakeEngine(), workers, groups, threads=2))
    assert len(list(score_in_order(FakeEngine(), workers, [(n, [job(n)]) for n in range(6)], threads=2))) == 6
    workers.kill()


def test_what_is_not_wanted_any_more_is_not_waited_for() -> None:
    workers, own = pool(), os.getpid()
    scored = score_in_order(FakeEngine(), workers, [(0, [job(1)]), *((n, [job(SLOW, targets=[own])]) for n in (1, 2, 3))], 2)
    next(scored)
    process = workers._workers.value[0].process
    began = time.perf_counter()
    scored.close()  # type: ignore[attr-defined]
    assert gone(int(process.pid or 0))
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (pool(device="missing"), "device 'missing': cannot be used here"),
        (pool(label="other"), "another process has loaded fake, and this one other: was the model replaced?"),
    ],
)
def test_a_model_that_the_others_cannot_load(workers: Workers, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(score_in_order(FakeEngine(), workers, [(n, [job(n)]) for n in range(6)], threads=2))
    assert str(caught.value) == message


def test_what_a_journal_knows_is_not_computed_and_the_rest_is_written() -> None:
    known = {3: np.array([9.0]), 8: np.array([7.0])}
    written: dict[int, float] = {}
    engine = FakeEngine()
    engine.journal = SimpleNamespace(
        get=lambda one: known.get(int(one.targets[0])),
        put=lambda one, scores: written.update({int(one.targets[0]): scores[2]}),
    )
    groups = [(n, [job(n), job(n + 1)]) for n in range(0, 40, 2)]
    workers = pool()
    found = dict(score_in_order(engine, workers, groups, threads=2))
    workers.kill()
    by_others = {tag for tag, scores in found.items() if scores[0][0] != os.getpid() and tag not in (2, 8)}
    assert by_others
    assert all(written[tag] == -tag for tag in by_others)
    assert 3 not in written
    assert 8 not in written


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different on Windows")
@pytest.mark.parametrize("how", ["Ctrl-C", "kill"])
def test_a_script_needs_no_guard_and_leaves_no_process(how: str, tmp_path: Path) -> None:
    """A program without `if __name__ == "__main__"`, stopped while all compute: Ctrl-C goes to all, a kill to it alone."""
    script = tmp_path / "script.py"
    script.write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a program in the background of a shell ignores it
        "from tests.models.network.test_parallel import FakeEngine, SLOW, job, pool\n"
        "from lmgauge.models.network.parallel import score_in_order\n"
        "workers, engine = pool(3), FakeEngine()\n"
        "engine.seconds = 1\n"  # after Ctrl-C the script waits for its own thread
        "quick, slow = ([(n, [job(id, targets=[1])]) for n in range(9)] for id in (1, SLOW))\n"
        "list(score_in_order(engine, workers, quick, 3))\n"
        "print(*(one.process.pid for one in workers._workers.value), flush=True)\n"
        "list(score_in_order(engine, workers, slow, 3))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    running = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    pids = [int(pid) for pid in running.stdout.readline().split()]
    time.sleep(0.3)  # until all are at work
    if how == "kill":
        running.kill()
    else:
        os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert len(pids) == 2
    assert ("KeyboardInterrupt" in errors) == (how == "Ctrl-C")
    assert errors.count("Traceback") == (how == "Ctrl-C")  # of the script, not of the others
    assert all(map(gone, pids))


def test_a_context_that_runs_on_is_refused() -> None:
    policy = SimpleNamespace(runs_on=True)
    model: Any = SimpleNamespace(context_policy=policy, label="rnn")
    with pytest.raises(UsageError, match=r"^rnn: its context spans the whole text, so one process has to"):
        workers_for(model, load, ScoringOptions(processes=2))
    assert workers_for(model, load, ScoringOptions(processes=1)) is None


TEXTS = [f"the cat {n} sat on the mat and {'saw a dog ' * (n % 7)}." for n in range(60)]


def test_digits_are_those_of_one_process(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(work_units, "UNIT_BYTES", 400)
    texts = lmgauge.Corpus.from_strings(TEXTS, block_bytes=200)
    alone = lmgauge.load_model(checkpoint(), device="cpu", context=16, stride=5)
    shared: Any = lmgauge.load_model(checkpoint(), devices=["cpu", "cpu", "cpu"], context=16, stride=5)
    expected = lmgauge.evaluate(alone, texts, threads=1, output=tmp_path / "one")
    assert lmgauge.evaluate(shared, texts, threads=3, output=tmp_path / "shared") == expected
    rows = [lmgauge.read_run(tmp_path / name).per_token()["logprob"] for name in ("one", "shared")]
    assert np.array_equal(*rows)
    assert len(shared.workers._workers.value) == 2
    sizes = []
    for taken in (0, expected.events):  # a run that was killed goes on: nothing is computed or written twice
        journal = shared.keep_journal(tmp_path / "kept.scores")
        found = np.concatenate([batch.logprob for batch in shared.score(texts, threads=3)])
        journal.close()
        sizes.append((tmp_path / "kept.scores").stat().st_size)
        assert np.array_equal(found, rows[0])
        assert journal.taken == taken
    assert sizes[0] == sizes[1]
    shared.engine.journal = None
    with pytest.raises(UsageError, match="whole distributions are computed in one process"):
        lmgauge.evaluate(shared, texts, output=lmgauge.settings.Outputs(tmp_path / "columns", columns=["entropy"]))
    assert not (tmp_path / "columns").exists()
    shared.workers.kill()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"processes": 0}, "processes must be a whole number, 1 or more; got 0"),
        ({"processes": 1.5}, "processes must be a whole number, 1 or more; got 1.5"),
        ({"devices": ()}, "devices (): name each"),
        ({"devices": "cuda:0"}, "devices 'cuda:0': name each"),
        ({"devices": ["cuda:0", ""]}, "devices ['cuda:0', '']: name each"),
        ({"devices": ["cpu"], "device": "cpu"}, "devices and device both say where to compute"),
        ({"devices": ["cpu"], "processes": 2}, "devices and processes both say where to compute"),
        ({"devices": ["cpu", "cuda:0"]}, "devices of different kinds (cpu, cuda) round differently"),
    ],
)
def test_places_that_cannot_be(options: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ScoringOptions(**options)
    assert message in str(caught.value)


def test_models_without_processes_of_their_own_refuse_them(tmp_path: Path) -> None:
    lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"])).save(tmp_path / "model")
    for options in ({"processes": 2}, {"devices": ("cpu", "cpu")}):
        with pytest.raises(
            UsageError, match=r"^(processes|devices) is for networks that compute here \(n-gram models use all"
        ):
            lmgauge.load_model(tmp_path / "model", **options)  # type: ignore[arg-type]
