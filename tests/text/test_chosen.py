"""Some segments of a text, read as a text of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import UsageError
from lmgauge.text.documents import Corpus

TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n"), max_size=8), max_size=12)


def texts_of(corpus: Corpus) -> list[str]:
    return [block.text(i).decode() for block in corpus for i in range(len(block))]


@given(TEXTS, st.data(), st.sampled_from([1, 7, 1000]))
def test_chosen_strings_are_those_strings(texts: list[str], data: st.DataObject, block_bytes: int) -> None:
    chosen = np.array([data.draw(st.booleans()) for _ in texts], bool)
    some = [text for text, wanted in zip(texts, chosen, strict=True) if wanted]
    corpus = Corpus.from_strings(texts, block_bytes=block_bytes).chosen(chosen)
    assert texts_of(corpus) == texts_of(corpus) == some
    assert corpus.report.segments == len(some)
    assert corpus.report.sha256 == _digest(Corpus.from_strings(some))


def _digest(corpus: Corpus) -> str:
    texts_of(corpus)
    return corpus.report.sha256


@given(TEXTS, st.data(), st.sampled_from([1, 7, 1000]))
def test_chosen_lines_keep_their_places_and_newlines(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject, block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("chosen") / "a.txt"
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8", newline="")
    whole = Corpus.from_files(path, block_bytes=block_bytes)
    chosen = np.array([data.draw(st.booleans()) for _ in texts], bool)
    corpus = whole.chosen(chosen)
    blocks = list(corpus)
    assert b"".join(block.data.tobytes() for block in blocks).decode() == "".join(
        text + "\n" for text, wanted in zip(texts, chosen, strict=True) if wanted
    )
    assert [line for block in blocks for line in block.lines().tolist()] == (np.flatnonzero(chosen) + 1).tolist()
    assert [block.first for block in blocks] == np.cumsum([0, *map(len, blocks)])[:-1].tolist()
    assert corpus.report.bytes == sum(block.byte_count() for block in blocks)


def test_groups_and_documents_of_chosen_segments_stay(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one\ntwo\nthree\n")
    whole = Corpus.from_files([tmp_path / "a.txt", tmp_path / "b.txt"])
    blocks = list(whole.chosen(np.array([True, False, True, False, False, True])))
    assert [name for block in blocks for name in _names(block.groups, whole.group_names)] == ["a", "a", "b"]
    assert [number for block in blocks for number in _numbers(block.documents)] == [0, 0, 1]
    ids = Corpus.from_strings(["x", "y", "z"], documents=["p", "q", "q"]).chosen(np.array([False, True, True]))
    assert [number for block in ids for number in _numbers(block.documents)] == [1, 1]


def _names(codes: np.ndarray | None, names: list[str]) -> list[str]:
    assert codes is not None
    return [names[code] for code in codes.tolist()]


def _numbers(documents: np.ndarray | None) -> list[int]:
    assert documents is not None
    return list(documents.tolist())


def test_what_cannot_be_chosen_from_is_refused() -> None:
    every = np.ones(2, bool)
    texts = ["a", "b"]
    corpora = [
        Corpus.from_strings(iter(texts)),
        Corpus.from_strings(texts).joined(" "),
        Corpus.from_strings(texts, given=texts),
        Corpus.from_strings(texts).chosen(every),
    ]
    for corpus in corpora:
        with pytest.raises(UsageError, match="segments cannot be chosen"):
            corpus.chosen(every)
    (block,) = Corpus.from_strings(texts, given=texts)
    with pytest.raises(UsageError, match="leave out given"):
        block.where(every)
