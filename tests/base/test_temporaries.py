"""Files in the making: whose leftovers go, and whose stay."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from lmgauge.base import temporaries
from lmgauge.base.files import OutputError, writing_directory
from lmgauge.base.temporaries import scratch_folder, temporary_beside

POSIX = pytest.mark.skipif(os.name == "nt", reason="there are no locks on Windows")
EIGHT_DAYS = 8 * 24 * 3600


def anything(path: Path) -> bool:
    return True


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@POSIX
def test_scratch_folders_of_killed_runs_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "lmgauge.0_abcdef.tmp").mkdir()
    (tmp_path / "lmgauge.results").mkdir()
    with scratch_folder(tmp_path) as first:
        (first / "rows").touch()
        with scratch_folder(tmp_path):
            assert (first / "rows").exists()
        assert names(tmp_path) == [first.name, "lmgauge.results"]
    assert names(tmp_path) == ["lmgauge.results"]


def test_leftovers_of_other_machines_stay_for_a_week(tmp_path: Path) -> None:
    """Their locks may be unknown here; and where there are no locks at all, age is all that says anything."""
    other = f"{(int(temporaries._host(), 16) + 1) & 0xFFFF:04x}"
    leftover = tmp_path / f".o.{other}-12345678.tmp"
    leftover.mkdir()
    (leftover / "rows").touch()
    then = time.time() - EIGHT_DAYS
    os.utime(leftover, (then, then))
    with temporary_beside(tmp_path / "o", folder=True):
        assert leftover.exists()  # a file in it is young
    os.utime(leftover / "rows", (then, then))
    with temporary_beside(tmp_path / "o", folder=True):
        assert not leftover.exists()


def test_without_locks_only_what_is_old_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporaries, "fcntl", None)
    young, old = tmp_path / ".o.00000000.tmp", tmp_path / ".o.11111111.tmp"
    for path in (young, old):
        path.touch()
    then = time.time() - EIGHT_DAYS
    os.utime(old, (then, then))
    with temporary_beside(tmp_path / "o", folder=False) as path:
        assert names(tmp_path) == sorted([young.name, path.name])


@POSIX
def test_a_link_with_the_name_of_a_leftover_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".o.00000000.tmp").symlink_to("mine")
    with temporary_beside(tmp_path / "o", folder=True):
        pass
    assert names(tmp_path) == [".o.00000000.tmp", "mine"]


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_that_came_meanwhile_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool
) -> None:
    if not in_one_step:
        monkeypatch.setattr(temporaries, "_exchanged", lambda one, other: False)
    with writing_directory(tmp_path / "o", is_ours=anything) as folder:
        (folder / "mine").touch()
        (tmp_path / "o").mkdir()
        (tmp_path / "o" / "theirs").touch()
    assert names(tmp_path) == ["o"]
    assert names(tmp_path / "o") == ["mine"]


def test_what_a_library_says_of_a_full_disk_names_the_output(tmp_path: Path) -> None:
    """Rust's libraries raise errors of their own, with the number of the system's."""
    text = 'Error while serializing: I/O error: No space left on device (os error 28) at path "/x/.tmp7akIsD"'
    with pytest.raises(OutputError, match="the disk is full") as raised:  # noqa: SIM117
        with writing_directory(tmp_path / "o", is_ours=anything):
            raise RuntimeError(text)
    assert str(raised.value).startswith(f"{tmp_path / 'o'}: ")
    with pytest.raises(RuntimeError, match="of no number"), writing_directory(tmp_path / "o", is_ours=anything):
        raise RuntimeError("of no number")
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENOSPC
    assert names(tmp_path) == []
