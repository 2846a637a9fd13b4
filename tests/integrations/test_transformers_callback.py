"""The callback in the real Trainer."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import torch
from transformers import (
    EarlyStoppingCallback,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
)

import lmgauge
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.integrations import TransformersPerplexityCallback
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.documents import Corpus
from tests.integrations.tiny import FIGURES, make_lines, run_two, same_weights, trainer_of, weights_of

Texts = dict[str, Path]


def steps_of(trainer: Trainer, key: str) -> list[int]:
    return [entry["step"] for entry in trainer.state.log_history if key in entry]


def test_the_log_has_what_evaluating_the_saved_network_gives(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path)
    callback = TransformersPerplexityCallback(trainer, texts)
    trainer.add_callback(callback)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    saved = lmgauge.load_model(tmp_path / "saved", device="cpu")
    last = [entry for entry in trainer.state.log_history if "eval_front_perplexity" in entry][-1]
    for name, path in texts.items():
        expected = lmgauge.evaluate(saved, path, threads=torch.get_num_threads())
        assert callback.evaluations[name].signature == expected.signature
        assert {f: last[f"eval_{name}_{f}"] for f in FIGURES} == {f: getattr(expected, f) for f in FIGURES}


def test_the_options_are_those_of_eval(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path, max_steps=1, eval_strategy="no")
    options = ScoringOptions(context=16, stride=8, stream=True)
    callback = TransformersPerplexityCallback(trainer, {"front": [texts["front"]]}, options=options)
    trainer.add_callback(callback)
    trainer.train()
    found = callback.evaluations["front"]
    assert "context:stream,16/8" in found.signature
    assert found.bytes == texts["front"].stat().st_size


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_training_is_not_changed(
    kind: str,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    texts: Texts,
    tmp_path: Path,
) -> None:
    """Bit for bit, with dropout; and with positions whose frequencies the network keeps in a buffer that changes."""
    if kind == "llama":
        rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0, "original_max_position_embeddings": 8}
        sizes = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 8}
        network = LlamaForCausalLM(LlamaConfig(**sizes, **heads, attention_dropout=0.1, rope_parameters=rope))
    start = weights_of(network)
    found = []
    for watched in (True, False):
        network.load_state_dict(start)
        network.train()
        trainer = trainer_of(network, tokenizer, tmp_path)
        if watched:
            trainer.add_callback(TransformersPerplexityCallback(trainer, texts, every_n_steps=1))
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        assert len(losses) == 4
        found.append((losses, weights_of(network), torch.get_rng_state()))
    assert found[0][0] == found[1][0]
    assert same_weights(found[0][1], found[1][1])
    assert torch.equal(found[0][2], found[1][2])


def test_it_evaluates_when_told(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    """The trainer itself evaluates and logs when it would alone: after its last step too, from transformers 5.4 on."""
    watched, alone = (trainer_of(network, tokenizer, tmp_path, eval_steps=3, max_steps=5, logging_steps=2) for _ in range(2))
    watched.add_callback(TransformersPerplexityCallback(watched, texts, every_n_steps=2))
    watched.train()
    alone.train()
    assert steps_of(watched, "eval_front_perplexity") == [2, 3, 4, 5]
    assert steps_of(watched, "eval_front_signature") == [2]
    assert steps_of(watched, "loss") == steps_of(alone, "loss") == [2, 4]
    assert steps_of(watched, "eval_loss") == steps_of(alone, "eval_loss")
    assert steps_of(watched, "eval_loss") in ([3], [3, 5])


def test_no_weights_are_evaluated_twice(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path, max_steps=2)
    trainer.eval_dataset = {"a": trainer.eval_dataset, "b": trainer.eval_dataset}
    trainer.add_callback(TransformersPerplexityCallback(trainer, texts, every_n_steps=2))
    trainer.train()
    found = trainer.evaluate()
    assert steps_of(trainer, "eval_back_perplexity") == [2]
    assert found["eval_back_perplexity"] == next(
        entry["eval_back_perplexity"] for entry in trainer.state.log_history if "eval_back_perplexity" in entry
    )


def test_without_the_end(network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path, max_steps=1, eval_strategy="no")
    callback = TransformersPerplexityCallback(trainer, texts, at_end=False)
    trainer.add_callback(callback)
    trainer.train()
    assert callback.evaluations == {}


def test_the_best_model_may_be_chosen_by_it(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(
        network,
        tokenizer,
        tmp_path,
        max_steps=6,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_back_bits_per_byte",
        greater_is_better=False,
    )
    trainer.add_callback(TransformersPerplexityCallback(trainer, texts))
    trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=5))
    trainer.train()
    seen = {e["step"]: e["eval_back_bits_per_byte"] for e in trainer.state.log_history if "eval_back_bits_per_byte" in e}
    best = min(seen, key=lambda step: seen[step])
    assert (trainer.state.best_global_step, trainer.state.best_metric) == (best, seen[best])
    assert trainer.evaluate()["eval_back_bits_per_byte"] == seen[best]
    stored = json.loads((tmp_path / "checkpoint-6" / "trainer_state.json").read_text())
    assert any("eval_back_signature" in entry for entry in stored["log_history"])


def test_tensorboard_shows_it(
    network: GPT2LMHeadModel,
    tokenizer: PreTrainedTokenizerFast,
    texts: Texts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    trainer = trainer_of(network, tokenizer, tmp_path, report_to="tensorboard", eval_strategy="no", max_steps=3)
    callback = TransformersPerplexityCallback(trainer, texts, every_n_steps=2)
    trainer.add_callback(callback)
    trainer.train()
    files = list((tmp_path / "board").rglob("events*"))
    assert len(files) == 1
    events = EventAccumulator(str(files[0])).Reload()
    points = [(event.step, event.value) for event in events.Scalars("eval/front_perplexity")]
    assert [step for step, _ in points] == [2, 3]
    assert points[-1][1] == pytest.approx(callback.evaluations["front"].perplexity, rel=1e-6)  # it keeps float32
    (text,) = events.Tensors("eval/front_signature/text_summary")
    assert text.tensor_proto.string_val[0].startswith(b"ppl|unit:subword|")


def test_mixed_precision_is_left_out(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    """Accelerate runs `forward` in bfloat16 here; the weights, which are saved, are float32."""
    trainer = trainer_of(network, tokenizer, tmp_path, bf16=True, max_steps=2)
    callback = TransformersPerplexityCallback(trainer, texts)
    trainer.add_callback(callback)
    trainer.train()
    assert hasattr(network, "_original_forward")
    forward = network.forward
    trainer.save_model(str(tmp_path / "saved"))
    expected = lmgauge.evaluate(
        lmgauge.load_model(tmp_path / "saved", device="cpu"), texts["front"], threads=torch.get_num_threads()
    )
    assert callback.evaluations["front"].perplexity == expected.perplexity
    assert network.forward is forward


def test_how_the_trainer_tokenizes_does_not_matter(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    found = []
    for truncates in (False, True):
        if truncates:
            tokenizer(make_lines(), truncation=True, padding="max_length", max_length=5)
        trainer = trainer_of(network, tokenizer, tmp_path)
        callback = TransformersPerplexityCallback(trainer, texts)
        trainer.add_callback(callback)
        trainer.evaluate()
        found.append(callback.evaluations["front"].log_probability)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    assert found[0] == found[1]


WORKER = """
import json, sys
from pathlib import Path
import torch
from lmgauge.integrations import TransformersPerplexityCallback, in_memory
from tests.integrations.tiny import make_network, make_tokenizer, same_weights, trainer_of, weights_of

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
evaluated = []
plain = in_memory.NamedTexts.evaluate
in_memory.NamedTexts.evaluate = lambda self, network: evaluated.append(1) or plain(self, network)
network, tokenizer, found = make_network(), make_tokenizer(), []
start = weights_of(network)
for watched in (True, False):
    network.load_state_dict(start)
    choice = {"metric_for_best_model": "eval_front_perplexity", "greater_is_better": False} if watched else {}
    trainer = trainer_of(network, tokenizer, folder, max_steps=2, eval_steps=1, ddp_backend="gloo", **choice)
    if watched:
        callback = TransformersPerplexityCallback(trainer, {"front": folder / "front.txt"})
        trainer.add_callback(callback)
    trainer.train()
    found.append((trainer.state, weights_of(network)))
