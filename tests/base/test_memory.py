"""Sizes in words, what is free, and what is in memory of a file."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import UsageError
from lmgauge.base.memory import ask_for_huge_pages, format_bytes, free_memory, parse_size, resident_bytes

GB = 1 << 30


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("500M", 500 * 2**20),
        ("2G", 2 * 2**30),
        ("2g", 2 * 2**30),
        ("1.5G", 3 * 2**29),
        ("1.5GB", 1_500_000_000),
        ("2GiB", 2 * 2**30),
        ("2Gi", 2 * 2**30),
        ("4kB", 4000),
        (" 1 T ", 2**40),
        ("123", 123),
        ("123b", 123),
        (123, 123),
    ],
)
def test_sizes_are_those_of_sort_and_lmplz(size: str | int, count: int) -> None:
    assert parse_size(size) == count


@pytest.mark.parametrize(
    "size",
    ["", "G", "2X", "-2G", "+2G", "1e9", "2,5G", "1.5", "0", "0G", "0.0001K", "2GBs", "2 2G", "٢G", "9" * 19, "nan", "²G"],
)
def test_what_is_not_a_size_is_refused_in_one_line(size: str) -> None:
    with pytest.raises(UsageError, match="write 500M, 2G") as refusal:
        parse_size(size)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("size", [True, 2.5, None, b"2G", 0, -1, 2**63])
def test_other_values_are_refused_too(size: object) -> None:
    with pytest.raises(UsageError):
        parse_size(size)  # type: ignore[arg-type]


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[0-9.]{1,8} ?[kKmMgGtTiIbBx]{0,3}", fullmatch=True)))
def test_any_string_is_a_size_or_refused(size: str) -> None:
    count, refusal = 1, ""
    try:
        count = parse_size(size)
    except UsageError as error:
        refusal = str(error)
    assert 1 <= count <= 2**62
    assert refusal.isprintable()


@given(st.integers(1, 2**40), st.sampled_from(["", "K", "MiB", "kB", "MB"]))
def test_units_multiply(number: int, unit: str) -> None:
    factor = {"": 1, "K": 1024, "MiB": 1 << 20, "kB": 1000, "MB": 1000**2}[unit]
    assert parse_size(f"{number}{unit}") == number * factor


def test_sizes_have_three_digits() -> None:
    shown = [format_bytes(count) for count in (0, 999_499, 999_999, 12_345_678, 2.5e9, 7.7e13)]
    assert shown == ["0 bytes", "999 kB", "1,000 kB", "12.3 MB", "2.5 GB", "77 TB"]


# -- what is free -------------------------------------------------------------------------------------------------------
def system(root: Path, files: dict[str, str]) -> Path:
    """A file system with these files."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def group(folder: str, limit: int | str, used: int, inactive: int) -> dict[str, str]:
    """The files of a control group of version 2."""
    return {
        f"sys/fs/cgroup{folder}/memory.max": f"{limit}\n",
        f"sys/fs/cgroup{folder}/memory.current": f"{used}\n",
        f"sys/fs/cgroup{folder}/memory.stat": f"anon 1\ninactive_file {inactive}\n",
    }


def old_group(folder: str, limit: int, used: int, inactive: int) -> dict[str, str]:
    """The files of a control group of version 1."""
    return {
        f"sys/fs/cgroup/memory{folder}/memory.limit_in_bytes": f"{limit}\n",
        f"sys/fs/cgroup/memory{folder}/memory.usage_in_bytes": f"{used}\n",
        f"sys/fs/cgroup/memory{folder}/memory.stat": f"inactive_file 1\ntotal_inactive_file {inactive}\n",
    }


JOB = {"proc/self/cgroup": "0::/jobs/one\n"}
OLD_JOB = {"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/jobs/one\n0::/\n"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the files of Linux")
@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 20 * GB),
        (JOB | group("/jobs/one", "max", GB, 0), 20 * GB),
        (JOB | group("/jobs/one", 4 * GB, 3 * GB, 2 * GB), 3 * GB),
        (JOB | group("/jobs/one", "max", GB, 0) | group("/jobs", 6 * GB, 5 * GB, 0), GB),
        (JOB | group("", 2 * GB, GB, 0), GB),  # in a container: its own group is the mount
        ({"proc/self/cgroup": "0::/../outside\n"} | group("", 2 * GB, GB, 0), GB),
        (JOB | group("/jobs/one", GB, 2 * GB, 0), 0),
        (OLD_JOB | old_group("/jobs/one", 4 * GB, 3 * GB, GB), 2 * GB),
        (OLD_JOB | old_group("/jobs/one", 2**63 - 4096, 3 * GB, 0) | old_group("", 9 * GB, 8 * GB, 0), GB),
        ({"proc/self/cgroup": "nonsense\n"}, 20 * GB),
        (group("", 2 * GB, GB, 0), 20 * GB),
    ],
)
def test_the_least_of_all_limits_is_free(
    files: dict[str, str], free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=20 * GB))
    assert free_memory(system(tmp_path, files)) == free


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits of Linux")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none, only = (psutil.RLIM_INFINITY, 0), getattr(psutil, limit)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=20 * GB))
    monkeypatch.setattr(psutil.Process, "memory_info", lambda process: SimpleNamespace(vms=2 * GB, data=2 * GB))
    monkeypatch.setattr(psutil.Process, "rlimit", lambda process, which: (5 * GB, 0) if which == only else none)
    assert free_memory(tmp_path) == 3 * GB


def test_a_system_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise FileNotFoundError("/proc/meminfo")

    monkeypatch.setattr(psutil, "virtual_memory", refuse)
    assert free_memory(tmp_path) is None
    assert free_memory(system(tmp_path, JOB | group("/jobs/one", 4 * GB, GB, 0))) == 3 * GB


def test_of_this_process_something_is_known() -> None:
    free, resident = free_memory(), resident_bytes()
    assert free is None or free > 1 << 20
    assert resident > 1 << 20


def test_a_system_without_huge_pages_is_asked_in_vain() -> None:
    asked = []

    class Refusing:
        def madvise(self, option: int) -> None:
            asked.append(option)
            raise OSError(22, "Invalid argument")

    ask_for_huge_pages(Refusing())  # type: ignore[arg-type]
    assert len(asked) == hasattr(mmap, "MADV_HUGEPAGE")
