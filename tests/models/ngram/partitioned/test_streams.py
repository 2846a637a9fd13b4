"""Arrays of partitions and chunks, added up, joined, answered."""

from __future__ import annotations

import numpy as np
import pytest
from tests.work.memory_engine import MemoryEngine

from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.models.ngram.partitioned.streams import add_up, answers_to, joined


def test_sums_leave_the_parts_alone() -> None:
    engine = MemoryEngine()
    engine.write("a/0", np.array([1, 2]))
    engine.write("a/1", np.array([3, 4]))
    assert add_up(engine, "a", range(2)).tolist() == [4, 6]
    assert engine.read("a/0").tolist() == [1, 2]
    assert add_up(engine, "a", range(0)).tolist() == []


@pytest.mark.parametrize("rows", [2, 4])
def test_parts_that_do_not_make_the_whole_are_refused(rows: int) -> None:
    parts = {"a": np.array([1, 2]), "b": np.array([3])}
    assert joined(parts.__getitem__, ["a", "b"], 3, np.uint32).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"values for|broadcast"):
        joined(parts.__getitem__, ["a", "b"], rows, np.uint32)


def test_answers_come_chunk_by_chunk() -> None:
    requests = {"requests/2/1/0": np.array([1, 1], np.uint32), "requests/2/1/1": np.array([0], np.uint32)}
    answers = answers_to(requests.__getitem__, 1, Shape(3, 2, 2, 10, True), 2, np.array([0.5, 0.25]))
    assert [answer.tolist() for answer in answers] == [[0.25, 0.25], [0.5]]
