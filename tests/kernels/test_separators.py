"""Hostile arrays do not lead the kernels of separators out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lmgauge._kernels import _native

CONTEXTS = 4 * 64 * 64 * 2 * 8


def arguments(**changed: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return two segments, "a b" and "c", each with its end, and the rules; some of it changed."""
    parts = {
        "data": np.frombuffer(b"a bc", np.uint8),
        "starts": np.array([0, 3]),
        "given": np.zeros(0, np.int64),
        "crossing": np.zeros(0, np.uint8),
        "events": np.array([3, 2]),
        "ends": np.array([1, 3, 3, 1, 1]),
        "kind": np.array([0, 1, 2, 0, 2], np.uint8),
        "texts": np.frombuffer(b" ", np.uint8),
        "offsets": np.array([0, 0, 1]),
        "classes": np.ones(65537, np.int64),
    } | changed
    names = ("data", "starts", "given", "crossing", "events", "ends", "kind")
    return tuple(parts[name] for name in names), (True, *(parts[name] for name in ("texts", "offsets", "classes")))


def find(**changed: Any) -> tuple[Any, ...]:
    rows, rules = arguments(**changed)
    context, which = np.zeros(len(rows[5]), np.int32), np.zeros(len(rows[5]), np.int32)
    return context, which, *_native.find_separators(rows, rules, context, which)


def test_separators_are_found() -> None:
    _, which, unknown, unseen = find()
    assert which.tolist() == [0, 1, 0, 0, 0]
    assert unknown.tolist() == []
    assert unseen.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    "changed",
    [
        {"starts": np.array([0, 99])},
        {"starts": np.array([-1, 3])},
        {"starts": np.array([0])},
        {"given": np.array([1, 0])},
        {"given": np.array([0])},
        {"crossing": np.zeros(1, np.uint8)},
        {"events": np.array([3, 3])},
        {"events": np.array([-1, 6])},
        {"events": np.array([2, 2])},
        {"events": np.array([1 << 62, 1 << 62])},
        {"ends": np.array([3, 1, 3, 1, 1])},
        {"ends": np.array([1, 3, 3, 2, 2])},
        {"ends": np.array([1, 3, 1 << 62, 1, 1])},
        {"ends": np.array([-1, 3, 3, 1, 1])},
        {"kind": np.zeros(4, np.uint8)},
        {"offsets": np.array([0, 2])},
        {"offsets": np.array([0, 1, 0, 1])},
        {"offsets": np.zeros(0, np.int64)},
        {"classes": np.full(65537, 64)},
        {"classes": np.full(65537, -1)},
        {"classes": np.zeros(255, np.int64)},
    ],
)
def test_hostile_arrays_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        find(**changed)
    rows, rules = arguments(**changed)
    n = len(rows[5])
    with pytest.raises(ValueError, match=r"\w"):
        _native.score_separators(rows, rules, np.zeros(CONTEXTS, np.int32), np.zeros(3), np.zeros(n))


@pytest.mark.parametrize(
    ("row_of_context", "table", "rows"),
    [
        (np.zeros(CONTEXTS - 1, np.int32), np.zeros(3), 5),
        (np.ones(CONTEXTS, np.int32), np.zeros(3), 5),
        (np.full(CONTEXTS, -1, np.int32), np.zeros(3), 5),
        (np.zeros(CONTEXTS, np.int32), np.zeros(4), 5),
        (np.zeros(CONTEXTS, np.int32), np.zeros(0), 5),
        (np.zeros(CONTEXTS, np.int32), np.zeros(3), 4),
    ],
)
def test_hostile_tables_are_refused(row_of_context: Any, table: Any, rows: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        _native.score_separators(*arguments(), row_of_context, table, np.zeros(rows))
