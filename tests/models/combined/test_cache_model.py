"""Caches: what they count, as models, and in folders."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.audit.auditing import audit

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models import MixtureModel
from lmgauge.models.combined.cache_model import CacheCounts, CacheModel, load_cache
from lmgauge.models.model_settings import CacheSettings
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Entropy, Mass

DATA = Path(__file__).parents[2] / "data"
LINES = [line for line in (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="module")
def base() -> lmgauge.NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(LINES[:300]), order=2)


@pytest.mark.parametrize("options", [{}, {"order": 1, "decay": 0.98}, {"order": 3, "window": 50}])
def test_it_passes_the_audit(base: lmgauge.NgramModel, options: dict[str, float]) -> None:
    model = lmgauge.cache(base, weight=0.2, **options)  # type: ignore[arg-type]
    found = audit(model, Corpus.from_strings(LINES[400:440], block_bytes=300), contexts=60, compression_bytes=700)
    assert found.passed, str(found)


def test_on_a_text_that_repeats_itself_it_helps(base: lmgauge.NgramModel) -> None:
    text = LINES[400:420] * 3
    alone = lmgauge.evaluate(base, texts=text).perplexity
    adapting = lmgauge.cache(base, Corpus.from_strings(LINES[500:520] * 3))
    assert lmgauge.evaluate(adapting, texts=text).perplexity < alone / 3
    assert adapting.weights[1] > 0.3
    assert adapting.label == "mix(wb2+cache2-500)"


def test_score_is_what_log_distribution_says(base: lmgauge.NgramModel) -> None:
    model = lmgauge.cache(base, weight=0.3, order=2, window=20)
    (batch,) = model.score(Corpus.from_strings(LINES[400:410]))
    context = [1]
    for token, logprob in zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True):
        distribution = model.log_distribution(np.array(context, np.uint32))
        assert distribution[token] == pytest.approx(logprob, abs=1e-12)
        assert np.exp(distribution).sum() == pytest.approx(1, abs=1e-6)
        context.append(token)
    # A question about an earlier place, and about another text.
    assert model.log_distribution(np.array(context[:5], np.uint32))[context[5]] == pytest.approx(batch.logprob[4], abs=1e-12)
    assert model.log_distribution(np.array([1, 7, 9], np.uint32)).shape == (len(model.vocabulary),)


def test_distributions_in_tiles_and_one_by_one(base: lmgauge.NgramModel) -> None:
    cache = CacheModel.beside(base, CacheSettings(order=2, window=30))
    text = Corpus.from_strings(LINES[400:430], block_bytes=200)
    tiles = list(reduce(cache, text, [Entropy(), Mass()]))
    assert len(tiles) > 2
    context = [1]
    for batch in tiles:
        for token, entropy, mass, logprob in zip(
            batch.token_ids.tolist(), batch.extra["entropy"], batch.extra["mass"], batch.logprob, strict=True
        ):
            p = np.exp(cache.log_distribution(np.array(context, np.uint32)))
            assert mass == pytest.approx(1, abs=1e-12)
            assert entropy == pytest.approx(-float(np.sum(p[p > 0] * np.log(p[p > 0]))), abs=1e-12)
            assert np.exp(logprob) == p[token]
            context.append(token)
    chosen = np.array([0, 3, 50, 51, 100])
    some = [batch.extra["entropy"] for batch in reduce(cache, text, [Entropy()], events=chosen)]
    np.testing.assert_array_equal(np.concatenate(some), np.concatenate([b.extra["entropy"] for b in tiles])[chosen])


def test_each_text_begins_with_an_empty_cache(base: lmgauge.NgramModel) -> None:
    model = lmgauge.cache(base, weight=0.5)
    first = lmgauge.evaluate(model, texts=LINES[400:410])
    assert lmgauge.evaluate(model, texts=LINES[400:410]).perplexity == first.perplexity
    assert "context:stream" in first.signature
    assert "cache2-500" in first.signature


def test_settings_are_in_the_fingerprint(base: lmgauge.NgramModel) -> None:
    prints = {
        CacheModel.beside(base, settings).fingerprint
        for settings in (
            CacheSettings(order=1, window=None),
            CacheSettings(window=None),
            CacheSettings(order=1, window=9),
            CacheSettings(order=1, decay=0.9),
        )
    }
    assert len(prints) == 4
    assert lmgauge.cache(base, weight=0.1).fingerprint != lmgauge.cache(base, weight=0.2).fingerprint


def test_a_folder_gives_the_same_model(base: lmgauge.NgramModel, tmp_path: Path) -> None:
    model = lmgauge.cache(base, Corpus.from_strings(LINES[500:520]), decay=0.9, output=tmp_path / "adapting")
    again = lmgauge.load_model(tmp_path / "adapting")
    assert isinstance(again, MixtureModel)
    assert again.fingerprint == model.fingerprint
    text = LINES[400:410]
    assert lmgauge.evaluate(again, texts=text).perplexity == lmgauge.evaluate(model, texts=text).perplexity
    alone = lmgauge.load_model(tmp_path / "adapting" / "component-2")
    assert isinstance(alone, CacheModel)
    assert asdict(alone.settings) == {"order": 2, "window": None, "decay": 0.9}
    assert "CacheModel(cache2-decay0.9" in repr(alone)
    assert lmgauge.load_model(tmp_path / "adapting", reserved="unk").components[1].reserved == "unk"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "damage",
    [
        {"order": 99},
        {"order": "x"},
        {"window": -1},
        {"format_version": 7},
        {"tokenizer": {"name": "../x"}},
        {"tokenizer": None},
        {"fingerprint": "0"},
        {"decay": 0.5},
        {"reserved": None},
    ],
)
def test_a_damaged_folder_is_refused(base: lmgauge.NgramModel, tmp_path: Path, damage: dict[str, object]) -> None:
    folder = tmp_path / "cache"
    CacheModel.beside(base, CacheSettings(window=None)).save(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | damage), encoding="utf-8")
    with pytest.raises(ModelFileError):
        load_cache(folder)


@pytest.mark.parametrize("tokens", ["[", "{}", '["a", "a"]', "[1]", '["\\ud800"]', None])
def test_damaged_tokens_are_refused(base: lmgauge.NgramModel, tmp_path: Path, tokens: str | None) -> None:
    folder = tmp_path / "cache"
    CacheModel.beside(base, CacheSettings(order=1, window=None)).save(folder)
    (folder / "vocabulary.json").unlink() if tokens is None else (folder / "vocabulary.json").write_text(tokens, "utf-8")
    with pytest.raises(ModelFileError):
        load_cache(folder)


def test_refused(base: lmgauge.NgramModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="weight must be a number from 0 to 1"):
        lmgauge.cache(base, weight=1.5)
    with pytest.raises(UsageError, match="not both"):
        lmgauge.cache(base, window=5, decay=0.5)
    with pytest.raises(UsageError, match="is a folder"):
        lmgauge.cache(base, output=tmp_path / "x.arpa")
    with pytest.raises(InputError, match="no events"):
        lmgauge.cache(base, Corpus.from_strings([]))
    without = lmgauge.train("witten-bell", Corpus.from_strings(LINES[:50]), order=2, eos=False)
    with pytest.raises(UsageError, match="the end of a line"):
        lmgauge.cache(without)
    assert lmgauge.cache(base).weights == (0.9, 0.1)


A, B, C = 3, 4, 5
UNIGRAMS = {"order": 1, "window": None}


def after(tokens: list[int], **settings: float) -> CacheCounts:
    counts = CacheCounts(CacheSettings(**UNIGRAMS | settings), 6)  # type: ignore[arg-type]
    for token in tokens:
        counts.add(token)
    return counts


def test_nothing_went_by() -> None:
    for order in (1, 3):
        p = after([], order=order).distribution()
        assert p.tolist() == [0.2, 0.0, 0.2, 0.2, 0.2, 0.2]  # all but <s>


def test_shares_of_what_went_by() -> None:
    counts = after([A, B, A, 2])
    assert [counts.probability(token) for token in (2, A, B, C)] == [0.25, 0.5, 0.25, 0.0]


def test_a_window_forgets() -> None:
    counts = after([A, A, A, B, C], window=3)
    assert [counts.probability(token) for token in (A, B, C)] == [1 / 3, 1 / 3, 1 / 3]
    assert after([A] * 5 + [B, B], window=2).probability(B) == 1


def test_a_decay_fades() -> None:
    # a counts 1/4, b 1/2, c 1.
    counts = after([A, B, C], decay=0.5)
    assert [counts.probability(token) for token in (A, B, C)] == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_what_came_after_what() -> None:
    # After a came b twice and c once: (2 + p_1(b)) / (3 + 1) with p_1(b) = 2 / 7.
    counts = after([A, B, A, B, A, C, A], order=2)
    assert counts.probability(B) == (2 + 2 / 7) / 4
    assert counts.probability(C) == (1 + 1 / 7) / 4
    # After an event that nothing came after, what went by.
    counts = after([A, B, C], order=2)
    assert counts.probability(A) == (0 + 1 / 3) / 1


def test_a_window_takes_back_pairs_too() -> None:
    # Of the last three events b, a, c only a came after b, and c after a.
    counts = after([A, B, A, C, A], order=2, window=3)
    assert counts.probability(C) == (1 + 1 / 3) / (1 + 1)
    assert counts.probability(B) == 0  # its own event has left


@pytest.mark.parametrize(
    "settings", [{"order": 3, "window": 4}, {"order": 2, "window": 1}, {"order": 4}, {"order": 2, "decay": 0.6}]
)
def test_against_counts_made_anew(settings: dict[str, float]) -> None:
    """A twin that keeps all events, and counts them anew at each."""
    rng = np.random.default_rng(3)
    tokens = rng.integers(2, 6, 60).tolist()
    counts = after([], **settings)
    order, window, decay = int(settings.get("order", 1)), settings.get("window"), settings.get("decay")
    for i in range(len(tokens)):
        for token in range(6):
            assert counts.probability(token) == pytest.approx(slow(tokens[:i], token, order, window, decay), abs=1e-12)
        p = counts.distribution()
        assert p.tolist() == [counts.probability(token) for token in range(6)]
        assert p.sum() == pytest.approx(1, abs=1e-12)
        counts.add(tokens[i])


def slow(seen: list[int], token: int, order: int, window: float | None, decay: float | None) -> float:
    p = 0.0 if token == 1 else 0.2
    first = 0 if window is None else max(0, len(seen) - int(window))
    for k in range(order):
        if k > len(seen):
            break
        context = seen[len(seen) - k :]
        places = [i for i in range(max(first, k), len(seen)) if seen[i - k : i] == context]
        weights = {i: 1.0 if decay is None else decay ** (len(seen) - 1 - i) for i in places}
        total, count = sum(weights.values()), sum(weights[i] for i in places if seen[i] == token)
        if k:
            p = (count + p) / (total + 1)
        elif total:
            p = count / total
    return p


def test_long_texts_do_not_overflow() -> None:
    counts = after([A, B] * 2000, decay=0.5)
    assert counts.probability(B) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("settings", "label"),
    [({}, "cache"), ({"window": 500}, "cache500"), ({"order": 2, "decay": 0.998}, "cache2-decay0.998")],
)
def test_labels(settings: dict[str, float], label: str) -> None:
    assert CacheSettings(**UNIGRAMS | settings).label == label  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"order": 0}, {"order": 9}, {"window": 0}, {"decay": 1.0}, {"decay": 0.0}, {"window": 5, "decay": 0.5}]
)
def test_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        CacheSettings(**wrong)  # type: ignore[arg-type]
