"""Laws of resampling and of correlation: what may not move a p-value, and what an interval is of."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.laws.task_texts import PLAIN, Segment, few, metrics, of, rows, segment, segments
from tests.tasks.share import compared as compare

from lmgauge.numerics.resampling import UnitSums, bootstrap_sums, randomized_sums
from lmgauge.tasks import BLEU, TER, WER, ChrF, correlate, score_systems
from lmgauge.tasks.comparison import SystemResult, Systems
from lmgauge.tasks.scoring import score_parallel
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.texts import Block, ParallelTexts, References, Texts

DRAWS = 60
tests = st.sampled_from(["student", "sacrebleu-bootstrap", "sacrebleu"])
seeds = st.integers(0, 2**32)
plain = segments(PLAIN, most=12).filter(lambda pairs: len(pairs) > 1)


def systems_of(pairs: list[Segment]) -> dict[str, list[str]]:
    """Four systems: one as given, one that is all the same, one exchanged, one that copies the first reference."""
    hypotheses = of(pairs)["hypotheses"]
    return {
        "first": hypotheses,
        "same": ["the cat sat"] * len(pairs),
        "turned": hypotheses[::-1],
        "copy": [against[0] for _, against in pairs[:-1]] + ["the mat"],
    }


def settings_of(test: Any, seed: int) -> ComparisonSettings:
    return ComparisonSettings(significance=test, resamples=None if test == "student" else DRAWS, seed=seed, threads=1)


def compared(metric: Any, systems: dict[str, list[str]], pairs: list[Segment], test: str, seed: int) -> Systems:
    drawn = settings_of(test, seed)
    return score_systems(metric, hypotheses=systems, references=of(pairs)["references"], settings=drawn)


def table(metric: Any, hypotheses: list[str], pairs: list[Segment]) -> list[list[int]]:
    """The statistics of other hypotheses for the same references."""
    return rows(metric, [(hypothesis, against) for hypothesis, (_, against) in zip(hypotheses, pairs, strict=True)])


def by_name(found: Systems) -> dict[str, SystemResult]:
    return {item.system: item for item in found}


# -- significance -------------------------------------------------------------------------------------------------------


@few
@given(metrics, plain, tests, seeds, st.randoms(use_true_random=False))
def test_the_order_of_the_others_moves_nothing(metric: Any, pairs: Any, test: str, seed: int, random: Any) -> None:
    systems = systems_of(pairs)
    names = list(systems)[1:]
    random.shuffle(names)
    found = compared(metric, systems, pairs, test, seed)
    again = compared(metric, {"first": systems["first"]} | {name: systems[name] for name in names}, pairs, test, seed)
    assert by_name(again) == by_name(found)
    assert compared(metric, systems, pairs, test, seed) == found


@few
@given(metrics, plain, tests, seeds)
def test_one_system_more_moves_no_other_system(metric: Any, pairs: Any, test: str, seed: int) -> None:
    """But for the adjusted p-value, which knows how many there are."""
    systems = systems_of(pairs)
    found = by_name(compared(metric, systems, pairs, test, seed))
    for name in list(systems)[1:]:
        alone = by_name(compared(metric, {n: systems[n] for n in ("first", name)}, pairs, test, seed))[name]
        assert (alone.p_value, alone.interval, alone.difference_interval) == (
            found[name].p_value,
            found[name].interval,
            found[name].difference_interval,
        )
        assert alone.p_value_holm == alone.p_value
        assert alone.p_value is None or alone.p_value <= found[name].p_value_holm


@few
@given(metrics, plain, tests, seeds)
def test_p_values_are_above_0_and_1_for_a_copy(metric: Any, pairs: Any, test: str, seed: int) -> None:
    systems = systems_of(pairs)
    found = compared(metric, systems | {"again": systems["first"]}, pairs, test, seed)
    first = rows(metric, pairs)
    for item in found[1:] if found[1].p_value is not None else ():
        assert 0 < item.p_value <= item.p_value_holm <= 1
        if test == "sacrebleu-bootstrap":
            continue
        # What the segments in which the systems differ can show at the best.
        other = table(metric, systems.get(item.system, systems["first"]), pairs)
        assert item.p_value >= min(1, 2 ** (1 - sum(a != b for a, b in zip(first, other, strict=True))))
    again = by_name(found)["again"]
    if again.p_value is None:
        assert test == "student"  # fewer than six segments with a reference
        return
    assert (again.p_value, again.p_value_holm, again.difference, again.significant) == (1, 1, 0, False)
    assert (again.difference_interval.low, again.difference_interval.high) == (0, 0)
    assert again.interval == found[0].interval


@few
@given(metrics, plain, tests, seeds)
def test_a_test_is_the_same_either_way_round(metric: Any, pairs: Any, test: str, seed: int) -> None:
    systems = systems_of(pairs)
    one, two = ({name: systems[name] for name in names} for names in (("first", "turned"), ("turned", "first")))
    there, back = compared(metric, one, pairs, test, seed)[1], compared(metric, two, pairs, test, seed)[1]
    assert back.p_value == there.p_value
    assert back.difference == -there.difference
    if there.difference_interval is None:
        return
    assert (back.difference_interval.low, back.difference_interval.high) == (
        -there.difference_interval.high,
        -there.difference_interval.low,
    )


@few
@given(metrics, st.lists(segment(PLAIN), min_size=2, max_size=4), st.integers(0, 1000))
def test_a_draw_of_every_segment_once_is_the_corpus(metric: Any, pairs: list[Segment], seed: int) -> None:
    """To the digit, and so is a trial that swaps nothing, or everything."""
    given_rows = np.array(rows(metric, pairs), dtype=np.int64)
    other = np.array(rows(metric, [(against[0], [hypothesis]) for hypothesis, against in pairs]), dtype=np.int64)
    n, draws = len(pairs), 300
    whole, theirs = (metric.score(part.sum(axis=0), 1).score for part in (given_rows, other))
    drawn = np.random.default_rng(seed).choice(n, (draws, n))
    once = (np.sort(drawn, axis=1) == np.arange(n)).all(axis=1)
    assert once.any()
    (sums,) = bootstrap_sums([given_rows], draws, seed)
    assert set(metric.scores(sums)[once].tolist()) == {whole}
    coins = np.random.default_rng(seed).integers(2, size=(draws, n), dtype=bool)
    ((mine, mixed),) = randomized_sums(given_rows, [other], draws, seed)
    assert {*metric.scores(mine)[coins.all(axis=1)], *metric.scores(mixed)[~coins.any(axis=1)]} == {whole}
    assert {*metric.scores(mine)[~coins.any(axis=1)], *metric.scores(mixed)[coins.all(axis=1)]} == {theirs}
    assert (mine + mixed == (given_rows + other).sum(axis=0)).all()


@few
@given(metrics, segment(PLAIN), st.integers(2, 40), seeds)
def test_segments_that_are_all_alike_leave_no_doubt(metric: Any, pair: Segment, times: int, seed: int) -> None:
    assume(pair[0].strip() and "".join(pair[1]).strip())
    (found,) = compared(metric, {"only": [pair[0]] * times}, [pair] * times, "sacrebleu-bootstrap", seed)
    score = found.score.score
    assert (found.interval.low, found.interval.high, found.half_width) == (score, score, 0)
    assert found.mean == pytest.approx(score, rel=1e-12)


@few
@given(metrics, plain, seeds)
def test_intervals_are_of_the_draws(metric: Any, pairs: list[Segment], seed: int) -> None:
    """Between the least and the largest resample; and half as wide as it says."""
    (found,) = compared(metric, {"only": of(pairs)["hypotheses"]}, pairs, "sacrebleu-bootstrap", seed)
    values = metric.scores(bootstrap_sums([np.array(rows(metric, pairs))], DRAWS, seed)[0])
    assert values.min() <= found.interval.low <= found.interval.high <= values.max()
    assert found.half_width == (found.interval.high - found.interval.low) / 2
    inside = (values >= found.interval.low) & (values <= found.interval.high)
    assert inside.mean() >= 0.95


words = st.lists(st.sampled_from("abc"), min_size=6, max_size=6).map(" ".join)


@few
@given(st.sampled_from([BLEU(), ChrF(), TER(), WER()]), st.lists(st.tuples(words, words), min_size=30, max_size=40), seeds)
def test_an_interval_holds_mean_and_score_of_an_ordinary_text(metric: Any, texts: Any, seed: int) -> None:
    """Segments of one length, none of which outweighs the rest."""
    pairs = [(one, [two]) for one, two in texts]
    (found,) = score_systems(
        metric,
        hypotheses=of(pairs)["hypotheses"],
        references=of(pairs)["references"],
        settings=ComparisonSettings(significance="sacrebleu-bootstrap", seed=seed, resamples=200),
    )
    assert found.interval.low <= found.mean <= found.interval.high
    assert found.interval.low <= found.score.score <= found.interval.high


@few
@given(st.sampled_from([ChrF(), TER(), WER()]), plain, tests, seeds, st.sampled_from([2, 4, 8]))
def test_p_values_have_no_unit(metric: Any, pairs: list[Segment], test: str, seed: int, scale: int) -> None:
    """Counts that are all twice as many are the same rates, so the same p-values."""
    pairs = [(hypothesis, [f"{text} a" for text in against]) for hypothesis, against in pairs]  # no rate by nothing
    tables = [np.array(table(metric, lines, pairs)) for lines in systems_of(pairs).values()]
    drawn: dict[str, Any] = {"test": test, "resamples": None if test == "student" else DRAWS, "seed": seed}
    once = compare(metric, list("abcd"), tables, **drawn)
    twice = compare(metric, list("abcd"), [scale * table for table in tables], **drawn)
    assert [item.p_value for item in twice[1:]] == [item.p_value for item in once[1:]]
    assert [item.interval for item in twice] == [item.interval for item in once]


@given(st.lists(st.integers(0, 9), max_size=8), st.lists(st.integers(0, 9), max_size=8), st.sampled_from([2, 4, 64]))
def test_units_know_no_parts(sizes: list[int], cuts: list[int], limit: int) -> None:
    counts = np.random.default_rng(len(sizes)).integers(0, 1000, (sum(sizes), 3))
    one, two = UnitSums(3, limit), UnitSums(3, limit)
    for begin, end in pairwise(np.cumsum([0, *sizes]).tolist()):
        one.add(counts[begin:end])
    for begin, end in pairwise([0, *sorted(min(cut, len(counts)) for cut in cuts), len(counts)]):
        two.add(counts[begin:end])
    assert one.total.tolist() == two.total.tolist() == counts.sum(axis=0).tolist()
    assert one.rows().tolist() == two.rows().tolist()
    assert (one.segments, one.segments_per_unit) == (two.segments, two.segments_per_unit)


@few
@given(metrics, plain, st.lists(st.integers(0, 12), max_size=4), tests, seeds)
def test_blocks_of_any_size_measure_the_same(metric: Any, pairs: Any, cuts: list[int], test: str, seed: int) -> None:
    against = References.of_lists(of(pairs)["references"])
    outputs = {name: Texts.of_strings(lines) for name, lines in systems_of(pairs).items()}
    bounds = sorted({0, len(pairs), *(min(cut, len(pairs)) for cut in cuts)})
    blocks = [
        Block(against.part(begin, end), tuple(texts.part(begin, end) for texts in outputs.values()), None)
        for begin, end in pairwise(bounds)
    ]
    settings = settings_of(test, seed)
    found = score_parallel(metric, ParallelTexts(list(outputs), blocks), settings)
    whole = compared(metric, systems_of(pairs), pairs, test, seed)
    assert [item.to_dict() for item in found] == [item.to_dict() for item in whole]
    assert found == whole


# -- correlation --------------------------------------------------------------------------------------------------------

points = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=2, max_size=9)
FIGURES = ("spearman", "spearman_interval", "p_value", "exact", "kendall", "kendall_interval")
RISING: list[Callable[[int], float]] = [
    lambda value: value**3,
    lambda value: math.exp(value / 4),
    lambda value: math.atan(value),
    lambda value: 1e300 * value,
    lambda value: 1e-300 * value,
    lambda value: math.inf if value == 20 else value,
    lambda value: value + (1000 if value > 0 else 0),
]


def figures(x: list[float], y: list[float]) -> dict[str, Any]:
    """What is known of ranks."""
    found = correlate([f"s{i}" for i in range(len(x))], x, y, log_x=False)
    return {name: getattr(found, name) for name in FIGURES}


def flipped(found: dict[str, Any]) -> dict[str, Any]:
    """The same with the other sign."""
    turned = dict(found)
    for name in ("spearman", "kendall"):
        interval = found[f"{name}_interval"]
        turned[name] = None if found[name] is None else -found[name]
        turned[f"{name}_interval"] = None if interval is None else (-interval[1], -interval[0])
    return turned


@few
@given(points, st.sampled_from(RISING), st.sampled_from(RISING))
def test_what_rises_with_x_ranks_as_x(pairs: list[tuple[int, int]], one: Any, two: Any) -> None:
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = figures(x, y)
    assert figures([one(value) for value in x], [two(value) for value in y]) == found
    assert figures([-value for value in x], y) == flipped(found)
    assert figures(x, [-one(value) for value in y]) == flipped(found)
    assert figures([-value for value in x], [-value for value in y]) == found
    assert figures(y, x) == found


@few
@given(points, st.randoms(use_true_random=False))
def test_the_order_of_systems_says_nothing(pairs: list[tuple[int, int]], random: Any) -> None:
    names = [f"s{i}" for i in range(len(pairs))]
    shuffled = random.sample(list(zip(names, pairs, strict=True)), len(pairs))
    found = correlate(names, [a for a, _ in pairs], [b for _, b in pairs], log_x=False)
    again = correlate([n for n, _ in shuffled], [a for _, (a, _) in shuffled], [b for _, (_, b) in shuffled], log_x=False)
    assert {name: getattr(again, name) for name in FIGURES} == {name: getattr(found, name) for name in FIGURES}
    assert again.pearson == found.pearson
    assert again.notes == found.notes
    assert sorted(again.to_rows(), key=str) == sorted(found.to_rows(), key=str)


@few
@given(points, st.integers(1, 5), st.integers(-9, 9))
def test_coefficients_are_from_minus_1_to_1(pairs: list[tuple[int, int]], factor: int, shift: int) -> None:
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    names = [f"s{i}" for i in range(len(pairs))]
    found = correlate(names, x, y, log_x=False)
    if found.spearman is None:
        assert (found.kendall, found.pearson, found.p_value) == (None, None, None)
        return
    assert all(-1 <= value <= 1 for value in (found.spearman, found.kendall, found.pearson))
    assert 0 < found.p_value <= 1
    assert found.exact
    assert found.p_value * math.factorial(len(pairs)) == pytest.approx(round(found.p_value * math.factorial(len(pairs))))
    for value, interval in ((found.spearman, found.spearman_interval), (found.kendall, found.kendall_interval)):
        assert interval is None or -1 <= interval[0] < value < interval[1] <= 1
    moved = correlate(names, [factor * value + shift for value in x], y, log_x=False)
    assert moved.pearson == pytest.approx(found.pearson, abs=1e-12)
    assert correlate(names, x, x, log_x=False).spearman == 1
    assert correlate(names, x, [-value for value in x], log_x=False).kendall == -1


@settings(max_examples=3)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=10, max_size=12, unique=True), seeds)
def test_random_permutations_know_ranks_only(pairs: list[tuple[int, int]], seed: int) -> None:
    names = [f"s{i}" for i in range(len(pairs))]
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    found = correlate(names, x, y, log_x=False, seed=seed)
    again = correlate(names, [-math.exp(value) for value in x], [value**3 for value in y], log_x=False, seed=seed)
    assert (again.p_value, again.spearman, found.exact) == (found.p_value, -found.spearman, False)
    turned = correlate(names[::-1], x[::-1], y[::-1], log_x=False, seed=seed)
    deviation = math.sqrt(found.p_value * (1 - found.p_value) / 1e5)
    assert turned.p_value == pytest.approx(found.p_value, abs=10 * deviation + 1e-4)
