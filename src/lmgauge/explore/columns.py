"""Columns of an index in files: they grow at their end while others read them, and take no memory of the process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Column:
    """An array in a file that only grows."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self._dtype, self._size = path, np.dtype(dtype), 0
        self._mapped: NDArray[Any] = np.zeros(0, self._dtype)

    def __len__(self) -> int:
        return self._size

    def append(self, values: NDArray[Any]) -> None:
        """Add values, [n], of any type that becomes the column's."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(values, self._dtype).data)
        self._size += len(values)

    def view(self, size: int) -> NDArray[Any]:
        """Return the first values, [size], mapped into memory read only."""
        if size > len(self._mapped):
            # As a plain array: each slice of a memmap costs as much as a small answer.
            self._mapped = np.asarray(np.memmap(self._path, self._dtype, "r", shape=(self._size,)))
        return self._mapped[:size]


class Table:
    """Columns of one length, by name."""

    def __init__(self, folder: Path, kinds: Mapping[str, DTypeLike]) -> None:
        folder.mkdir()
        self._columns = {name: Column(folder / name, kind) for name, kind in kinds.items()}

    def append(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, [n] of each column."""
        for name, column in self._columns.items():
            column.append(values[name])

    def view(self, name: str, size: int) -> NDArray[Any]:
        """Return the first values of a column, [size]."""
        return self._columns[name].view(size)
