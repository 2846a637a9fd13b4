"""The difference of cross-entropies, against the slow twin and by its rules."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import selection as slow

from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.options import SelectionSettings
from lmgauge.filtering.selection import (
    SelectionModels,
    document_sizes,
    draw_samples,
    measure_entropies,
    train_models,
)
from lmgauge.text.documents import Corpus
from lmgauge.text.split import random_keys

IN_DOMAIN = ["the court finds the claim", "the claim is dismissed", "the court dismissed the claim", "costs are allowed"] * 3
POOL = [
    "the court allowed the claim",
    "buy cheap shoes now",
    "the cat sat",
    "",
    "shoes shoes shoes",
    "costs of the court",
    "now the cat is cheap",
    "the claim is allowed",
    "a dog sat on the cat",
    "   ",
    "cheap costs",
    "buy the dog",
]


def differences(models: SelectionModels, pool: Corpus, threads: int | None = None) -> NDArray[np.float64]:
    entropies = measure_entropies(models, pool, threads=threads)
    return entropies.in_domain - entropies.pool


def trained(settings: SelectionSettings, texts: list[str] = POOL) -> tuple[SelectionModels, Corpus]:
    pool = Corpus.from_strings(texts)
    return train_models(settings, Corpus.from_strings(IN_DOMAIN), pool, document_sizes(pool)), pool


@pytest.mark.parametrize("smoothing", ["witten-bell", "modified-kneser-ney", "laplace"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_differences_are_those_of_the_slow_twin(smoothing: str, order: int) -> None:
    models, pool = trained(SelectionSettings(smoothing=smoothing, order=order))  # type: ignore[arg-type]
    fast = differences(models, pool)
    expected = slow.differences(
        smoothing, order, [text.split() for text in IN_DOMAIN], [text.split() for text in POOL], models.samples.tolist()
    )
    np.testing.assert_allclose(fast, expected, rtol=1e-6, atol=1e-6)
    assert np.flatnonzero(np.isnan(fast)).tolist() == [3, 9]  # no words


def test_the_vocabulary_is_of_words_seen_twice_in_the_in_domain_text() -> None:
    models, _ = trained(SelectionSettings(min_count=4))
    assert set(models.words) == set(slow.in_domain_words([text.split() for text in IN_DOMAIN], 4))
    assert models.pool[0].vocabulary.tokens == models.pool[1].vocabulary.tokens == models.in_domain.vocabulary.tokens


def test_the_in_domain_model_is_the_same_with_its_words_listed() -> None:
    settings = SelectionSettings(min_count=4)
    models, _ = trained(settings)
    from lmgauge.models.ngram.training import train_ngram

    listed = train_ngram(settings.training(models.words), Corpus.from_strings(IN_DOMAIN))
    assert listed.vocabulary.tokens == models.in_domain.vocabulary.tokens
    scores = [next(iter(model.score(Corpus.from_strings(POOL)))).logprob for model in (listed, models.in_domain)]
    np.testing.assert_array_equal(*scores)


def test_a_document_is_never_scored_by_a_model_that_was_trained_on_it() -> None:
    models, pool = trained(SelectionSettings(smoothing="laplace", order=1))
    assert sorted(set(models.samples.tolist())) == [0, 1, 2]
    block = next(iter(pool))
    scored = models.score_block(block)
    for model, part in ((models.pool[0], 2), (models.pool[1], 1)):
        for row in np.flatnonzero(models.samples == part).tolist():
            events = next(iter(model.score([block.part(row, row + 1)]))).logprob
            assert scored.pool[row] == pytest.approx(-events.sum() / np.log(2) / len(events), rel=1e-12)


def test_differences_depend_neither_on_blocks_nor_on_threads() -> None:
    models, pool = trained(SelectionSettings())
    whole = differences(models, pool, 1)
    np.testing.assert_array_equal(differences(models, pool.in_blocks(20), 2), whole)


def test_reserved_words_of_the_pool_stop_nothing() -> None:
    models, pool = trained(SelectionSettings(), [*POOL, "the <unk> </s> court", "<s>"])
    assert np.isfinite(differences(models, pool)[-2:]).all()


def test_samples_are_disjoint_and_at_most_half_of_the_pool() -> None:
    sizes = np.array([10, 0, 10, 10, 10, 10], np.uint32)
    samples = draw_samples(sizes, seed=3, wanted=1000)
    assert np.bincount(samples, sizes).tolist()[1:] == [20, 20]
    assert samples[1] == 0
    small = draw_samples(sizes, seed=3, wanted=10)
    assert np.bincount(small, sizes).tolist() == [30, 10, 10]
    two = draw_samples(np.array([1, 9], np.uint32), seed=3, wanted=4)
    assert sorted(two.tolist()) == [1, 2]


def test_samples_of_a_large_pool_are_the_documents_with_the_lowest_keys() -> None:
    sizes = (random_keys(5000, seed=9) % np.uint64(90) + np.uint64(10)).astype(np.uint32)
    samples = draw_samples(sizes, seed=3, wanted=3000)
    order = np.argsort(random_keys(5000, seed=3), kind="stable")
    first, second = (np.count_nonzero(samples == part) for part in (1, 2))
    assert set(np.flatnonzero(samples == 1)) == set(order[:first])
    assert set(np.flatnonzero(samples)) == set(order[: first + second])
    assert all(2900 < sizes[samples == part].sum() <= 3000 for part in (1, 2))


def test_a_pool_of_one_document_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to select from"):
        document_sizes(Corpus.from_strings(["the cat", ""]))


def test_a_target_without_frequent_words_is_refused() -> None:
    pool = Corpus.from_strings(POOL)
    with pytest.raises(InputError, match=r"no word occurs 2 times .* a lower --min-count"):
        train_models(SelectionSettings(), Corpus.from_strings(["a b c"]), pool, document_sizes(pool))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": "mle"}, "unknown smoothing 'mle': choose one of laplace, "),
        ({"smoothing": "lidstone"}, "unknown smoothing"),
        ({"share": 0.5, "max_difference": 0.0}, "give one of them"),
        ({"share": 0.0}, "from above 0 to 1"),
        ({"share": 1.5}, "from above 0 to 1"),
        ({"max_difference": float("nan")}, "must be a number from -1000 to 1000"),
        ({"min_count": 0}, "1 or more"),
        ({"seed": -1}, "0 or more"),
        ({"order": 0}, "order"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SelectionSettings(**options)  # type: ignore[arg-type]
