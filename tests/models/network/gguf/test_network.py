"""A GGUF file as a network: log-probabilities beside the slow twin's, and files that are damaged."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.network.gguf.gguf_files import (
    HEAD,
    KV_HEADS,
    LAYERS,
    POSITIONS,
    logprobs,
    sentencepiece_vocabulary,
    write_gguf,
)

from lmgauge.base.errors import MissingExtraError, ModelFileError, UsageError
from lmgauge.models.network.gguf import network as gguf_network
from lmgauge.models.network.gguf.network import GgufNetwork

EXACT = 2e-4  # float32 and a table of half-precision sines against float64
NOTHING = np.zeros(0, np.int32)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name == "llama_cpp":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"llama-cpp-python.*lmgauge\[gguf\]"):
        GgufNetwork(tmp_path / "x.gguf")


@pytest.fixture(scope="module")
def library() -> None:
    pytest.importorskip("llama_cpp")


@pytest.fixture(scope="module")
def path(library: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, sentencepiece_vocabulary())
    return path


@pytest.fixture(scope="module")
def twin(path: Path) -> Callable[[Any], Any]:
    tensors = write_gguf(path.with_name("same.gguf"), sentencepiece_vocabulary())
    return lambda ids: logprobs(tensors, ids)


@pytest.fixture
def network(path: Path) -> GgufNetwork:
    return GgufNetwork(path, "cpu")


@pytest.fixture
def ids(network: GgufNetwork) -> Any:
    return np.random.default_rng(3).integers(0, network.size, 40).astype(np.int32)


def test_what_the_file_says(network: GgufNetwork) -> None:
    assert (network.positions, network.size, network.architecture) == (POSITIONS, 304, "llama")
    assert network.setting("general.name") == "tiny"
    assert network.setting("no.such") is None
    assert network.adds_bos
    assert (network.token_id("bos"), network.token_id("eos"), network.unknown_id()) == (1, 2, 0)
    assert network.strings()[3:5] == ["<0x00>", "<0x01>"]
    assert [network.piece(token) for token in network.tokenize(b"the cat")] == [b" the", b" cat"]
    assert network.tokenize(b"") == []


def test_log_probabilities_are_the_twins(network: GgufNetwork, ids: Any, twin: Any) -> None:
    expected = twin(ids)
    network.begin(len(ids))
    found = network.logprob(ids[:-1], ids[1:])
    assert found == pytest.approx(expected[np.arange(39), ids[1:]], abs=EXACT)
    assert found.dtype == np.float64


@pytest.mark.parametrize("asked", [1, 5, 24, 25])
def test_parts_follow_one_another(network: GgufNetwork, ids: Any, twin: Any, asked: int) -> None:
    network.begin(len(ids))
    assert len(network.logprob(ids[:15], NOTHING)) == 0
    found = network.logprob(ids[15:], np.append(ids[16:], 5)[-asked:])
    expected = twin(ids)[np.arange(40), np.append(ids[1:], 5)]
    assert found == pytest.approx(expected[-asked:], abs=EXACT)


def test_more_tokens_than_are_computed_at_a_time(path: Path, ids: Any, twin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GgufNetwork, "at_a_time", 16)
    network = GgufNetwork(path)
    network.begin(len(ids))
    assert network.logprob(ids[:-1], ids[3:]) == pytest.approx(twin(ids)[np.arange(2, 39), ids[3:]], abs=EXACT)
    network.begin(len(ids))
    assert network.log_distribution(ids) == pytest.approx(twin(ids)[-1], abs=EXACT)


def test_distributions_sum_to_one(network: GgufNetwork, ids: Any, twin: Any) -> None:
    network.begin(len(ids))
    found = network.log_distribution(ids)
    assert found == pytest.approx(twin(ids)[-1], abs=EXACT)
    assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)


def test_contexts_are_forgotten_whole_or_in_part(network: GgufNetwork, ids: Any, twin: Any) -> None:
    network.begin(len(ids))
    network.logprob(ids, NOTHING)
    assert network.rewind(10)
    assert network.log_distribution(ids[20:25]) == pytest.approx(twin([*ids[:10], *ids[20:25]])[-1], abs=EXACT)
    network.begin(5)
    assert network.log_distribution(ids[:5]) == pytest.approx(twin(ids[:5])[-1], abs=EXACT)


def test_contexts_grow(path: Path, twin: Any) -> None:
    network = GgufNetwork(path)
    network.begin(1)
    first = network.room
    long = np.full(first + 1, 5, np.int32)
    network.begin(len(long))
    assert network.room > first
    assert len(network.logprob(long[:-1], long[1:])) == first


def test_threads_change_nothing(network: GgufNetwork, ids: Any) -> None:
    found = []
    for threads in (1, 2):
        network.set_threads(threads)
        network.begin(len(ids))
        found.append(network.logprob(ids[:-1], ids[1:]).tolist())
    assert found[0] == found[1]


def test_too_long_a_context_for_the_memory(network: GgufNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = 2 * 4 * LAYERS * KV_HEADS * HEAD
    with monkeypatch.context() as patch:
        patch.setattr(gguf_network, "free_memory", lambda: needed * 2000)
        with pytest.raises(UsageError, match=r"no memory for a context of 2,001 tokens: it takes 512 kB.*smaller --context"):
            network.begin(2001)
        network.begin(999)
        patch.setattr(network._api, "llama_init_from_model", lambda *more: None)
        with pytest.raises(UsageError, match=r"no memory for a context of [0-9,]+ tokens: .*smaller --context"):
            network.begin(2000)
        assert network.room == 0
    network.begin(8)
    assert len(network.logprob(np.array([1, 5], np.int32), np.array([5], np.int32))) == 1


def test_not_a_number_stays_one(library: None, tmp_path: Path) -> None:
    vocabulary = sentencepiece_vocabulary()
    tensors = write_gguf(tmp_path / "x.gguf", vocabulary)
    tensors["output_norm.weight"] = np.full_like(tensors["output_norm.weight"], np.nan)
    write_gguf(tmp_path / "x.gguf", vocabulary, tensors)
    network = GgufNetwork(tmp_path / "x.gguf")
    network.begin(3)
    assert np.isnan(network.logprob(np.array([1, 5, 6], np.int32), np.array([5, 6, 7], np.int32))).all()


def test_closing_twice(path: Path) -> None:
    network = GgufNetwork(path)
    network.begin(3)
    network.close()
    network.close()
    assert network.room == 0


def test_damaged_files(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = path.read_bytes()
    for name, content in (("cut", whole[:-5000]), ("head", whole[:200]), ("magic", b"GGUF"), ("other", b"text" * 100)):
        (tmp_path / f"{name}.gguf").write_bytes(content)
        with pytest.raises(ModelFileError, match=rf"{name}\.gguf: cannot be loaded by llama\.cpp: \w+"):
            GgufNetwork(tmp_path / f"{name}.gguf")
    assert capfd.readouterr() == ("", "")  # the library does not talk over the error


def test_other_kinds_of_networks(library: None, tmp_path: Path) -> None:
    write_gguf(tmp_path / "x.gguf", sentencepiece_vocabulary(), llama__attention__causal=False)
    with pytest.raises(ModelFileError, match="llama is not a causal network"):
        GgufNetwork(tmp_path / "x.gguf")
    write_gguf(tmp_path / "x.gguf", sentencepiece_vocabulary(), general__architecture="abacus")
    with pytest.raises(ModelFileError, match=r"cannot be loaded .*abacus"):
        GgufNetwork(tmp_path / "x.gguf")
