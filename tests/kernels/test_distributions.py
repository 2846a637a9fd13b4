"""Rows and sums of whole distributions against the back-off recursion over dictionaries, with an index and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.kernels.test_lookup import KINDS, Twin, lines, model_tables, words
from tests.reference.packed_tables import decode

from lmgauge._kernels import _native
from lmgauge.base.errors import ProbabilityError
from lmgauge.models.ngram.full_distribution import WholeDistributions
from lmgauge.models.ngram.packing import TableBuilder
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.scores.distributions.reductions import direct
from lmgauge.text.vocabulary import BOS, EOS

SIZE = 8  # <unk>, <s>, </s>, a to e


def slow_distribution(tables: NgramTables, context: list[int]) -> NDArray[np.float64]:
    """The probabilities of all words after ids, the last of them before the event."""
    begin = max([len(context) - tables.order + 1, 0, *(i for i, word in enumerate(context) if word == BOS)])
    window = tuple(context[begin:]) if tables.order > 1 else ()
    slow = Twin(tables)
    p = np.array([slow.p(word, window)[0] if word != BOS else 0.0 for word in range(SIZE)])
    p[0] *= tables.unigrams[0, 0] > 0
    return p


def both_ways(tables: NgramTables, eos: bool = True) -> list[WholeDistributions]:
    """One that looks for what was seen after a context, and one that has an index of it."""
    slow, fast = WholeDistributions(tables, eos=eos), WholeDistributions(tables, eos=eos)
    slow._source = lambda distributions: (tables.arguments(), [], slow._unigrams, eos)  # type: ignore[method-assign]
    fast._source = lambda distributions: (  # type: ignore[method-assign]
        tables.arguments(), tables.children, fast._unigrams, eos,
    )  # fmt: skip
    return [slow, fast]


def contexts_of(tables: NgramTables, contexts: list[list[int]]) -> NDArray[np.uint32]:
    found = np.empty((len(contexts), tables.order - 1), np.uint32)
    for row, context in zip(found, contexts, strict=True):
        _native.find_context(tables.arguments(), np.array(context, np.uint32), row)
    return found


models = st.builds(model_tables, lines, st.sampled_from(KINDS), st.integers(1, 5), st.booleans())
texts = st.lists(st.lists(words, max_size=6), min_size=1, max_size=4)


@given(models, texts, st.booleans())
def test_rows(tables: NgramTables, contexts: list[list[int]], eos: bool) -> None:
    expected = np.array([slow_distribution(tables, context) for context in contexts])
    if not eos:
        expected[:, EOS] = 0
    slots = contexts_of(tables, contexts)
    for whole in both_ways(tables, eos):
        rows = whole.rows(slots, logarithms=False)
        np.testing.assert_allclose(rows, expected, rtol=1e-15, atol=0)
        with np.errstate(divide="ignore"):
            logarithms = np.maximum(np.log(rows), -1e30)
        np.testing.assert_allclose(whole.rows(slots, logarithms=True), logarithms, rtol=1e-15, atol=0)
        assert whole.after(np.array(contexts[0], np.uint32)).tolist() == rows[0].tolist()


@given(models, texts, st.booleans())
def test_sums(tables: NgramTables, contexts: list[list[int]], eos: bool) -> None:
    slots = contexts_of(tables, contexts)
    slow, fast = both_ways(tables, eos)
    sums = fast.sums(slots)
    assert sums.tolist() == slow.sums(slots).tolist()
    assert sums.tolist() == fast.sums(slots).tolist()  # remembered
    p = fast.rows(slots, logarithms=False)
    log = np.log(np.where(p > 0, p, 1))
    mean = (p * log).sum(axis=1)
    np.testing.assert_allclose(sums[:, 0], p.sum(axis=1), rtol=1e-12, atol=0)
    np.testing.assert_allclose(sums[:, 1], mean, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(sums[:, 2], (p * (log - mean[:, None]) ** 2).sum(axis=1), rtol=1e-10, atol=1e-13)


@settings(max_examples=80)
@given(models, texts, st.booleans(), st.integers(1, SIZE), st.data())
def test_ranks_and_most_probable_words(
    tables: NgramTables, contexts: list[list[int]], eos: bool, k: int, data: st.DataObject
) -> None:
    slots = contexts_of(tables, contexts)
    targets = np.array([data.draw(st.integers(0, SIZE - 1)) for _ in contexts], np.uint32)
    for whole in both_ways(tables, eos):
        rows = whole.rows(slots, logarithms=False)
        own = rows[np.arange(len(rows)), targets]
        assert whole.ranks(slots, targets).tolist() == (1 + (rows > own[:, None]).sum(axis=1)).tolist()
        ids, logarithms = whole.top(slots, k)
        expected = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        assert ids.tolist() == expected.tolist()
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(logarithms, np.log(np.take_along_axis(rows, expected, 1)), rtol=1e-15, atol=0)
    assert whole.top(slots, SIZE + 5)[0].shape == (len(contexts), SIZE)


@settings(max_examples=120)
@given(models, models, texts, st.booleans())
def test_divergences(a: NgramTables, b: NgramTables, contexts: list[list[int]], eos: bool) -> None:
    slots = [contexts_of(tables, contexts) for tables in (a, b)]
    ways = zip(both_ways(a, eos), both_ways(b, eos), strict=True)
    slow, fast = (one.divergences(slots[0], other, slots[1]) for one, other in ways)
    np.testing.assert_array_equal(slow, fast)
    rows = [both_ways(tables, eos)[1].rows(at, logarithms=False) for tables, at in zip((a, b), slots, strict=True)]
    with np.errstate(divide="ignore"):
        expected = [direct(*np.log(pair))[0] for pair in zip(*rows, strict=True)]
    np.testing.assert_allclose(fast, expected, rtol=1e-9, atol=1e-13)


@given(models, texts)
def test_a_model_is_not_apart_from_itself(tables: NgramTables, contexts: list[list[int]]) -> None:
    slots = contexts_of(tables, contexts)
    whole = tables.whole(eos=True)
    divergence = whole.divergences(slots, whole, slots)
    impossible = whole.sums(slots)[:, 0] == 0
    assert np.isnan(divergence[impossible]).all()
    assert (divergence[~impossible] == 0).all()


def heavy(weight_of_rest: float = 0.5) -> NgramTables:
    """A back-off weight of 1000 after `a`: what was seen has nearly all of the shorter context's mass, half of its own."""
    tables = model_tables(["a a"], "witten-bell", 2)
    a = 3
    tables.unigrams[:, 0] = 1e-4
    tables.unigrams[[BOS, EOS, a], 0] = 0, 0.0995, 0.9
    entries = tables.tables[0].entries()
    builder = TableBuilder(len(tables.unigrams), order=2)
    probabilities = np.where(entries.parents == a, np.float32(0.25), entries.probabilities)
    builder.add(entries.parents, entries.words, probabilities, entries.weights)
    tables.unigrams[a, 1] = weight_of_rest / 5e-4
    return replace(tables, tables=builder.tables)


