"""Names of the arrays of a training in partitions."""

from __future__ import annotations

from lmgauge.models.ngram.partitioned.shape import Shape


def test_names_run_over_what_the_pattern_has() -> None:
    shape = Shape(4, 2, 3, 10, True)
    assert shape.names("ids/{c}") == ["ids/0", "ids/1", "ids/2"]
    assert shape.names("requests/{k}/{p}/{c}", k=shape.inner, c=[1]) == [
        *("requests/2/0/1", "requests/2/1/1", "requests/3/0/1", "requests/3/1/1"),
    ]


def test_only_linked_orders_are_asked() -> None:
    assert list(Shape(4, 1, 1, 10, True).inner) == [2, 3]
    assert list(Shape(4, 1, 1, 10, False).inner) == []
    assert list(Shape(2, 1, 1, 10, True).inner) == []
    assert list(Shape(1, 1, 1, 10, True).orders) == []
