"""Named arrays come back from a file with the same types and the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lmgauge.cluster.part_files import PartWriter, read_parts
from lmgauge.errors import InputError

TYPES = ["bool", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"]
SHAPES = st.one_of(st.tuples(st.integers(0, 9)), st.tuples(st.integers(0, 5), st.integers(1, 3)))


@given(data=st.data(), kinds=st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sampled_from(TYPES), st.integers(1, 2))))
def test_arrays_come_back(
    data: st.DataObject, kinds: dict[str, tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("parts") / "parts.parquet"
    parts = []
    for number in sorted(data.draw(st.sets(st.integers(0, 99), max_size=4))):
        shapes = {name: (data.draw(st.integers(0, 5)), 2)[:ndim] for name, (_, ndim) in kinds.items()}
        parts.append((number, {name: data.draw(hnp.arrays(kind, shapes[name])) for name, (kind, _) in kinds.items()}))
    with PartWriter(path) as writer:
        for number, arrays in parts:
            writer.write(number, arrays)
    there = list(read_parts(path))
    assert [number for number, _ in there] == [number for number, _ in parts]
    for (_, arrays), (_, expected) in zip(there, parts, strict=True):
        assert list(arrays) == list(expected)
        for name, array in expected.items():
            assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
            assert arrays[name].tobytes() == array.tobytes()


def test_parts_have_the_same_columns(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="other columns"), PartWriter(tmp_path / "parts") as writer:  # noqa: PT012
        writer.write(0, {"a": np.zeros(2)})
        writer.write(1, {"a": np.zeros(2, np.float32)})
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_such_a_file(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "parts"
    tables = [
        {"a": [[1.0]]},
        {"part": [1], "a": ["text"]},
        {"part": [1], "a": [["text"]]},
        {"part": [1], "a": [None]},
        {"part": [1], "a": [[None]]},
        {"part": [1], "a/0": [[1]]},
        {"part": [1], "a/x": [[1]]},
        {"part": [1], "a/-2": [[1, 2, 3]]},
        {"part": [2, 1], "a": [[1], [2]]},
    ]
    for table in tables:
        pq.write_table(pa.table(table), path)
        with pytest.raises(InputError, match="cannot be read as the parts of a shard"):
            list(read_parts(path))
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="cannot be read as the parts of a shard"):
        list(read_parts(path))