def test_large_weights_do_not_make_rounding_large() -> None:
    tables = heavy()
    slots = contexts_of(tables, [[3], [4], [BOS]])
    other = model_tables(["a b a c a d", "e"], "witten-bell", 1)
    clipped = heavy(6e-4)
    clipped.unigrams[[4, 5], 0] = 1.0000005, 0.1
    rows = clipped.whole(eos=True).rows(slots[1:2], logarithms=False)
    assert rows.max() == 1  # above by rounding only
    assert clipped.whole(eos=True).top(slots[1:2], 1)[0].tolist() == [[4]]
    assert clipped.whole(eos=True).ranks(slots[1:2], np.array([4], np.uint32)).tolist() == [1]
    for whole in both_ways(tables):
        p = whole.rows(slots, logarithms=False)
        log = np.log(np.where(p > 0, p, 1))
        sums = whole.sums(slots)
        np.testing.assert_allclose(sums[:, 1], (p * log).sum(axis=1), rtol=1e-14)
        assert sums[0, 3] == 1  # the whole distribution was added up
        unigrams = other.whole(eos=True)
        divergence = whole.divergences(slots, unigrams, contexts_of(other, [[3]] * 3))
        with np.errstate(divide="ignore"):
            expected = [direct(row, np.log(unigrams.after(np.zeros(0, np.uint32))))[0] for row in np.log(p)]
        np.testing.assert_allclose(divergence, expected, rtol=1e-13)


@pytest.mark.parametrize(("context", "weight", "most"), [(3, 1.2e7, "1200"), (4, 2.0, "1.8")])
def test_probabilities_above_one_are_refused(context: int, weight: float, most: str) -> None:
    tables = heavy()
    tables.unigrams[context, 1] = weight
    whole, slots = tables.whole(eos=True), contexts_of(tables, [[context]])
    for work in (
        whole.sums,
        lambda s: whole.rows(s, logarithms=True),
        lambda s: whole.rows(s, logarithms=False),
        lambda s: whole.ranks(s, np.array([5], np.uint32)),
        lambda s: whole.top(s, 2),
    ):
        with pytest.raises(ProbabilityError, match=f"probability {most}:"):
            work(slots)


