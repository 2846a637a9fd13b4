"""Packed passages hold the numbers that the passages do, as a script reads them."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.escaping import visible_on_page
from lmgauge.evaluation.passages import Passage, Spans, TopTokens
from lmgauge.report.page_payload import BITS_STEP, packed, shown_text


def numbers(column: str) -> list[int]:
    """Read a column as the page's script does."""
    size, data = column.split(":")
    return np.frombuffer(base64.b64decode(data), f"<u{size}").tolist()  # type: ignore[no-any-return]


def of_passage(shown: Passage) -> list[dict[str, Any]]:
    """A passage, packed."""
    return packed(shown.text, shown.spans)


def passage(text: str, ends: list[int], bits: list[float], **columns: Any) -> Passage:
    """A passage of one run."""
    count = len(ends)
    spans = Spans(
        np.array(ends, np.int64), np.array(bits), np.zeros(count, np.uint8), columns, {"class": np.arange(count) % 3}
    )
    return Passage(0, "here", "", (), text, (sum(bits),), (count,), count, (spans,))


def test_ends_are_in_units_of_scripts() -> None:
    """A script counts "𝄞" as two and "é" as one; an end within a character is where the character begins."""
    text = "é𝄞a"  # 2 + 4 + 1 bytes
    (run,) = of_passage(passage(text, [2, 4, 6, 7, 7], [1.0] * 5))
    assert np.cumsum(numbers(run["ends"])).tolist() == [1, 1, 3, 4, 4]


@given(st.text(max_size=30))
def test_every_text_is_tiled(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    size = len(text.encode())
    (run,) = of_passage(passage(text, [*range(1, size + 1), size], [0.5] * (size + 1)))
    shown = shown_text(text)
    assert sum(numbers(run["ends"])) == len(shown.encode("utf-16-le")) // 2


def test_bits_are_steps_and_may_be_infinite() -> None:
    (run,) = of_passage(
        passage("abc", [1, 2, 3], [0.0, 7.26, np.inf], entropy=np.array([1.0, 2.0, 3.0]), rank=np.array([1, 70000, 3]))
    )
    assert numbers(run["bits"]) == [0, 145, 65535]
    assert abs(numbers(run["bits"])[1] * BITS_STEP - 7.26) <= BITS_STEP / 2
    assert numbers(run["columns"]["entropy"]) == [20, 40, 60]
    assert numbers(run["columns"]["rank"]) == [1, 70000, 3]
    assert run["columns"]["rank"].startswith("4:")
    assert run["cuts"]["class"].startswith("1:")


def test_divergences_are_fine_steps() -> None:
    (run,) = of_passage(passage("ab", [1, 2, 2], [1.0, 1.0, 1.0], kl=np.array([0.0123, np.inf, np.nan])))
    assert numbers(run["columns"]["kl"]) == [12, 65535, 65535]


def test_most_probable_tokens_are_numbers_into_a_list() -> None:
    tokens = np.array([["the", "<b>"], ["\x1b[31m", "the"]], object)
    tops = TopTokens(tokens, np.log([[0.5, 0.25], [1.0, 1e-300]]))
    plain = passage("ab", [1, 2], [1.0, 1.0])
    (run,) = of_passage(replace(plain, spans=(replace(plain.spans[0], tops=tops),)))
    assert "tops" not in of_passage(plain)[0]
    packed_tops = run["tops"]
    assert packed_tops["each"] == 2
    assert [packed_tops["words"][i] for i in numbers(packed_tops["ids"])] == [
        "the",
        "<b>",
        visible_on_page("\x1b[31m"),
        "the",
    ]
    assert numbers(packed_tops["bits"]) == [1000, 2000, 0, round(40_000 / np.log(2))]


@pytest.mark.parametrize("text", ["\x00\x1b[31m\r", "a\u202eb\u2066", "\u2028\u2029", "\ud800 lone"])
def test_what_could_steer_a_page_is_a_sign(text: str) -> None:
    shown = shown_text(text)
    assert len(shown) == len(text)
    assert shown.isprintable()


def test_none_is_the_largest_number_of_a_column() -> None:
    (run,) = of_passage(passage("ab", [1, 2], [1.0, 1.0], occurrences=np.array([-1, 254]), context=np.array([-1, 255])))
    assert numbers(run["columns"]["occurrences"]) == [255, 254]
    assert numbers(run["columns"]["context"]) == [65535, 255]


def test_letters_and_white_space_are_steps_as_bits_are() -> None:
    parts = {"spelling": np.array([0.0, 30.01]), "separator": np.array([0.0, 0.1])}
    (run,) = of_passage(passage("ab", [1, 2], [1.0, 40.0], **parts))
    assert numbers(run["columns"]["spelling"]) == [0, 600]
    assert numbers(run["columns"]["separator"]) == [0, 2]
