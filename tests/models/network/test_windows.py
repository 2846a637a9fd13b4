"""Windows: each prediction once, from as much as its window shows, whatever follows, beside the obvious way to say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.models.network.windows import Window, window_of, windows

spans = st.tuples(st.integers(1, 60), st.integers(0, 80)).map(lambda pair: (pair[0], pair[0] + pair[1]))
sizes = st.integers(1, 20).flatmap(lambda context: st.tuples(st.just(context), st.integers(1, context)))


def seen(found: list[Window]) -> dict[int, int]:
    """The first position that each prediction sees."""
    begins: dict[int, int] = {}
    for window in found:
        for position in range(window.first, window.last):
            assert position not in begins, "predicted twice"
            begins[position] = window.begin
    return begins


def slow(position: int, context: int, stride: int) -> int:
    """Where the first window begins that reaches a prediction: windows are tried one after another."""
    begin = 0
    while position > begin + context:
        begin += stride
    return begin


@given(spans, sizes)
def test_each_prediction_is_taken_once_from_the_first_window_that_reaches_it(
    span: tuple[int, int], size: tuple[int, int]
) -> None:
    first, last = span
    context, stride = size
    found = list(windows(first, last, context, stride))
    assert seen(found) == {position: slow(position, context, stride) for position in range(first, last)}
    assert [position for window in found for position in range(window.first, window.last)] == list(range(first, last))


@given(spans, sizes)
def test_what_is_shown_has_bounds(span: tuple[int, int], size: tuple[int, int]) -> None:
    context, stride = size
    for window in windows(*span, context, stride):
        assert 1 <= window.shown <= context
        assert window.last - window.first <= window.shown  # the last so many positions shown are those that predict
        assert window.begin % stride == 0
        # No prediction sees less than the window keeps when it moves on, but at the beginning of the text.
        assert window.first - window.begin >= min(window.first, context - stride + 1)


@given(spans, sizes, st.integers(0, 40))
def test_what_follows_changes_nothing(span: tuple[int, int], size: tuple[int, int], more: int) -> None:
    (first, last), (context, stride) = span, size
    short, long = seen(list(windows(first, last, context, stride))), seen(list(windows(first, last + more, context, stride)))
    assert long | short == long


@given(spans, sizes, st.data())
def test_a_text_in_parts_has_the_windows_of_the_whole(
    span: tuple[int, int], size: tuple[int, int], data: st.DataObject
) -> None:
    (first, last), (context, stride) = span, size
    middle = data.draw(st.integers(first, last))
    parts = [*windows(first, middle, context, stride), *windows(middle, last, context, stride)]
    assert seen(parts) == seen(list(windows(first, last, context, stride)))


@given(spans, st.integers(1, 20))
def test_windows_side_by_side_show_each_token_once(span: tuple[int, int], context: int) -> None:
    found = list(windows(1, span[1], context, context))
    shown = [position for window in found for position in range(window.begin, window.begin + window.shown)]
    assert shown == list(range(span[1] - 1))
    assert all(window.last - window.first == window.shown for window in found)


@given(spans)
def test_one_window_where_there_is_no_limit(span: tuple[int, int]) -> None:
    first, last = span
    whole = [Window(0, first, last)] if first < last else []
    assert list(windows(first, last, None, None)) == whole
    assert seen(list(windows(first, last, 1000, 1000))) == seen(whole)


@pytest.mark.parametrize(
    ("context", "stride", "expected"),
    [
        (4, 4, [(0, 1, 5), (4, 5, 9), (8, 9, 11)]),
        (4, 2, [(0, 1, 5), (2, 5, 7), (4, 7, 9), (6, 9, 11)]),
        (4, 3, [(0, 1, 5), (3, 5, 8), (6, 8, 11)]),
        (1, 1, [(n - 1, n, n + 1) for n in range(1, 11)]),
        (10, 1, [(0, 1, 11)]),
    ],
)
def test_ten_predictions_by_hand(context: int, stride: int, expected: list[tuple[int, int, int]]) -> None:
    assert list(windows(1, 11, context, stride)) == [Window(*window) for window in expected]


@given(st.integers(1, 500), sizes)
def test_the_window_of_a_position(position: int, size: tuple[int, int]) -> None:
    context, stride = size
    number = window_of(position, context, stride)
    assert number * stride == slow(position, context, stride)
    assert 1 <= position - number * stride <= context
