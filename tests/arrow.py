"""What the Arrow that is installed can do."""

from __future__ import annotations

import pyarrow as pa

WRITES_VIEWS = int(pa.__version__.partition(".")[0]) >= 21
"""Whether a Parquet file can be made of a column of views."""


def skip_unwritable(kind: pa.DataType) -> None:
    """Skip the test that needs a Parquet file with such a column, if none can be made."""
    import pytest  # not for the fuzzing, which runs without it

    if not WRITES_VIEWS and (pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)):
        pytest.skip(f"this Arrow writes no {kind} into a file")
