"""Mutual information: figures by hand, a slow twin, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics.information import (
    mutual_information,
    mutual_information_by_distance,
    mutual_information_of_pairs,
    pointwise_mutual_information,
)

INF = math.inf


def slow_information(pairs: Sequence[tuple[Any, Any]]) -> float:
    """The slow twin: mutual information of pairs in nats, straight from the definition."""
    joint = Counter(pairs)
    left = Counter(x for x, _ in pairs)
    right = Counter(y for _, y in pairs)
    n = len(pairs)
    return math.fsum(c / n * math.log(c * n / (left[x] * right[y])) for (x, y), c in joint.items())


def slow_by_distance(segments: Sequence[Sequence[int]], distance: int) -> float:
    """The slow twin of `mutual_information_by_distance`, one distance."""
    return slow_information([pair for s in segments for pair in zip(s, s[distance:], strict=False)])


class TestMutualInformation:
    # Cover & Thomas, example 2.2.1: joint of X (columns) and Y (rows), in 32nds; I(X; Y) = 3/8 bit.
    TABLE = ((4, 2, 1, 1), (2, 4, 1, 1), (2, 2, 2, 2), (8, 0, 0, 0))

    def test_the_textbook_table_in_every_form(self) -> None:
        pairs = {(y, x): count for y, row in enumerate(self.TABLE) for x, count in enumerate(row)}
        assert mutual_information(self.TABLE, unit="bits") == pytest.approx(0.375, rel=1e-14)
        assert mutual_information(np.array(self.TABLE) / 32, unit="bits") == pytest.approx(0.375, rel=1e-14)
        assert mutual_information(pairs, unit="bits") == pytest.approx(0.375, rel=1e-14)
        ys, xs = zip(*pairs, strict=True)
        listed = mutual_information_of_pairs(ys, xs, list(pairs.values()), unit="nats")
        assert listed == pytest.approx(0.375 * math.log(2), rel=1e-14)

    def test_independent_counts_give_exactly_zero(self) -> None:
        table = np.outer([3, 7, 11], [2, 9, 1])
        assert mutual_information(table, unit="nats") == 0.0

    def test_labels_of_any_kind(self) -> None:
        assert mutual_information_of_pairs(["é", "b"], [1.5, None], unit="bits") == 1.0
        # 1 and "1" are two labels
        assert mutual_information_of_pairs([1, "1"], ["x", "y"], unit="bits") == 1.0
        words = np.array(["a", "b", "a", "b"])
        assert mutual_information_of_pairs(words, words, unit="bits") == 1.0

    def test_zero_counts_are_as_if_not_listed(self) -> None:
        options: dict[str, Any] = {"unit": "bits", "correction": "miller-madow"}
        with_zero = mutual_information_of_pairs("abc", "xyx", [2, 2, 0], **options)
        assert with_zero == mutual_information_of_pairs("ab", "xy", [2, 2], **options)

    def test_miller_madow_by_hand(self) -> None:
        # 2 x 2 cells all seen, N = 8: plug-in minus (4 - 2 - 2 + 1) / 16 nats.
        table = [[3, 1], [1, 3]]
        plain = mutual_information(table, unit="nats")
        corrected = mutual_information(table, unit="nats", correction="miller-madow")
        assert corrected == pytest.approx(plain - 1 / 16, rel=1e-14)
        assert mutual_information([[1, 1], [1, 1]], unit="nats", correction="miller-madow") == -1 / 8

    def test_tiny_weights(self) -> None:
        tiny = [[1e-300, 0.0], [0.0, 1e-300]]
        assert mutual_information(tiny, unit="bits") == pytest.approx(1.0, rel=1e-12)
        skewed = [[1.0, 0.0], [0.0, 5e-324]]
        assert mutual_information(skewed, unit="bits") >= 0.0

    @pytest.mark.parametrize(
        ("joint", "message"),
        [
            ([[1, -1]], "count 2 of 2 is -1.0, negative"),
            ([[1, math.nan]], "count 2 of 2 is nan"),
            ([[1, INF]], r"count 2 of 2 is inf, above 2\^53"),
            ([[0, 0]], "all counts are 0"),
            ([1, 2], r"must be \[rows, columns\], not of shape \(2,\)"),
            ([[]], "no count given"),
            ({}, "no count given"),
            ({"ab": 1}, "key 'ab' of the joint counts is not a pair"),
            ({("a", "b"): -2}, "count 1 of 1 is -2.0"),
        ],
    )
    def test_refused(self, joint: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            mutual_information(joint, unit="bits")

    def test_refused_pairs(self) -> None:
        with pytest.raises(InputError, match="2, 1 and 2 entries do not pair up"):
            mutual_information_of_pairs("ab", "x", unit="bits")
        with pytest.raises(InputError, match="labels must be numbers or strings"):
            mutual_information_of_pairs([[1]], [2], unit="bits")
        with pytest.raises(InputError, match="labels must be a list, not of shape"):
            mutual_information_of_pairs(np.ones((1, 1), dtype=int), [2], unit="bits")
        with pytest.raises(UsageError, match="correction 'mm' is unknown"):
            mutual_information_of_pairs("a", "b", unit="bits", correction="mm")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"count 1 of 2 is 0\.5, not a whole number"):
            mutual_information([[0.5, 0.5]], unit="bits", correction="miller-madow")


class TestPointwise:
    def test_by_hand(self) -> None:
        # N = 8; "strong" 4, "powerful" 4; "tea" 3 (all with strong), "car" 5.
        # strong tea: log2(3 * 8 / (4 * 3)) = 1; strong car: log2(1 * 8 / (4 * 5));
        # powerful car: log2(4 * 8 / (4 * 5))
        words = ["strong", "strong", "powerful"]
        values = pointwise_mutual_information(words, ["tea", "car", "car"], [3, 1, 4], unit="bits")
        assert values == pytest.approx([1.0, math.log2(0.4), math.log2(1.6)], rel=1e-15)

    def test_repeated_pairs_count_together_and_rows_keep_their_order(self) -> None:
        once = pointwise_mutual_information(["b", "a"], ["x", "y"], [4, 2], unit="nats")
        split = pointwise_mutual_information(["b", "a", "b"], ["x", "y", "x"], [1, 2, 3], unit="nats")
        assert split.tolist() == [once[0], once[1], once[0]]

    def test_its_mean_is_the_mutual_information(self) -> None:
        counts = np.array([3, 1, 4, 1, 5])
        values = pointwise_mutual_information("aabbc", "xyxyy", counts, unit="nats")
        assert (values * counts).sum() / counts.sum() == pytest.approx(
            mutual_information_of_pairs("aabbc", "xyxyy", counts, unit="nats"), rel=1e-13
        )

    def test_refused(self) -> None:
        with pytest.raises(InputError, match=r"count 2 of 2 is 0\.0, zero: leave out"):
            pointwise_mutual_information("ab", "xy", [1, 0], unit="bits")
        with pytest.raises(UsageError, match="unit 'log2'"):
            pointwise_mutual_information("ab", "xy", [1, 1], unit="log2")  # type: ignore[arg-type]


class TestByDistance:
    def test_a_periodic_sequence_by_hand(self) -> None:
        # Period 4 of four symbols: the next symbol is certain, so every distance tells all of H = 2 bits.
        ids = list(range(4)) * 100 + [0]
        assert mutual_information_by_distance(ids, [4], unit="bits") == pytest.approx([2.0], abs=1e-4)

    @pytest.mark.parametrize("vocabulary", [3, 40, 3000])
    def test_equal_to_the_slow_twin(self, vocabulary: int) -> None:
        # Small vocabularies are counted in a table, large ones by sorting.
        generator = np.random.default_rng(vocabulary)
        ids = generator.integers(0, vocabulary, size=2000)
        distances = [1, 2, 7, 1999]
        fast = mutual_information_by_distance(ids, distances, unit="nats")
        slow = [slow_by_distance([ids.tolist()], d) for d in distances]
        assert fast.dtype == np.float64
        assert fast == pytest.approx(slow, rel=1e-12, abs=1e-14)

    def test_no_pair_crosses_a_boundary(self) -> None:
        generator = np.random.default_rng(5)
        lengths = [3, 0, 1, 50, 7, 0]
        segments = [generator.integers(0, 5, size=n).tolist() for n in lengths]
        ids = [token for segment in segments for token in segment]
        fast = mutual_information_by_distance(ids, [1, 6, 20], unit="nats", segment_lengths=lengths)
        assert fast == pytest.approx([slow_by_distance(segments, d) for d in (1, 6, 20)], rel=1e-12)
        assert fast[0] != mutual_information_by_distance(ids, [1], unit="nats")[0]

    def test_which_numbers_the_ids_are_does_not_matter(self) -> None:
        ids = np.random.default_rng(6).integers(0, 9, size=500)
        renamed = np.array([-(2**62), 2**62, 5, -7, 11, 13, 0, 1, 2])[ids]
        fast = mutual_information_by_distance(ids, [1, 3], unit="bits")
        assert mutual_information_by_distance(renamed, [1, 3], unit="bits").tolist() == pytest.approx(fast)

    def test_correction(self) -> None:
        ids = np.random.default_rng(7).integers(0, 50, size=5000)
        plain = mutual_information_by_distance(ids, [1], unit="nats")[0]
        corrected = mutual_information_by_distance(ids, [1], unit="nats", correction="miller-madow")[0]
        # Independent draws: nothing to find, and the correction takes most of the bias of 0.24 nats away.
        assert abs(corrected) < plain / 3

    @pytest.mark.parametrize(
        ("ids", "distances", "options", "message"),
        [
            ([], [1], {}, "ids must be a non-empty list of whole numbers"),
            ([0.5], [1], {}, "ids must be"),
            ([[1], [1, 2]], [1], {}, "ids must be a plain list"),
            ([1, 2], [], {}, "distances must be"),
            ([1, 2], [0], {}, "distance 0 must be at least 1 and below 2"),
            ([1, 2], [2], {}, "distance 2 must be .*longest segment has 2 ids"),
            ([1, 2], [1], {"segment_lengths": [1, 1]}, "distance 1 must be at least 1 and below 1"),
            ([1, 2], [1], {"segment_lengths": [3]}, "segment lengths add up to 3, but there are 2 ids"),
            ([1, 2], [1], {"segment_lengths": [3, -1]}, "segment lengths add up to 2"),
        ],
    )
    def test_refused(self, ids: Any, distances: Any, options: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            mutual_information_by_distance(ids, distances, unit="bits", **options)
