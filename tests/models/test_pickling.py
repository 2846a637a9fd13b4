"""A loaded model pickles as the place that it was loaded from, and is the same model where it is unpickled."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from tests.models.network.server.toy_server import ToyServer

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import ModelFileError

TEXT = ["the cat sat on the mat", "the dog sat on the cat", "a zebra"]
LARGE = 8192  # bytes: more than a path and a digest take


def trained(order: int = 2) -> Any:
    return lmgauge.train("kneser-ney", Corpus.from_strings(TEXT[:2]), order=order)


MAKERS: dict[str, Callable[[Path], Any]] = {
    "n-gram": lambda folder: trained(),
    "spelled": lambda folder: lmgauge.spell(trained(), Corpus.from_strings(TEXT)),
    "mixture": lambda folder: lmgauge.mix([trained(), trained(1)], weights=[0.5, 0.5]),
    "cache": lambda folder: lmgauge.cache(trained(), weight=0.25),
}


def scored(model: Any) -> float:
    return lmgauge.evaluate(model, Corpus.from_strings(TEXT)).perplexity


def assert_same(model: Any, *, small: bool = True) -> None:
    expected = scored(model)
    if hasattr(model, "distributions"):  # what is remembered of these need not be pickled
        list(model.distributions(Corpus.from_strings(TEXT))), model.score_text("the cat")
    data = pickle.dumps(model)
    assert not small or len(data) < LARGE
    again = pickle.loads(data)
    assert (scored(again), again.fingerprint) == (expected, model.fingerprint)
    assert scored(copy.deepcopy(model)) == scored(copy.copy(model)) == expected


@pytest.mark.parametrize("kind", MAKERS)
def test_loaded_models_pickle_as_their_place(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MAKERS[kind](tmp_path)
    assert_same(made, small=False)
    made.save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    loaded = lmgauge.load_model("model")
    data = pickle.dumps(loaded)
    monkeypatch.chdir("/")  # a worker may be elsewhere
    assert pickle.loads(data).fingerprint == loaded.fingerprint
    assert_same(loaded)
    assert_same(loaded.with_reserved("escape"), small=False)


@pytest.mark.parametrize("name", ["model.arpa", "model.binary"])
def test_models_of_other_programs_pickle(name: str, tmp_path: Path) -> None:
    from lmgauge.models.ngram.kenlm.writer import write_kenlm

    path = tmp_path / name
    trained().save(path) if name.endswith("arpa") else write_kenlm(trained(), path)
    assert_same(lmgauge.load_model(path))
    assert_same(lmgauge.load_model(path, tokenizer="character", reserved="unk"))


def test_a_mixture_of_loaded_models_pickles_as_their_places(tmp_path: Path) -> None:
    for order in (1, 2):
        trained(order).save(tmp_path / str(order))
    loaded = [lmgauge.load_model(tmp_path / str(order)) for order in (1, 2)]
    assert_same(lmgauge.mix(loaded, weights=[0.5, 0.5]))
    assert_same(lmgauge.spell(loaded[0], Corpus.from_strings(TEXT)), small=False)


def test_a_model_trained_within_a_memory_pickles(tmp_path: Path) -> None:
    text = Corpus.from_strings(TEXT)
    for vocabulary in ("open", "spelled"):
        settings: Any = {"order": 2, "memory": "1G", "output": tmp_path / vocabulary, "vocabulary": vocabulary}
        assert_same(lmgauge.train("kneser-ney", text, **settings), small=vocabulary == "open")


def test_networks_pickle_as_their_place(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.models.network.conftest import byte_level, network

    tokenizer = byte_level()
    wrapped = lmgauge.models.NeuralModel.wrap(network("gpt2", len(tokenizer)), tokenizer)
    assert_same(wrapped, small=False)
    wrapped.network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model: Any = lmgauge.load_model(tmp_path / "model", context=16)
    assert_same(model)
    assert_same(model.with_options(model.options))


def test_servers_pickle_as_their_address() -> None:
    with ToyServer().running() as toy:
        assert_same(lmgauge.load_model(toy.url))


def test_another_model_in_the_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    trained(2).save(path)
    data = pickle.dumps(lmgauge.load_model(path))
    trained(1).save(path)
    with pytest.raises(ModelFileError, match=r"model: is not the model that was pickled, of which only the place"):
        pickle.loads(data)
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match="no such model"):
        pickle.loads(data)


def test_spawned_workers_score_with_a_loaded_model(tmp_path: Path) -> None:
    trained().save(tmp_path / "model")
    model = lmgauge.load_model(tmp_path / "model")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(scored, model).result(timeout=120) == scored(model)
