"""Random small stage graphs, for the law that every engine makes the same arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lmgauge.work.stage import Array, Engine, Read, Stage

Plan = list[tuple[int, int, bool]]
"""For each stage: its tasks, the arrays that each task makes, and whether the arrays of the stage before are dropped."""

PLANS: st.SearchStrategy[Plan] = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=4
)
DTYPES = (np.uint32, np.float32, np.uint8, np.int64)


def mix(read: Read, number: int, settings: tuple[int, list[str], int]) -> Iterator[Array]:
    """Make arrays of several types and shapes, empty ones too, which depend on all that the task reads."""
    stage, needs, makes = settings
    total = sum(int(array.sum(dtype=np.int64)) + array.size for array in map(read, needs)) % 251
    for index in range(makes):
        rows = (total + stage + number + index) % 4
        yield (np.arange(rows * (1 + index), dtype=np.int64) * 7 + total).astype(DTYPES[index % 4]).reshape(rows, 1 + index)


def stages_of(plan: Plan) -> list[Stage]:
    """The stages of a plan: each task reads all arrays of the stage before, and those the program wrote."""
    stages, before = [], ["start"]
    for index, (tasks, makes, drops) in enumerate(plan):
        stages.append(one_stage(index, tasks, makes, before, drops))
        before = ["start", *(name for number in range(tasks) for name in stages[-1].makes(number))]
    return stages


def one_stage(index: int, tasks: int, makes: int, needs: list[str], drops: bool) -> Stage:
    return Stage(
        f"Stage {index}",
        tasks,
        mix,
        (index, needs, makes),
        needs=lambda number: needs,
        makes=lambda number: [f"S{index}/{number}/{k}" for k in range(makes)],
        drops=[f"S{index - 1}"] if drops else (),
    )


def arrays_after(engine: Engine, plan: Plan) -> dict[str, Any]:
    """What is there when an engine has run a plan: name -> type and rows, or None where it was dropped."""
    stages = stages_of(plan)
    engine.write("start", np.array([3, 1, 4], dtype=np.uint16))
    for stage in stages:
        engine.run(stage)
    names = ["start", *(name for stage in stages for number in range(stage.tasks) for name in stage.makes(number))]
    return {name: described(engine, name) for name in names}


def described(engine: Engine, name: str) -> tuple[str, list[Any]] | None:
    try:
        array = engine.read(name)
    except KeyError:
        return None
    return str(array.dtype), array.tolist()
