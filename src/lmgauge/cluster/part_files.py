"""Named arrays of the parts of some work, one part after another in a file."""

# The file is Parquet, a row a part; each array is the list in a cell, and comes back with the same type and the same bits.
# An array of two dimensions is stored under its name and width, as `top_ids/10`.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.files import writing
from lmgauge.records.parquet_files import batches_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Arrays = Mapping[str, NDArray[Any]]

_PART = "part"
_TOGETHER = 1 << 24  # bytes of parts that are compressed together


class PartWriter:
    """Writes parts to a file, which appears under its name when the `with` block ends without an error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()
        self._waiting: list[pa.RecordBatch] = []
        self._schema: pa.Schema | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(writing(self.path))
        return self

    def write(self, number: int, arrays: Arrays) -> None:
        """Write the arrays of a part."""
        # number: of the part; parts come in ascending order; arrays: by name, the same names and types in all parts; [n] or
        # [n, k].
        import pyarrow as pa

        columns: dict[str, pa.Array] = {_PART: pa.array([number], pa.int64())}
        for name, array in arrays.items():
            name = name if array.ndim == 1 else f"{name}/{array.shape[1]}"
            values = pa.array(np.ascontiguousarray(array).reshape(-1))
            columns[name] = pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
        rows = pa.RecordBatch.from_pydict(columns)
        self._schema = self._schema or rows.schema
        if rows.schema != self._schema:
            raise InputError("the model gives other columns for some parts of the text than for others: it cannot be cut")
        self._waiting.append(rows)
        if sum(waiting.nbytes for waiting in self._waiting) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            schema = self._schema or pa.schema([(_PART, pa.int64())])
            # No dictionaries and statistics: each cell is a list that comes once, and nobody looks for values in it.
            how: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
            self._writer = pq.ParquetWriter(self._file, schema, **how)
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting = []

    def __exit__(self, *error: Any) -> bool | None:
        if error[0] is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()
        return self._stack.__exit__(*error)


def read_parts(path: Path) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield the number of each part and its arrays, which may be read-only."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    last = -1
    try:
        with pq.ParquetFile(path) as file:
            for rows in batches_of(file, 1):
                number, arrays = _arrays(rows)
                if number <= last:
                    raise ValueError(f"part {number} stands behind part {last}")
                last = number
                yield number, arrays
    except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: cannot be read as the parts of a shard: {reason}") from error


def _arrays(rows: pa.RecordBatch) -> tuple[int, dict[str, NDArray[Any]]]:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    number = columns.pop(_PART, None)
    if number is None or len(columns) + 1 != rows.num_columns or any(column.null_count for column in rows.columns):
        raise ValueError("a column is missing or has no values")
    arrays: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        values = column.flatten()
        if values.null_count:
            raise ValueError(f"column {name!r} has rows without a value")
        array = values.to_numpy(zero_copy_only=False)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"column {name!r} has no numbers")
        name, _, width = name.partition("/")
        arrays[name] = array.reshape(-1, int(width)) if width else array
    return int(number[0].as_py()), arrays
