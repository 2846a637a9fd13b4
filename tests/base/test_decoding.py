"""The one decoder of JSON that lmgauge wrote: what is wrong is refused with its place."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from lmgauge.base.decoding import Perplexity, Whole, decode
from lmgauge.base.errors import InputError, ModelFileError


@dataclass(frozen=True)
class Inner:
    count: Whole
    figures: dict[str, Perplexity | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.count == 13:
            raise ValueError("thirteen is unlucky")


@dataclass(frozen=True)
class Outer:
    name: str
    parts: tuple[Inner, ...]


def read(value: object) -> Outer:
    return decode(value if isinstance(value, bytes) else json.dumps(value).encode(), Outer, "x.json", "a part", "try again")


def test_what_fits_becomes_an_object() -> None:
    figures = {"a": "inf", "b": 2, "c": None}
    outer = read({"name": "\ud800", "parts": [{"count": 3, "figures": figures}], "more": 1})
    assert outer == Outer("\ud800", (Inner(3, {"a": math.inf, "b": 2.0, "c": None}),))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "Expected `object`, got `array`"),
        ({"name": "a"}, "missing required field `parts`"),
        ({"name": 1, "parts": []}, r"Expected `str`, got `int` - at `\$\.name`"),
        *(
            ({"name": "a", "parts": [{"count": 1}, {"count": count}]}, words + r" - at `\$\.parts\[1\]")
            for count, words in [
                *((-1, ">= 0"), (1 << 63, "<= 9223372036854775807"), (True, "got `bool`"), (2.0, "got `float`")),
                *(("2", "got `str`"), (None, "got `null`"), (13, "thirteen is unlucky")),
            ]
        ),
        *(
            ({"name": "a", "parts": [{"count": 1, "figures": {"a": figure}}]}, "a number from 0 on")
            for figure in (-1, True, "nan", "-inf", "2", [])
        ),
        (b'{"name": "a", "parts": [], "name": "b"}', "the key 'name' occurs twice"),
        (b'{"name": "a", "parts": [1e999]}', "1e999 is out of range"),
        (b'{"name": "a", "parts": [NaN]}', "NaN is not JSON"),
        (b"[" * 100_000, "too deep"),
        (b"\xff\xfe\x00", "decode"),
        (b"", "Expecting value"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as refusal:
        read(value)
    assert str(refusal.value).startswith("x.json: is not a part as lmgauge writes it: ")
    assert str(refusal.value).endswith("; try again")


def test_a_model_is_refused_as_one() -> None:
    with pytest.raises(ModelFileError, match=r"^m: is not a list .* - at `\$\[0\]`; copy it again$"):
        decode([1], list[str], "m", "a list", "copy it again", ModelFileError)
