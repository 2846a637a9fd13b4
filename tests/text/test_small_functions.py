"""What small functions of `text` give for an example each."""

from __future__ import annotations

import numpy as np

from lmgauge.text import library_tokenizers, split


def test_library_tokenizers() -> None:
    assert library_tokenizers.checked_locale("zh-Hant") == "zh-Hant"


def test_split() -> None:
    assert split.assign_groups(np.array([0, 0, 1]), np.array([4, 4, 8]), (0.5, 0.5, 0.0), seed=1).tolist() == [0, 0, 1]
