"""Divergence by slices adds up to the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.evaluation.divergence.test_figures import pair_rows

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.divergence.divergence import KlSlices

LINES = ["the cat 12 sat", "a dog , ran", "the 3 dogs", "", "cat"] * 4


def test_slices_add_up_to_the_mean() -> None:
    groups = [f"g{i % 3}" for i in range(len(LINES))]
    text = Corpus.from_strings(LINES, groups=groups)
    base, other = (lmgauge.train("witten-bell", text, order=order) for order in (3, 1))
    found = lmgauge.divergence(base, other, text, events=None, train=Corpus.from_strings(LINES[:3]))
    names = [slices.name for slices in found.slices]
    assert {"group", "class", "occurrences in training", "position in the segment (events)"} <= set(names)
    for slices in found.slices:
        assert sum(row.ranges for row in slices.rows) == found.events
        assert sum(row.bits[0] for row in slices.rows) / found.events == pytest.approx(found.kl_ab_bits.value, rel=1e-9)
    tokens = found.costly_tokens
    assert [token.bits for token in tokens] == sorted((token.bits for token in tokens), reverse=True)
    by_group = next(slices for slices in found.slices if slices.name == "group")
    for row in by_group.rows:
        own = [line for line, group in zip(LINES, groups, strict=True) if group == row.label]
        alone = lmgauge.divergence(base, other, Corpus.from_strings(own), events=None)
        assert row.bits_per_unit[0] == pytest.approx(alone.kl_ab_bits.value, rel=1e-9)
        assert row.interval is not None


def test_a_sample_has_the_slices_of_its_segments() -> None:
    """Drawn segments keep their groups and what the training text has of their words."""
    lines = [f"w{i % 7} x y" for i in range(60)]
    text = Corpus.from_strings(lines, groups=[f"g{i % 2}" for i in range(60)])
    base, other = (lmgauge.train("witten-bell", text, order=order) for order in (2, 1))
    train = Corpus.from_strings(["w0 w0 w1 x"])
    found = lmgauge.divergence(base, other, text, events=80, train=train)
    assert found.events < found.total_events
    by_count = next(slices for slices in found.slices if slices.name == "occurrences in training")
    counts = {row.label: row.ranges for row in by_count.rows}
    assert counts["no word"] == found.segments  # line ends
    first_words = counts["once"] - found.segments, counts["2 to 9"], counts["never"] - found.segments  # besides x and y
    assert sum(first_words) == found.segments
    assert min(first_words) > 0


def test_undefined_events_are_left_out_and_infinite_ones_counted() -> None:
    slices = KlSlices(Corpus.from_strings(["a"]))
    for rows in pair_rows([[math.nan, 1.0], [math.inf]]):
        slices.add(rows)
    (row,) = next(part for part in slices.finish() if part.name == "kind of event").rows
    assert (row.ranges, row.zeros, row.finite_bits[0]) == (2, (1,), pytest.approx(1 / math.log(2)))
    (token,) = slices.costly(3)
    assert (token.events, token.zeros) == (2, 1)
    assert np.isfinite(token.bits)
