"""Results that have rows and become data frames; several in order. pandas is imported here only."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from lmgauge.errors import needing
from lmgauge.result_columns import plain_values
from lmgauge.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Result(Shown):
    """A result that is a dataclass: its fields, and what they say of themselves, are its plain values."""

    __slots__ = ()

    def to_dict(self) -> Any:
        """Return everything as plain values, full precision; infinities stay floats."""
        return plain_values(self)


class Tabled(Result):
    """A result that has rows, and becomes a data frame."""

    __slots__ = ()

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """Return flat dicts, the rows of the data frame."""

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_rows` as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(self.to_rows())


@dataclass(frozen=True, repr=False)
class ResultList(Tabled, Sequence[T], Generic[T]):
    """Results in order."""

    items: tuple[T, ...]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> Any:
        return [cast("Any", item).to_dict() for item in self.items]

    def _in_brief(self) -> str:
        return f"{len(self):,} item{'s' * (len(self) != 1)}"


def data_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a pandas data frame."""
    return cast("pd.DataFrame", pandas_module().DataFrame(list(rows)))


def pandas_module() -> Any:
    """Return the pandas library."""
    with needing("pandas", extra="pandas"):
        import pandas
    return pandas
