"""Ray: the same arrays as in memory, on a cluster of two machines of which one dies, and quiet words for what goes wrong.

One cluster for all tests of this module, as each takes seconds to start. Each machine is some processes on this one.
"""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from tests.programs import running, skipped_after_minutes
from tests.work.graphs import Plan, arrays_after
from tests.work.memory_engine import MemoryEngine
from tests.work.process_work import power
from tests.work.ray_work import fail, run_stages, with_a_broken_pipe

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import LmgaugeError, MissingExtraError, UsageError
from lmgauge.base.progress import listening
from lmgauge.models.ngram.reading import read_text
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_partitions
from lmgauge.work import ray_engine
from lmgauge.work.engine import NEW, Stored
from lmgauge.work.ray_engine import RayEngine, library, ray_at

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an optional library"),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="machines are killed by SIGKILL"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # what Ray leaves open, it closes late
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).resolve().parent.parent.parent
STORE = 100_000_000
QUICK = {f"health_check_{name}": value for name, value in [("initial_delay_ms", 0), ("period_ms", 300)]}
QUICK |= {"health_check_failure_threshold": 3, "health_check_timeout_ms": 2000}
patient = skipped_after_minutes(3, "Ray")
"""Where the machine does not serve Ray's own processes in time, nothing is learned of the engine."""
TEXT = Path(__file__).resolve().parent.parent / "data" / "pud.en.txt"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = library()  # its settings are read when it is imported
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def node(cluster: Any) -> Iterator[Any]:
    with ray_at(cluster.address):  # before there is a second machine at this address: old versions of Ray would join either
        node = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        yield node
        if node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)
        cluster.wait_for_nodes()  # until the cluster knows that it is gone: what joins next is not sent there


PLAN: Plan = [(3, 2, False), (4, 3, True), (0, 2, False), (2, 0, True), (2, 1, True)]


@patient
def test_arrays_are_the_same_as_in_memory(cluster: Any) -> None:
    with RayEngine(cluster.address) as engine:
        assert engine.workers == 1
        assert arrays_after(engine, PLAN) == arrays_after(MemoryEngine(), PLAN)
        assert list(engine.results("power", "computing", power, 3, 2)) == [({"power": 0}, ANY), ({"power": 1}, ANY)]
        start = Stored("start")
        assert not engine.read(start).flags.writeable
        with RayEngine(cluster.address) as inner:  # uses the connection that there is, and leaves it
            inner.write("a", np.array([1]))
        assert engine.read(start).tolist() == [3, 1, 4]
    assert not library().is_initialized()


@patient
@pytest.mark.parametrize("moment", ["gather, 2 of 6", "total, 0 of 1"])
def test_a_killed_process_and_a_lost_machine_change_nothing(
    cluster: Any, node: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], moment: str
) -> None:
    """Task 2 kills its process; then a machine dies, while tasks run, or when what its arrays were made from is dropped."""
    lines: list[str] = []

    def listen(line: str) -> None:
        lines.append(line)
        if line.startswith(moment):
            cluster.remove_node(node, allow_graceful=False)

    expected = run_stages(MemoryEngine(), tmp_path / "memory")
    with RayEngine(cluster.address) as engine, listening(listen):
        assert engine.workers == 2
        assert run_stages(engine, tmp_path / "ray") == expected
    assert node not in cluster.worker_nodes
    assert [line for line in lines if " of 6" not in line] == ["total, 0 of 1", "total, 1 of 1"]
    runs = [line.split()[0] for line in (tmp_path / "ray").read_text().splitlines()]
    assert runs.count("2") >= 2
    assert capfd.readouterr().out == ""  # where a program writes its results
    # Of 6 and 6 tasks more than the one that was killed ran again: what was dealt lay on the lost machine, unless it had
    # been sent to the other already, and what was gathered there was at work or lay there.
    assert len(runs) + len((tmp_path / "ray.gather").read_text().splitlines()) > 13


@patient
def test_what_ray_itself_breaks_is_done_again(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run_stages(MemoryEngine(), tmp_path / "memory")
    monkeypatch.setattr(ray_engine, "_do", with_a_broken_pipe)
    with RayEngine(cluster.address) as engine:
        assert run_stages(engine, tmp_path / "broken") == expected
    assert sorted(path.name for path in tmp_path.glob("broken.*")) == ["broken.gather.2", "broken.spread.2"]
    monkeypatch.setattr(ray_engine, "_RETRIES", 0)
    with RayEngine(cluster.address) as engine, pytest.raises(LmgaugeError, match="spread, task 2: OSError: Broken pipe"):
        run_stages(engine, tmp_path / "again")


@patient
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("extra", MissingExtraError, "this needs regex, which is not installed: pip install 'lmgauge[translation]'"),
        ("kill", LmgaugeError, "stage fail, task 0: Ray: WorkerCrashedError: "),
    ],
)
def test_errors_come_back_in_words(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, how: str, kind: type[LmgaugeError], message: str
) -> None:
    monkeypatch.setattr(ray_engine, "_RETRIES", 1)
    with RayEngine(cluster.address) as engine:
        with pytest.raises(LmgaugeError) as error:
            engine.run("fail", fail, [how], [NEW, NEW])
        assert type(error.value) is kind
        assert str(error.value).startswith(message)
        assert "\n" not in str(error.value)


