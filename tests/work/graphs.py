"""Random small stage graphs, for the law that every engine makes the same arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lmgauge.base.errors import InputError
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

Plan = list[tuple[int, int, bool]]
"""For each stage: its tasks, the arrays that each task makes, and whether the arrays of the stage before are dropped."""

PLANS: st.SearchStrategy[Plan] = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=4
)
DTYPES = (np.uint32, np.float32, np.uint8, np.int64)


def mix(taken: tuple[int, int, list[Stored], int], read: Read) -> Iterator[Array]:
    """Make arrays of several types and shapes, empty ones too, which depend on all that the task reads."""
    stage, number, needs, makes = taken
    total = sum(int(array.sum(dtype=np.int64)) + array.size for array in map(read, needs)) % 251
    for index in range(makes):
        rows = (total + stage + number + index) % 4
        yield (np.arange(rows * (1 + index), dtype=np.int64) * 7 + total).astype(DTYPES[index % 4]).reshape(rows, 1 + index)


def arrays_after(engine: Engine, plan: Plan) -> dict[str, Any]:
    """What is there when an engine has run a plan: name -> type and rows, or None where it was dropped."""
    start = engine.write("start", np.array([3, 1, 4], dtype=np.uint16))
    before, every = list[list[Stored]](), [start]
    for index, (tasks, makes, drops) in enumerate(plan):
        needs = [start, *(stored for own in before for stored in own)]
        made = run_one(engine, index, tasks, makes, needs)
        if drops:
            engine.drop(before)
        before = made
        every += [stored for own in made for stored in own]
    return {stored.name: described(engine, stored) for stored in every}


def run_one(engine: Engine, index: int, tasks: int, makes: int, needs: list[Stored]) -> list[list[Stored]]:
    return engine.run(f"stage-{index}", mix, [(index, number, needs, makes) for number in range(tasks)], [NEW] * makes)


def described(engine: Engine, stored: Stored) -> tuple[str, list[Any]] | None:
    try:
        array = engine.read(stored)
    except (KeyError, InputError):
        return None
    return str(array.dtype), array.tolist()
