"""What came of parts comes back from a file with the same types and the same bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.work.parts import read_parts, writing_parts

TYPES = ["bool", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64", ">i2"]
SHAPES = st.one_of(st.tuples(st.integers(0, 9)), st.tuples(st.integers(0, 5), st.integers(0, 3)))
ARRAYS = st.sampled_from(TYPES).flatmap(lambda kind: hnp.arrays(kind, SHAPES))


@dataclass
class Found:
    rows: NDArray[np.int64]
    more: dict[str, NDArray[Any]] = field(default_factory=dict)
    words: list[bytes] = field(default_factory=list)
    inner: Found | None = None


@given(
    count=st.integers(0, 4),
    rows=hnp.arrays("int64", SHAPES),
    more=st.dictionaries(st.text("abä"), ARRAYS),
    words=st.lists(st.binary()),
)
def test_arrays_come_back(
    count: int,
    rows: NDArray[np.int64],
    more: dict[str, NDArray[Any]],
    words: list[bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("parts") / "parts"
    with writing_parts(path) as write:
        for _ in range(count):
            write(Found(rows, more, words, Found(rows[::2])))
    there = list(read_parts(path, Found))
    assert len(there) == count
    for found in there:
        assert found.words == words
        assert list(found.more) == list(more)
        assert found.inner is not None
        pairs = [(found.rows, rows), (found.inner.rows, rows[::2]), *((found.more[name], more[name]) for name in more)]
        for array, expected in pairs:
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
            assert array.tobytes() == expected.tobytes()


def test_what_are_no_numbers_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="object does not hold numbers"), writing_parts(tmp_path / "parts") as write:
        write(Found(np.zeros(1, np.int64), {"a": np.array(["text", None])}))
    assert list(tmp_path.iterdir()) == []


ONE = ["<i8", [1], b"12345678"]


@pytest.mark.parametrize(
    "parts",
    [
        [b"\xc1"],
        [{}],
        [{"rows": 3}],
        [{"rows": ONE[:2]}],
        [[1, {"rows": ONE}]],
        [{"rows": ONE, "words": [3]}],
        *([{"rows": [kind, [1], b"12345678"]}] for kind in ("<f8", "|O", "<M8[s]", "S8", "V8", "x", "<i8,<i8", 3)),
        *([{"rows": ["<i8", shape, b"12345678"]}] for shape in ([2], [-1], [-1, -1], [1] * 70, [2**62, 4], ["1"])),
        *([{"rows": ONE, "more": {"a": [kind, [1], b"12345678"]}}] for kind in ("|O", "<M8[s]", "S8")),
    ],
)
def test_what_is_not_such_a_file(tmp_path: Path, parts: list[Any]) -> None:
    content = b""
    for part in parts:
        message = part if isinstance(part, bytes) else msgspec.msgpack.encode(part)
        content += len(message).to_bytes(8, "little") + message
    with pa.CompressedOutputStream(str(tmp_path / "parts.zst"), "zstd") as file:
        file.write(content)
    with pytest.raises(InputError, match=r"parts\.zst: cannot be read as the parts of a shard"):
        list(read_parts(tmp_path / "parts.zst", Found))


@pytest.mark.parametrize("content", [b"zstd it is not", b"PAR1"])
def test_what_is_not_compressed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "parts").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as the parts of a shard"):
        list(read_parts(tmp_path / "parts", Found))


@pytest.mark.parametrize("size", [1, 100, 2**31, 2**63, 2**64 - 1])
def test_a_part_that_ends_early(tmp_path: Path, size: int) -> None:
    with pa.CompressedOutputStream(str(tmp_path / "parts.zst"), "zstd") as file:
        file.write(size.to_bytes(8, "little") + b"\x92")
    with pytest.raises(InputError, match="cannot be read as the parts of a shard"):
        list(read_parts(tmp_path / "parts.zst", Found))
