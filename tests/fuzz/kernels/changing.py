"""What is changed of a call: sizes, numbers, types, addresses, and which array is which."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.kernels.recording import copied

Path = tuple[int, ...]
"""Where a value stands in the arguments: of which argument, of which part of it ..."""
INTEGERS = [0, 1, 2, 3, 4, 5, 7, 8, 16, 63, 64, 65, 127, 128, 250, 255, 256, 257, 1000, 65536, 1 << 20]
INTEGERS += [sign * (1 << bits) + near for bits in (31, 32, 40, 62, 63, 64) for near in (-1, 0, 1) for sign in (1, -1)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 8.0, 1e-320, 1e30, -1e30, 1e300, float("inf"), float("-inf"), float("nan")]
DTYPES = [np.uint8, np.int8, np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64]


def changed(arguments: tuple[Any, ...], chance: random.Random, others: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return arguments with up to three changes, made in copies.

    Args:
        arguments: what a real call had.
        chance: what is drawn from.
        others: other real calls of the same function, whose parts may be taken.
    """
    value: Any = copied(arguments)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return tuple(value)
        place = chance.choice(places)
        value = _with(value, place, _another(_at(value, place), chance, value, places, others, place))
    return tuple(value)


def _places(value: Any, above: Path = ()) -> Iterator[Path]:
    if isinstance(value, tuple | list):
        for i, part in enumerate(value):
            yield from _places(part, (*above, i))
        if isinstance(value, list):
            yield above
    elif not callable(value):
        yield above


def _at(value: Any, place: Path) -> Any:
    for i in place:
        value = value[i]
    return value


def _with(value: Any, place: Path, part: Any) -> Any:
    if not place:
        return part
    parts = list(value)
    parts[place[0]] = _with(parts[place[0]], place[1:], part)
    return type(value)(parts)


def _another(
    part: Any, chance: random.Random, value: Any, places: list[Path], others: list[tuple[Any, ...]], place: Path
) -> Any:
    if isinstance(part, np.ndarray):
        if chance.random() < 0.12:
            alike = [_at(value, other) for other in places]
            return chance.choice([one for one in alike if isinstance(one, np.ndarray) and one.dtype == part.dtype])
        if chance.random() < 0.1:
            try:
                taken = _at(copied(chance.choice(others)), place)
            except (IndexError, TypeError):
                return part
            return taken if isinstance(taken, np.ndarray) else part
        return _another_array(part, chance)
    if isinstance(part, bool):
        return not part
    if isinstance(part, int):
        return chance.choice(
            [part - 1, part + 1, 2 * part, part // 2, -part, chance.choice(INTEGERS), chance.choice(_sizes(value))]
        )
    if isinstance(part, float):
        return chance.choice(FLOATS)
    if isinstance(part, list):
        return _another_list(part, chance)
    return part


def _sizes(value: Any) -> list[int]:
    """Return the sizes of all arrays: a number that is one of them is as likely right as wrong."""
    if isinstance(value, np.ndarray):
        return [*value.shape, value.size]
    return [size for part in value for size in _sizes(part)] or [0] if isinstance(value, tuple | list) else []


def _another_list(parts: list[Any], chance: random.Random) -> list[Any]:
    if not parts:
        return []
    i = chance.randrange(len(parts))
    return chance.choice(
        [parts[:i], parts[:i] + parts[i + 1 :], [*parts, parts[i]], list(reversed(parts)), [parts[i]] * len(parts), []]
    )


def _another_array(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    how = chance.choice(_ARRAYS)
    return how(array, chance)


def _values(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    """A few elements take other values: limits of the type, sizes, neighbors."""
    if array.size == 0:
        return array
    flat = np.array(array).reshape(-1)
    for _ in range(chance.choice((1, 1, 2, 5, flat.size // 2 + 1))):
        flat[chance.randrange(flat.size)] = _number(flat, chance)
    return flat.reshape(array.shape)


def _number(flat: NDArray[Any], chance: random.Random) -> Any:
    kind = flat.dtype
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(chance.choice(FLOATS), np.float64).astype(kind)
    limits = np.iinfo(kind)
    near = int(flat[chance.randrange(flat.size)])
    number = chance.choice([near, near + 1, near - 1, flat.size, flat.size - 1, int(limits.max), int(limits.min)])
    if chance.random() < 0.4:
        number = chance.choice([*INTEGERS, chance.getrandbits(64), near ^ (1 << chance.randrange(limits.bits))])
    wrapped = number % (1 << limits.bits)
    return np.array(wrapped - (1 << limits.bits) if wrapped > limits.max else wrapped).astype(kind)


def _filled(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    """All elements are one number."""
    return np.full_like(array, _number(array.reshape(-1), chance)) if array.size else array


def _noise(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    return np.frombuffer(chance.randbytes(array.nbytes), array.dtype).reshape(array.shape).copy()


def _small(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    """Small random numbers: often within bounds, one by one, and never belonging together."""
    most = max(1, min(chance.choice((2, 4, array.size + 1)), 127))
    numbers = [chance.randrange(most) for _ in range(min(array.size, 4096))]
    return np.resize(np.array(numbers or [0], np.int64), array.shape).astype(array.dtype)


def _resized(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    rows = len(array) if array.ndim else 0
    size = chance.choice([0, 1, max(0, rows - 1), rows + 1, rows // 2, 2 * rows + 1, chance.randrange(rows + 2)])
    return np.resize(array, (size, *array.shape[1:])) if array.size else np.zeros((size, *array.shape[1:]), array.dtype)


def _reordered(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    if chance.random() < 0.5:
        return np.ascontiguousarray(np.flip(array))
    return np.roll(array, chance.randrange(1, 9))


def _moved(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    """The same numbers at an address that is not a multiple of their size, or not of 16."""
    step = chance.choice((1, 2, 4, 8))
    memory = np.zeros(array.nbytes + 32, np.uint8)
    shifted = memory[step : step + array.nbytes]
    shifted[:] = np.frombuffer(array.tobytes(), np.uint8)
    return shifted.view(array.dtype).reshape(array.shape)


def _typed(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return array.astype(chance.choice(DTYPES))


def _shaped(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    return chance.choice([array.reshape(1, -1), array[::2], array[::-1], array.reshape(-1)])


_ARRAYS: list[Callable[[NDArray[Any], random.Random], NDArray[Any]]] = [
    *(_values,) * 6,
    *(_resized,) * 3,
    *(_noise,) * 2,
    *(_small,) * 2,
    *(_filled, _reordered, _moved, _typed, _shaped),
]
