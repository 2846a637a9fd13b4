"""Splitting: exact sizes, the same for the same seed, whole groups, and never half a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.split import _shuffled, split_corpus, write_split

DATA = Path(__file__).parent.parent / "data"
NOVEL = DATA / "classic-books.train.txt"  # 1,030 lines


def test_sizes_and_seed() -> None:
    corpus = Corpus.from_files(NOVEL)
    split = split_corpus(corpus, (0.8, 0.1, 0.1), seed=1)
    assert split.counts() == {"train": 824, "validation": 103, "test": 103}  # 1,030 x 0.8, 0.1, 0.1
    same = split_corpus(Corpus.from_files(NOVEL, block_bytes=100), (0.8, 0.1, 0.1), seed=1)
    other = split_corpus(corpus, (0.8, 0.1, 0.1), seed=2)
    np.testing.assert_array_equal(split.assignment, same.assignment)
    assert not np.array_equal(split.assignment, other.assignment)


def test_the_split_is_this_one_for_ever() -> None:
    # SplitMix64 with seed 0 begins e220a839..., 6e789e6a..., 06c45d18..., f88bb8a8... (its authors' C program):
    # sorted, that is 2, 1, 0, 3.
    assert _shuffled(4, 0).tolist() == [2, 1, 0, 3]
    assert split_corpus(Corpus.from_strings("abcdefghij"[i] for i in range(10)), seed=7).counts() == {
        "train": 8,
        "validation": 1,
        "test": 1,
    }


def test_whole_groups_stay_together() -> None:
    corpus = Corpus.from_files(str(DATA / "pud.*.txt"))
    split = split_corpus(corpus, (0.6, 0.2, 0.2), seed=3, by="group")
    groups = np.concatenate([part.groups for part in corpus if part.groups is not None])
    for code in range(8):
        assert len(set(split.assignment[groups == code].tolist())) == 1
    assert min(split.counts().values()) >= 60
    with pytest.raises(UsageError, match="one group only"):
        split_corpus(Corpus.from_files(NOVEL), by="group")


def test_written_parts_are_the_text(tmp_path: Path) -> None:
    corpus = Corpus.from_files(NOVEL, block_bytes=1000)
    parts = write_split(corpus, tmp_path / "new" / "parts", seed=5).parts
    assert [part.path.name for part in parts] == ["train.txt", "validation.txt", "test.txt"]
    assignment = split_corpus(corpus, seed=5).assignment
    lines = NOVEL.read_bytes().splitlines(keepends=True)
    for code, part in enumerate(parts):
        content = part.path.read_bytes()
        assert content == b"".join(line for line, mine in zip(lines, assignment, strict=True) if mine == code)
        assert (part.segments, part.bytes) == (content.count(b"\n"), len(content))
    assert sorted(path.name for path in (tmp_path / "new" / "parts").iterdir()) == [
        "test.txt",
        "train.txt",
        "validation.txt",
    ]


def test_records_are_written_as_records(tmp_path: Path) -> None:
    texts = ["zwei\nZeilen", 'mit "Zeichen" \u2028', "", "三"]
    write_split(Corpus.from_strings(texts), tmp_path, (0.5, 0.0, 0.5), seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.jsonl", "train.jsonl"]
    found = [
        json.loads(line)["text"] for path in tmp_path.iterdir() for line in path.read_text("utf-8").rstrip("\n").split("\n")
    ]
    assert sorted(found) == sorted(texts)


class Interrupted(Corpus):
    """A corpus whose second reading is stopped by Ctrl-C."""

    passes = 0

    def __iter__(self) -> Iterator[Segments]:
        self.passes += 1
        for part in super().__iter__():
            yield part
            if self.passes == 2:
                raise KeyboardInterrupt


def test_nothing_half_written(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        write_split(Interrupted.from_files(NOVEL, block_bytes=1000), folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "train.txt").write_text("old\n")
    with pytest.raises(KeyboardInterrupt):
        write_split(Interrupted.from_files(NOVEL, block_bytes=1000), folder)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("train.txt", "old\n")]


@pytest.mark.parametrize("name", ["test.txt", "train.jsonl"])
def test_no_file_that_is_there_is_replaced(tmp_path: Path, name: str) -> None:
    """Nothing tells the part of an older split from a text that somebody made by hand."""
    (tmp_path / name).write_text("somebody's\n")
    with pytest.raises(UsageError, match=f"already has a {name} of another split"):
        write_split(Corpus.from_files(NOVEL), tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "somebody's\n")]


def test_a_text_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\nb\nc\n")

    class Changing(Corpus):
        def __iter__(self) -> Iterator[Segments]:
            yield from super().__iter__()
            path.write_text("a\nX\nc\n")

    with pytest.raises(InputError, match="changed while"):
        write_split(Changing.from_files(path), tmp_path / "parts")
    assert not (tmp_path / "parts").exists()


def test_errors(tmp_path: Path) -> None:
    corpus = Corpus.from_files(NOVEL)
    for fractions in [(0.5, 0.5), (0.5, 0.2, 0.2), (1.5, -0.5, 0.0), (float("nan"), 0.5, 0.5), ("a", "b", "c")]:
        with pytest.raises(UsageError, match="fractions"):
            split_corpus(corpus, fractions)
    with pytest.raises(UsageError, match="seed -1"):
        split_corpus(corpus, seed=-1)
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(InputError, match="no text to split"):
        split_corpus(Corpus.from_files(empty))
    with pytest.raises(UsageError, match="only once"):
        write_split(Corpus.from_files("-"), tmp_path)
    own = tmp_path / "train.txt"
    own.write_text("a\nb\n")
    with pytest.raises(UsageError, match="would replace what this command reads"):
        write_split(Corpus.from_files(own), tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        write_split(corpus, own)
    assert own.read_text() == "a\nb\n"
