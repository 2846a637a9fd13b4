"""Arrays as files: whole or not there, and no trust in what lies on the disk."""

from __future__ import annotations

import errno
import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from lmgauge.base.errors import InputError
from lmgauge.base.files import OutputError
from lmgauge.work import engine as engines
from lmgauge.work.engine import ArrayFolder, Stored
from lmgauge.work.manifest import DiskFullError


@given(
    arrays(
        st.sampled_from([np.uint8, np.uint32, np.float32, np.float64, np.dtype(">i2"), np.complex64, np.bool_]),
        array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_what_is_read_is_what_was_written(array: np.ndarray) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = ArrayFolder(Path(folder))
        files.write(Stored("a"), array.T)
        again = files.read(Stored("a"))
        assert (again.dtype, again.shape, again.tobytes()) == (array.dtype, array.T.shape, array.T.tobytes())
        np.testing.assert_array_equal(np.load(next(Path(folder).rglob("*.npy")), allow_pickle=False), again)


def test_an_array_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    files = ArrayFolder(tmp_path)
    files.write(Stored("a/0"), np.arange(3))
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "0.npy").rename(tmp_path / "b" / "0.npy")
    with pytest.raises(InputError, match=r"0.npy: damaged: its bytes are not those that were written; remove the folder"):
        files.read(Stored("b/0"))


def test_sizes_are_those_of_what_is_there(tmp_path: Path) -> None:
    files = ArrayFolder(tmp_path)
    for count in (100, 40):
        files.write(Stored("a/b"), np.zeros(count, np.uint8))
        assert files.total_size() == 128 + count + 8  # a header before the numbers, and a sum behind
    files.write(Stored("a/b/c"), np.zeros(1))
    files.write(Stored("a/bc"), np.zeros(1))
    for _ in range(2):
        files.remove(Stored("a/b"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "bc.npy", "c.npy"]
    with pytest.raises(InputError, match=r"b.npy: cannot be read: no such file; remove the folder and start again"):
        files.read(Stored("a/b"))


def test_arrays_larger_than_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_LARGEST_PIECE", 7)
    files = ArrayFolder(tmp_path)
    files.write(Stored("a"), np.arange(100))
    assert files.read(Stored("a")).tolist() == list(range(100))


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, OutputError)]
)
def test_what_cannot_be_written_leaves_the_array_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[OutputError]
) -> None:
    files = ArrayFolder(tmp_path)
    files.write(Stored("a"), np.array([1]))

    def fail(file: object, data: memoryview) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(engines, "_write_all", fail)
    with pytest.raises(OutputError) as error:
        files.write(Stored("a"), np.array([1, 2]))
    assert type(error.value) is kind
    assert files.read(Stored("a")).tolist() == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_what_a_killed_task_left_is_removed(tmp_path: Path) -> None:
    files = ArrayFolder(tmp_path)
    files.write(Stored("a/b"), np.array([1]))
    (tmp_path / "a" / "c.unfinished").write_bytes(b"\x93NUMPY")
    files.remove_unfinished()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b.npy"]


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """A file of which some bytes are other ones, or missing, or too many."""
    data = bytearray(whole)
    for _ in range(rng.randint(0, 4)):
        data[rng.randrange(min(len(data), 160))] = rng.choice([0, 10, 32, 39, 40, 48, 57, 79, 124, 255, rng.randrange(256)])
    end = rng.choice([len(data), rng.randrange(len(data) + 1)])
    return bytes(data[:end]) + rng.randbytes(rng.choice([0, 0, 3]))


def test_only_numbers_are_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="array a is of object, not of numbers"):
        ArrayFolder(tmp_path).write(Stored("a"), np.array([None]))


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    rng, examples = random.Random(18), 3000
    files = ArrayFolder(tmp_path)
    files.write(Stored("a"), np.arange(12, dtype=np.uint16).reshape(3, 4))
    path = tmp_path / "a.npy"
    whole, refused = path.read_bytes(), 0
    for _ in range(examples):
        path.unlink()  # some file systems take long to cut a file off
        path.write_bytes(damaged(rng, whole))
        try:
            assert files.read(Stored("a")).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        except InputError as error:
            assert str(error).startswith(f"{path}: damaged: ")  # noqa: PT017 - some of the files can be read
            refused += 1
    assert examples / 2 < refused < examples
