"""How often the comparison of shares errs on real text: articles drawn from many, as if no more were known."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lmgauge.evaluation.tally import SegmentSums
from lmgauge.filtering.options import SelectionSettings
from lmgauge.filtering.selection_results import SelectionCut, choose_cut
from lmgauge.filtering.selection_scores import (
    first_share,
    measure_differences,
    most_alike_first,
    read_pool,
    train_models,
)
from lmgauge.filtering.selection_search import Scored, compared
from lmgauge.models.ngram.training import train_ngram
from lmgauge.text.documents import Corpus

TEXTS = Path(__file__).parent.parent / "data"
CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
DRAWS, ARTICLES = 100, 20
AS_OFTEN = 0.05 + 2 * (0.05 * 0.95 / DRAWS) ** 0.5
"""An error of 5 %, and two standard errors of so few draws."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Scored]:
    """What models trained on shares of a pool make of 69 articles that they have not seen."""
    folder = tmp_path_factory.mktemp("laws")
    (folder / "held-out.txt").write_bytes(gzip.decompress((TEXTS / "wikitext2.train.txt.gz").read_bytes()))
    books = (TEXTS / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:600]
    plays = (TEXTS / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()
    articles = [line for line in (TEXTS / "wikitext2.test.txt").read_text(encoding="utf-8").splitlines() if line.strip()]
    settings = SelectionSettings(order=2)
    pool = Corpus.from_strings([*articles[::2], *books, *plays])
    models = train_models(settings, Corpus.from_strings(articles[1::2]), pool, sizes := read_pool(pool)[0])
    order = most_alike_first(measure_differences(models, pool))
    held_out = Corpus.from_files(folder / "held-out.txt", document="heading")
    parts = [pool.chosen(first_share(order, sizes, share)) for share in CUTS]
    return [Scored.of(train_ngram(settings.training(models.words), part), held_out, None) for part in parts]


def perplexity(scored: Scored, rows: np.ndarray | slice = slice(None)) -> float:
    return float(np.exp(-scored.sums.nats[rows].sum() / scored.sums.events[rows].sum()))


def chosen_rows(sums: SegmentSums, rows: np.ndarray) -> SegmentSums:
    return SegmentSums(*(None if column is None else column[rows] for column in vars(sums).values()))


def drawn(whole: Sequence[Scored], seed: int) -> tuple[SelectionCut, ...]:
    """The comparison of shares on some of the articles."""
    documents = whole[0].sums.documents
    assert documents is not None
    some = np.random.default_rng(seed).choice(np.unique(documents), ARTICLES, replace=False)
    rows = np.isin(documents, some)
    tried = []
    for share, one in zip(CUTS, whole, strict=True):
        evaluation = SimpleNamespace(perplexity=perplexity(one, rows), interval=None)
        part = Scored(evaluation, chosen_rows(one.sums, rows))  # type: ignore[arg-type]
        tried.append((SelectionCut(share, 1, 1, 0.0), [part]))
    return tuple(compared(tried))


@pytest.fixture(scope="module")
def draws(whole: list[Scored]) -> list[tuple[SelectionCut, ...]]:
    """The comparison of shares on articles that were drawn, many times."""
    return [drawn(whole, seed) for seed in range(DRAWS)]


def test_the_truly_best_share_is_rarely_called_worse(whole: list[Scored], draws: list[tuple[SelectionCut, ...]]) -> None:
    best = int(np.argmin([perplexity(one) for one in whole]))
    assert 0 < best < len(CUTS) - 1
    assert np.mean([cuts[best].worse for cuts in draws]) <= AS_OFTEN


def test_equal_shares_are_rarely_called_worse(whole: list[Scored]) -> None:
    """Where all shares are made equal on all articles, each differs from another by the draw of articles alone."""
    lowest = min(perplexity(one) for one in whole)
    shifted = [one.sums.nats + np.log(perplexity(one) / lowest) * one.sums.events for one in whole]
    equal = [replace(one, sums=replace(one.sums, nats=nats)) for one, nats in zip(whole, shifted, strict=True)]
    rejections = np.array([[cut.worse for cut in drawn(equal, seed)] for seed in range(DRAWS)])
    assert rejections.mean(axis=0).max() <= AS_OFTEN


@pytest.mark.parametrize("tolerance", [0.02, 0.1])
def test_a_tolerance_costs_no_more_than_it_says(
    whole: list[Scored], draws: list[tuple[SelectionCut, ...]], tolerance: float
) -> None:
    lowest = min(perplexity(one) for one in whole)
    true = dict(zip(CUTS, map(perplexity, whole), strict=True))
    lost, of_the_best = (
        np.array([true[choose_cut(cuts, allowed).share] / lowest - 1 for cuts in draws]) for allowed in (tolerance, 0.0)
    )
    assert np.mean(lost > np.maximum(tolerance, of_the_best)) <= AS_OFTEN
