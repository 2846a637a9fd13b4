"""The one sequence of results."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lmgauge.base.errors import MissingExtraError
from lmgauge.base.result_list import ResultList, column, flat_row, plain_values
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc


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


# -- what fields say of themselves reaches plain values, rows of data frames and tables ---------------------------------
@dataclass(frozen=True)
class Cost:
    """A row with all that a field may say."""

    STATED: ClassVar = ("each",)
    name: str = field(metadata=column(""))
    events: int
    bits: float = field(metadata=column("bits in all", 1, "fixed", drop=2, unit="bits"))
    interval: Interval | None = field(metadata=column("95 % interval", 2, "signed", drop=1))
    zeros: int = field(default=0, metadata=column("p = 0", form="count", optional=True))
    rows: tuple[int, ...] = field(default=(), repr=False)

    @property
    def each(self) -> float:
        """Return the bits of an event."""
        return self.bits / self.events


BETWEEN = Interval(-1.0, 2.0, 0.95, "jackknife", "documents", 9)
COSTS = [Cost("a", 2, LowerBound(3.0), BETWEEN, rows=(1, 2)), Cost("b", 1, math.inf, None)]


def test_plain_values_leave_out_what_is_too_long_and_have_what_is_stated() -> None:
    first: dict[str, Any] = plain_values(COSTS[0])
    assert list(first) == ["name", "events", "bits", "interval", "zeros", "each"]
    assert (type(first["bits"]), first["bits"], first["each"]) == (float, 3.0, 1.5)
    assert (first["interval"]["low"], first["interval"]["unit"]) == (-1.0, "documents")


def test_plain_values_keep_the_kinds_of_containers() -> None:
    assert plain_values({1: (Path("a") / "b", [LowerBound(1.0)]), "x": None}) == {1: ("a/b", [1.0]), "x": None}
    assert isinstance(plain_values((1,)), tuple)


def test_a_flat_row_has_the_ends_of_its_interval() -> None:
    assert {name: flat_row(COSTS[0])[f"interval_{name}"] for name in ("low", "high", "unit")} == {
        "low": -1.0,
        "high": 2.0,
        "unit": "documents",
    }
    assert flat_row(COSTS[1])["interval_low"] is None
    assert "interval" not in flat_row(COSTS[0])


def test_columns_are_those_of_the_fields_in_their_order() -> None:
    name, bits, between = doc.columns(COSTS)
    assert (name.title, list(name.cells), name.align) == ("", ["a", "b"], "left")
    assert (bits.title, bits.unit, bits.drop, bits.align) == ("bits in all", "bits", 2, "right")
    assert bits.cells[1] == doc.Number(math.inf, 1, "fixed")
    assert list(between.cells) == [doc.Range(-1.0, 2.0, 2, "signed"), doc.Number(None, 2, "signed")]


def test_an_optional_column_is_there_where_a_row_has_a_value() -> None:
    titles = [column.title for column in doc.columns([*COSTS, Cost("c", 1, 1.0, None, zeros=4)], "zeros", "name")]
    assert titles == ["p = 0", ""]


def test_rows_that_are_missing_are_dashes_and_no_rows_have_no_columns() -> None:
    assert [cell for column in doc.columns([None, COSTS[0]], "bits") for cell in column.cells] == [
        doc.Number(None, 1, "fixed"),
        doc.Number(LowerBound(3.0), 1, "fixed"),
    ]
    assert doc.columns([]) == doc.columns([None], "bits") == ()
