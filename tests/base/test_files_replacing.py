"""Writing files: what an output may not replace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import refuse_replacing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "vocabulary.txt").write_text("a\n")
    (tmp_path / "text.txt").write_text("a b\n")
    (tmp_path / "link.txt").symlink_to("text.txt")
    os.link(tmp_path / "text.txt", tmp_path / "same.txt")
    return tmp_path


@pytest.mark.parametrize("name", ["text.txt", "link.txt", "same.txt", "model/../text.txt"])
def test_no_output_replaces_an_input(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"--rows .* would replace what this command reads \(.*text.txt\); choose another"):
        refuse_replacing({"--rows": folder / name}, [folder / "other.txt", folder / "text.txt"])


def test_no_output_is_a_file_of_a_model_nor_a_folder_with_the_text(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"would replace what this command reads \(.*model\)"):
        refuse_replacing({"--rows": folder / "model" / "vocabulary.txt"}, [folder / "model"])
    with pytest.raises(UsageError, match=r"would replace what this command reads \(.*text.txt\)"):
        refuse_replacing({"-o": folder}, [folder / "text.txt"])


@pytest.mark.parametrize(
    ("one", "two"), [("a.tsv", "a.tsv"), ("a.tsv", "./x/../a.tsv"), ("run", "run/a.tsv"), ("run/a.tsv", "run")]
)
def test_no_output_replaces_another(folder: Path, one: str, two: str) -> None:
    with pytest.raises(UsageError, match=r"--one .* and --two .* would replace each other"):
        refuse_replacing({"--one": folder / one, "--two": folder / two}, [])


@pytest.mark.parametrize("name", ["new.tsv", "model/new.tsv", "model/run", "none/new.tsv"])
def test_all_else_may_be_written(folder: Path, name: str) -> None:
    (folder / "old.tsv").write_text("of an earlier run\n")
    before = sorted(folder.rglob("*"))
    for output in (name, "old.tsv"):
        refuse_replacing({"--rows": folder / output}, [folder / "text.txt", folder / "model"])
    assert sorted(folder.rglob("*")) == before


def test_a_path_that_cannot_be_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="null byte"):
        refuse_replacing({"--rows": folder / "x\0y"}, [folder / "text.txt"])


def test_streams_and_addresses_are_not_files(folder: Path) -> None:
    refuse_replacing({"--rows": "-", "-o": None}, ["-", "http://localhost:1/v1", folder / "text.txt"])
    with pytest.raises(UsageError):
        refuse_replacing({"--rows": "-", "-o": folder / "text.txt"}, ["-", "http://localhost:1/v1", folder / "text.txt"])


def test_standard_input_may_be_a_file(folder: Path) -> None:
    kept = os.dup(0)
    try:
        with (folder / "text.txt").open("rb") as file:
            os.dup2(file.fileno(), 0)
            with pytest.raises(UsageError, match=r"\(standard input\)"):
                refuse_replacing({"--rows": folder / "text.txt"}, ["-"])
    finally:
        os.dup2(kept, 0)
        os.close(kept)
