"""Overlap of the shared corpora: known counts, and counts of n-grams in sets and of bytes one by one."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
from tests.reference import overlap as twin
from tests.text.overlap.finding import find_overlap

from lmgauge.text.documents import Corpus


def packed(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"needs {path.name} of the shared corpora")
    return path


def test_whole_duplicates_of_the_penn_treebank(shared_data: Path) -> None:
    """README of the corpora: 64 of the 3,761 lines of the test set are lines of the training set, too."""
    folder = shared_data / "restricted" / "ptb"
    train, test = packed(folder / "ptb.train.txt.gz"), packed(folder / "ptb.test.txt.gz")
    found = find_overlap(Corpus.from_files(train), Corpus.from_files(test))
    assert (found.whole_duplicates, found.segments) == (64, 3761)
    lines = set(gzip.decompress(train.read_bytes()).splitlines())
    assert found.whole_duplicates == sum(line in lines for line in gzip.decompress(test.read_bytes()).splitlines())
    assert (found.ngram_bytes, found.contaminated_bytes, found.bytes) == (8332, 8952, 449945)
    expected = twin.bytes_in_common(gzip.decompress(train.read_bytes()), gzip.decompress(test.read_bytes()), 13)
    assert (found.ngram_bytes, found.contaminated_bytes) == expected


def test_a_shuffled_copy_of_the_test_holds_all_of_it(shared_data: Path, tmp_path: Path) -> None:
    for name, blank in (("restricted/ptb/ptb.test.txt.gz", 0), ("open/wikitext-2/test.txt.gz", 1467)):
        path, train = packed(shared_data / name), tmp_path / "train.txt"
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        train.write_bytes(b"".join(lines[i] for i in np.random.default_rng(1).permutation(len(lines))))
        found = find_overlap(Corpus.from_files(train), Corpus.from_files(path))
        assert (found.blank_segments, found.contaminated_share) == (blank, 1.0)
        assert found.ngram_bytes < found.contaminated_bytes == found.bytes


def test_whole_duplicates_of_wikitext_2(shared_data: Path) -> None:
    """README of the corpora: 378 of the 2,891 lines that are not blank, mostly headings."""
    folder = shared_data / "open" / "wikitext-2"
    train, test = packed(folder / "train.txt.gz"), packed(folder / "test.txt.gz")
    found = find_overlap(Corpus.from_files(train), Corpus.from_files(test))
    assert (found.whole_duplicates, found.segments - found.blank_segments) == (378, 2891)
    assert (found.ngram_bytes, found.contaminated_bytes, found.bytes) == (3195, 10507, 1256449)
    expected = twin.bytes_in_common(gzip.decompress(train.read_bytes()), gzip.decompress(test.read_bytes()), 13)
    assert (found.ngram_bytes, found.contaminated_bytes) == expected


# Three labels of open/contamination are not met to the digit: its words seem to be made of the letters a to z and digits
# alone (reproduced: such words give the label of the first), ours of the letters of all alphabets.
OTHER_WORDS = {"Haggard_Mines_1885", "Kipling_Captains_1896", "Chesterton_Napoleon_1904"}


def test_labelled_contamination(shared_data: Path, tmp_path: Path) -> None:
    """The last column of labels.tsv is the share of an excerpt's word 8-grams that are in classic-books train."""
    pytest.importorskip("zstandard")
    folder = shared_data / "open"
    with tarfile.open(packed(folder / "contamination" / "excerpts.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    rows = [line.split("\t") for line in (folder / "contamination" / "labels.tsv").read_text("utf-8").splitlines()[1:]]
    test = Corpus.from_files([next(tmp_path.rglob(row[0])) for row in rows])
    train = Corpus.from_files(packed(folder / "classic-books" / "train.txt.zst"))
    found = find_overlap(train, test, n=8, fold=True)
    for (name, in_train, _, words, label), group in zip(rows, found.groups, strict=True):
        assert (group.name, group.segments > 0, int(words) > 0) == (name.removesuffix(".txt"), True, True)
        assert (group.ngram_share > 0.5) == (in_train == "1")
        assert group.ngram_share == pytest.approx(float(label), abs=0.009 if group.name in OTHER_WORDS else 0.00015)
