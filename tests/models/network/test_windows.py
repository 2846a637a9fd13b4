"""Windows: each prediction once, from as much as its window shows, whatever follows, beside the obvious way to say it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.models.network.windows import Layout, Window
from lmgauge.scores.context_policy import PROTOCOLS, ContextPolicy

spans = st.tuples(st.integers(1, 60), st.integers(0, 80)).map(lambda pair: (pair[0], pair[0] + pair[1]))
sizes = st.integers(1, 20).flatmap(lambda context: st.tuples(st.just(context), st.integers(1, context)))


def windows(first: int, last: int, context: int | None, stride: int | None) -> Iterator[Window]:
    return Layout(context, stride).windows(first, last)


def shown(window: Window) -> int:
    """How many tokens the model is shown."""
    return window.last - 1 - window.begin


def filled(context: int) -> Layout:
    return Layout(context, context, "filled")


def chunks(size: int, first_scored: int) -> Layout:
    return Layout(size, size, "chunks", first_scored)


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
        assert 1 <= shown(window) <= context
        assert window.last - window.first <= shown(window)  # the last so many positions shown are those that predict
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
    positions = [position for window in found for position in range(window.begin, window.begin + shown(window))]
    assert positions == list(range(span[1] - 1))
    assert all(window.last - window.first == shown(window) for window in found)


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
    begin = Layout(context, stride).begin(position)
    assert begin == slow(position, context, stride)
    assert 1 <= position - begin <= context


of_chunks = st.integers(2, 12).flatmap(lambda size: st.builds(chunks, st.just(size), st.integers(1, size - 1)))
layouts = sizes.map(lambda size: Layout(*size)) | of_chunks | st.integers(1, 12).map(filled)
lengths = st.tuples(st.integers(0, 1), st.integers(1, 60))


@given(layouts, lengths)
def test_a_layout_predicts_each_position_at_most_once_and_shows_what_is_there(layout: Layout, ends: tuple[int, int]) -> None:
    found = list(layout.windows(*ends))
    predicted = [position for window in found for position in range(window.first, window.last)]
    assert predicted == sorted(set(predicted))
    for window in found:
        assert 0 <= window.begin < window.first < window.last <= ends[1]
        assert window.last - window.first <= shown(window)


@given(layouts, lengths)
def test_layouts_that_drop_nothing_leave_out_the_first_position_at_most(layout: Layout, ends: tuple[int, int]) -> None:
    predicted = [position for window in layout.windows(*ends) for position in range(window.first, window.last)]
    if layout.kind != "chunks" or layout.stride is None:
        assert predicted == list(range(1, ends[1]))
        return
    whole = range(ends[1] // layout.stride * layout.stride)
    assert predicted == [position for position in whole if position % layout.stride >= layout.first_scored]


@given(layouts, lengths, st.integers(0, 40))
def test_where_windows_begin_depends_on_the_position_alone_but_for_the_harness(
    layout: Layout, ends: tuple[int, int], more: int
) -> None:
    first, last = ends
    short, long = seen(list(layout.windows(first, last))), seen(list(layout.windows(first, last + more)))
    if layout.kind == "filled" and layout.length is not None:
        # It is the last window that moves; asked about a position, the text ends there.
        full = {
            position: begin for position, begin in short.items() if position <= (last - 1) // layout.length * layout.length
        }
        assert long | full == long
        assert all(list(layout.windows(first, position + 1))[-1].begin == layout.begin(position) for position in short)
    else:
        assert long | short == long
        assert short == {position: layout.begin(position) for position in short}


@given(st.integers(1, 12), st.integers(2, 60))
def test_the_harness_fills_its_last_window(context: int, last: int) -> None:
    """Its own code, in its own terms: token i is position i + 1, and what is shown first is its prefix token."""
    tokens = last - 1
    expected = [(0, 1, 1 + min(context, tokens))]
    predicted = min(context, tokens)
    while predicted < tokens:
        length = min(tokens - predicted, context)
        end = predicted + length
        expected.append((end - context - 1 + 1, end - length + 1, end + 1))
        predicted += length
    assert list(filled(context).windows(1, last)) == [Window(*window) for window in expected]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (chunks(4, 1), [(0, 1, 4), (4, 5, 8)]),
        (chunks(4, 3), [(0, 3, 4), (4, 7, 8)]),
        (chunks(5, 3), [(0, 3, 5), (5, 8, 10)]),
        (chunks(12, 1), []),
        (filled(4), [(0, 1, 5), (4, 5, 9), (6, 9, 11)]),
        (filled(20), [(0, 1, 11)]),
        (Layout(4, 2), [(0, 1, 5), (2, 5, 7), (4, 7, 9), (6, 9, 11)]),
    ],
)
def test_layouts_of_eleven_tokens_by_hand(layout: Layout, expected: list[tuple[int, int, int]]) -> None:
    assert list(layout.windows(1, 11)) == [Window(*window) for window in expected]


def test_each_protocol_has_its_layout() -> None:
    for name, protocol in PROTOCOLS.items():
        layout = Layout.of(ContextPolicy(length=9, stride=10, protocol=name))
        assert layout == (9, 10, protocol.layout, protocol.first_scored(10))
    assert Layout.of(ContextPolicy(length=9, stride=4)) == Layout(9, 4)
    assert Layout.of(ContextPolicy()) == Layout(None, None)
