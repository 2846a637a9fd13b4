"""Whole distributions of networks in tiles: those of one question an event, whatever the kind, context and batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT  # noqa: E402

import lmgauge  # noqa: E402
from lmgauge.base.errors import ModelFileError  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch import engine as engine_module  # noqa: E402
from lmgauge.models.network.torch import output_layer  # noqa: E402
from lmgauge.models.network.torch.model import load_neural  # noqa: E402
from lmgauge.scores.context_policy import EventContexts  # noqa: E402
from lmgauge.scores.distributions.reduce import reduce, reduce_pair  # noqa: E402
from lmgauge.scores.distributions.reductions import Divergences, Entropy, Mass, Moments, Rank, TopK, direct  # noqa: E402  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402
from lmgauge.text.vocabulary import BOS  # noqa: E402

Folder = Callable[..., Path]
ALL = [Entropy(), Rank(), TopK(5), Moments(), Mass()]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gpt2": ({}, {}),
    "windows": ({}, {"context": 8, "stride": 3}),
    "running": ({}, {"context": 16, "stride": 8, "stream": True}),
    "llama": ({"kind": "llama", "tokenizer": "byte-fallback"}, {}),
    "soft capping": ({"kind": "gemma2"}, {}),
    "no begin": ({"tokenizer": "lowercasing"}, {}),
    "first unscored": ({"tokenizer": "lowercasing"}, {"first_token": "unscored"}),
    "more rows": ({"extra_rows": 7}, {}),
    "recurrent": ({"kind": "mamba"}, {}),
    "no split": ({"kind": "opt"}, {}),
    "bfloat16": ({"kind": "llama"}, {"dtype": "bfloat16"}),
}


def loaded(checkpoint: Folder, case: str) -> Any:
    folder, options = CASES[case]
    return load_neural(checkpoint(**folder), ScoringOptions(**options))


def text(block_bytes: int = 1 << 20) -> Corpus:
    return Corpus.from_strings(TEXT.lower().splitlines(), block_bytes=block_bytes)


def joined(batches: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    columns = {key: np.concatenate([batch.extra[key] for batch in batches]) for key in batches[0].extra}
    return columns | {"logprob": np.concatenate([batch.logprob for batch in batches])}


def by_questions(model: Any, corpus: Corpus) -> list[np.ndarray[Any, Any]]:
    """One question an event, of the rows that are scored; where first tokens are not, the first row is the second event."""
    found = []
    before = np.array([BOS], np.uint32)
    running = model.context_policy.runs_on
    for batch in model.score(corpus):
        contexts = EventContexts(batch.token_ids, batch.segment_events, bos=BOS, runs_on=running, before=before)
        before = contexts.ids
        found += [model.log_distribution(context) for context in contexts]
    return found


@pytest.mark.parametrize("case", [case for case in CASES if case != "first unscored"])
def test_columns_are_those_of_the_distributions(checkpoint: Folder, case: str) -> None:
    model = loaded(checkpoint, case)
    tolerance = 2e-4 if case != "bfloat16" else 0.2
    expected = by_questions(model, text())
    batches = list(reduce(model, text(), ALL))
    columns = joined(batches)
    plain = np.concatenate([batch.logprob for batch in model.score(text())])
    np.testing.assert_allclose(columns["logprob"], plain, atol=tolerance)
    assert columns["mass"] == pytest.approx(1, abs=1e-5)
    ids = np.concatenate([batch.token_ids for batch in batches])
    for row, logprob in enumerate(expected):
        inside = logprob[logprob > -np.inf]
        assert columns["entropy"][row] == pytest.approx(-(np.exp(inside) * inside).sum(), abs=tolerance)
        ranks = [1 + np.count_nonzero(logprob > logprob[ids[row]] + by) for by in (2 * tolerance, -2 * tolerance)]
        assert ranks[0] <= columns["rank"][row] <= ranks[1]
        np.testing.assert_allclose(columns["top_logprobs"][row], np.sort(logprob)[::-1][:5], atol=tolerance)
        np.testing.assert_allclose(logprob[columns["top_ids"][row]], columns["top_logprobs"][row], atol=tolerance)
        deviation = np.sqrt((np.exp(inside) * (inside - (np.exp(inside) * inside).sum()) ** 2).sum())
        assert columns["logprob_deviation"][row] == pytest.approx(deviation, abs=5 * tolerance)


@pytest.mark.parametrize("case", CASES)
def test_some_events_are_the_rows_of_all(checkpoint: Folder, case: str) -> None:
    model = loaded(checkpoint, case)
    corpus = text(block_bytes=40)
    whole = list(reduce(model, corpus, ALL))
    chosen = np.array([0, 3, 4, 5, 17, 20, 21, 30])
    some = list(reduce(model, corpus, ALL, events=chosen))
    tolerance = 1e-4 if case != "bfloat16" else 0.2
    for key, values in joined(some).items():
        if key not in ("top_ids", "rank"):
            np.testing.assert_allclose(values, joined(whole)[key][chosen], atol=tolerance)
    ids = np.concatenate([batch.token_ids for batch in whole])
    assert np.concatenate([batch.token_ids for batch in some]).tolist() == ids[chosen].tolist()
    segments = np.concatenate([batch.row_segments() for batch in whole])
    assert np.concatenate([batch.row_segments() for batch in some]).tolist() == segments[chosen].tolist()


def test_the_size_of_groups_and_pieces_changes_nothing(checkpoint: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(checkpoint, "windows")
    expected = joined(list(reduce(model, text(), ALL)))
    monkeypatch.setattr(engine_module, "_STATE_BYTES", 2000)
    monkeypatch.setattr(output_layer, "_CPU_PIECES", (3, 17, 2))
    for key, values in joined(list(reduce(model, text(), ALL))).items():
        if key != "top_ids":
            np.testing.assert_allclose(values, expected[key], atol=1e-4)


def test_an_lstm_carries_its_state_from_block_to_block(tmp_path: Path) -> None:
    training = tmp_path / "text.txt"
    training.write_text(TEXT * 20, "utf-8")
    lmgauge.train_neural("lstm", training, output=tmp_path / "lstm", embedding_size=8, hidden_size=8, epochs=1)
    model = lmgauge.load_model(tmp_path / "lstm")
    assert model.context_policy.runs_on
    expected = by_questions(model, text())
    columns = joined(list(reduce(model, text(block_bytes=30), [Entropy()])))
    wanted = [-(np.exp(row[row > -np.inf]) * row[row > -np.inf]).sum() for row in expected]
    np.testing.assert_allclose(columns["entropy"], wanted, atol=1e-4)


def test_two_networks(checkpoint: Folder) -> None:
    a, b = loaded(checkpoint, "gpt2"), loaded(checkpoint, "windows")
    rows = list(reduce_pair(a, b, text(block_bytes=40), Divergences((1, 5))))
    columns = {key: np.concatenate([found[key] for _, _, found in rows]) for key in rows[0][2]}
    for row, (one, other) in enumerate(zip(by_questions(a, text()), by_questions(b, text()), strict=True)):
        for key, value in zip(("kl_ab", "kl_ba", "js", "tv"), direct(one, other), strict=True):
            assert columns[key][row] == pytest.approx(value, rel=1e-3, abs=1e-5)
    assert columns["kl_ab"].max() > 0.1


def test_divergence_of_close_networks_keeps_its_digits(checkpoint: Folder) -> None:
    """Weights that differ by a millionth: float32 sums of p ln p/q would be noise, and even below zero."""
    import copy

    a = loaded(checkpoint, "llama")
    other = copy.deepcopy(a.network)
    with torch.no_grad():
        other.lm_head.weight.mul_(1 + 1e-4)
    b = lmgauge.models.NeuralModel.wrap(other, a.tokens, a.options)
    rows = list(reduce_pair(a, b, text(), Divergences(())))
    kl = np.concatenate([found["kl_ab"] for _, _, found in rows])
    # ln q = (1 + h) ln p + c: the divergence is h^2 / 2 times the variance of ln p.
    deviation = joined(list(reduce(a, text(), [Moments()])))["logprob_deviation"]
    np.testing.assert_allclose(kl, 0.5 * 1e-8 * deviation**2, rtol=0.02)


def test_nan_is_blamed(checkpoint: Folder) -> None:
    import copy

    a = loaded(checkpoint, "llama")
    network = copy.deepcopy(a.network)
    with torch.no_grad():
        network.model.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    broken = lmgauge.models.NeuralModel.wrap(network, a.tokens, a.options)
    with pytest.raises(ModelFileError, match=r"NaN in segment [1-5], first in its layer model\.layers\.1\.mlp\.up_proj"):
        list(reduce(broken, text(), [Entropy()]))
    network.model.layers[1].mlp.up_proj.weight.data[0, 0] = 0.0
    network.lm_head.weight.data[3, 1] = float("nan")
    with pytest.raises(ModelFileError, match="gives NaN in segment"):
        list(reduce(broken, text(), [Entropy()]))
