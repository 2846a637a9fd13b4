"""Caches as models: they sum to one, see only what went by, and pass the audit."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.audit.auditing import audit

import lmgauge
from lmgauge import Corpus
from lmgauge.distributions.reduce import reduce
from lmgauge.distributions.reductions import Entropy, Mass
from lmgauge.errors import InputError, ModelFileError, UsageError
from lmgauge.models import MixtureModel
from lmgauge.models.cache.model import CacheModel, load_cache
from lmgauge.models.cache.settings import CacheSettings

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
