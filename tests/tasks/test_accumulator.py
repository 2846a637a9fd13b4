"""Parts merge to the digits of the whole, whatever the parts, their order and the way they travelled."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.share import ErrorShare, Share

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.accumulator import Accumulator
from lmgauge.tasks.metrics.bleu import BLEU
from lmgauge.tasks.metrics.error_rates import WER
from lmgauge.tasks.settings import ComparisonSettings

words = st.lists(st.sampled_from(["a", "b", "c", "A"]), min_size=1, max_size=5).map(" ".join)
segments = st.lists(st.tuples(words, st.lists(words, min_size=1, max_size=3)), min_size=2, max_size=12)

BOOTSTRAP = ComparisonSettings(significance="sacrebleu-bootstrap", resamples=50)
HYPOTHESES = ["the cat sat on the mat", "a dog", "it rains again today", "nothing to see here"]
REFERENCES = ["the cat sits on the mat", "a dog barks", "it rains today", "there is nothing to see here"]


def filled(metric: Any, pairs: list[tuple[str, list[str]]], **options: Any) -> Accumulator:
    made = Accumulator(metric, **options)
    made.add(hypotheses=[h for h, _ in pairs], references=[tuple(r) for _, r in pairs])
    return made


@given(segments, st.lists(st.integers(0, 12), max_size=4), st.randoms(use_true_random=False))
def test_any_parts_merged_in_any_order_score_the_same(pairs: Any, cuts: list[int], random: Any) -> None:
    whole = filled(Share(), pairs)
    bounds = [0, *sorted(min(cut, len(pairs)) for cut in cuts), len(pairs)]
    parts = [filled(Share(), pairs[a:b]) for a, b in pairwise(bounds)]
    in_order = Accumulator(Share())
    for part in parts:
        in_order.merge(part)
    assert (in_order.score(), in_order.statistics().tolist()) == (whole.score(), whole.statistics().tolist())
    assert in_order.interval(BOOTSTRAP) == whole.interval(BOOTSTRAP)
    random.shuffle(parts)
    shuffled = Accumulator(Share())
    for part in parts:
        shuffled.merge(part)
    assert shuffled.score() == whole.score()
    assert shuffled.references == whole.references
    assert shuffled.blanks.segments == len(pairs)


def scored(part: tuple[list[str], list[str]]) -> Accumulator:
    made = Accumulator(BLEU())
    made.add(hypotheses=part[0], references=part[1])
    return made


def test_processes_score_parts() -> None:
    parts = [(HYPOTHESES[:1], REFERENCES[:1]), (HYPOTHESES[1:], REFERENCES[1:])]
    whole = scored((HYPOTHESES, REFERENCES))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        first, second = workers.map(scored, parts)
    first.merge(second)
    assert first.score() == whole.score()
    assert first.interval(BOOTSTRAP) == whole.interval(BOOTSTRAP)
    assert pickle.loads(pickle.dumps(whole)).score() == whole.score()


def test_the_number_of_references_is_tracked() -> None:
    made = Accumulator(Share())
    made.add(hypotheses=["a"], references=["a"])
    assert made.score().signature == "nrefs:1"
    made.add(hypotheses=["b"], references=[["b"]])
    assert made.references == 1
    made.add(hypotheses=["b"], references=[["b", None, "c"]])
    assert made.score().signature == "nrefs:var"
    made.add(hypotheses=[], references=[])
    assert (made.segments, made.references) == (3, None)


def test_without_segments_only_sums_are_kept() -> None:
    made = filled(Share(), [("a b", ["a b"]), ("a", ["b"])], keep_segments=False)
    assert made.score() == filled(Share(), [("a b", ["a b"]), ("a", ["b"])]).score()
    with pytest.raises(UsageError, match="keep_segments"):
        made.interval()
    assert pickle.loads(pickle.dumps(made)).score() == made.score()
    with pytest.raises(UsageError, match="the other does not"):
        made.merge(Accumulator(Share()))


@pytest.mark.parametrize("other", [Share(lowercase=True), ErrorShare(), BLEU()])
def test_other_metrics_and_options_do_not_merge(other: Any) -> None:
    made = filled(Share(), [("a", ["a"])])
    with pytest.raises(UsageError, match=r"into Share\(lowercase=False\)"):
        made.merge(Accumulator(other))


def test_lengths_must_agree() -> None:
    with pytest.raises(InputError, match="2 references: there are 1 references too many"):
        Accumulator(Share()).add(hypotheses=["a"], references=["a", "b"])
    with pytest.raises(InputError, match="3 hypotheses and 1 references: there are 2 hypotheses too many"):
        Accumulator(Share()).add(hypotheses=["a", "b", "c"], references=["a"])


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (None, ["a"], "a list with a hypothesis for each segment is needed, not NoneType"),
        ("a", ["a"], "one string was given where a list with a hypothesis"),
        (["a"], None, "for each segment is needed, not NoneType"),
        ({"a": ["x"]}, ["a"], "is needed, not dict"),
        ({"a"}, ["a"], "is needed, not set"),
        (["a"], "a", "one string was given where a list with a reference"),
        (["a"], [None], "the references of segment 1 are NoneType"),
        ([1], ["a"], "hypothesis 1 is int"),
    ],
)
def test_what_is_no_list_of_strings_is_refused(hypotheses: Any, references: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Accumulator(Share()).add(hypotheses=hypotheses, references=references)


def test_nothing_is_no_score() -> None:
    with pytest.raises(InputError, match="no segment"):
        Accumulator(Share()).score()
    with pytest.raises(InputError, match="all 1 hypotheses are blank"):
        filled(Share(), [(" ", ["a"])]).score()
    with pytest.raises(InputError, match="1 segments are too few: an interval needs 6"):
        filled(Share(), [("a", ["a"])]).interval()


def test_intervals_over_documents_whatever_the_parts() -> None:
    lines = ["the cat sat on the mat", "a dog barked", "it rains again today"] * 8
    outputs = ["the cat sits on the mat", "a dog barks", "it rains"] * 4 + lines[:12]
    names = [f"d{i // 4}" for i in range(24)]

    def of(begin: int, end: int) -> Accumulator:
        part = Accumulator(WER())
        part.add(hypotheses=outputs[begin:end], references=lines[begin:end], documents=names[begin:end])
        return part

    whole = of(0, 24).interval()
    assert (whole.mean, whole.interval.unit, whole.interval.units) == (None, "documents", 6)
    parts = of(10, 24)
    parts.merge(pickle.loads(pickle.dumps(of(0, 10))))
    assert parts.interval() == whole
    plain = Accumulator(WER())
    plain.add(hypotheses=outputs, references=lines)
    assert (plain.interval().interval.unit, plain.interval().interval.units) == ("unknown", 24)
    for other in (plain, parts):
        with pytest.raises(UsageError, match="give documents for all or for none"):
            other.merge(of(0, 4) if other is plain else plain)
    with pytest.raises(InputError, match="1 documents for 2 segments"):
        plain.add(hypotheses=["a", "b"], references=["a", "b"], documents=["d"])
    with pytest.raises(UsageError, match="documents is one string"):
        plain.add(hypotheses=["a", "b"], references=["a", "b"], documents="ab")
    with pytest.raises(UsageError, match="leave them out"):
        Accumulator(WER(), keep_segments=False).add(hypotheses=["a"], references=["a"], documents=["d"])
