"""Laws of task metrics: what a text scores against itself, ranges, counts that add up, and what F1 is a function of."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.task_texts import PIECES, PLAIN, Segment, few, metrics, rows, scored, segment, segments, total

from lmgauge.tasks import BLEU, CER, TER, WER, ChrF
from lmgauge.tasks.metrics.labels import F1

BLEUS = (
    BLEU(),
    BLEU(order=2),
    BLEU(smoothing="none", tokenizer="none"),
    BLEU(smoothing="floor", effective_order=True, tokenizer="char"),
    BLEU(smoothing="add-k", smoothing_value=0.5, lowercase=True, reference_length="average"),
    BLEU(order=1, tokenizer="zh", reference_length="shortest"),
)
RATES = (WER(), WER(standardize=True), CER(), CER(collapse_spaces=True, unicode_form="NFKC"))
bleus, rates = st.sampled_from(BLEUS), st.sampled_from(RATES)
texts = st.lists(st.sampled_from(PLAIN) | st.sampled_from(PIECES), max_size=15).map("".join)


def once(metric: Any, hypothesis: str, reference: str) -> list[int]:
    """The statistics of one segment with one reference."""
    return rows(metric, [(hypothesis, [reference])])[0]


# -- a text against itself ----------------------------------------------------------------------------------------------


@few
@given(bleus, st.lists(texts, min_size=1, max_size=4), texts)
def test_bleu_of_a_text_with_itself_is_100(metric: BLEU, lines: list[str], other: str) -> None:
    """Also beside another reference; but for orders of which it has no n-grams."""
    found = scored(metric, [(line, [line]) for line in lines])
    assert found.counts == found.totals
    assert found.brevity_penalty == 1
    enough = found.totals[0] if metric.effective_order or metric.smoothing == "add-k" else found.totals[-1]
    assert found.score == (100 if enough else 0)
    beside = scored(metric, [(line, [other, line]) for line in lines])
    assert beside.counts == beside.totals == found.totals
    if metric.reference_length == "closest":
        assert beside.score == found.score


@few
@given(
    st.builds(ChrF, st.integers(1, 6), st.integers(0, 3), st.sampled_from([0.5, 1, 2, 3]), whitespace=st.booleans()),
    st.lists(texts, min_size=1, max_size=4),
    texts,
)
def test_chrf_of_a_text_with_itself_is_100(metric: ChrF, lines: list[str], other: str) -> None:
    found = scored(metric, [(line, [line]) for line in lines])
    assert found.score == (100 if found.matches[0] else 0)
    assert found.matches == found.hypothesis_ngrams == found.reference_ngrams
    # Where nothing matches anything, all references are equally good, and the first counts.
    some = [line for line in lines if scored(metric, [(line, [line])]).score]
    beside = [(line, [other, line, other]) for line in some]
    assert not beside or scored(metric, beside).score == found.score


@few
@given(st.sampled_from([*RATES, TER(), TER(normalized=True, no_punct=True, asian_support=True)]), texts, texts)
def test_a_text_has_no_errors_against_itself(metric: Any, text: str, other: str) -> None:
    for against in ([text], [other, text], [text, other]):
        found = scored(metric, [(text, against)])
        assert found.score == 0
        if not isinstance(metric, TER):
            assert (found.errors, found.mer, found.wil) == (0, 0, 0)


# -- ranges and counts --------------------------------------------------------------------------------------------------


@few
@given(bleus, segments(PLAIN) | segments())
def test_bleu_is_from_0_to_100_and_its_counts_fit(metric: BLEU, pairs: list[Segment]) -> None:
    found = scored(metric, pairs)
    assert 0 <= found.score <= 100
    assert all(0 <= count <= most for count, most in zip(found.counts, found.totals, strict=True))
    assert list(found.totals) == sorted(found.totals, reverse=True)
    assert found.hypothesis_length == found.totals[0]
    assert 0 <= found.brevity_penalty <= 1
    assert (found.brevity_penalty == 1) == (found.hypothesis_length >= found.reference_length)
    assert all(0 <= precision <= 100 for precision in found.precisions)
    for row in rows(metric, pairs):  # an n-gram that matches brings the shorter ones in it
        counts, totals = row[2 : 2 + metric.order], row[2 + metric.order :]
        assert counts == sorted(counts, reverse=True)
        assert totals == [max(0, row[0] - n) for n in range(metric.order)]


@few
@given(st.sampled_from([ChrF(), ChrF(word_order=2, whitespace=True), ChrF(eps_smoothing=True, beta=3)]), segments())
def test_chrf_is_from_0_to_100_and_its_counts_fit(metric: ChrF, pairs: list[Segment]) -> None:
    found = scored(metric, pairs)
    assert 0 <= found.score <= 100
    assert all(0 <= part <= 100 for part in (found.precision, found.recall))
    for mine, theirs, both in zip(found.hypothesis_ngrams, found.reference_ngrams, found.matches, strict=True):
        assert 0 <= both <= min(mine, theirs)


@few
@given(rates, segments(PLAIN) | segments())
def test_the_counts_of_errors_add_up(metric: Any, pairs: list[Segment]) -> None:
    found = scored(metric, pairs)
    assert found.hits + found.substitutions + found.deletions == found.reference_length
    assert found.hits + found.substitutions + found.insertions == found.hypothesis_length
    assert found.substitutions + found.deletions + found.insertions == found.errors
    assert min(found.hits, found.substitutions, found.deletions, found.insertions) >= 0
    assert 0 <= found.mer <= 1
    assert 0 <= found.wil <= 1
    assert found.wil == 1 - found.wip
    assert found.mer <= found.score
    if found.reference_length:
        assert found.score == found.errors / found.reference_length


@few
@given(st.sampled_from([WER(), CER()]), segment(PLAIN, 1) | segment(references=1))
def test_lengths_are_those_of_the_texts(metric: Any, pair: Segment) -> None:
    found, (hypothesis, (reference,)) = scored(metric, [pair]), pair
    units = [text.split() if metric.unit == "word" else text.strip() for text in (hypothesis, reference)]
    assert [found.hypothesis_length, found.reference_length] == [len(part) for part in units]


# -- distances ----------------------------------------------------------------------------------------------------------


@few
@given(rates, texts, texts)
def test_errors_are_the_same_either_way_round(metric: Any, one: str, two: str) -> None:
    there, back = once(metric, one, two), once(metric, two, one)
    assert sum(there[1:]) == sum(back[1:])
    assert there[3] - there[2] == back[2] - back[3]


@few
@given(rates, texts, texts, texts)
def test_errors_obey_the_triangle_inequality(metric: Any, one: str, two: str, three: str) -> None:
    straight, first, second = (sum(once(metric, *pair)[1:]) for pair in ((one, three), (one, two), (two, three)))
    assert straight <= first + second


@few
@given(texts, texts, texts)
def test_what_both_texts_begin_and_end_with_costs_nothing(one: str, two: str, around: str) -> None:
    plain, framed = once(WER(), one, two), once(WER(), f"{around} {one} {around}", f"{around} {two} {around}")
    assert sum(framed[1:]) == sum(plain[1:])
    assert sum(framed[1:3]) + framed[0] == sum(plain[1:3]) + plain[0] + 2 * len(around.split())


@few
@given(segments(PLAIN) | segments())
def test_shifts_only_save_edits(pairs: list[Segment]) -> None:
    """TER of texts that stay within its beam needs no more edits than the error rate of the same words."""
    for (edits, _), errors in zip(rows(TER(case_sensitive=True), pairs), rows(WER(), pairs), strict=True):
        assert edits <= sum(errors[1:])
    for (edits, _), errors in zip(rows(TER(), pairs), rows(WER(lowercase=True), pairs), strict=True):
        assert edits <= sum(errors[1:])


@few
@given(st.sampled_from([*RATES, TER(), TER(normalized=True)]), segments(), segments())
def test_a_corpus_is_between_its_parts(metric: Any, one: list[Segment], two: list[Segment]) -> None:
    """Of rates with a denominator that adds up: the rate of two texts together is between theirs."""
    low, high = sorted(scored(metric, part).score for part in (one, two))
    assert low - 1e-12 <= scored(metric, [*one, *two]).score <= high + 1e-12


@few
@given(metrics, segments(), st.integers(2, 5))
def test_a_text_several_times_scores_as_once(metric: Any, pairs: list[Segment], times: int) -> None:
    """Counts are multiplied; numbers that smoothing does not touch stay."""
    found = total(rows(metric, pairs * times))
    assert found.tolist() == (times * total(rows(metric, pairs))).tolist()
    if not isinstance(metric, BLEU) or metric.smoothing == "none":
        assert scored(metric, pairs * times).score == pytest.approx(scored(metric, pairs).score, abs=1e-9)


# -- labels -------------------------------------------------------------------------------------------------------------

AVERAGES = st.sampled_from(["macro", "micro", "weighted"])
labelled = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=30)


def f1(metric: F1, pairs: list[tuple[str, str]]) -> float:
    """F1 of pairs of gold and predicted labels."""
    return metric.score(metric.statistics_of([a for a, _ in pairs], [b for _, b in pairs]).sum(axis=0)).score


@few
@given(AVERAGES, labelled, st.integers(0, 30), st.randoms(use_true_random=False))
def test_label_counts_add_up(average: Any, pairs: list[tuple[str, str]], cut: int, random: Any) -> None:
    metric = F1(("a", "b", "c", "d"), average)
    whole = metric.statistics_of([a for a, _ in pairs], [b for _, b in pairs])
    alone = [metric.statistics_of([a], [b])[0].tolist() for a, b in pairs]
    assert whole.tolist() == alone
    assert f1(metric, random.sample(pairs, len(pairs))) == f1(metric, pairs)
    sums = np.add(whole[:cut].sum(axis=0), whole[cut:].sum(axis=0))
    assert metric.score(sums) == metric.score(whole.sum(axis=0))


@few
@given(AVERAGES, labelled)
def test_f1_is_from_0_to_1_and_1_where_all_is_right(average: Any, pairs: list[tuple[str, str]]) -> None:
    present = tuple(sorted({a for a, _ in pairs}))
    assert f1(F1(present, average), [(a, a) for a, _ in pairs]) == pytest.approx(1, abs=1e-12)
    assert 0 <= f1(F1(("a", "b", "c", "d"), average), pairs) <= 1
    if all(a != b for a, b in pairs):
        assert f1(F1(("a", "b", "c", "d"), average), pairs) == 0


@few
@given(AVERAGES, labelled, st.sampled_from(list(permutations("abcd"))))
def test_names_of_labels_do_not_matter(average: Any, pairs: list[tuple[str, str]], names: tuple[str, ...]) -> None:
    renamed = dict(zip("abcd", names, strict=True))
    other = [(renamed[a], renamed[b]) for a, b in pairs]
    wanted = f1(F1(("a", "b", "c", "d"), average), pairs)
    assert f1(F1(names, average), other) == wanted
    assert f1(F1(("a", "b", "c", "d"), average), other) == pytest.approx(wanted, abs=1e-12)
    swapped = f1(F1(("a", "b", "c", "d"), average), [(b, a) for a, b in pairs])
    if average != "weighted":  # which weighs by how often a label is gold
        assert swapped == wanted
    if average == "micro":
        assert wanted == pytest.approx(sum(a == b for a, b in pairs) / len(pairs), abs=1e-12)
