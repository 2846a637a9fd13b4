"""Laws of percentiles and rules: no order or cut changes a sample, and the vectorized rules do what a loop does."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.filtered import scores_of
from tests.reference import filtering as slow

from lmgauge.base.decoding import decode
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.options import PERCENTS, FilterRules
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.results import BinCounts, PerplexityHistogram, bin_counts
from lmgauge.filtering.rules import BUCKETS, NO_BUCKET, REASONS, judge

perplexities = st.one_of(st.integers(1, 20).map(float), st.floats(1, 1e6), st.just(math.inf), st.just(math.nan))
groups_of = st.sampled_from(["en", "de", None, "\u202e<b>"])
documents = st.lists(st.tuples(groups_of, perplexities, perplexities), min_size=1, max_size=60)
settings = st.builds(SampleSettings, sample=st.sampled_from([None, 1, 3, 10]), seed=st.integers(0, 5), group=st.just("lang"))

Row = tuple[str | None, float, float]


def add(sample: PercentileSample, keys: Sequence[int], rows: Sequence[Row]) -> None:
    """One batch, of which only the wanted documents are scored."""
    groups, values = Groups.of([row[0] for row in rows]), np.array([row[1:] for row in rows]).reshape(len(rows), 2)
    mask = sample.wanted(np.array(keys, np.uint64), groups)
    sample.add(np.array(keys, np.uint64)[mask], groups.where(mask), values[mask])


def contents(sample: PercentileSample) -> object:
    groups = [(name, group.documents, group.values.tolist()) for name, group in sample.groups()]
    overall = sample.overall()
    return repr((groups, overall.documents, overall.values.tolist()))


@given(documents, settings, st.data())
def test_no_order_batch_or_part_changes_the_sample(rows: list[Row], how: SampleSettings, data: st.DataObject) -> None:
    keys = document_keys("a.jsonl", np.arange(1, len(rows) + 1), how.seed).tolist()
    whole = PercentileSample(2, how)
    add(whole, keys, rows)
    order = data.draw(st.permutations(range(len(rows))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        chosen = order[begin:end]
        half = len(chosen) // 2
        part = PercentileSample(2, how)
        for batch in (chosen[:half], chosen[half:]):
            add(part, [keys[k] for k in batch], [rows[k] for k in batch])
            part.overall()  # taking a look settles the sample, and changes nothing
        parts.append(part)
    first, *others = data.draw(st.permutations(parts))
    for other in others:
        first.merge(other)
    assert contents(first) == contents(whole)


@given(documents, settings)
def test_the_sample_of_a_group_has_its_smallest_keys(rows: list[Row], how: SampleSettings) -> None:
    keys = document_keys("a.jsonl", np.arange(1, len(rows) + 1), how.seed).tolist()
    sample = PercentileSample(2, how)
    add(sample, keys, rows)
    by_key = [row for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])]
    for name, group in sample.groups():
        assert repr(group.values.tolist()) == repr([[*row[1:]] for row in by_key if row[0] == name][: how.sample])
    assert repr(sample.overall().values.tolist()) == repr([[*row[1:]] for row in by_key][: how.sample])


def learn(rows: Sequence[Row], least: int = 1) -> Percentiles | None:
    sample = PercentileSample(2, SampleSettings(sample=None, group="lang"))
    add(sample, list(range(len(rows))), rows)
    if any(all(math.isnan(row[column]) for row in rows) for column in (1, 2)):
        return None
    return Percentiles.learn(sample, {"a": "model:a", "b": "model:b"}, {"field": "text"}, least)


@given(documents)
def test_percentiles_of_everything_are_those_by_counting(rows: list[Row]) -> None:
    percentiles = learn(rows)
    for column, model in enumerate(("a", "b"), 1) if percentiles else ():
        for name in (None, *percentiles.groups):
            values = [row[column] for row in rows if name in (None, row[0]) and not math.isnan(row[column])]
            if values:
                assert [percentiles.value(model, name, percent) for percent in PERCENTS] == [
                    slow.percentile(values, percent) for percent in PERCENTS
                ]


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=200, unique=True))
def test_whole_percentiles_are_those_of_numpy(values: list[float]) -> None:
    percentiles = learn([(None, value, value) for value in values])
    quarters = [0.0, 25.0, 50.0, 75.0, 100.0]  # no product of these with a count is rounded
    expected = np.percentile(values, quarters, method="inverted_cdf").tolist()
    assert [percentiles.value("a", None, percent) for percent in quarters] == expected


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=300, unique=True), st.integers(0, 100), st.integers(0, 100))
def test_a_range_keeps_its_share_of_the_sample(values: list[float], one: int, other: int) -> None:
    low, high = sorted((one, other)) if one != other else (0, 100)
    percentiles = learn([(None, value, value) for value in values])
    n = len(values)
    scores = scores_of(np.array(values)[:, None], ["a"])
    stays = judge(FilterRules(keep=f"p{low}..p{high}"), scores, None, percentiles).reasons == 0
    assert np.count_nonzero(stays) == -(-n * high // 100) - -(-n * low // 100)


@given(documents, st.integers(0, 60))
def test_files_come_back_as_they_were(rows: list[Row], least: int) -> None:
    percentiles = learn(rows, least)
    if percentiles:
        with tempfile.TemporaryDirectory() as folder:
            path = percentiles.save(Path(folder, "p.json"))
            assert Percentiles.load(path) == percentiles
            assert Percentiles.from_json(path.read_bytes(), "p.json").to_dict() == percentiles.to_dict()


bounds = st.one_of(st.none(), st.integers(1, 12))


@given(
    documents,
    documents,
    st.fixed_dictionaries(dict.fromkeys(("min_bytes", "max_bytes", "min_tokens"), bounds)),
    st.data(),
)
def test_rules_judge_as_a_loop_does(
    learned: list[Row], rows: list[Row], plain: dict[str, int | None], data: st.DataObject
) -> None:
    percentiles = learn(learned, least=5)
    rules: dict[str, float | None] = {**plain}
    for name in ("min_perplexity", "max_perplexity"):
        rules[name] = data.draw(st.one_of(st.none(), st.integers(1, 20)))
    for low, high in (("min_bytes", "max_bytes"), ("min_perplexity", "max_perplexity")):
        if rules[low] is not None and rules[high] is not None:
            rules[low], rules[high] = sorted((rules[low], rules[high]))
    rules["max_unseen"] = data.draw(st.sampled_from([None, 0.0, 0.5, 1.0]))
    keep = data.draw(st.sampled_from([None, "p10..p70", "..p50", "p33..", "p0..p100", "p5..p99.9"])) if percentiles else None
    small = st.integers(0, 12)
    papers = [
        slow.Document(
            data.draw(small),
            row[1:],
            (data.draw(small), data.draw(small)),
            (data.draw(st.sampled_from([0.0, 0.5, 1.0, math.nan])),) * 2,
        )
        for row in rows
    ]
    columns = ([getattr(paper, name) for paper in papers] for name in ("perplexity", "bytes", "tokens", "unseen"))
    perplexity, sizes, tokens, unseen = columns
    figures = scores_of(np.reshape(perplexity, (len(papers), 2)), ("a", "b"), sizes, tokens or 0, unseen or 0.0)
    filters = FilterRules(
        keep=keep, buckets="p33,p67" if percentiles else None, judged_by="a" if percentiles else None, **rules
    )  # type: ignore[arg-type]
    both = FilterRules(keep=keep, **rules)  # type: ignore[arg-type]
    judgement = judge(both, figures, Groups.of([row[0] for row in rows]), percentiles)
    low, high = both.percent_range
    scored = keep is not None or any(rules[name] is not None for name in rules.keys() - {"min_bytes", "max_bytes"})
    for paper, row, code in zip(papers, rows, judgement.reasons.tolist(), strict=True):
        lows, highs = [-math.inf] * 2, [math.inf] * 2
        for column, model in enumerate(("a", "b")) if percentiles else ():
            if low:
                lows[column] = percentiles.value(model, row[0], low)
            if high is not None and high < 100:
                highs[column] = percentiles.value(model, row[0], high)
        assert REASONS[code] == slow.first_reason(paper, rules, lows, highs, scored)
    if percentiles:
        buckets = judge(filters, figures, Groups.of([row[0] for row in rows]), percentiles).buckets
        for row, code in zip(rows, buckets.tolist(), strict=True):
            cuts = [percentiles.value("a", row[0], cut) for cut in (33, 67)]
            expected = NO_BUCKET if math.isnan(row[1]) else sum(row[1] > cut for cut in cuts)
            assert code == expected
            assert code == NO_BUCKET or code < len(BUCKETS)


@given(documents, st.integers(0, 60))
def test_histograms_of_parts_add_up(rows: list[Row], cut: int) -> None:
    def counted(part: Sequence[Row]) -> dict[str | None, BinCounts]:
        groups = Groups.of([row[0] for row in part])
        table = bin_counts(groups, np.array([row[1:] for row in part]).reshape(len(part), 2))
        return {name: BinCounts(counts) for name, counts in zip((None, *groups.names), table, strict=True)}

    def of(counts: dict[str | None, BinCounts]) -> PerplexityHistogram:
        return PerplexityHistogram(("a", "b"), {name: own.counts for name, own in counts.items() if own.counts.any()})

    whole, total = of(counted(rows)), counted(rows[cut:])
    for name, own in counted(rows[:cut]).items():
        again = decode(own.pairs(), BinCounts, "x", "a histogram", "again")
        total[name] = total[name] + again if name in total else again
    assert of(total).groups == whole.groups
    for name in (None, *whole.names):
        own = [row for row in rows if name in (None, row[0])]
        bins = whole.bins("b", name)
        assert sum(bins.counts) + bins.infinite + bins.unscored == len(own)
        assert len(bins.edges) == len(bins.counts) + 1 <= 61
        for k, count in enumerate(bins.counts[:-1]):  # the last one also has what is above 2**64
            assert count == sum(bins.edges[k] <= row[2] < bins.edges[k + 1] for row in own)
