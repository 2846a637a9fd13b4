"""The models: what their papers say they compute, states that carry, and the Auto classes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from lmgauge.models.network.torch.architectures import (
    FeedForwardConfig,
    FeedForwardForCausalLM,
    RecurrentConfig,
    RecurrentForCausalLM,
    register_architectures,
)

SIZE = 23
CONFIGS: dict[str, Any] = {
    "ffnn": FeedForwardConfig(vocab_size=SIZE, embedding_size=4, hidden_size=6, order=4),
    "ffnn-direct": FeedForwardConfig(vocab_size=SIZE, embedding_size=4, hidden_size=6, order=3, direct_connections=True),
    "bigram": FeedForwardConfig(vocab_size=SIZE, embedding_size=4, hidden_size=4, order=2, tie_word_embeddings=True),
    "rnn": RecurrentConfig(vocab_size=SIZE, cell="rnn", embedding_size=4, hidden_size=6),
    "rnn-tanh": RecurrentConfig(vocab_size=SIZE, cell="rnn", nonlinearity="tanh", embedding_size=4, hidden_size=6),
    "lstm": RecurrentConfig(vocab_size=SIZE, cell="lstm", embedding_size=6, hidden_size=6, tie_word_embeddings=True),
    "gru": RecurrentConfig(vocab_size=SIZE, cell="gru", embedding_size=4, hidden_size=6, num_layers=1),
}


def model_of(name: str) -> Any:
    register_architectures()
    torch.manual_seed(1)
    return AutoModelForCausalLM.from_config(CONFIGS[name]).eval()


def ids(batch: int = 3, time: int = 11) -> Tensor:
    return torch.randint(3, SIZE, (batch, time), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", CONFIGS)
def test_carried_state_is_one_long_window(name: str) -> None:
    model, text = model_of(name), ids()
    whole = model(text)
    state, parts = None, []
    for window in text.split([1, 4, 6], dim=1):
        output = model(window, state=state)
        state = output.state
        parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole.logits)
    assert all(tensor.shape[-2] == len(text) for tensor in whole.state)


@pytest.mark.parametrize("name", CONFIGS)
def test_base_and_output_layer_are_the_model(name: str) -> None:
    model, text = model_of(name), ids()
    hidden = model.base_model(text).last_hidden_state
    torch.testing.assert_close(model.get_output_embeddings()(hidden), model(text).logits)
    assert model.base_model is model.model
    assert model.get_input_embeddings().weight.shape == (SIZE, CONFIGS[name].embedding_size)


@pytest.mark.parametrize("name", CONFIGS)
def test_later_text_and_padding_change_nothing(name: str) -> None:
    model, text = model_of(name), ids()
    padded = torch.cat((text, torch.full((3, 4), 2)), 1)
    mask = torch.cat((torch.ones_like(text), torch.zeros(3, 4, dtype=torch.long)), 1)
    alone, beside = model(text, labels=text), model(padded, attention_mask=mask, labels=padded)
    torch.testing.assert_close(beside.logits[:, :11], alone.logits)
    torch.testing.assert_close(beside.loss, alone.loss)


@pytest.mark.parametrize("name", ["ffnn", "ffnn-direct", "bigram"])
def test_tokens_before_the_text_are_bos(name: str) -> None:
    model, text = model_of(name), ids()
    begun = torch.cat((torch.full((3, 5), 1), text), 1)
    torch.testing.assert_close(model(begun).logits[:, 5:], model(text).logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model, text = model_of(name), ids()
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert torch.equal(again(text).logits, model(text).logits)
    assert (again.lm_head.weight is again.model.embed_tokens.weight) is CONFIGS[name].tie_word_embeddings
    config = AutoConfig.from_pretrained(tmp_path)
    assert (config.bos_token_id, config.eos_token_id) == (1, 2)


@pytest.mark.parametrize("name", ["ffnn", "lstm", "gru"])
def test_greedy_generation_is_the_argmax_of_each_step(name: str) -> None:
    model, text = model_of(name), ids(batch=1, time=4)
    made = model.generate(text, attention_mask=torch.ones_like(text), max_new_tokens=5, do_sample=False, eos_token_id=None)
    for _ in range(5):
        text = torch.cat((text, model(text).logits[:, -1:].argmax(-1)), 1)
    assert torch.equal(made, text)


def test_feed_forward_is_bengio_equation_1() -> None:
    model = model_of("ffnn-direct")
    base, head, text = model.model, model.lm_head, ids(1, 6)
    vectors = base.embed_tokens(text)[0]
    for t in range(2, 6):
        x = torch.cat((vectors[t - 1], vectors[t]))
        y = head.bias + head.weight[:, 6:] @ x + head.weight[:, :6] @ torch.tanh(base.hidden.bias + base.hidden.weight @ x)
        torch.testing.assert_close(model(text).logits[0, t], y)


def test_elman_is_the_textbook_loop() -> None:
    model = model_of("rnn")
    layers, text = model.model.layers, ids(1, 5)
    x = model.model.embed_tokens(text)[0]
    for layer in range(2):
        weights = [getattr(layers, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        h, outputs = torch.zeros(6), []
        for step in x:
            h = torch.sigmoid(weights[0] @ step + weights[1] @ h + weights[2] + weights[3])
            outputs.append(h)
        x = torch.stack(outputs)
    torch.testing.assert_close(model(text).logits[0], model.lm_head(x))


def test_lstm_dropout_is_on_no_recurrent_connection() -> None:
    config = RecurrentConfig(vocab_size=SIZE, embedding_size=8, hidden_size=8, num_layers=1, dropout=0.5)
    torch.manual_seed(3)
    model = RecurrentForCausalLM(config)
    text = ids(1, 7)
    torch.manual_seed(4)
    train = model.train()(text)
    torch.manual_seed(4)
    inputs = torch.nn.functional.dropout(model.model.embed_tokens(text), 0.5)
    outputs, _ = model.model.layers(inputs)
    torch.testing.assert_close(train.logits, model.lm_head(torch.nn.functional.dropout(outputs, 0.5)))


def test_loss_is_the_shifted_cross_entropy() -> None:
    model, text = model_of("lstm"), ids()
    labels = text.clone()
    labels[0, 3:] = -100
    output = model(text, labels=labels)
    rows = torch.log_softmax(output.logits[:, :-1], -1)
    chosen = labels[:, 1:] != -100
    surprises = -rows.gather(2, text[:, 1:, None])[..., 0][chosen]
    torch.testing.assert_close(output.loss, surprises.mean())
    torch.testing.assert_close(model(text, labels=labels, num_items_in_batch=4).loss, surprises.sum() / 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RecurrentConfig(cell="qrnn"), "cell 'qrnn' is not known"),
        (lambda: RecurrentConfig(nonlinearity="relu"), "nonlinearity 'relu'"),
        (lambda: FeedForwardForCausalLM(FeedForwardConfig(vocab_size=SIZE, order=1)), "order 1"),
        (
            lambda: RecurrentForCausalLM(
                RecurrentConfig(vocab_size=SIZE, embedding_size=3, hidden_size=4, tie_word_embeddings=True)
            ),
            "tied embeddings",
        ),
    ],
)
def test_sizes_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_padding_at_the_left_is_refused() -> None:
    model, text = model_of("lstm"), ids()
    mask = torch.ones_like(text)
    mask[1, 0] = 0
    with pytest.raises(ValueError, match="pad at the right"):
        model(text, attention_mask=mask)


def test_loads_where_lmgauge_is_not_installed(tmp_path: Path) -> None:
    text = ids()
    for name in ("ffnn", "lstm"):
        model_of(name).save_pretrained(tmp_path / name)
        (tmp_path / f"{name}.txt").write_text(repr(model_of(name)(text).logits.double().sum().item()), encoding="utf-8")
    code = f"""
import sys
sys.modules["lmgauge"] = None
import torch
from transformers import AutoModelForCausalLM
text = torch.tensor({text.tolist()!r})
for name in ("ffnn", "lstm"):
    model = AutoModelForCausalLM.from_pretrained({str(tmp_path)!r} + "/" + name, trust_remote_code=True)
    print(repr(model(text).logits.double().sum().item()))
"""
    environment = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    expected = [float((tmp_path / f"{name}.txt").read_text(encoding="utf-8")) for name in ("ffnn", "lstm")]
    assert [float(line) for line in done.stdout.split()] == pytest.approx(expected, rel=1e-6)
