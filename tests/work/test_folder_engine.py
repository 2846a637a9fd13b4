"""The engine of one machine: the same arrays as in memory, resumed after a kill, and a full disk said in words."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.work.graphs import PLANS, Plan, arrays_after

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.files import OutputError
from lmgauge.base.progress import listening
from lmgauge.text.segments import TextReport
from lmgauge.work import engine as engines
from lmgauge.work.engine import NEW, Array, Engine, FolderEngine, Read, Stored

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = {"order": 3}


@given(PLANS)
@settings(max_examples=20)
def test_arrays_are_the_same_as_in_memory(plan: Plan) -> None:
    expected = arrays_after(Engine(), plan)
    for workers in (1, 3):
        with tempfile.TemporaryDirectory() as parent:
            with FolderEngine(Path(parent) / "work", WORK, workers=workers) as engine:
                assert arrays_after(engine, plan) == expected
                engine.remove()
            assert os.listdir(parent) == []


def log_task(taken: tuple[str, int, Stored], read: Read) -> Iterator[Array]:
    """Note that the task was begun, and make two arrays of 1,000 bytes."""
    log, number, values = taken
    with open(log, "a") as file:
        file.write(f"{number}\n")
    if number == 3 and Path(log + ".kill").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(2):
        yield read(values)[number] * np.ones(1000, np.uint8)


def run_logged(engine: Engine, log: Path, tasks: int = 6, name: str = "log") -> list[list[Stored]]:
    values = Stored("a")
    return engine.run(name, log_task, [(str(log), number, values) for number in range(tasks)], [NEW, NEW], title="logging")


KILLED = """
import sys
from pathlib import Path
import numpy as np
from tests.work.test_folder_engine import WORK, TextReport, run_logged
from lmgauge.work.engine import FolderEngine

with FolderEngine(sys.argv[1], WORK) as engine:
    engine.write("a", np.arange(6, dtype=np.uint8))
    engine.once("read", TextReport, lambda: TextReport(segments=3))
    run_logged(engine, Path(sys.argv[2]), name="first")
    Path(sys.argv[2] + ".kill").touch()
    run_logged(engine, Path(sys.argv[2]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_is_resumed_after_its_last_task(tmp_path: Path) -> None:
    folder, log = tmp_path / "work", tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(log)], cwd=ROOT, timeout=180, check=False)
    assert done.returncode == -signal.SIGKILL
    (tmp_path / "log.kill").unlink()
    with FolderEngine(folder, WORK, workers=2, resume=True) as engine:
        assert engine.once("read", TextReport, TextReport) == TextReport(segments=3)
        assert engine.is_finished("first")
        assert not engine.is_finished("log")
        run_logged(engine, log, name="first")
        assert [engine.read(own[1]).tolist() for own in run_logged(engine, log)] == [[i] * 1000 for i in range(6)]
    begun = log.read_text().split()
    assert begun[:10] == ["0", "1", "2", "3", "4", "5", "0", "1", "2", "3"]
    assert sorted(begun[10:]) == ["3", "4", "5"]


def test_memory_holds_what_the_tasks_at_work_hold(tmp_path: Path) -> None:
    code = """
import resource, sys
import numpy as np
from lmgauge.work.engine import NEW
from lmgauge.work.engine import FolderEngine

def work(number, read):
    for _ in range(3):
        yield np.full(8_000_000, number, np.uint8)

def add(made, read):
    yield sum(read(stored)[:1] for own in made for stored in own)

with FolderEngine(sys.argv[1], {}) as engine:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = engine.run("a", work, range(8), [NEW] * 3)
    (total,) = engine.run("b", add, [made], NEW)
    print(engine.read(total), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 8e6)
"""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=180, check=True
    )
    total, arrays = done.stdout.split()
    assert total == "[84]"
    assert float(arrays) < 3  # of 24


def test_progress_is_said(tmp_path: Path) -> None:
    lines: list[str] = []
    with FolderEngine(tmp_path, WORK) as engine, listening(lines.append):
        engine.write("a", np.arange(6, dtype=np.uint8))
        run_logged(engine, tmp_path / "log", tasks=2)
    assert lines == ["logging, 0 of 2", "logging, 1 of 2, about 0 s left", "logging, 2 of 2"]


def fail_at_once(taken: tuple[int, type[Exception], Stored], read: Read) -> Iterator[Array]:
    """The second task fails while the first one is at work, and it would be at work for long."""
    number, kind, values = taken
    if number == 1:
        raise kind("line 3 is bad")
    for _ in range(10_000):
        time.sleep(0.002)
        yield read(values)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    ("kind", "message"),
    [(InputError, "line 3 is bad"), (ZeroDivisionError, "stage fail, task 1: ZeroDivisionError: line 3 is bad")],
)
def test_an_error_ends_the_other_tasks(tmp_path: Path, workers: int, kind: type[Exception], message: str) -> None:
    with FolderEngine(tmp_path, WORK, workers=workers) as engine:
        values = engine.write("a", np.arange(6, dtype=np.uint8))
        began = time.monotonic()
        with pytest.raises(LmgaugeError) as error:
            engine.run("fail", fail_at_once, [(i, kind, values) for i in range(3)], [NEW] * 10_000)
        assert time.monotonic() - began < 10  # of the 20 s that the first task takes
        assert str(error.value) == message
        assert isinstance(error.value, kind) == (kind is InputError)
        assert not engine.is_finished("fail")
        assert list(tmp_path.rglob("*.unfinished")) == []


@pytest.mark.parametrize("where", ["arrays", "notes"])
def test_a_full_disk_is_said_in_words_and_the_run_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The disk is full at the third task, by its arrays or by the line that notes it."""
    written = 0

    def fails(name: str) -> bool:
        return name == where and written >= 5

    def write_all(file: object, data: memoryview, whole: object = engines._write_all) -> None:
        nonlocal written
        written += data.nbytes == 1000
        if fails("arrays"):
            file.write(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(file, data)

    class Notes(io.FileIO):
        def write(self, data: Any) -> int:
            if fails("notes"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    def opened(path: Path, mode: str, **options: Any) -> io.FileIO:
        return Notes(path, mode, **options)

    log = tmp_path / "log"
    with FolderEngine(tmp_path / "work", WORK) as engine, monkeypatch.context() as patches:
        engine.write("a", np.arange(6, dtype=np.uint8))
        patches.setattr(engines, "_write_all", write_all)
        patches.setattr("lmgauge.work.manifest.open", opened, raising=False)
        with pytest.raises(OutputError) as error:
            run_logged(engine, log)
    words = str(error.value)
    sizes = re.search(
        r"the disk is full: (\S+ \w+) of temporary files are there, (\S+ \w+) are free; free some space", words
    )
    assert sizes is not None
    assert sizes[1].endswith((" bytes", " kB"))
    assert words.startswith(f"{tmp_path / 'work'}: the disk is full: ")
    assert words.endswith("; free some space, then continue with --resume (resume=True)")
    assert list(tmp_path.rglob("*.unfinished")) == []
    with FolderEngine(tmp_path / "work", WORK, resume=True) as engine:
        assert [engine.read(own[1]).sum() for own in run_logged(engine, log)] == [1000 * i for i in range(6)]
    assert log.read_text().split() == ["0", "1", "2", "2", "3", "4", "5"]


def test_a_full_disk_while_the_program_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object, data: memoryview) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(engines, "_write_all", full)
    with FolderEngine(tmp_path, WORK) as engine, pytest.raises(OutputError, match="the disk is full: 0 bytes of temporary"):
        engine.write("a", np.zeros(3))
