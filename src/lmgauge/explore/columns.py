"""Columns of an index in files: they grow at their end while others read them, and take no memory of the process."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Column:
    """An array in a file that only grows."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.open("wb")
        self._size = 0
        self._mapped: NDArray[Any] = np.zeros(0, self._dtype)

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        # values: [n], of any type that becomes the column's.
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._file.flush()  # readers map the file
        self._size += len(values)

    def __len__(self) -> int:
        return self._size

    def view(self, size: int | None = None) -> NDArray[Any]:
        """Return the first values, [size], mapped into memory read only."""
        size = self._size if size is None else size
        if size > len(self._mapped):
            # As a plain array: each slice of a memmap costs as much as a small answer.
            self._mapped = np.asarray(np.memmap(self._path, self._dtype, "r", shape=(self._size,)))
        return self._mapped[:size]

    def close(self) -> None:
        """Close the file; what was viewed stays readable."""
        self._file.close()

    def remove(self) -> None:
        """Close the file and free its place on the disk, as soon as nobody views it; what is there stays readable."""
        self.close()
        self.view()
        with suppress(OSError):  # Windows keeps a file that is viewed until the folder is removed
            self._path.unlink(missing_ok=True)
