"""What n-gram models say of whole distributions without looking at all words is what these say, event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.laws.test_model_laws import models, texts

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.models.ngram.packing import TableBuilder
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.scores.context_policy import EventContexts
from lmgauge.scores.distributions.reduce import reduce, reduce_pair
from lmgauge.scores.distributions.reductions import Entropy, KullbackLeibler, Mass, Moments, Rank, TopK, direct
from lmgauge.text.vocabulary import BOS

Floats = NDArray[np.float64]
ALL = [Entropy(), Rank(), TopK(2), Moments(), Mass()]


def log_distributions(model: NgramModel, text: Corpus) -> list[Floats]:
    """The log-probabilities of all tokens at every event, asked one by one."""
    found, before = [], np.array([BOS], np.uint32)
    for batch in model.score(text):
        runs_on = model.context_policy.runs_on
        contexts = EventContexts(batch.token_ids, batch.segment_events, bos=BOS, runs_on=runs_on, before=before)
        before = contexts.ids
        found += [model.log_distribution(context) for context in contexts]
    return found


def joined(parts: list[Any]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def reweighted(model: NgramModel, seed: int) -> NgramModel:
    """The model with other back-off weights, some of them 0, as a careless ARPA file may have them: sums are not one."""
    random = np.random.default_rng(seed)
    unigrams = model.tables.unigrams.copy()
    builder = TableBuilder(len(unigrams), model.order)

    def _changed(weights: NDArray[np.float32]) -> NDArray[np.float32]:
        return weights * random.choice([0, 0.1, 0.5, 1], len(weights)).astype(np.float32)

    unigrams[:, 1] = _changed(unigrams[:, 1])
    slots = np.arange(len(unigrams))
    for table in model.tables.tables:
        entries = table.entries()
        fresh = np.zeros(table.slots, np.uint32)
        parents = slots[entries.parents]
        builder.add(parents, entries.words, entries.probabilities, _changed(entries.weights))
        fresh[entries.slots] = builder.tables[-1].find(parents, entries.words)
        slots = fresh
    changed = NgramTables(unigrams, builder.tables, model.tables.full_context, model.tables.unseen)
    return NgramModel(changed, model.vocabulary, model.tokenizer, model.settings)


anyhow = models(tokenizers=("whitespace",))
odd = st.builds(reweighted, anyhow, st.integers(0, 5))
some_blocks = st.sampled_from([8, 40, 1 << 20])


@settings(max_examples=80)
@given(st.one_of(anyhow, odd), texts(unseen=True), some_blocks)
def test_columns_are_those_of_the_distributions(model: NgramModel, lines: list[str], block_bytes: int) -> None:
    text = Corpus.from_strings(lines, block_bytes=block_bytes)
    batches = list(reduce(model, text, ALL, threads=2))
    plain = list(model.score(text))
    assert [batch.logprob.tolist() for batch in batches] == [batch.logprob.tolist() for batch in plain]
    found = joined([batch.extra for batch in batches])
    targets = np.concatenate([batch.token_ids for batch in batches]).tolist()
    rows = log_distributions(model, text)
    assert len(rows) == len(targets)
    for row, (logprob, target) in enumerate(zip(rows, targets, strict=True)):
        p = np.exp(logprob)
        inside = np.where(p > 0, logprob, 0)
        mean = float((p * inside).sum())
        for name, expected in {
            "entropy": -mean,
            "mean_logprob": mean,
            "logprob_deviation": np.sqrt((p * (inside - mean) ** 2).sum()),
            "mass": p.sum(),
        }.items():
            # A deviation is a square root: where it is next to nothing, half of the digits.
            np.testing.assert_allclose(found[name][row], expected, rtol=1e-9, atol=1e-7 if "dev" in name else 1e-12)
        assert found["rank"][row] == 1 + np.count_nonzero(logprob > logprob[target])
        best = np.argsort(-logprob, kind="stable")[:2]
        assert found["top_ids"][row].tolist() == best.tolist()
        np.testing.assert_allclose(found["top_logprobs"][row], logprob[best], rtol=1e-12)


@pytest.mark.parametrize("kind", ["modified-kneser-ney", "good-turing", "witten-bell"])
@pytest.mark.parametrize("weight", ["", "\t-0.25", "\t0.1"])
def test_an_arpa_file_with_blanks(kind: Any, weight: str, tmp_path: Path) -> None:
    """Suffixes that the file leaves out are added as blanks; a weight that other programs made may be any."""
    lines = ["a b c d", "b c d a", "d c b a", "a a b", "c d a b"]
    lmgauge.models.write_arpa(lmgauge.train(kind, Corpus.from_strings(lines), order=4), tmp_path / "whole.arpa")
    written = (tmp_path / "whole.arpa").read_text(encoding="utf-8").split("\n")
    removed = [line for line in written if line.split("\t")[1:2] in (["c d"], ["b c d"])]
    kept = [line for line in written if line not in removed]
    counts = {f"ngram {n}=": len([line for line in removed if len(line.split("\t")[1].split()) == n]) for n in (2, 3)}
    for i, line in enumerate(kept):
        for start, fewer in counts.items():
            if line.startswith(start):
                kept[i] = f"{start}{int(line.removeprefix(start)) - fewer}"
        parts = line.split("\t")
        if parts[1:2] == ["a b"] and weight:
            kept[i] = f"{parts[0]}\t{parts[1]}{weight}"
    (tmp_path / "pruned.arpa").write_text("\n".join(kept), encoding="utf-8")
    model = lmgauge.load_model(tmp_path / "pruned.arpa")
    assert isinstance(model, NgramModel)
    assert len(removed) == 2
    text = Corpus.from_strings([*lines, "b c d x", "a b x"])
    columns = joined([batch.extra for batch in reduce(model, text, ALL)])
    for row, logprob in enumerate(log_distributions(model, text)):
        p = np.exp(logprob)
        assert columns["entropy"][row] == pytest.approx(-(p * np.where(p > 0, logprob, 0)).sum(), rel=1e-9)
        assert columns["mass"][row] == pytest.approx(p.sum(), rel=1e-12)
        assert columns["top_ids"][row].tolist() == np.argsort(-logprob, kind="stable")[:2].tolist()


@settings(max_examples=80)
@given(st.data(), texts(), texts(unseen=True), some_blocks, st.sampled_from(["sentence", "stream"]), st.booleans())
def test_divergence_of_two_models(
    data: st.DataObject, train: list[str], lines: list[str], block_bytes: int, context: str, eos: bool
) -> None:
    """Of one vocabulary: both are trained on the same words, in any way, and on other parts of the text."""
    words = sorted({word for line in train for word in line.replace("\t", " ").split(" ") if word})
    fixed: dict[str, Any] = {"context": context, "eos": eos, "words": words, "vocabulary": "open", "min_count": 1}
    pair = [data.draw(models(tokenizers=("whitespace",), **fixed)) for _ in range(2)]
    pair = [reweighted(model, 1) if data.draw(st.booleans()) else model for model in pair]
    text = Corpus.from_strings(lines, block_bytes=block_bytes)
    blocks = list(reduce_pair(*pair, text, KullbackLeibler()))
    found = np.concatenate([columns["kl_ab"] for _, _, columns in blocks])
    distributions = [log_distributions(model, text) for model in pair]
    expected = np.array([direct(a, b)[0] for a, b in zip(*distributions, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    for model, side in zip(pair, zip(*blocks, strict=True), strict=False):
        rows = np.concatenate([batch.logprob for batch in side])
        assert rows.tolist() == np.concatenate([batch.logprob for batch in model.score(text)]).tolist()


@settings(max_examples=60)
@given(anyhow, texts(unseen=True), st.integers(1, 40), st.data())
def test_blocks_events_and_threads_change_nothing(
    model: NgramModel, lines: list[str], block_bytes: int, data: st.DataObject
) -> None:
    whole = joined([batch.extra for batch in reduce(model, Corpus.from_strings(lines), ALL, threads=1)])
    text = Corpus.from_strings(lines, block_bytes=block_bytes)
    again = lmgauge.NgramModel(model.tables, model.vocabulary, model.tokenizer, model.settings)
    parts = joined([batch.extra for batch in reduce(again, text, ALL, threads=3)])
    events = np.flatnonzero([data.draw(st.booleans()) for _ in range(len(whole["rank"]))])
    some = joined([batch.extra for batch in reduce(again, text, ALL, events=events)])
    for name, values in whole.items():
        assert parts[name].tolist() == values.tolist(), name
        assert some[name].tolist() == values[events].tolist(), name
