"""Arrays of partitions and chunks, added up, joined, answered."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.models.ngram.links import add_up, answers_to, joined, transposed
from lmgauge.work.engine import Engine, Stored

A, B = Stored("a"), Stored("b")


def test_sums_leave_the_parts_alone() -> None:
    engine = Engine()
    parts = [engine.write("a", np.array([1, 2])), engine.write("b", np.array([3, 4]))]
    assert add_up(engine, parts).tolist() == [4, 6]
    assert engine.read(A).tolist() == [1, 2]
    assert add_up(engine, []).tolist() == []


@pytest.mark.parametrize("rows", [2, 4])
def test_parts_that_do_not_make_the_whole_are_refused(rows: int) -> None:
    parts = {A: np.array([1, 2]), B: np.array([3])}
    assert joined(parts.__getitem__, [A, B], 3, np.uint32).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"values for|broadcast"):
        joined(parts.__getitem__, [A, B], rows, np.uint32)


def test_answers_come_chunk_by_chunk() -> None:
    requests = {A: np.array([1, 1], np.uint32), B: np.array([0], np.uint32)}
    answers = answers_to(requests.__getitem__, [A, B], np.array([0.5, 0.25]))
    assert [answer.tolist() for answer in answers] == [[0.25, 0.25], [0.5]]


def test_what_chunks_have_of_partitions_is_what_partitions_have_of_chunks() -> None:
    assert transposed([(1, 2), (3, 4), (5, 6)]) == [[1, 3, 5], [2, 4, 6]]
