"""A folder holds one piece of work, of one run at a time, and nobody's files are taken for ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError
from lmgauge.work.engine import ARRAYS, FolderEngine

WORK = {"order": 5, "text": ["a.txt", 3]}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder where a run did two tasks and a stage, and was killed while it noted another."""
    with opened(tmp_path / "work", resume=False) as engine:
        for task in (0, 1, None):
            engine.notes["count", task] = None
        (tmp_path / "work" / ARRAYS).mkdir()
        with (tmp_path / "work" / "finished.log").open("ab") as file:
            file.write(b'\n00000000 ["route", 0')
    return tmp_path / "work"


def opened(folder: Path, work: dict[str, Any] = WORK, *, resume: bool = True) -> FolderEngine:
    return FolderEngine(folder, work, resume=resume)


def test_what_is_noted_is_there_for_the_next_run(folder: Path) -> None:
    with opened(folder) as engine:
        assert [("count", task) in engine.notes for task in (0, 1, 2, None)] == [True, True, False, True]
        assert ("route", 0) not in engine.notes
        engine.notes["route", 0] = None
    with opened(folder) as engine:
        assert ("route", 0) in engine.notes


def test_other_work_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError) as error:
        opened(folder, {**WORK, "order": 4})
    assert str(error.value).startswith(f"{folder}: holds other work: order is 5 there, and 4 here; ")


def test_unfinished_work_is_not_lost_by_mistake(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"\(stages done: 1, tasks done: 2\); continue it with --resume"):
        opened(folder, resume=False)
    assert (folder / ARRAYS).is_dir()


def test_work_of_which_nothing_is_done_is_begun_again(tmp_path: Path) -> None:
    for order in (1, 2, 3):
        with opened(tmp_path / "work", {"order": order}, resume=False) as engine:
            assert not (engine.place / ARRAYS).exists()
            (engine.place / ARRAYS).mkdir()


def test_with_nothing_to_resume_a_run_begins(tmp_path: Path) -> None:
    with opened(tmp_path / "new" / "work") as engine:
        assert not engine.is_finished("count")


def test_one_run_at_a_time(folder: Path) -> None:
    with opened(folder), pytest.raises(UsageError, match="another run is working there"):
        opened(folder)
    with opened(folder) as engine:
        assert engine.is_finished("count")


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds other files"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(OutputError, match=r"thesis\.tex: cannot be written"):
        opened(tmp_path / "thesis.tex")


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b'{"work": 1}', b"[" * 100_000])
def test_a_description_that_is_not_ours_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "work.json").write_bytes(text)
    with pytest.raises(InputError, match=r"is not what lmgauge .* notes of its work"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["work.json"]


def test_what_came_of_a_stage_is_there_for_the_next_run(folder: Path) -> None:
    with opened(folder) as engine:
        engine.notes["plan", None] = {"partitions": 3, "ä": [1, None]}
    with opened(folder) as engine:
        assert engine.notes["plan", None] == {"partitions": 3, "ä": [1, None]}
        assert engine.notes["count", None] is None


@pytest.mark.parametrize("text", [b"\xff\n", b"[]\n", b'["a", null, 3]\n', b'00000000 ["a", null, 3]\n', b"3\n", b"\n"])
def test_notes_that_are_damaged_say_nothing(folder: Path, text: bytes) -> None:
    notes = (folder / "finished.log").read_bytes()
    (folder / "finished.log").write_bytes(text + notes.replace(b'["count", 1', b'["count", 2'))
    with opened(folder) as engine:
        assert ("count", 0) in engine.notes
        assert engine.is_finished("count")
        assert not any(note in engine.notes for note in (("a", None), ("count", 1), ("count", 2)))


def test_removing_leaves_nothing_but_files_of_others(folder: Path, tmp_path: Path) -> None:
    with opened(folder) as engine:
        engine.remove()
    assert not folder.exists()
    with opened(tmp_path / "shared") as engine:
        engine.notes["count", None] = None
        (tmp_path / "shared" / "thesis.tex").touch()
        engine.remove()
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["thesis.tex"]
