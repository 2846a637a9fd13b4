"""Counts in fixed bins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.results import BinCounts, PerplexityHistogram, bin_counts


def histogram_of(*values: float) -> PerplexityHistogram:
    return PerplexityHistogram(("m",), {None: bin_counts(Groups.none(len(values)), np.array(values)[:, None])[0]})


def test_bins_are_eighths_of_octaves() -> None:
    counts = histogram_of(0.0, 1.0, 1.09, 1.0905077326652577, 2.0, 1e300, math.inf, math.nan).counts("m")
    assert {int(k): int(counts[k]) for k in np.flatnonzero(counts)} == {0: 3, 1: 1, 8: 1, 511: 1, 512: 1, 513: 1}


def test_wide_histograms_are_drawn_in_few_bins() -> None:
    bins = histogram_of(*(2.0**k for k in range(64)), 1e300).bins("m")
    assert (len(bins.counts), sum(bins.counts), bins.edges[0], bins.edges[-1]) == (32, 65, 1.0, 2.0**64)
    narrow = histogram_of(100.0, 110.0).bins("m")
    assert [round(edge, 1) for edge in narrow.edges] == [98.7, 107.6, 117.4]
    assert histogram_of(math.nan).bins("m").counts == (0,)


def test_several_histograms_can_share_their_bins() -> None:
    whole, part = histogram_of(*(float(k) for k in range(1, 5000))), histogram_of(100.0)
    assert part.bins("m", extent=whole.extent("m")).edges == whole.bins("m").edges


@pytest.mark.parametrize(
    "record",
    [
        *({}, 1, [3], [[[1]]]),
        [[[514, 1]]],
        [[[1, -1]]],
        [[[1, 2**70]]],
        [[["1", 1]]],
    ],
    ids=str,
)
def test_damaged_records_are_refused(record: object) -> None:
    with pytest.raises(InputError, match="is not a histogram"):
        decode(record, BinCounts, "x", "a histogram", "again")


def test_counts_come_back_from_plain_values() -> None:
    counts = BinCounts(histogram_of(3.0, 3.0, math.inf).of_groups[None])
    assert counts.pairs() == [[[12, 2], [512, 1]]]
    assert np.array_equal(decode(counts.pairs(), BinCounts, "x", "a histogram", "again").counts, counts.counts)


def test_a_median_is_in_its_bin() -> None:
    values = np.exp(np.random.default_rng(3).uniform(0, 12, 501))
    histogram = histogram_of(*values.tolist())
    ends = histogram.median("m")
    assert ends is not None
    assert ends[0] <= np.median(values) < ends[1]


def test_a_median_of_infinite_perplexities_is_infinite() -> None:
    assert histogram_of().median("m") is None
    assert histogram_of(2.0, math.inf, math.inf, math.nan).median("m") == (np.inf, np.inf)
