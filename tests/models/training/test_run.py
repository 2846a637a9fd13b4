"""Training from text to folder: it learns, it can be stopped and gone on with, and what it writes is what others load."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from lmgauge import train_neural
from lmgauge.api.evaluate import evaluate
from lmgauge.base.choices import RESERVED_POLICIES
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.network.torch import runtime as precision
from lmgauge.models.network.torch.model import load_neural
from lmgauge.models.registry import load_model
from lmgauge.models.training import run
from lmgauge.models.training.loop import Loop, TrainingEvent, TrainingFailedError
from lmgauge.models.training.run import NeuralTraining
from lmgauge.models.training.settings import NEURAL_KINDS, preset_settings
from lmgauge.text.documents import Corpus
from lmgauge.work.manifest import content_fingerprint

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "it", "runs", "and", "then"]
TINY: dict[str, Any] = {
    "embedding_size": 8,
    "hidden_size": 8,
    "batch_size": 4,
    "steps": 5,
    "epochs": 2,
    "learning_rate": 0.3,
    "dropout": 0.2,
    "threads": 1,
    "device": "cpu",
}


def lines(count: int, seed: int = 1) -> list[str]:
    """Sentences in which each word tells much of the next."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        start, length = int(random.integers(10)), int(random.integers(2, 9))
        made.append(" ".join(WORDS[(start + 3 * i) % 10] for i in range(length)))
    return made


def train(path: Path, kind: str = "lstm", texts: list[str] | None = None, **options: Any) -> NeuralTraining:
    sizes = {"optimizer": "adamw", "learning_rate": 0.01, "heads": 2, "warmup": 0} if kind == "transformer" else {}
    chosen = {"valid": Corpus.from_strings(lines(20, seed=2)), **TINY, **sizes, **options}
    corpus = Corpus.from_strings(texts if texts is not None else lines(60))
    return train_neural(kind, corpus, output=path / "model", **chosen)  # type: ignore[arg-type]


def weights(path: Path) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = load_file(path / "model" / "model.safetensors")
    return tensors


def same(first: Path, second: Path) -> bool:
    one, two = weights(first), weights(second)
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def stop_at(update: int) -> Callable[[TrainingEvent], None]:
    def watch(event: TrainingEvent) -> None:
        if event.total_update >= update and not event.finished:
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize(
    ("kind", "context"), [*((kind, "stream") for kind in NEURAL_KINDS), ("ffnn", "sentence"), ("lstm", "sentence")]
)
def test_it_learns_and_others_load_it(kind: str, context: str, tmp_path: Path) -> None:
    result = train(tmp_path, kind, context=context, epochs=5, optimizer="adamw", learning_rate=0.02)
    losses = [entry["perplexity"] for entry in result.history]
    assert losses[-1] < 0.8 * losses[0]
    assert result.valid_perplexity == min(entry["valid_perplexity"] for entry in result.history)
    model = AutoModelForCausalLM.from_pretrained(result.path)
    tokenizer = AutoTokenizer.from_pretrained(result.path)
    assert tokenizer("the cat zzz")["input_ids"] == [tokenizer.convert_tokens_to_ids(w) for w in ("the", "cat")] + [0]
    assert model(torch.tensor([[1, 3]])).logits.shape == (1, 2, result.vocabulary_size) == (1, 2, 13)
    config = json.loads((result.path / "config.json").read_text(encoding="utf-8"))
    assert config["lmgauge"]["kind"] == kind
    assert config["lmgauge"]["context"] == context
    assert (config["bos_token_id"], config["eos_token_id"]) == (1, 2)
    assert not (tmp_path / "model.training").exists()


@pytest.mark.parametrize(
    ("kind", "context"),
    [("ffnn", "sentence"), ("lstm", "stream"), ("lstm", "sentence"), ("gru", "stream"), ("transformer", "stream")],
)
def test_going_on_gives_the_same_bits(kind: str, context: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"context": context, "epochs": 2, "batch_size": 2}
    whole = train(tmp_path / "whole", kind, **options)
    halves = tmp_path / "halves"
    for update in (25, 45):
        with pytest.raises(KeyboardInterrupt):
            train(halves, kind, checkpoint_every=10, watch=stop_at(update), resume=True, **options)
    again = train(halves, kind, checkpoint_every=10, resume=True, **options)
    assert same(tmp_path / "whole", halves)
    assert again.history == whole.history


def test_going_on_with_schedules_that_remember(tmp_path: Path) -> None:
    options: dict[str, Any] = {"schedule": "cosine", "patience": 1, "epochs": 6, "optimizer": "adamw", "learning_rate": 0.05}
    whole = train(tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "halves", watch=stop_at(50), **options)
    assert train(tmp_path / "halves", resume=True, **options).history == whole.history
    assert same(tmp_path / "whole", tmp_path / "halves")


