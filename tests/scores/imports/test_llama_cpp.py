"""Output of llama.cpp's `llama-perplexity`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scores.imports.outputs import LLAMA_CPP
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError


def means(folder: Path, content: str) -> list[float]:
    return [value for segment in parsed(folder, content) for value in segment.logprob if value is not None]


def test_chunks_give_the_final_perplexity(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, LLAMA_CPP)
    found = means(tmp_path, LLAMA_CPP)
    assert len(segments) == 8
    assert found[0] == -math.log(381.2549)
    assert math.exp(-sum(found[:2]) / 2) == pytest.approx(415.0472, abs=1e-9)
    assert f"{math.exp(-sum(found) / 8):.4f}" == "420.5258"
    assert "the mean of the 15 tokens that llama.cpp scores in a chunk of 32" in notes


@given(st.lists(st.floats(0.01, 9), min_size=1, max_size=30))
def test_chunks_are_those_that_were_averaged(tmp_path_factory: pytest.TempPathFactory, nats: list[float]) -> None:
    """To the four decimals of what is printed: n chunks of about perplexity p are known to n * 5e-5 / p."""
    running = [math.exp(sum(nats[: i + 1]) / (i + 1)) for i in range(len(nats))]
    text = "".join(f"[{i}]{value:.4f}," for i, value in enumerate(running, 1))
    found = means(tmp_path_factory.mktemp("log"), text)
    assert [-value for value in found] == pytest.approx(nats, abs=2 * len(nats) * 0.6e-4)


def test_a_file_without_the_size_of_chunks(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, LLAMA_CPP.partition("minutes\n")[2])
    assert len(segments) == 8
    assert "each is one row, their mean" in notes


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[3]427.4900,", "", "chunk 4 stands where chunk 3 should"),
        ("[3]427.4900", "[3]nan", "the perplexity after chunk 3 is nan; the model is damaged"),
        ("[3]427.4900", "[3]0.5000", "the perplexity after chunk 3 is 0.5000"),
        ("[3]427.4900", "[3]1.0000", "falls so far with chunk 3 that it would be below 1"),
        ("PPL = 420.5258", "PPL = 421.0000", "the final estimate is 421.0000, and that after its last chunk 420.5258"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in LLAMA_CPP
    with pytest.raises(InputError) as error:
        parsed(tmp_path, LLAMA_CPP.replace(old, new, 1))
    assert words in str(error.value)