assert trainer.args.world_size == 2
report = {
    "evaluated": len(evaluated),
    "same": same_weights(found[0][1], found[1][1]),
    "best": found[0][0].best_metric,
    "perplexity": callback.evaluations["front"].perplexity,
}
(folder / f"{rank}.json").write_text(json.dumps(report))
torch.distributed.destroy_process_group()
"""


def test_in_two_processes_the_first_evaluates_for_both(texts: Texts, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    run_two(WORKER, tmp_path, **world)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert (first.pop("evaluated"), second.pop("evaluated")) == (3, 0)
    assert first == second
    assert first["same"]
    assert first["best"] == first["perplexity"]


def test_a_network_that_gives_nan_is_told_and_left_as_it_was(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path)
    trainer.add_callback(TransformersPerplexityCallback(trainer, texts))
    with torch.no_grad():
        network.transformer.wpe.weight[9] = torch.nan
    network.train()
    network.lm_head.eval()
    with pytest.raises(ModelFileError, match=r"gives NaN in segment \d+"):
        trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, {})
    assert network.training
    assert not network.lm_head.training


def test_mistakes_are_told_at_once(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path)
    with pytest.raises(InputError, match=r"no\.txt"):
        TransformersPerplexityCallback(trainer, {"a": tmp_path / "no.txt"})
    with pytest.raises(UsageError, match="at least one"):
        TransformersPerplexityCallback(trainer, {})
    with pytest.raises(UsageError, match="has the name ''"):
        TransformersPerplexityCallback(trainer, {"": texts["front"]})
    with pytest.raises(UsageError, match="can be read only once"):
        TransformersPerplexityCallback(trainer, {"a": Corpus.from_strings(iter(make_lines()))})
    with pytest.raises(UsageError, match="every_n_steps is 0"):
        TransformersPerplexityCallback(trainer, texts, every_n_steps=0)
    trainer.is_fsdp_enabled = True
    with pytest.raises(UsageError, match="shards"):
        TransformersPerplexityCallback(trainer, texts)
    trainer.is_fsdp_enabled, trainer.processing_class = False, None
    with pytest.raises(UsageError, match="no processing_class"):
        TransformersPerplexityCallback(trainer, texts)
    assert TransformersPerplexityCallback(trainer, texts, tokenizer=tokenizer).evaluations == {}


def test_a_folder_has_the_log_and_a_run_for_each_text(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(network, tokenizer, tmp_path, logging_steps=1)
    folder = tmp_path / "followed"
    callback = TransformersPerplexityCallback(trainer, {**texts, "../away": texts["front"]}, folder=folder)
    trainer.add_callback(callback)
    trainer.train()
    entries = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    logged = {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}
    assert {entry["step"]: entry["loss"] for entry in entries if "loss" in entry} == logged != {}
    last = [entry["eval_front_bits_per_byte"] for entry in entries if "eval_front_bits_per_byte" in entry][-1]
    assert last == callback.evaluations["front"].bits_per_byte
    assert sorted(path.name for path in folder.iterdir()) == ["__away", "back", "front", "progress.jsonl"]
    run = json.loads((folder / "front" / "evaluation.json").read_text())
    assert run["evaluation"]["perplexity"] == callback.evaluations["front"].perplexity