def test_same_seed_same_bits(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(tmp_path / name, seed=seed)
    assert same(tmp_path / "a", tmp_path / "b")
    assert not same(tmp_path / "a", tmp_path / "c")


def test_the_best_epoch_is_kept(tmp_path: Path) -> None:
    seen: list[float] = []

    def watch(event: TrainingEvent) -> None:
        if event.valid_perplexity is not None:
            seen.append(event.valid_perplexity)

    result = train(tmp_path, epochs=6, learning_rate=20.0, clip_norm=0.0, schedule="constant", watch=watch)
    assert result.valid_perplexity == min(seen)
    if min(seen) != seen[-1]:
        assert any("where validation was best" in note for note in result.notes)
    said = json.loads((result.path / "config.json").read_text(encoding="utf-8"))["lmgauge"]["training"]
    assert said["valid_perplexity"] == min(seen)


def test_without_validation_the_last_epoch_is_kept(tmp_path: Path) -> None:
    result = train(tmp_path, valid=None)
    assert result.valid_perplexity is None
    assert len(result.history) == 2


def test_bfloat16_learns_the_same(tmp_path: Path) -> None:
    exact = train(tmp_path / "exact", epochs=3, dropout=0.0)
    rounded = train(tmp_path / "rounded", epochs=3, dropout=0.0, precision="bfloat16")
    assert rounded.valid_perplexity == pytest.approx(exact.valid_perplexity, rel=0.02)
    assert {tensor.dtype for tensor in weights(tmp_path / "rounded").values()} == {torch.float32}


@pytest.mark.parametrize("steps", [1, 3])
def test_a_transformer_of_few_positions_is_loaded(steps: int, tmp_path: Path) -> None:
    """What is tried out on a network when it is loaded is no longer than its positions."""
    result = train(tmp_path, "transformer", steps=steps, epochs=1)
    scored = evaluate(load_model(result.path), Corpus.from_strings(lines(20, seed=2)))
    assert scored.perplexity == pytest.approx(result.valid_perplexity, rel=1e-3)


@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_without_bfloat16_products_training_goes_on_in_float32(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "has_bfloat16_products", lambda: False)
    result = train(tmp_path, kind, epochs=1, precision="bfloat16")
    assert result.settings.precision == "float32"
    assert result.notes[0] == precision.FLOAT32_INSTEAD
    said = json.loads((result.path / "config.json").read_text(encoding="utf-8"))["lmgauge"]
    assert said["training"]["settings"]["precision"] == "float32"
    assert said["notes"][0] == precision.FLOAT32_INSTEAD


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected"),
    [("character", "the", 3), ("byte", "thé", 4), ("bpe:280", "the cat", None), ("unigram:300", "the cat", None)],
)
def test_other_tokenizers(tokenizer: str, text: str, expected: int | None, tmp_path: Path) -> None:
    result = train(tmp_path, tokenizer=tokenizer, epochs=1)
    found = AutoTokenizer.from_pretrained(result.path)(text)["input_ids"]
    assert 0 not in found if tokenizer != "character" else found
    if expected is not None:
        assert len(found) == expected


def test_rare_words_become_unknown(tmp_path: Path) -> None:
    texts = [*lines(60), "once upon a time"]
    result = train(tmp_path, texts=texts, min_count=2, epochs=1)
    assert result.vocabulary_size == 13
    assert AutoTokenizer.from_pretrained(result.path)("once the")["input_ids"][0] == 0


def test_a_text_without_unknown_words_is_noted(tmp_path: Path) -> None:
    said = "the training text has no <unk>"
    options: dict[str, Any] = {"epochs": 1, "valid": None}
    assert any(said in note for note in train(tmp_path / "a", **options).notes)
    assert any(said in note for note in train(tmp_path / "b", tokenizer="character", **options).notes)
    assert not any(said in note for note in train(tmp_path / "c", tokenizer="byte", **options).notes)
    texts = [*lines(60), "once upon a time"]
    assert not any(said in note for note in train(tmp_path / "d", texts=texts, min_count=2, **options).notes)


def test_what_torch_shares_is_left_as_it_was(tmp_path: Path) -> None:
    numbers, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        train(tmp_path / "a", epochs=1)
        with pytest.raises(TrainingFailedError):
            train(tmp_path / "b", learning_rate=1e30, clip_norm=0.0)
        assert torch.equal(torch.get_rng_state(), numbers)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("kind", "hidden", "given", "expected"),
    [("lstm", 8, None, 1), ("lstm", 8, 3, 3), ("gru", 650, None, 5), ("ffnn", 8, None, 5)],
)
def test_threads(kind: Any, hidden: int, given: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "thread_count", lambda threads: threads or 5)
    assert run._threads(given, preset_settings(kind, hidden_size=hidden)) == expected


