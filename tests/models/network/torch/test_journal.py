"""Scores that survive a kill: whole records are taken again, and nothing else ever is."""

from __future__ import annotations

import errno
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from lmgauge.base.errors import InputError
from lmgauge.base.files import OutputError
from lmgauge.models.network.torch.engine import Job, Journal


def job(*ids: int, predicted: int | None = None, segment: int = 0) -> Job:
    """Predictions of the last so many of some ids, each from those before it."""
    count = len(ids) - 1 if predicted is None else predicted
    return Job(np.array(ids[:-1], np.int64), np.array(ids[len(ids) - count :], np.int64), segment)


JOBS = [job(1, 5, 6, 7), job(1, 5, 6), job(9, 8, 7, 6, 5, predicted=2)]
SCORES = [np.array([-1.0, -0.25, -np.inf]), np.array([-1e-300, -700.0]), np.array([-0.0, -1 / 3])]


def write(path: Path, model: str = "m") -> bytes:
    work = Journal(path, model)
    for one, scores in zip(JOBS, SCORES, strict=True):
        work.put(one, scores)
    assert work.scores == 7
    work.close()
    return path.read_bytes()


def test_what_is_put_is_found_again_bit_by_bit(tmp_path: Path) -> None:
    write(tmp_path / "scores")
    work = Journal(tmp_path / "scores", "m")
    for one, scores in zip(JOBS, SCORES, strict=True):
        found = work.get(one)
        assert found is not None
        assert found.tobytes() == scores.tobytes()
        assert found.dtype == np.float64
    assert (work.taken, work.scores) == (7, 7)
    work.close()


def test_what_is_put_is_in_the_file_at_once(tmp_path: Path) -> None:
    work = Journal(tmp_path / "scores", "m")
    work.put(JOBS[0], SCORES[0])
    # Nobody closes the file of a process that is killed.
    other = Journal(tmp_path / "scores", "m")
    assert other.get(JOBS[0]) is not None
    other.close()
    work.close()


def test_killed_at_every_byte(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole")
    bounds = np.cumsum([1 + len(line) for line in whole.split(b"\n")[1:]]).tolist()  # a line each, which a newline begins
    assert (len(bounds), bounds[-1]) == (len(SCORES), len(whole))
    path = tmp_path / "scores"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        work = Journal(path, "m")
        for number, (one, scores) in enumerate(zip(JOBS, SCORES, strict=True)):
            found = work.get(one)
            assert (found is not None) == (size >= bounds[number]), size
            if found is not None:
                assert found.tobytes() == scores.tobytes()
        # The run goes on where the other was killed, and the next one finds both.
        work.put(JOBS[2], SCORES[2])
        work.close()
        again = Journal(path, "m")
        taken = [again.get(one) for one in JOBS]
        again.close()
        assert taken[2] is not None
        assert [one is not None for one in taken[:2]] == [size >= bound for bound in bounds[:2]]


def test_damage_at_any_byte_is_never_taken_for_another_score(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole")
    path = tmp_path / "scores"
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x11
        path.write_bytes(damaged)
        work = Journal(path, "m")
        for one, scores in zip(JOBS, SCORES, strict=True):
            found = work.get(one)
            assert found is None or found.tobytes() == scores.tobytes(), at
        work.close()


@pytest.mark.parametrize("content", [bytes(200), b"\xff" * 200, b"some text of somebody's\n" * 20])
def test_a_file_of_something_else_is_begun_anew(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(content)
    work = Journal(path, "m")
    assert [work.get(one) for one in JOBS] == [None, None, None]
    assert work.scores == 0
    work.put(JOBS[0], SCORES[0])
    work.close()
    again = Journal(path, "m")
    assert again.get(JOBS[0]) is not None
    again.close()


def test_another_model_or_policy_finds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "scores")
    work = Journal(tmp_path / "scores", "another")
    assert [work.get(one) for one in JOBS] == [None, None, None]
    assert work.taken == 0
    # And one file may hold both.
    work.put(JOBS[0], SCORES[0] - 1)
    work.close()
    back = Journal(tmp_path / "scores", "m")
    found = back.get(JOBS[0])
    assert found is not None
    assert found.tobytes() == SCORES[0].tobytes()
    back.close()


@pytest.mark.parametrize(
    "other",
    [
        job(2, 5, 6, 7),  # another context
        job(1, 5, 6, 8),  # another last target, which is not shown
        job(1, 5, 8, 7),
        job(1, 5, 6, 7, predicted=2),  # the same text, fewer predictions
        job(0, 1, 5, 6, 7, predicted=3),  # the same predictions from more
        job(5, 6, 7),
    ],
)
def test_another_text_finds_nothing(other: Job, tmp_path: Path) -> None:
    write(tmp_path / "scores")
    work = Journal(tmp_path / "scores", "m")
    assert work.get(other) is None
    work.close()


def test_the_same_text_elsewhere_is_found(tmp_path: Path) -> None:
    write(tmp_path / "scores")
    work = Journal(tmp_path / "scores", "m")
    assert work.get(job(1, 5, 6, 7, segment=99)) is not None
    work.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot keep finished work"):
        Journal(tmp_path / "file" / "scores", "m")


def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot keep finished work"):
        Journal(tmp_path, "m")


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    class Full:
        def write(self, content: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: None

    work = Journal(tmp_path / "scores", "m")
    work._notes.close()
    work._notes._file = Full()  # type: ignore[assignment]
    with pytest.raises(OutputError, match=r"scores.*[Nn]o space left|disk is full"):
        work.put(JOBS[0], SCORES[0])


@pytest.mark.parametrize("line", ['["key", 1]', '[["key"], 1]', '[["key"], "AAAA"]', "[]", "1", "", '{"a": 1}'])
def test_what_is_no_score_is_refused_whatever_its_sum(tmp_path: Path, line: str) -> None:
    (tmp_path / "scores").write_bytes(b"%08x %s\n" % (zlib.crc32(line.encode()), line.encode()))
    with pytest.raises(InputError, match=r"scores.*(a note of what is done|something else than scores).*remove it"):
        Journal(tmp_path / "scores", "m")
