"""One object for every signature: it prints, reads back, and says where two differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmgauge.numerics.signature import Signature

TEXTS = st.text(max_size=8)


@given(st.dictionaries(TEXTS, TEXTS, min_size=1), st.text("abc", max_size=3))
def test_what_is_printed_reads_back(parts: dict[str, str], head: str) -> None:
    signature = Signature(parts, head)
    assert Signature.parse(str(signature)) == signature


def test_plain_parts_print_as_they_are_and_in_order() -> None:
    assert str(Signature({"b": "x,1/2", "a": "k@77ab10"}, head="ppl")) == "ppl|b:x,1/2|a:k@77ab10"


def test_a_value_with_separators_cannot_pass_for_several_parts() -> None:
    line = str(Signature({"model": "m|eos:no", "eos": "yes"}))
    assert line == "model:m%7Ceos%3Ano|eos:yes"
    assert Signature.parse(line).parts["eos"] == "yes"


def test_differences_name_the_parts_that_differ() -> None:
    one, other = Signature({"n": "1", "eos": "yes", "oov": "unk"}), Signature({"n": "2", "oov": "unk", "v": "0.3"})
    assert one.differences(other) == {"n": ("1", "2"), "eos": ("yes", None), "v": (None, "0.3")}
    assert one.differences(one) == {}
