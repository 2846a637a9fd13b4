"""Calibration: a model on text of its own is calibrated, a spoilt one is not; sums against a twin; contexts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.api.train import train
from lmgauge.base.errors import InputError
from lmgauge.base.progress import listening
from lmgauge.evaluation.diagnosis.calibration import Calibration, calibrate, confidence_bins
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.models.ngram.model import NgramModel
from lmgauge.scores import KINDS, ScoreBatch, ScoreWriter
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Entropy, Rank
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS, EOS, UNK

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "the", "dog", "run", "to", "the", "tree"]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    generator = np.random.default_rng(1)
    lines = [" ".join(generator.choice(WORDS, generator.integers(1, 9))) for _ in range(200)]
    return train("kneser-ney", Corpus.from_strings(lines), order=3)


def table_of_ids(model: NgramModel, segments: Sequence[Sequence[int]]) -> Iterator[ScoreBatch]:
    """What the model says of these ids, one distribution at a time."""
    for number, ids in enumerate(segments):
        logprob = [model.log_distribution([BOS, *ids[:i]])[token] for i, token in enumerate(ids)]
        kind = [KINDS.index("oov") if i == UNK else KINDS.index("eos") if i == EOS else 0 for i in ids]
        yield ScoreBatch(
            segments=np.array([number]),
            segment_events=np.array([len(ids)]),
            token_ids=np.array(ids, np.uint32),
            strings=model.vocabulary,
            logprob=np.array(logprob),
            kind=np.array(kind, np.uint8),
            ends=np.zeros(len(ids), np.int64),
        )


def written(path: Path, model: NgramModel, segments: Sequence[Sequence[int]], **metadata: object) -> Run:
    with ScoreWriter(path, {"model": "m", "fingerprints": Origin.of_model(model).fingerprints, **metadata}) as writer:
        for batch in table_of_ids(model, segments):
            writer.write(batch)
    return open_run(path)


def own_text(model: NgramModel, size: int, seed: int) -> list[list[int]]:
    """Segments that the model drew, each closed."""
    chance, segments = np.random.default_rng(seed), [[BOS]]
    for draw in chance.random(size).tolist():
        cumulative = np.cumsum(np.exp(model.log_distribution(segments[-1])))
        segments[-1].append(int(np.searchsorted(cumulative, draw * cumulative[-1], side="right")))
        if segments[-1][-1] == EOS:
            segments.append([BOS])
    return [part[1:] for part in segments[:-1]]


def test_a_model_is_calibrated_on_what_it_wrote(model: NgramModel, tmp_path: Path) -> None:
    segments = own_text(model, 6000, seed=3)
    events = sum(map(len, segments))
    found = calibrate(written(tmp_path / "own.parquet", model, segments), model, events, contexts=None)
    assert (found.contexts, found.seed) == (events, None)
    for one in (*found.decades, *found.tenths):
        assert abs(one.happened - one.expected) <= 4 * one.deviation + 1e-9
    assert found.expected_calibration_error < 0.03
    assert found.overconfidence_interval is not None
    low, high = found.overconfidence_interval
    assert low < 0 < high
    assert high - low < 0.2


class Sharpened(NgramModel):
    """Surer of itself than it should be."""

    def log_distribution(self, context_ids: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        plain = 3 * super().log_distribution(context_ids)  # type: ignore[arg-type]
        return plain - np.logaddexp.reduce(plain)


def test_a_model_too_sure_of_itself_is_found_out(model: NgramModel, tmp_path: Path) -> None:
    sure = Sharpened(model.tables, model.vocabulary, model.tokenizer, model.settings)
    segments = own_text(model, 3000, seed=4)
    run = written(tmp_path / "sure.parquet", sure, segments)
    found = calibrate(run, sure, sum(map(len, segments)), contexts=None)
    assert found.expected_calibration_error > 0.1
    assert found.mean_confidence > found.accuracy + 0.1
    assert found.overconfidence_interval is not None
    assert found.overconfidence_interval[0] > 0.5


def test_every_forecast_is_in_one_bin_of_each_kind(model: NgramModel, tmp_path: Path) -> None:
    segments = own_text(model, 500, seed=5)
    events = sum(map(len, segments))
    found = calibrate(written(tmp_path / "t.parquet", model, segments), model, events, contexts=None)
    for bins in (found.decades, found.tenths):
        assert sum(b.forecasts for b in bins) + found.impossible_forecasts == events * len(model.vocabulary)
        assert sum(b.happened for b in bins) + found.impossible_happened == events
        assert sum(b.expected for b in bins) == pytest.approx(events, rel=1e-9)
        assert all(a.high == b.low for a, b in pairwise(bins))
        assert all(b.low < b.mean_forecast <= b.high * (1 + 1e-12) for b in bins if b.forecasts)
    assert sum(b.contexts for b in found.confidence) == events


def test_means_are_those_of_the_columns_of_the_table(model: NgramModel, tmp_path: Path) -> None:
    corpus = Corpus.from_strings(["the cat ran", "", "a dog unheard of sat on"])
    (batch,) = reduce(model, corpus, [Entropy(), Rank()])
    with ScoreWriter(tmp_path / "t.parquet", {"fingerprints": Origin.of_model(model).fingerprints}) as writer:
        writer.write(batch)
    found = calibrate(open_run(tmp_path / "t.parquet"), model, len(batch), contexts=None)
    assert found.mean_entropy_bits == pytest.approx(batch.extra["entropy"].mean() / math.log(2))
    assert found.mean_surprisal_bits == pytest.approx(-batch.logprob.mean() / math.log(2))
    assert 0 < found.accuracy <= (batch.extra["rank"] == 1).mean()  # tokens that are equally probable share a rank


@pytest.mark.parametrize("context", ["sentence", "stream"])
def test_contexts_are_those_the_model_scored_with(context: str, tmp_path: Path) -> None:
    """Otherwise its probabilities would not be those of the table, which is an error."""
    lines = ["a b c a b", "", "c a", "b", "a b c x"] * 20
    stream = train("witten-bell", Corpus.from_strings(lines[:50]), order=4, context=context)  # type: ignore[arg-type]
    with ScoreWriter(tmp_path / "t.parquet", {"fingerprints": Origin.of_model(stream).fingerprints}) as writer:
        events = 0
        for batch in stream.score(Corpus.from_strings(lines, block_bytes=16)):
            writer.write(batch)
            events += len(batch)
    run = open_run(tmp_path / "t.parquet")
    whole = calibrate(run, stream, events, contexts=None)
    assert whole.contexts == events
    some = calibrate(run, stream, events, contexts=30, seed=7)
    assert (some.contexts, some.seed) == (30, 7)


def test_the_draw_depends_on_the_seed_alone(model: NgramModel, tmp_path: Path) -> None:
    segments = own_text(model, 800, seed=6)
    run, events = written(tmp_path / "t.parquet", model, segments), sum(map(len, segments))

    def draw(seed: int, threads: int) -> Calibration:
        return calibrate(run, model, events, contexts=50, seed=seed, threads=threads)

    assert draw(1, 1) == draw(1, 2)
    assert draw(1, 1) != draw(2, 1)


def test_another_model_is_refused(model: NgramModel, tmp_path: Path) -> None:
    other = train("laplace", Corpus.from_strings(["the cat"]), order=2)
    segments = own_text(model, 60, seed=8)
    run = written(tmp_path / "t.parquet", model, segments)
    with pytest.raises(InputError, match=r"was made by the model \w{6}, not by laplace2@"):
        calibrate(run, other, 10)
    anonymous = written(tmp_path / "u.parquet", model, segments, fingerprints={})
    with pytest.raises(InputError, match=r"laplace2 has no token"):
        calibrate(anonymous, other, 10, contexts=None)
    assert calibrate(anonymous, model, 10, contexts=None).contexts


def test_other_probabilities_are_refused(model: NgramModel, tmp_path: Path) -> None:
    sure = Sharpened(model.tables, model.vocabulary, model.tokenizer, model.settings)
    run = written(tmp_path / "t.parquet", model, own_text(model, 60, seed=8), fingerprints={})
    with pytest.raises(InputError, match="is stored, the model gives"):
        calibrate(run, sure, 10, contexts=None)


# --- bins -------------------------------------------------------------------------------------------------------------


def test_expected_calibration_error_by_hand() -> None:
    """Guo et al. 2017, equation 3: bins (0.6, 0.667] and (0.867, 0.933], weights 3/4 and 1/4."""
    bins, error = confidence_bins(np.array([0.62, 0.62, 0.65, 0.9]), np.array([True, False, True, False]))
    assert [(b.contexts, b.accuracy) for b in bins] == [(3, pytest.approx(2 / 3)), (1, 0.0)]
    assert error == pytest.approx(3 / 4 * abs(2 / 3 - 0.63) + 1 / 4 * 0.9)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_calibration_error_is_at_most_one_and_at_least_the_gap(rows: list[tuple[float, bool]]) -> None:
    confidence, right = np.array([p for p, _ in rows]), np.array([r for _, r in rows])
    bins, error = confidence_bins(confidence, right)
    assert abs(confidence.mean() - right.mean()) - 1e-9 <= error <= 1 + 1e-9
    assert sum(b.contexts for b in bins) == len(rows)
    assert all(b.low - 1e-12 <= b.mean_confidence <= b.high + 1e-12 for b in bins)


@pytest.mark.parametrize("options", [{}, {"stream": True, "context": 16, "stride": 8}, {"context": 8, "stride": 3}])
def test_with_its_text_a_network_says_the_same_as_one_context_at_a_time(options: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tests.models.network.conftest import TOKENIZERS, network

    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import NeuralModel

    tokenizer = TOKENIZERS["byte-level"]()
    neural = NeuralModel.wrap(network("gpt2", len(tokenizer)), tokenizer, ScoringOptions(**options))
    text = Corpus.from_strings(["the cat sat", "", "a dog unheard of sat on the mat"] * 5, block_bytes=40)
    with ScoreWriter(tmp_path / "t.parquet", {"fingerprints": Origin.of_model(neural).fingerprints}) as writer:
        events = 0
        for batch in neural.score(text):
            writer.write(batch)
            events += len(batch)
    run = open_run(tmp_path / "t.parquet")
    slow = calibrate(run, neural, events, contexts=50)
    said: list[str] = []
    with listening(said.append):
        fast = calibrate(run, neural, events, contexts=50, text=text)
    assert said[-1] == "calibration: 50 of 50 contexts"
    for name in ("brier_score", "mean_entropy_bits", "mean_surprisal_bits", "accuracy", "mean_confidence"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), rel=1e-4), name
    assert [b.forecasts for b in fast.decades] == [b.forecasts for b in slow.decades]
    assert fast.overconfidence_interval == pytest.approx(slow.overconfidence_interval, abs=1e-3)
    with pytest.raises(InputError, match=r"cuts the text into other tokens|is stored, the model gives"):
        calibrate(run, neural, events, contexts=50, text=Corpus.from_strings(["another text"] * 40))
