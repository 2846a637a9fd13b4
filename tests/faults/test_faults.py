"""Commands that are killed, or find the disk full, at a sample of their file operations; the long run does them all."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.faults.__main__ import FAULTS, has_needs, points
from tests.faults.commands import COMMANDS, Command, prepare
from tests.faults.laws import Undisturbed, meets, undisturbed
from tests.faults.machine import Fault, Machine
from tests.faults.orders import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no shim: {why_not()}")
Alone = Callable[[Command], Undisturbed]
QUICK = [command for command in COMMANDS if not command.slow]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("m"))
    try:
        prepare(machine)
        yield machine
    finally:
        machine.close()


@pytest.fixture(scope="module")
def alone(machine: Machine) -> Alone:
    """Each command without a fault, run once for all tests."""
    return cache(lambda command: undisturbed(machine, command))


@pytest.mark.parametrize("number", range(len(QUICK)), ids=[command.name for command in QUICK])
def test_no_fault_leaves_half_an_output_or_anything_else(machine: Machine, alone: Alone, number: int) -> None:
    command = QUICK[number]
    if not has_needs(command):
        pytest.skip(f"needs {' and '.join(command.needs)}")
    plain = alone(command)
    faults = [fault for own in FAULTS.values() for fault in own if fault.mode != "stop"]
    for offset in (0, 4):  # each command meets two kinds, the table all, each at some call
        fault = faults[(number + offset) % len(faults)]
        point = replace(fault, at=1 + 7 * (number + offset) % plain.counts[fault.kind])
        assert [f"{point}: {each}" for each in meets(machine, plain, point)] == []


OVER = Command("over", "train kneser-ney in/train.txt -o out/kn", ("out/kn",), "train laplace in/test.txt -o out/kn")


def test_a_folder_is_replaced_in_one_step(machine: Machine, alone: Alone) -> None:
    """At no call is there no model under the name."""
    plain = alone(OVER)
    for fault in points(plain, Fault("kill", "change"), plain.counts["change"]):
        assert list(meets(machine, plain, fault)) == []


def test_a_file_system_without_exchange_puts_the_old_folder_back(machine: Machine, alone: Alone) -> None:
    """There are two steps then, and a moment without a folder; the next run finds the old one put aside."""
    plain = alone(OVER)
    machine.reset(plain.older)
    machine.run(OVER.arguments, logged=True)
    calls = machine.log.read_text().splitlines()
    exchange = next(number for number, line in enumerate(calls, 1) if "renameat2" in line)
    fault = Fault("once", "change", exchange, errno.EINVAL)
    machine.reset(plain.older)
    outcome = machine.run(OVER.arguments, fault)
    assert outcome.code == 0
    assert "renameat2" in outcome.hit
    assert sorted(path.name for path in (machine.root / "out").iterdir()) == ["kn"]


def test_the_shim_sees_what_libraries_write(machine: Machine, tmp_path: Path) -> None:
    """Arrow writes score tables, and Rust's library the tensors of networks: neither by Python's own functions."""
    machine.reset()
    machine.run(["eval", "-m", "in/kn", "in/test.txt", "-o", "out/run"], logged=True)
    assert "scores.parquet" in machine.log.read_text()


TWO_NAMES = ("train, over another", "train --memory", "eval, rows", "merge", "import")
TWO = [command for command in QUICK if command.name in TWO_NAMES]


@pytest.mark.parametrize("number", range(len(TWO)), ids=[command.name for command in TWO])
def test_two_runs_at_once_leave_one_whole_result(machine: Machine, alone: Alone, number: int) -> None:
    """One is stopped at a call, as if it were slow, while the other writes all of the same output."""
    plain = alone(TWO[number])
    for fault in points(plain, Fault("stop", "change"), 3):
        assert [f"{fault}: {each}" for each in meets(machine, plain, fault)] == []


@pytest.mark.parametrize("years", [-30, 30])
@pytest.mark.parametrize("name", ["train", "train --memory", "eval -o", "filter, many files"])
def test_no_result_depends_on_the_clock(machine: Machine, alone: Alone, name: str, years: int) -> None:
    """The wall clock is wrong by years at every other look."""
    plain = alone(next(command for command in QUICK if command.name == name))
    assert list(meets(machine, plain, Fault(jump=years * 365 * 24 * 3600))) == []


@pytest.mark.parametrize(
    ("name", "fault"), [("audit --html", Fault("once", "read", error=errno.EIO)), ("import", Fault("once", "space"))]
)
def test_an_error_at_any_call_is_told_as_what_it_is(machine: Machine, alone: Alone, name: str, fault: Fault) -> None:
    """Not as damage of the run, nor as a file of a name that nobody knows."""
    plain = alone(next(command for command in QUICK if command.name == name))
    for point in points(plain, fault, 100):
        assert [f"{point}: {each}" for each in meets(machine, plain, point)] == []
