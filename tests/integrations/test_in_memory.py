"""A network in memory, evaluated between two steps of its training."""

from __future__ import annotations

import logging
import math
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel, PreTrainedTokenizerFast

import lmgauge
from lmgauge import train_neural
from lmgauge.base.errors import InputError, LmgaugeError, ModelFileError, UsageError
from lmgauge.integrations import PerplexityMetric
from lmgauge.integrations.in_memory import (
    NamedTexts,
    checked_network,
    undisturbed,
)
from lmgauge.models.network.tokens import foreign_tokens
from lmgauge.models.network.torch.model import NeuralModel
from lmgauge.text.documents import Corpus
from tests.integrations.tiny import make_lines, weights_of

Texts = dict[str, Path]


def test_everything_is_as_it_was(network: GPT2LMHeadModel) -> None:
    network.train()
    network.transformer.h[0].eval()
    modes = [module.training for module in network.modules()]
    drawn, of_numpy, of_python, threads = torch.get_rng_state(), np.random.get_state()[1], random.getstate(), 1  # noqa: NPY002

    def disturbs() -> None:
        with undisturbed(network):
            assert not any(module.training for module in network.modules())
            torch.rand(3)
            np.random.rand(3)  # noqa: NPY002
            random.random()
            torch.set_num_threads(2)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        disturbs()
    assert [module.training for module in network.modules()] == modes
    assert torch.equal(torch.get_rng_state(), drawn)
    assert np.array_equal(np.random.get_state()[1], of_numpy)  # noqa: NPY002
    assert random.getstate() == of_python
    assert torch.get_num_threads() == threads


def test_gradients_and_weights_stay(network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts) -> None:
    ids = torch.tensor([tokenizer.encode(make_lines()[0])[:32]])
    network(input_ids=ids, labels=ids).loss.backward()
    gradients = {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}
    before = weights_of(network)
    assert NamedTexts(texts, tokenizer).evaluate(network)
    assert all(torch.equal(weight.grad, gradients[name]) for name, weight in network.named_parameters())
    assert all(torch.equal(before[name], weight) for name, weight in network.state_dict().items())
    network(input_ids=ids, labels=ids).loss.backward()


def test_the_same_weights_are_not_evaluated_again(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts
) -> None:
    named = NamedTexts(texts, tokenizer)
    assert named.evaluate(network)
    first = named.evaluations
    assert not named.evaluate(network)
    assert named.evaluations is first
    with torch.no_grad():
        network.transformer.ln_f.bias[0] += 1
    assert named.evaluate(network)
    assert named.evaluations["front"].perplexity != first["front"].perplexity


def test_a_corpus_and_a_ready_token_map(network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts) -> None:
    lines = texts["front"].read_text(encoding="utf-8").splitlines()
    ready = foreign_tokens(tokenizer, "tiny")
    named = NamedTexts({"strings": Corpus.from_strings(lines), "several": list(texts.values())}, ready)
    assert named.evaluate(network)
    assert named.evaluations["strings"].segments == len(lines)
    assert named.evaluations["several"].segments == len(lines) + 7