@patient
def test_a_training_is_the_same_where_a_machine_is_lost(cluster: Any, node: Any, tmp_path: Path) -> None:
    settings = NgramTrainingSettings("modified-kneser-ney", order=4, prune=1e-7)
    lines: list[str] = []

    def listen(line: str) -> None:
        lines.append(line)
        if len(lines) == 20:
            cluster.remove_node(node, allow_graceful=False)

    with RayEngine(cluster.address) as engine, listening(listen):
        text = read_text(engine, settings, Corpus.from_files(TEXT), 1000, threads=1)
        model = train_partitions(engine, settings, text, tmp_path / "model", partitions=2, memory=1 << 20)
    assert node not in cluster.worker_nodes
    expected = lmgauge.train("modified-kneser-ney", Corpus.from_files(TEXT), order=4, prune=1e-7)
    assert model.fingerprint == expected.fingerprint


@patient
def test_a_training_with_ray_on_this_machine(tmp_path: Path) -> None:
    corpus = Corpus.from_files(TEXT)
    model = lmgauge.train("witten-bell", corpus, order=2, output=tmp_path / "model", memory="2G", workers=1, ray="local")
    assert model.fingerprint == lmgauge.train("witten-bell", corpus, order=2).fingerprint
    assert not library().is_initialized()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    with pytest.raises(UsageError, match="resume: a cluster holds the parts"):
        lmgauge.train("witten-bell", corpus, output=tmp_path / "model", ray="local", resume=True)


@pytest.mark.parametrize("call", ["cluster_resources", "put"])
def test_a_call_that_never_ends_is_an_error_when_the_head_is_lost(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A head that stops right after it was looked at never answers what it is asked then."""
    endless, looks = threading.Event(), iter([None] * 4)
    ray = types.SimpleNamespace(cluster_resources=dict, put=str, shutdown=dict, exceptions=library().exceptions)
    abandoned: list[Any] = []

    def look(address: str) -> None:
        if next(looks, True):
            raise UsageError(f"nobody is at {address}")

    for name, value in [
        ("ray_at", lambda *options: nullcontext(ray)),
        ("lifelines", lambda ray, address: {"the head of the cluster": address}),
        ("refuse_unanswered", look),
        ("abandon", abandoned.append),
        ("_SECONDS_BETWEEN_LOOKS", 0.01),
    ]:
        monkeypatch.setattr(ray_engine, name, value)
    setattr(ray, call, lambda *values: endless.wait())
    with pytest.raises(LmgaugeError, match="the head of the cluster was lost: nobody is at h:1"), RayEngine("h:1") as engine:
        engine.write("array", np.zeros(1))
    assert abandoned == [ray]
    endless.set()


DRIVER = """
import os, signal, sys, time
import psutil
from lmgauge.base.errors import LmgaugeError
from lmgauge.base.progress import listening
from lmgauge.work import ray_engine
from tests.work.process_work import rest

ray_engine._SECONDS_WITHOUT_CORES = 3.0

def listen(line):
    if line.startswith("resting, 2 of 6"):
        lost.send_signal(getattr(signal, sys.argv[2]))
        while lost.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            time.sleep(0.01)
        print("lost", flush=True)

try:
    with ray_engine.RayEngine(sys.argv[1]) as engine, listening(listen):
        print("joined", flush=True)
        lost = psutil.Process(int(sys.stdin.readline()))
        list(engine.results("rest", "resting", rest, sys.argv[3], 6))
except LmgaugeError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize(
    ("what", "how", "cores", "message"),
    [
        ("gcs_server", "SIGKILL", 2, "stage rest: the head of the cluster was lost: no Ray cluster answers at "),
        ("gcs_server", "SIGSTOP", 2, "stage rest: the head of the cluster was lost: no Ray cluster answers at "),
        ("raylet", "SIGKILL", 2, "stage rest: Ray's process on this machine was lost: no Ray cluster answers at "),
        ("raylet", "SIGKILL", 0, "stage rest: the cluster has no core left"),
    ],
)
def test_what_cannot_be_done_again_ends_in_an_error_and_the_program_ends(
    what: str, how: str, cores: int, message: str, tmp_path: Path
) -> None:
    """The head, alive or not; the driver's own machine; all machines with cores: Ray would wait, or end without a word."""
    library()
    from ray.cluster_utils import Cluster

    head = {"num_cpus": cores, "include_dashboard": False, "object_store_memory": STORE, "_system_config": QUICK}
    nodes: list[Any] = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    try:
        with ExitStack() as stack:
            with skipped_after_minutes(3, "Ray"):
                cluster = Cluster(initialize_head=True, head_node_args=head)
                nodes.append(cluster.head_node)
                command = [sys.executable, "-c", DRIVER, cluster.address, how, tmp_path]
                driver = stack.enter_context(running(command, cwd=ROOT, **pipes))
                assert driver.stdout.readline() == "joined\n"  # before there is a second machine: it would join either
                if not cores:
                    nodes.append(cluster.add_node(num_cpus=2, object_store_memory=STORE))
                print(nodes[-1].all_processes[what][0].process.pid, file=driver.stdin, flush=True)
                assert driver.stdout.readline() == "lost\n"
            said, _ = driver.communicate(timeout=300)  # half a minute, on a machine that has nothing else to do
    finally:
        for node in nodes:
            node.kill_all_processes(check_alive=False, allow_graceful=False)
    assert said.startswith(message)
    assert driver.returncode == LmgaugeError.exit_code
