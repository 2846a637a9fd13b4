"""What came of the parts of some work, one behind the other in a file: objects of a dataclass, with arrays as they were."""

# Each part is its size in 8 bytes and a message of MessagePack; an array there is its type, its shape and its bytes. All of
# the file is compressed by zstd.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.files import regular, writing

T = TypeVar("T")

_LARGEST = 1 << 31  # bytes of a part


@contextmanager
def writing_parts(path: Path) -> Iterator[Callable[[object], None]]:
    """Open a file that appears when the block ends well; what is yielded writes a part."""
    import pyarrow as pa

    encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
    with writing(path) as file, pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd") as packed:

        def _write(part: object) -> None:
            message = encoder.encode(part)
            packed.write(len(message).to_bytes(8, "little"))
            packed.write(message)

        yield _write


def read_parts(path: Path, kind: type[T], known: Mapping[type, object] | None = None) -> Iterator[T]:
    """Yield what came of each part; arrays are read-only."""
    # known: what stands for the objects of a type, whatever is stored of them.
    import pyarrow as pa

    def _restored(kind: Any, stored: Any) -> Any:
        return known[kind] if known and kind in known else _array(kind, stored)

    decoder = msgspec.msgpack.Decoder(kind, dec_hook=_restored)
    try:
        with open(path, "rb", opener=regular) as file, pa.CompressedInputStream(pa.PythonFile(file), "zstd") as packed:
            while size := packed.read(8):
                yield decoder.decode(packed.read(min(int.from_bytes(size, "little"), _LARGEST)))
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path}: cannot be read as the parts of a shard: {reason[:300]}") from error


def _plain(array: object) -> tuple[str, tuple[int, ...], bytes]:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise InputError(f"{getattr(array, 'dtype', type(array).__name__)} does not hold numbers: it cannot be stored")
    return array.dtype.str, array.shape, array.tobytes()


def _array(kind: Any, stored: Any) -> Any:
    # `kind` is such as `NDArray[np.int64]`, of which the last argument's argument is the type of the numbers.
    name, shape, data = stored
    (numbers,) = get_args(get_args(kind)[1])
    dtype = np.dtype(name)
    if dtype.kind not in "biuf" or (numbers is not Any and dtype != numbers):
        raise ValueError(f"an array of {dtype} in the place of {numbers}")
    if len(data) != dtype.itemsize * int(np.prod(shape, dtype=object)):
        raise ValueError("an array has more or fewer numbers than its shape says")
    return np.ndarray(shape, dtype, data)
