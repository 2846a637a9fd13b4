"""Writing files: whole or not at all, whatever is in the way, and nothing left of runs that were killed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lmgauge.base import files
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError, locking, writing, writing_directory
from lmgauge.evaluation.runs import RunFolders

POSIX = pytest.mark.skipif(os.name == "nt", reason="links, locks and pipes are different on Windows")
KILLED = """
import sys, time
from lmgauge.base.files import writing, writing_directory
with writing_directory("o", is_ours=lambda path: True) as folder, writing("o.arpa") as file:
    (folder / "half").write_text("half")
    file.write(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


def anything(path: Path) -> bool:
    return True


def save(path: Path) -> None:
    with writing_directory(path, is_ours=anything) as folder:
        (folder / "whole").write_text("new")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@POSIX
def test_what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        begun = names(tmp_path)
        assert len(begun) == 2
        save(tmp_path / "o")
        assert names(tmp_path) == [*begun, "o"]
        process.send_signal(signal.SIGKILL)
    assert names(tmp_path) == [*begun, "o"]
    (tmp_path / ".o.12345678.tmp.mine").touch()  # not a name that lmgauge gives
    (tmp_path / ".other.12345678.tmp").touch()
    save(tmp_path / "o")
    with writing(tmp_path / "o.arpa"):
        pass
    assert names(tmp_path) == [".o.12345678.tmp.mine", ".other.12345678.tmp", "o", "o.arpa"]
    assert (tmp_path / "o" / "whole").read_text() == "new"


@POSIX
def test_a_folder_that_a_killed_run_had_put_aside_is_put_back(tmp_path: Path) -> None:
    (tmp_path / ".o.12345678.old" / "old").mkdir(parents=True)
    (tmp_path / ".o.12345678.old" / "old" / "whole").write_text("old")
    with pytest.raises(InputError), writing_directory(tmp_path / "o", is_ours=anything):
        raise InputError("stop")
    assert names(tmp_path) == ["o"]
    assert (tmp_path / "o" / "whole").read_text() == "old"
    save(tmp_path / "o")
    assert names(tmp_path) == ["o"]
    assert (tmp_path / "o" / "whole").read_text() == "new"


@POSIX
def test_links_stay_and_what_they_name_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "folder").mkdir()
    (tmp_path / "far" / "file").write_text("old")
    (tmp_path / "to-folder").symlink_to("far/folder")
    (tmp_path / "to-file").symlink_to("far/file")
    save(tmp_path / "to-folder")
    with writing(tmp_path / "to-file") as file:
        file.write(b"new")
    assert os.readlink(tmp_path / "to-folder") == "far/folder"
    assert os.readlink(tmp_path / "to-file") == "far/file"
    assert (tmp_path / "far" / "folder" / "whole").read_text() == "new"
    assert (tmp_path / "far" / "file").read_text() == "new"
    assert names(tmp_path) == ["far", "to-file", "to-folder"]
    assert names(tmp_path / "far") == ["file", "folder"]


@POSIX
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(OutputError, match="link: is a link to gone, which does not exist"):
        save(tmp_path / "link")
    with pytest.raises(OutputError, match="which does not exist"), writing(tmp_path / "link"):
        pass
    assert names(tmp_path) == ["link"]


@POSIX
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with writing(pipe) as file:
        file.write(b"rows")
    reader.join()
    assert read == [b"rows"]
    assert pipe.is_fifo()


def test_folders_made_on_the_way_go_when_the_work_fails(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    target = tmp_path / "new" / "er" / "o"
    with pytest.raises(OutputError, match="the disk is full; nothing of it was left behind"):  # noqa: SIM117
        with writing_directory(target, is_ours=anything):
            raise full
    assert names(tmp_path) == []
    (tmp_path / "new").mkdir()
    with pytest.raises(OutputError), writing_directory(target, is_ours=anything):
        raise full
    assert names(tmp_path) == ["new"]


def test_errors_name_the_output_and_not_the_temporary_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as raised:  # noqa: SIM117
        with writing_directory(tmp_path / "o", is_ours=anything) as folder, writing(folder / "scores.parquet"):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert str(raised.value).startswith(f"{tmp_path / 'o'}: the disk is full")
    # What fails elsewhere while a folder is written keeps its own name.
    with pytest.raises(OutputError) as raised:  # noqa: SIM117
        with writing_directory(tmp_path / "o", is_ours=anything), writing(tmp_path / "rows.tsv"):
            raise OSError(errno.EIO, "Input/output error")
    assert str(raised.value).startswith(f"{tmp_path / 'rows.tsv'}: cannot be written: Input/output error")
    assert names(tmp_path) == []


@pytest.mark.parametrize("models", [["one"], ["one", "two"]], ids=len)
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_a_run_folder_as_it_was(tmp_path: Path, models: list[str], there: bool) -> None:
    output = tmp_path / "new" / "o"
    if there:
        output.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError) as raised, RunFolders(output, models):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(raised.value).startswith(f"{output}")
    assert ".tmp" not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before


@POSIX
def test_many_writers_of_one_folder_leave_one_whole_result(tmp_path: Path) -> None:
    """None of them takes what another has just begun for a leftover."""
    deadline = time.monotonic() + 1
    failed: list[BaseException] = []

    def write() -> None:
        while time.monotonic() < deadline:
            try:
                with writing(tmp_path / "file") as file:
                    file.write(b"whole")
            except BaseException as error:
                failed.append(error)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"whole"


@POSIX
def test_a_lock_is_of_the_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that held the lock removes its folder just when this one has opened the file."""
    lock, hold_lock, times = tmp_path / "run" / "lock", files.hold_lock, []

    def late(path: Path, *, wait: bool) -> int | None:
        times.append(path)
        before, after = [(1, 0), (0, 1)][len(times) % 2] if len(times) < 5 else (0, 0)
        if before:
            path.unlink()
        descriptor = hold_lock(path, wait=wait)
        if after:
            path.unlink()
            path.parent.rmdir()
        return descriptor

    monkeypatch.setattr(files, "hold_lock", late)
    with locking(lock, lock.parent):
        assert len(times) == 5
        with pytest.raises(UsageError, match="another run is working there"), locking(lock, lock.parent):
            pass
    with locking(lock, lock.parent):
        pass


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"")
    with pytest.raises(OutputError, match="run"), locking(tmp_path / "run" / "lock", tmp_path):
        pass
