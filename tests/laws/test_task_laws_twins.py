"""The whole chain, from strings to the number, against slow twins and against the field's references, over odd texts."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.task_texts import PIECES, PLAIN, Segment, few, of, segment, segments
from tests.reference import bleu as bleu_twin
from tests.reference import chrf as chrf_twin
from tests.reference import edit_distance
from tests.reference import ter as ter_twin

from lmgauge.tasks import bleu, cer, chrf, ter, wer
from lmgauge.tasks.normalization import CONTRACTIONS

either = segments(PLAIN) | segments()
alike = st.integers(1, 3).flatmap(lambda count: st.lists(alike_segment(count), min_size=1, max_size=4))
BLANKS = dict.fromkeys(
    map(ord, "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"), " "
) | dict.fromkeys(range(0x2000, 0x200B), " ")


def alike_segment(count: int) -> st.SearchStrategy[Segment]:
    """A segment with so many references."""
    many = segment(references=1) | segment(PLAIN, references=1)
    return st.lists(many, min_size=count, max_size=count).map(
        lambda found: (found[0][0], [against[0] for _, against in found])
    )


def streams(pairs: list[Segment]) -> list[list[str]]:
    """References as sacreBLEU takes them: a list for each."""
    return [list(stream) for stream in zip(*(against for _, against in pairs), strict=True)]


def with_words(pairs: list[Segment]) -> bool:
    """Whether there is anything to score."""
    return any(text.strip() for text, _ in pairs) and any(text.strip() for _, several in pairs for text in several)


# -- twins --------------------------------------------------------------------------------------------------------------


@few
@given(
    either,
    st.integers(1, 5),
    st.sampled_from(["closest", "shortest", "average"]),
    st.sampled_from([("exp", None), ("floor", 0.3), ("add-k", 2.0), ("none", None)]),
    st.booleans(),
)
def test_bleu_is_the_twin_s(pairs: list[Segment], order: int, length: str, smoothing: Any, effective: bool) -> None:
    method, value = smoothing
    options = {"order": order, "reference_length": length, "smoothing": method, "smoothing_value": value}
    found = bleu(**of(pairs), tokenizer="none", effective_order=effective, lowercase=True, **options)
    lowered = [(hypothesis.lower(), [text.lower() for text in several]) for hypothesis, several in pairs]
    row = np.sum([bleu_twin.statistics(*pair, order, length) for pair in lowered], axis=0).tolist()
    assert [found.hypothesis_length, *found.counts, *found.totals] == [row[0], *row[2:]]
    row[1] /= 720720 if length == "average" else 1
    assert found.reference_length == row[1]
    expected = bleu_twin.score(row, method, value or 0.0, effective)
    assert found.score == pytest.approx(100 * expected, abs=1e-9)


@few
@given(either, st.integers(0, 6), st.integers(1, 2), st.sampled_from([1, 2, 0.5]), st.booleans(), st.booleans())
def test_chrf_is_the_twin_s(pairs: list[Segment], chars: int, words: int, beta: float, space: bool, eps: bool) -> None:
    options = {"char_order": chars, "word_order": words, "beta": beta, "whitespace": space, "eps_smoothing": eps}
    found = chrf(**of(pairs), **options)
    row = np.sum([chrf_twin.statistics(*pair, **options) for pair in pairs], axis=0).tolist()
    assert [found.hypothesis_ngrams, found.reference_ngrams, found.matches] == [tuple(row[k::3]) for k in range(3)]
    assert found.score == pytest.approx(chrf_twin.f_score(row, beta, eps), abs=1e-9)


@few
@given(either)
def test_ter_is_the_twin_s(pairs: list[Segment]) -> None:
    found = ter(**of(pairs), case_sensitive=True)
    counted = [(hypothesis.split(), [text.split() for text in several]) for hypothesis, several in pairs]
    edits = sum(min(ter_twin.edits(words, other) for other in several) for words, several in counted)
    length = sum(sum(map(len, several)) / len(several) for _, several in counted)
    assert found.num_edits == edits
    assert found.ref_length == pytest.approx(length, abs=1e-9)
    assert found.score == pytest.approx(100 * (edits / length if length else bool(edits)), abs=1e-9)


@few
@given(either)
def test_error_rates_are_the_twin_s(pairs: list[Segment]) -> None:
    """Of the first of the references that need the fewest edits, along the stated one of the best alignments."""
    for function, units in ((wer, str.split), (cer, lambda text: list(text.strip()))):
        found, counts = function(**of(pairs)), [0, 0, 0, 0]
        for hypothesis, several in pairs:
            words, others = units(hypothesis), [units(text) for text in several]
            nearest = min(others, key=lambda other: edit_distance.distance(other, words))
            for operation in edit_distance.align(nearest, words):
                counts[operation] += 1
        hits, substitutions, deletions, insertions = counts
        assert [found.hits, found.substitutions, found.deletions, found.insertions] == counts
        errors, length = substitutions + deletions + insertions, hits + substitutions + deletions
        assert found.score == (errors / length if length else insertions)
        assert found.mer == (errors / (hits + errors) if hits + errors else 0)
        product_of_shares = hits / length * (hits / (hits + substitutions + insertions)) if hits else float(not errors)
        assert found.wip == pytest.approx(product_of_shares, abs=1e-15)


# -- the field's references ---------------------------------------------------------------------------------------------


@few
@given(
    alike.filter(with_words),
    st.sampled_from(["13a", "none", "intl", "char", "zh"]),
    st.sampled_from([("exp", None), ("floor", 0.3), ("add-k", None), ("none", None)]),
    st.booleans(),
    st.booleans(),
)
def test_bleu_is_sacrebleu_s(pairs: list[Segment], tokenizer: str, smoothing: Any, effective: bool, lower: bool) -> None:
    peer = pytest.importorskip("sacrebleu.metrics").BLEU
    method, value = smoothing
    theirs = peer(
        lowercase=lower, tokenize=tokenizer, smooth_method=method, smooth_value=value, effective_order=effective
    ).corpus_score(of(pairs)["hypotheses"], streams(pairs))
    options = {"smoothing": method, "smoothing_value": value, "effective_order": effective}
    found = bleu(**of(pairs), tokenizer=tokenizer, lowercase=lower, **options)
    if method != "add-k":  # which sacreBLEU adds to the counts it shows
        assert [*found.counts, *found.totals] == [*theirs.counts, *theirs.totals]
    assert (found.hypothesis_length, found.reference_length) == (theirs.sys_len, theirs.ref_len)
    assert found.score == pytest.approx(theirs.score, abs=1e-9)
    assert f"{found.score:.9f}" == f"{theirs.score:.9f}"


@few
@given(alike.filter(with_words), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())
def test_chrf_is_sacrebleu_s(pairs: list[Segment], words: int, lower: bool, space: bool, eps: bool) -> None:
    peer = pytest.importorskip("sacrebleu.metrics").CHRF
    options = {"word_order": words, "lowercase": lower, "whitespace": space, "eps_smoothing": eps}
    theirs = peer(**options).corpus_score(of(pairs)["hypotheses"], streams(pairs))
    assert chrf(**of(pairs), **options).score == pytest.approx(theirs.score, abs=1e-9)


NAMES = ("normalized", "no_punct", "asian_support", "case_sensitive")
GRID = [dict(zip(NAMES, chosen, strict=True)) for chosen in product([False, True], repeat=4)]


@few
@given(alike.filter(with_words), st.sampled_from(GRID))
def test_ter_is_sacrebleu_s(pairs: list[Segment], options: dict[str, bool]) -> None:
    """Also in that references are normalised twice, which parts some once more ("..1", "it's,")."""
    peer = pytest.importorskip("sacrebleu.metrics").TER(**options)
    theirs = peer.corpus_score(of(pairs)["hypotheses"], streams(pairs))
    found = ter(**of(pairs), **options)
    assert (found.num_edits, found.ref_length) == (theirs.num_edits, pytest.approx(theirs.ref_length, abs=1e-9))
    assert found.score == pytest.approx(theirs.score, abs=1e-9)


@few
@given(st.lists(segment(references=1) | segment(PLAIN, 1), min_size=1, max_size=5))
def test_error_rates_are_jiwer_s(pairs: list[Segment]) -> None:
    """jiwer parts words at blanks only, so it is given blanks for other white space."""
    jiwer = pytest.importorskip("jiwer")
    references, hypotheses = [against[0] for _, against in pairs], [hypothesis for hypothesis, _ in pairs]
    spaced = [[text.translate(BLANKS) for text in side] for side in (references, hypotheses)]
    names = ("hits", "substitutions", "deletions", "insertions")
    found, theirs = wer(**of(pairs)), jiwer.process_words(*spaced)
    assert [getattr(found, name) for name in names] == [getattr(theirs, name) for name in names]
    assert (found.score, found.mer, found.wil) == (theirs.wer, theirs.mer, theirs.wil)
    found, theirs = cer(**of(pairs)), jiwer.process_characters(references, hypotheses)
    assert [getattr(found, name) for name in names] == [getattr(theirs, name) for name in names]
    assert found.score == theirs.cer


SPEECH = (*("don't", "won't", "let's", "can't", "I'm", "'s", "'", "n't", "'ve", "we'll", "'d"), *PLAIN, *PIECES)


@few
@given(st.lists(segment(SPEECH, 1), min_size=1, max_size=5))
def test_standardised_rates_are_jiwer_s(pairs: list[Segment]) -> None:
    jiwer = pytest.importorskip("jiwer")
    blank = [(text.translate(BLANKS), [several[0].translate(BLANKS)]) for text, several in pairs]
    references, hypotheses = [against[0] for _, against in blank], [hypothesis for hypothesis, _ in blank]
    transform = jiwer.transformations.wer_standardize
    theirs = jiwer.process_words(references, hypotheses, transform, transform)
    found = wer(**of(blank), standardize=True)
    assert (found.hits, found.substitutions) == (theirs.hits, theirs.substitutions)
    assert (found.deletions, found.insertions) == (theirs.deletions, theirs.insertions)


@few
@given(
    st.lists(st.sampled_from(SPEECH), max_size=12).map("".join), st.lists(st.sampled_from(SPEECH), max_size=9).map("".join)
)
def test_contractions_are_expanded_text_by_text(one: str, two: str) -> None:
    def expanded(text: str) -> str:
        for short, full in CONTRACTIONS:
            text = text.replace(short, full)
        return text

    whole = wer(hypotheses=[one, two], references=[expanded(one), expanded(two)], expand_contractions=True)
    again = wer(hypotheses=[expanded(one), expanded(two)], references=[one, two], expand_contractions=True)
    assert math.fsum((whole.score, again.score)) == 0


@few
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=30))
def test_f1_is_scikit_learn_s(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    from lmgauge.api.task_scores import score_labels

    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    for average in ("macro", "micro", "weighted"):
        (found,) = score_labels(gold=gold, predicted=predicted, average=average, significance="none")
        wanted = metrics.f1_score(gold, predicted, average=average, zero_division=0)
        assert found.score.score == pytest.approx(wanted, abs=1e-12)
        assert getattr(found.score.labels, average)[2] == pytest.approx(wanted, abs=1e-12)
