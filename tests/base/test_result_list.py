"""The one sequence of results."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from lmgauge.base.errors import MissingExtraError
from lmgauge.base.result_list import ResultList


@dataclass(frozen=True, repr=False)
class Numbers(ResultList[int]):
    name: str = "n"

    def to_rows(self) -> list[dict[str, Any]]:
        return [{self.name: item} for item in self.items]


def test_it_is_a_sequence_with_a_short_name() -> None:
    numbers = Numbers((3, 4))
    assert (list(numbers), numbers[-1], numbers[:1], len(numbers), 4 in numbers) == ([3, 4], 4, (3,), 2, True)
    assert repr(numbers) == "<Numbers: 2 items>"


def test_it_turns_into_a_data_frame() -> None:
    frame = Numbers((3, 4)).to_pandas()
    assert frame.to_dict("list") == {"n": [3, 4]}


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pandas"):
        Numbers((3,)).to_pandas()