@settings(max_examples=60)
@given(models, st.lists(words, max_size=40), st.integers(0, 5))
def test_scoring_names_the_contexts(tables: NgramTables, tail: list[int], skip: int) -> None:
    ids = [BOS, *tail]
    events = tables.score(np.array(ids, np.uint32), skip=min(skip, len(ids)), contexts=True)
    expected = [ids[:i] for i, word in enumerate(ids) if word != BOS and i >= skip]
    assert events.contexts.tolist() == contexts_of(tables, expected).tolist()
    assert len(tables.score(np.array(ids, np.uint32)).contexts) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_cross_blocks_of_the_kernel(kind: str) -> None:
    """The kernel works through 512 tokens at a time; the memo of sums grows several times."""
    random = np.random.default_rng(5)
    tables = model_tables([" ".join(random.choice(list("abcde"), 60)) for _ in range(30)], kind, 5)
    ids = random.integers(2, 8, 3000).astype(np.uint32)
    ids[random.random(3000) < 0.004] = BOS
    ids[0] = BOS
    contexts = tables.score(ids, contexts=True).contexts
    expected = [ids[max(0, i - 10) : i].tolist() for i, word in enumerate(ids.tolist()) if word != BOS]
    assert contexts.tolist() == contexts_of(tables, expected).tolist()
    whole = tables.whole(eos=True)
    whole._known = whole._known[: tables.order + 1].copy()
    sums = whole.sums(contexts)
    assert len(whole._known) > 100
    assert sums.tolist() == tables.whole(eos=False).__class__(tables, eos=True).sums(contexts).tolist()


@given(models)
def test_children_are_the_entries_of_the_tables(tables: NgramTables) -> None:
    grams = decode(tables.tables)
    for k, (offsets, children) in enumerate(tables.children):
        expected = {(gram[-1], probability) for gram, (probability, _) in grams[k].items()}
        pairs = children.view(np.uint32).reshape(-1, 2)
        probabilities = children.view(np.float32).reshape(-1, 2)[:, 1]
        assert set(zip(pairs[:, 0].tolist(), probabilities.tolist(), strict=True)) == expected
        assert offsets[0] == 0
        assert offsets[-1] == len(children) == len(grams[k])
        below = SIZE if k == 0 else tables.tables[k - 1].slots
        assert len(offsets) == below + 1


def test_arguments_that_do_not_belong_together_are_refused() -> None:
    tables = model_tables(["a b c a b", "b c a", "c c"], "witten-bell", 3)
    whole = tables.whole(eos=True)
    contexts, rows = contexts_of(tables, [[3, 4]]), np.empty(SIZE)
    model, _, unigrams, eos = whole._source(1)
    for wrong in (
        (model, tables.children[:1], unigrams, eos),
        (model, tables.children[::-1], unigrams, eos),
        (model, tables.children, (unigrams[0], unigrams[1][:-1]), eos),
        (model, tables.children, (unigrams[0][:1], unigrams[1]), eos),
    ):
        with pytest.raises(ValueError, match=r"."):
            _native.fill_distributions(wrong, contexts, False, rows)
    source = (model, tables.children, unigrams, eos)
    for slots in (contexts[:, :1].copy(), np.full((1, 2), 2**32 - 3, np.uint32), np.full((1, 2), 2**32 - 2, np.uint32)):
        with pytest.raises(ValueError, match="context"):
            _native.fill_distributions(source, slots, False, rows)
    with pytest.raises(ValueError, match="output"):
        _native.fill_distributions(source, contexts, False, rows[:-1])
    with pytest.raises(ValueError, match="offsets"):
        _native.index_children(tables.tables[0].kernel, np.empty(2, np.uint32), np.empty(9, np.uint64))
    with pytest.raises(ValueError, match="children"):
        _native.index_children(tables.tables[0].kernel, np.empty(SIZE + 1, np.uint32), np.empty(1, np.uint64))
    with pytest.raises(ValueError, match="memo"):
        _native.sum_distributions(source, contexts, ([np.zeros(2, np.uint32)], np.empty((9, 4))), 0, np.empty((1, 4)))
