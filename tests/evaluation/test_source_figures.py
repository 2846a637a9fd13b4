"""What other programs print, from sums: by hand, and whatever the batches."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.source_figures import SourceFigures
from lmgauge.scores import example_batch
from lmgauge.text.documents import Corpus

GUIDE = ContextPolicy(length=4, stride=2, first="unscored", end="none", protocol="hf-guide")


def of_rows(policy: ContextPolicy, *parts: list[float]) -> dict[str, float]:
    figures = SourceFigures(policy)
    for part in parts:
        figures.add(replace(example_batch(), logprob=np.array(part)))
    rows = [value for part in parts for value in part]
    return figures.finish(sum(rows), len(rows))


def test_the_guide_takes_a_token_off_every_window_but_the_first() -> None:
    """Windows of 5 tokens, 2 apart: positions 1 to 4, 5 and 6, 7 and 8, then 9 alone, whose window counts for nothing."""
    rows = [-1.0, -2.0, -3.0, -2.0, -4.0, -6.0, -1.0, -1.0, -50.0]
    mean = (2.0 * 4 + 5.0 * 1 + 1.0 * 1 + 50.0 * 0) / (4 + 1 + 1 + 0)
    assert of_rows(GUIDE, rows) == {"ppl": pytest.approx(math.exp(mean))}


@given(st.lists(st.floats(-9, 0), min_size=1, max_size=30), st.integers(0, 30))
def test_batches_change_nothing(rows: list[float], cut: int) -> None:
    assert of_rows(GUIDE, rows[:cut], rows[cut:]) == {"ppl": pytest.approx(of_rows(GUIDE, rows)["ppl"])}


def test_an_impossible_token_makes_figures_infinite() -> None:
    assert of_rows(GUIDE, [-1.0, -math.inf, -1.0]) == {"ppl": math.inf}
    assert of_rows(ContextPolicy(protocol="gptq"), [-math.inf]) == {"ppl": math.inf}


def test_the_harness_counts_empty_words() -> None:
    figures = SourceFigures(ContextPolicy(protocol="harness"))
    for block in Corpus.from_strings([" a b\n", ""]):  # "", a, b, "" and ""
        figures.add_text(block)
    assert figures.finish(-10.0, 4) == {
        "word_perplexity": pytest.approx(math.exp(10 / 5)),
        "byte_perplexity": pytest.approx(math.exp(10 / 5)),
        "bits_per_byte": pytest.approx(10 / 5 / math.log(2)),
    }
    assert SourceFigures(ContextPolicy(protocol="harness")).finish(-10.0, 4) == {}  # no text is at hand


def test_without_a_protocol_there_are_none() -> None:
    assert of_rows(ContextPolicy(), [-1.0]) == {}
