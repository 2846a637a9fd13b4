"""Counts in fixed bins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmgauge.decoding import decode
from lmgauge.errors import InputError
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.results import PerplexityHistogram


def histogram_of(*values: float) -> PerplexityHistogram:
    histogram = PerplexityHistogram(["m"])
    histogram.add(Groups.none(len(values)), np.array(values)[:, None])
    return histogram


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
        *({}, {"models": 1, "groups": []}, {"models": ["m"], "groups": [3]}),
        {"models": ["m"], "groups": [[None, [[[514, 1]]]]]},
        {"models": ["m"], "groups": [[None, [[[1, -1]]]]]},
        {"models": ["m"], "groups": [[None, [[[1, 2**70]]]]]},
        {"models": ["m"], "groups": [[None, [[["1", 1]]]]]},
    ],
    ids=str,
)
def test_damaged_records_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(InputError, match="is not a histogram"):
        decode(record, PerplexityHistogram, "x", "a histogram", "again")


def test_a_median_is_in_its_bin() -> None:
    values = np.exp(np.random.default_rng(3).uniform(0, 12, 501))
    histogram = PerplexityHistogram(["m"])
    histogram.add(Groups.none(501), values[:, None])
    ends = histogram.median("m")
    assert ends is not None
    assert ends[0] <= np.median(values) < ends[1]


def test_a_median_of_infinite_perplexities_is_infinite() -> None:
    histogram = PerplexityHistogram(["m"])
    assert histogram.median("m") is None
    histogram.add(Groups.none(4), np.array([[2.0], [np.inf], [np.inf], [np.nan]]))
    assert histogram.median("m") == (np.inf, np.inf)
