"""What small functions of `text` give for an example each."""

from __future__ import annotations

import numpy as np

from lmgauge.text import cleaning, library_tokenizers, readers, split, streams


def test_cleaning() -> None:
    assert cleaning.what_is_wrong(b"f\xfcr", 1) == "0xFC is not valid UTF-8"


def test_library_tokenizers() -> None:
    assert library_tokenizers.checked_locale("zh-Hant") == "zh-Hant"


def test_readers() -> None:
    assert readers.name_one("keep:condition") == "name one of them (--keep)"
    assert readers.kind_of({}) == "an object"
    assert readers.kind_of(1.5) == "a number"
    assert readers.utf8("ü") == b"\xc3\xbc"


def test_split() -> None:
    assert split.assign_groups(np.array([0, 0, 1]), np.array([4, 4, 8]), (0.5, 0.5, 0.0), seed=1).tolist() == [0, 0, 1]


def test_streams() -> None:
    assert streams.split_compression("a.txt.gz") == ("a.txt", ".gz")
    assert streams.split_compression("a.txt") == ("a.txt", "")
