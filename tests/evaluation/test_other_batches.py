"""A model in other batches: the noise floor of its divergences, and what an audit notices of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.evaluation.other_batches import against_itself, by_itself
from lmgauge.models import NeuralModel
from lmgauge.scores.distributions import Divergences
from lmgauge.scores.distributions.blocks import BlockDistributions, WrappedDistributions, by_event
from lmgauge.scores.distributions.tile import LOWEST, Tile, ready
from lmgauge.settings import ScoringOptions
from lmgauge.text.segments import Segments

WARMER = 1.02
"""What logits are multiplied by where windows or segments are computed together: a fault that is easy to compute again."""


def warmer(logprob: NDArray[Any]) -> NDArray[np.float64]:
    """Return log-probabilities whose logits are multiplied."""
    scaled = WARMER * np.asarray(logprob, np.float64)
    return scaled - np.logaddexp.reduce(scaled, axis=-1, keepdims=True)


def kl(p: NDArray[Any], q: NDArray[Any]) -> float:
    """Return KL(p || q) of log-probabilities, by the definition."""
    p, q = (logprob - np.logaddexp.reduce(logprob) for logprob in (p, q))  # those of float32 sum to one but for rounding
    possible = p > -np.inf
    return float(np.sum(np.exp(p[possible]) * (p[possible] - q[possible])))


# -- a model that has one buffer for all that it computes ---------------------------------------------------------------


class OneBuffer:
    """An n-gram model that computes into one array, as engines do that have one context, and is warmer in blocks."""

    tolerance = 1e-3
    tokens = options = None

    def __init__(self, model: NgramModel) -> None:
        self._model = model
        self.buffer = np.zeros((1, len(model.vocabulary)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def computes_many(self, method: str = "distributions") -> bool:
        return method == "distributions"

    def distributions(
        self, segments: Iterable[Segments], *, events: Any = None, spans: bool = True, threads: int | None = None
    ) -> Iterator[BlockDistributions]:
        for block in segments:
            (inside,) = by_event(self._model, self._model.score([block]), None)
            yield _InOneBuffer(inside, self.buffer, together=len(block) > 1)


class _InOneBuffer(WrappedDistributions):
    def __init__(self, inside: BlockDistributions, buffer: NDArray[Any], *, together: bool) -> None:
        super().__init__(inside, lambda batch: batch)
        self._buffer, self._together, self.parallel = buffer, together, False

    def closed_form(self, reduction: Any, other: Any = None) -> None:
        return None

    def tiles(self) -> Iterator[Tile]:
        for tile in self._inside.tiles():
            for row in range(len(tile)):
                logprob = np.asarray(tile.logprob[row])
                self._buffer[0] = np.maximum(warmer(logprob), LOWEST) if self._together else logprob
                yield ready(self._buffer, None, tile.targets[row : row + 1])


def test_what_a_block_gives_is_compared_with_its_segments_one_by_one() -> None:
    lines = ["a b c", "b c a", "", "c c a b"]
    ngrams = lmgauge.train("laplace", Corpus.from_strings(lines), order=2)
    model: Any = OneBuffer(ngrams)
    (block,) = Corpus.from_strings(lines)
    ((_, first, second, columns),) = against_itself(model, [block], Divergences((1,)))
    distributions = [np.array(tile.logprob[i]) for part in by_event(ngrams, ngrams.score([block]), None)
                     for tile in part.tiles() for i in range(len(tile))]  # fmt: skip
    expected = [kl(warmer(logprob), logprob) for logprob in distributions]
    assert min(expected) > 1e-6
    assert columns["kl_ab"].tolist() == pytest.approx(expected, rel=1e-6)
    assert len(first) == len(second) == len(expected) == 14


def test_a_model_without_windows_stays_as_it_is() -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]))
    assert by_itself(model) is model


# -- networks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A network that is warmer where several windows are computed together, and its tokenizer."""
    pytest.importorskip("torch", reason="the extra neural is not installed")
    tiny = pytest.importorskip("tests.integrations.tiny", reason="the extra neural is not installed")
    from lmgauge.models.network.torch.split_network import SplitNetwork

    last = SplitNetwork.last
    monkeypatch.setattr(
        SplitNetwork, "last", lambda self, ids, rows: last(self, ids, rows) * (WARMER if len(ids) > 1 else 1)
    )
    return tiny.make_network().eval(), tiny.make_tokenizer()


def wrapped(network: Any, **options: Any) -> NeuralModel:
    return NeuralModel.wrap(*network, ScoringOptions(**options))


LINE = "The cat sat on the mat."


@pytest.mark.parametrize(
    ("texts", "options"), [([LINE] * 7, {}), ([" ".join([LINE] * 7)], {"context": 16, "first_token": "unscored"})]
)
def test_the_noise_floor_is_the_base_in_batches_against_itself_alone(
    network: Any, texts: list[str], options: dict[str, Any]
) -> None:
    model = wrapped(network, **options)
    (text,) = Corpus.from_strings(texts)
    result = lmgauge.divergence(model, wrapped(network, **options), Corpus.from_strings(texts), events=None)
    alone = [
        np.asarray(tile.logprob[i], np.float64)
        for block in by_itself(model).distributions([text])  # type: ignore[attr-defined]
        for tile in block.tiles()
        for i in range(len(tile))
    ]
    alone = [np.where(logprob < -1e9, -np.inf, logprob) for logprob in alone]
    floor = result.floor
    assert floor is not None
    assert (floor.a, floor.b, floor.events) == (result.a, "noise floor", len(alone))
    assert result.kl_ab_nats.value == pytest.approx(0, abs=1e-9)
    assert floor.kl_ab_nats.value == pytest.approx(np.mean([kl(warmer(logprob), logprob) for logprob in alone]), rel=1e-3)
    assert floor.kl_ab_nats.value > 1e-6


def test_an_audit_notices_windows_of_one_document_that_move_each_other(network: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(" ".join([LINE] * 7) + "\n")
    found = lmgauge.audit(wrapped(network, context=16), tmp_path / "text.txt", levels=["causality"])
    batches = next(check for check in found.checks if check.name == "batches")
    assert "(alone)" in batches.evidence
    assert batches.details["by"].keys() == {"alone"}