@pytest.mark.parametrize("damage", [{"history": 3}, {"rate": {}}, {"epoch": "two"}, {"seconds": None}])
def test_a_checkpoint_changed_by_hand_is_told(damage: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, watch=stop_at(25), checkpoint_every=10, epochs=9)
    file = tmp_path / "model.training" / "step-20" / "checkpoint.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["facts"] |= damage
    file.write_text(json.dumps(content | {"fingerprint": content_fingerprint(content)}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="delete the folder to start anew"):
        train(tmp_path, epochs=9, resume=True)


@pytest.mark.parametrize("texts", [[], ["", ""], ["  "]])
def test_empty_texts(texts: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training text is empty"):
        train(tmp_path, texts=texts)
    with pytest.raises(InputError, match="validation text is empty"):
        train(tmp_path, valid=Corpus.from_strings(texts))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a b"], "batch_size": 20}, "smaller --batch-size"),
        ({"texts": ["a <unk> b"]}, "reserved token <unk>"),
        ({"valid": None, "patience": 1}, "validation text"),
        ({"dropout": 1.0}, "dropout"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": 0.0}, "learning-rate"),
        ({"no_such": 1}, "no_such"),
        ({"preset": "tiny"}, "preset 'tiny'"),
        ({"reserved": "maybe"}, "reserved 'maybe'"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"device": "cuda:7"}, "device 'cuda:7'"),
        ({"tokenizer": "bpe:10"}, "number of subwords"),
        ({"tokenizer": "bpe:x"}, "number of subwords"),
        ({"tokenizer": "byte", "min_count": 2}, "vocabulary of byte is fixed"),
        ({"tie_embeddings": True, "hidden_size": 9}, "tied embeddings"),
        ({"checkpoint_every": -1}, "checkpoint-every"),
        ({"vocab_size": 0}, "vocab-size"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        train(tmp_path, **options)
    assert not (tmp_path / "model").exists()


def test_what_is_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.tex").write_text("words", encoding="utf-8")
    with pytest.raises(InputError, match="choose another name"):
        train(tmp_path)
    assert (tmp_path / "model" / "thesis.tex").exists()


def test_a_model_of_ours_is_replaced(tmp_path: Path) -> None:
    train(tmp_path)
    with pytest.raises(UsageError, match="is a finished model"):
        train(tmp_path, resume=True)
    before = weights(tmp_path)
    train(tmp_path, seed=99)
    assert not torch.equal(before["lm_head.weight"], weights(tmp_path)["lm_head.weight"])


def test_a_stopped_run_is_not_thrown_away_or_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, watch=stop_at(25), checkpoint_every=10, epochs=9)
    assert (tmp_path / "model.training" / "step-20").is_dir()
    with pytest.raises(UsageError, match="continue it with --resume"):
        train(tmp_path, epochs=9)
    with pytest.raises(UsageError, match=r"holds other work: settings: batch_size is 4 there, and 2 here; give the same"):
        train(tmp_path, epochs=9, batch_size=2, resume=True)
    with pytest.raises(UsageError, match="holds other work: training_text is "):
        train(tmp_path, epochs=9, texts=lines(59), resume=True)
    (tmp_path / "model.training" / "step-20" / "tensors.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match=r"delete .* to start anew"):
        train(tmp_path, epochs=9, resume=True)


def test_a_second_run_to_the_same_name_is_refused(tmp_path: Path) -> None:
    """One would go on from the checkpoints of the other, or remove them."""
    refused = []

    def again(event: TrainingEvent) -> None:
        for resume in (False, True):
            with pytest.raises(UsageError, match=r"model\.training: another run is working there; wait") as error:
                train(tmp_path, resume=resume)
            refused.append(error)

    train(tmp_path, watch=again)
    assert refused
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_run_that_had_nothing_to_resume_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        train(tmp_path, texts=[])
    assert not list(tmp_path.iterdir())


def test_divergence_is_told_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingFailedError, match=r"diverged; use a lower --learning-rate"):
        train(tmp_path, learning_rate=1e30, clip_norm=0.0, checkpoint_every=5)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_a_perplexity_beyond_a_float_is_divergence(kind: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingFailedError, match="diverged"):
        train(tmp_path, kind, valid=None, optimizer="sgd", learning_rate=1e30, schedule="constant")
    assert not (tmp_path / "model").exists()


def test_parameters_that_are_no_numbers_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Loop._step

    def breaking(self: Loop, window: Any) -> None:
        step(self, window)
        if self.total_update == 12:
            with torch.no_grad():
                self.model.base_model.embed_tokens.weight[1] = torch.inf  # `<s>`, which a stream has once

    monkeypatch.setattr(Loop, "_step", breaking)
    with pytest.raises(TrainingFailedError, match="diverged"):
        train(tmp_path, kind="lstm", checkpoint_every=10)
    assert sorted(path.name for path in (tmp_path / "model.training").iterdir()) == ["lock", "progress.jsonl", "step-10"]
    assert not (tmp_path / "model").exists()


def test_lack_of_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Loop, window: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr(Loop, "_step", full)
    with pytest.raises(InputError, match="smaller --batch-size"):
        train(tmp_path)


def test_other_errors_of_the_device_are_not_taken_for_lack_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Loop, window: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(Loop, "_step", broken)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        train(tmp_path)


def test_what_reserved_tokens_mean_is_in_the_fingerprint(tmp_path: Path) -> None:
    train(tmp_path)
    model = load_neural(tmp_path / "model")
    prints = [model.with_reserved(reserved).fingerprint for reserved in RESERVED_POLICIES]
    assert (prints[0], len(set(prints))) == (model.fingerprint, 3)
