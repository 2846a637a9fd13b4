"""Processes that do tasks: the same arrays, errors in words, and nobody left over when one is killed or the program ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.work.graphs import arrays_after
from tests.work.process_work import fail, power, report

from lmgauge.base.errors import InputError, LmgaugeError, MissingExtraError
from lmgauge.work.engine import ArrayFolder, Engine, FolderEngine, Stored, make_arrays
from lmgauge.work.executor import Crew, Task, end, result_of, started, task_results
from lmgauge.work.manifest import DiskFullError

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills processes by POSIX signals")


def alive(process: int) -> bool:
    """Whether a process is there and not yet only a name that its parent has to take note of."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crew, ArrayFolder]]:
    files = ArrayFolder(tmp_path_factory.mktemp("arrays"))
    crew = Crew(2, processes=True)
    yield crew, files
    crew.close()


def run(crew: tuple[Crew, ArrayFolder], tasks: list[Task]) -> list[int]:
    """Do tasks, and return their numbers in order."""
    processes, files = crew
    return sorted(number for number, _ in processes.run(partial(make_arrays, read=files.read, write=files.write), tasks))


def is_there(folder: Path, name: str) -> bool:
    return (folder / f"{name}.npy").exists()


def test_each_thread_that_asks_one_process_gets_its_own_answer() -> None:
    worker, tasks = started(), [Task("power", number, power, 3) for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(partial(worker.result, result_of), tasks))
    end([worker])
    assert [result for result, _ in answers] == [{"power": number**3} for number in range(40)]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_whoever_computes_them(workers: int) -> None:
    found = list(task_results("power", "computing", power, 3, 5, workers=workers))
    assert [result for result, _ in found] == [{"power": number**3} for number in range(5)]
    assert len({process for _, process in found} - {os.getpid()}) == (2 if workers == 2 else 0)


def test_tasks_run_in_two_other_processes_that_stay(crew: tuple[Crew, ArrayFolder]) -> None:
    processes, files = crew
    seen = []
    for stage in ("a", "b"):
        tasks = [Task(stage, number, report, None, [Stored(f"{stage}/{number}")]) for number in range(5)]
        assert run(crew, tasks) == [0, 1, 2, 3, 4]
        rows = [files.read(Stored(f"{stage}/{number}")).tolist() for number in range(5)]
        assert {threads for _, threads in rows} == {1}
        seen.append({process for process, _ in rows})
    assert seen[0] == seen[1]
    assert len(seen[0] - {os.getpid()}) == 2
    processes.close()
    assert not any(map(alive, seen[0]))


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("extra", MissingExtraError, "this needs icu4py, which is not installed: pip install 'lmgauge[icu]'"),
        ("full", DiskFullError, "no room"),
        ("bug", LmgaugeError, "stage fail, task 1: ZeroDivisionError: division by zero"),
        ("kill", LmgaugeError, "stage fail, task 1: its process was killed by signal 9, perhaps for lack of memory"),
        ("exit", LmgaugeError, "stage fail, task 1: its process ended with exit code 7; a script that trains"),
    ],
)
def test_errors_come_back_in_words_and_end_the_other_processes(
    crew: tuple[Crew, ArrayFolder], how: str, kind: type[LmgaugeError], message: str
) -> None:
    _, files = crew
    makes = [[Stored(f"{how}/{number}"), Stored(f"{how}/{number}/last")] for number in range(3)]
    tasks = [Task("fail", number, fail, (number, how), makes[number]) for number in range(3)]
    began = time.monotonic()
    with pytest.raises(LmgaugeError) as error:
        run(crew, tasks)
    assert time.monotonic() - began < 30
    assert type(error.value) is kind
    assert str(error.value).startswith(message)
    for stored, _ in makes[:2]:
        try:
            process = int(files.read(stored)[0])
        except InputError:
            continue
        assert not alive(process)


def test_arrays_are_the_same_as_in_memory(tmp_path: Path) -> None:
    plan = [(3, 2, False), (4, 3, True), (0, 2, False), (2, 1, True)]
    with FolderEngine(tmp_path / "work", {}, workers=2, processes=True) as engine:
        assert arrays_after(engine, plan) == arrays_after(Engine(), plan)
        engine.remove()
    assert not (tmp_path / "work").exists()


WAITING = """
import signal
import sys
from lmgauge.work.engine import NEW
from lmgauge.work.engine import FolderEngine
from tests.work.process_work import wait_long

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in the background
    with FolderEngine(sys.argv[1], {}, workers=2, processes=True) as engine:
        engine.run("wait", wait_long, range(4), NEW)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_program(tmp_path: Path, number: int) -> None:
    """Ctrl-C goes to all processes of the terminal; SIGKILL to the program alone."""
    script, files = tmp_path / "script.py", ArrayFolder(tmp_path / "work" / "arrays")
    script.write_text(WAITING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, str(script), str(tmp_path / "work")]
    program = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: all(is_there(tmp_path / "work" / "arrays", f"wait/{i}/0") for i in range(2)))
    processes = [int(files.read(Stored(f"wait/{i}/0"))[0]) for i in range(2)]
    assert all(map(alive, processes))
    (os.killpg if number == signal.SIGINT else os.kill)(program.pid, number)
    _, complaint = program.communicate(timeout=120)
    wait_for(lambda: not any(map(alive, processes)))
    assert ("KeyboardInterrupt\n" in complaint) == (number == signal.SIGINT)
    with FolderEngine(tmp_path / "work", {}, resume=True) as engine:  # its lock is free
        assert not engine.is_finished("wait")


def wait_for(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_ctrl_c_does_not_reach_processes_and_their_end_leaves_nothing(tmp_path: Path) -> None:
    program = f"""if __name__ == "__main__":
    import signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where the tests run in the background
    sys.path.insert(0, {str(ROOT)!r})
    from pathlib import Path
    from lmgauge.work.engine import ArrayFolder
    from lmgauge.work.engine import Stored, make_arrays
    from lmgauge.work.executor import Crew, Task
    from functools import partial
    from tests.work.process_work import write_long
    crew, files = Crew(2, processes=True), ArrayFolder(Path("arrays"))
    tasks = [Task("write", number, write_long, number, [Stored(f"a{{number}}")]) for number in range(2)]
    try:
        list(crew.run(partial(make_arrays, read=files.read, write=files.write), tasks))
    except KeyboardInterrupt:
        print("interrupted")
"""
    (tmp_path / "arrays").mkdir()
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "program.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, start_new_session=True) as running:
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("arrays/begun*"))) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        said, complained = running.communicate(timeout=60)
    assert (said, complained) == (b"interrupted\n", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrays", "program.py"]
