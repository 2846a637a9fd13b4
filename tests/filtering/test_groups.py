"""Groups of documents by a field of theirs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lmgauge.filtering.documents import MOST_GROUPS, OTHERS, Groups, label_of, labels_of


def names(groups: Groups) -> list[str | None]:
    return [groups.names[code] if code >= 0 else None for code in groups.codes]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["en", None, "en"], ["en", None, "en"]),
        ([True, 7, 1.5, [1], {"a": 1}, "x" * 201], [None, "7", None, None, None, None]),
        (["\ud800x"], ["?x"]),
        (pa.array(["a", "b", None]), ["a", "b", None]),
        (pa.array(["a", "x" * 201], pa.large_string()), ["a", None]),
        (pa.chunked_array([["a"], ["b", "a"]]), ["a", "b", "a"]),
        (pa.chunked_array([], pa.string()), []),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([1, None]), ["1", None]),
        (pa.array([[1], None]), [None, None]),
        ([], []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_name_groups(values: object, expected: list[str | None]) -> None:
    labels = list(map(label_of, values)) if isinstance(values, list) else labels_of(values)  # type: ignore[arg-type]
    groups = Groups.of(labels)
    assert names(groups) == expected
    assert groups.codes.dtype == np.int64


def test_some_of_the_documents() -> None:
    assert names(Groups.of(["a", "b", None]).where(np.array([False, True, True]))) == ["b", None]
    assert (len(Groups.none(3)), names(Groups.none(2))) == (3, [None, None])


def test_groups_beyond_a_thousand_are_one() -> None:
    values = [*(f"g{number % 1500}" for number in range(4000)), None]
    own = Groups.of(values).limited()
    assert len(own.names) == MOST_GROUPS + 1
    expected = [name if name is None or int(name[1:]) < MOST_GROUPS else OTHERS for name in values]
    assert names(own) == expected
    few = Groups.of(["a", None])
    assert few.limited() is few