def test_the_metric_gives_the_same_as_evaluating(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    """Logits of the network itself on the tokens of each line: begin, tokens, newline."""
    path = tmp_path / "short.txt"
    path.write_text("".join(line[:40] + "\n" for line in make_lines()), encoding="utf-8")
    named = NamedTexts({"short": path}, tokenizer)
    named.evaluate(network)
    metric = PerplexityMetric(shift=True)
    network.eval()
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        ids = torch.tensor([[0, *tokenizer.encode(line)]])
        with torch.no_grad():
            logits = network(input_ids=ids).logits
        counts = {"bytes": len(line.encode()), "characters": len(line), "words": len(line.split())}
        metric.update(logits, ids, **counts)
    found = {name: float(value) for name, value in metric.compute().items()}
    expected = named.evaluations["short"]
    assert found["events"] == expected.events
    for name in ("cross_entropy", "bits_per_byte", "bits_per_character", "bits_per_word"):
        # The logits are products of other shapes, which round float32 elsewhere.
        assert found[name] == pytest.approx(getattr(expected, name), rel=1e-8), name


def test_a_network_of_ours_has_its_own_tokens(tmp_path: Path) -> None:
    lines = [line.lower() for line in make_lines()[:30]]
    text = Corpus.from_strings(lines)
    train_neural("rnn", text, valid=text, output=tmp_path / "model", tokenizer="character", epochs=1, threads=1)
    (tmp_path / "text.txt").write_text("\n".join(lines[:5]) + "\n", encoding="utf-8")
    network = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    named = NamedTexts({"text": tmp_path / "text.txt"}, AutoTokenizer.from_pretrained(tmp_path / "model"))
    named.evaluate(network)
    expected = lmgauge.evaluate(lmgauge.load_model(tmp_path / "model", device="cpu"), tmp_path / "text.txt", threads=1)
    assert named.evaluations["text"].signature == expected.signature
    assert named.evaluations["text"].perplexity == expected.perplexity


def test_another_networks_tokenizer_is_told(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts
) -> None:
    tokenizer.add_tokens(["one too many"])
    with pytest.raises(ModelFileError, match="does not belong to this model"):
        NamedTexts(texts, tokenizer).evaluate(network)


def test_an_empty_text_is_told(network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="nothing to evaluate"):
        NamedTexts({"empty": tmp_path / "empty.txt"}, tokenizer).evaluate(network)


def test_warnings_stand_beside_the_figures(tokenizer: PreTrainedTokenizerFast) -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a b", "b a"]), order=2, vocabulary="closed")
    named = NamedTexts({"text": Corpus.from_strings(["a b", "b b"])}, tokenizer, prefix="eval_")
    found = lmgauge.evaluate(model, Corpus.from_strings(["a b", "b b"]))
    named.evaluations = {"text": found}
    figures = named.figures()
    assert figures["eval_text_perplexity"] == math.inf
    assert figures["eval_text_zero_probability_events"] == 1
    assert figures["eval_text_perplexity_without_zeros"] == found.perplexity_without_zeros
    assert not figures.keys() & {"eval_text_oov_rate", "eval_text_perplexity_low"}
    found = lmgauge.evaluate(model, Corpus.from_strings(["a b", "b a", "a b", "b a", "a b", "b a", "a"]))
    named.evaluations = {"text": found}
    ends = [named.figures()[f"eval_text_perplexity_{end}"] for end in ("low", "high")]
    assert found.interval is not None
    assert ends == [found.interval.low, found.interval.high]
    assert named.signatures() == {"eval_text_signature": found.signature}


def test_notes_are_told_once(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(b"whole\nbro\xffken\n")
    named = NamedTexts({"text": Corpus.from_files(path, errors="replace")}, tokenizer)
    with caplog.at_level(logging.WARNING, "lmgauge.integrations"):
        for _ in range(2):
            with torch.no_grad():
                network.transformer.ln_f.bias[0] += 1
            named.evaluate(network)
    told = [record.message for record in caplog.records if record.name == "lmgauge.integrations"]
    assert told
    assert len(told) == len(set(told))
    assert all(line.startswith("text: ") for line in told)


def test_compiled_and_adapted_networks_are_looked_into(network: GPT2LMHeadModel) -> None:
    assert checked_network(SimpleNamespace(_orig_mod=network)) is network
    settings = SimpleNamespace(is_prompt_learning=False)
    adapted = SimpleNamespace(get_base_model=lambda: network, active_peft_config=settings)
    assert checked_network(adapted) is network
    settings.is_prompt_learning = True
    with pytest.raises(UsageError, match="learned prompts"):
        checked_network(adapted)
    with pytest.raises(UsageError, match="the network is Linear"):
        checked_network(torch.nn.Linear(1, 1))


def test_other_processes_hear_of_a_mistake(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts
) -> None:
    sent: list[object] = []

    def fails() -> object:
        raise UsageError("no such thing")

    def send(value: object) -> object:
        sent.append(value)
        return value

    first, other = NamedTexts(texts, tokenizer), NamedTexts(texts, tokenizer)
    with pytest.raises(UsageError, match=r"^no such thing$"):
        first.evaluate_on_first(fails, is_first=True, from_first=send)
    assert sent == [(None, "no such thing")]
    with pytest.raises(LmgaugeError, match="on the first process: no such thing"):
        other.evaluate_on_first(fails, is_first=False, from_first=lambda value: sent[0])
    figures, is_new = first.evaluate_on_first(lambda: network, is_first=True, from_first=send)
    assert is_new
    assert other.evaluate_on_first(fails, is_first=False, from_first=lambda value: sent[-1]) == (figures, True)


def test_wrapping_needs_no_file(network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts) -> None:
    named = NamedTexts(texts, tokenizer)
    named.evaluate(network)
    network.eval()
    model = NeuralModel.wrap(network, tokenizer)
    assert lmgauge.evaluate(model, texts["back"], threads=1).perplexity == named.evaluations["back"].perplexity
