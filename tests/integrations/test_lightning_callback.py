"""The callback in the real Lightning Trainer."""

from __future__ import annotations

import csv
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.integrations import LightningPerplexityCallback
from tests.integrations.tiny import FIGURES, make_lines, rows_of, run_two, same_weights, weights_of

# Of Lightning itself: how many workers load data, that training has few batches, and what it calls in torch.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:The number of training batches"),
    pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no `val_dataloader`"),
]

Texts = dict[str, Path]


class Module(LightningModule):
    def __init__(self, network: GPT2LMHeadModel) -> None:
        super().__init__()
        self.inner = torch.nn.ModuleDict({"model": network})
        self.losses: list[float] = []

    def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        loss: torch.Tensor = self.inner["model"](**batch).loss
        self.losses.append(float(loss.detach()))
        return loss

    def validation_step(self, batch: dict[str, torch.Tensor]) -> None:
        self.log("valid_loss", self.inner["model"](**batch).loss)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


def loader(tokenizer: PreTrainedTokenizerFast, shuffle: bool = False) -> DataLoader[Any]:
    rows = [{name: torch.tensor(ids) for name, ids in row.items()} for row in rows_of(tokenizer, make_lines()[:16])]
    return DataLoader(rows, batch_size=4, shuffle=shuffle)  # type: ignore[arg-type]


def trainer_of(folder: Path, *callbacks: Callback, **arguments: Any) -> Trainer:
    defaults: dict[str, Any] = {
        "max_steps": 4,
        "accelerator": "cpu",
        "devices": 1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": folder,
    }
    return Trainer(callbacks=list(callbacks), **(defaults | arguments))


def callback_of(texts: Texts, tokenizer: PreTrainedTokenizerFast, **arguments: Any) -> LightningPerplexityCallback:
    return LightningPerplexityCallback(texts, tokenizer, network="inner.model", **arguments)


def fit(trainer: Trainer, module: Module, tokenizer: PreTrainedTokenizerFast, *, validates: bool = True) -> None:
    torch.manual_seed(5)
    trainer.fit(module, loader(tokenizer, shuffle=True), loader(tokenizer) if validates else None)


def test_the_log_has_what_evaluating_the_saved_network_gives(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    callback = callback_of(texts, tokenizer)
    trainer = trainer_of(tmp_path, callback)
    fit(trainer, Module(network), tokenizer)
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    saved = lmgauge.load_model(tmp_path / "saved", device="cpu")
    for name, path in texts.items():
        expected = lmgauge.evaluate(saved, path, threads=torch.get_num_threads())
        found = {figure: float(trainer.callback_metrics[f"{name}_{figure}"]) for figure in FIGURES}
        assert found == {figure: getattr(expected, figure) for figure in FIGURES}
        assert callback.signatures[f"{name}_signature"] == expected.signature


def test_training_is_not_changed(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    start = weights_of(network)
    found = []
    for watched in (True, False):
        network.load_state_dict(start)
        network.train()
        callbacks = [callback_of(texts, tokenizer, every_n_steps=1)] if watched else []
        module = Module(network)
        fit(trainer_of(tmp_path, *callbacks), module, tokenizer)
        found.append((module.losses, weights_of(network), torch.get_rng_state()))
    assert found[0][0] == found[1][0]
    assert same_weights(found[0][1], found[1][1])
    assert torch.equal(found[0][2], found[1][2])


def test_mixed_precision_is_left_out(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    callback = callback_of(texts, tokenizer)
    fit(trainer_of(tmp_path, callback, precision="bf16-mixed", max_steps=2), Module(network), tokenizer)
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    expected = lmgauge.evaluate(lmgauge.load_model(tmp_path / "saved", device="cpu"), texts["back"], threads=1)
    assert callback.evaluations["back"].perplexity == expected.perplexity


def test_loggers_get_it_when_told(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    """Without validation, every two of five steps and at the end; with gradients of two batches in a step."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loggers = [CSVLogger(tmp_path, "csv"), TensorBoardLogger(tmp_path, "board")]
    callback = callback_of(texts, tokenizer, every_n_steps=2, prefix="text/")
    trainer = trainer_of(tmp_path, callback, logger=loggers, max_steps=5, accumulate_grad_batches=2, log_every_n_steps=1)
    fit(trainer, Module(network), tokenizer, validates=False)
    with (Path(loggers[0].log_dir) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["text/front_perplexity"]]
    assert [int(row["step"]) for row in rows] == [2, 4, 5]
    assert float(rows[-1]["text/front_perplexity"]) == callback.evaluations["front"].perplexity
    events = EventAccumulator(str(loggers[1].log_dir)).Reload()
    points = [(event.step, event.value) for event in events.Scalars("text/front_perplexity")]
    assert [step for step, _ in points] == [2, 4, 5]
    assert points[-1][1] == pytest.approx(callback.evaluations["front"].perplexity, rel=1e-6)  # it keeps float32


def test_checkpoints_and_stopping_may_go_by_it(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    checkpoint = ModelCheckpoint(tmp_path / "best", monitor="back_bits_per_byte", save_top_k=1)
    stopping = EarlyStopping("front_perplexity", patience=9)
    trainer = trainer_of(
        tmp_path, callback_of(texts, tokenizer), stopping, checkpoint, enable_checkpointing=True, max_epochs=2, max_steps=-1
    )
    fit(trainer, Module(network), tokenizer)
    assert float(checkpoint.best_model_score) == float(trainer.callback_metrics["back_bits_per_byte"])
    assert float(stopping.best_score) == float(trainer.callback_metrics["front_perplexity"])


def test_validating_alone_gives_it_too(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    callback = callback_of(texts, tokenizer)
    (found,) = trainer_of(tmp_path, callback).validate(Module(network), loader(tokenizer), verbose=False)
    assert found["front_perplexity"] == callback.evaluations["front"].perplexity


def test_a_wrong_name_is_told(
    network: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Texts, tmp_path: Path
) -> None:
    trainer = trainer_of(tmp_path, LightningPerplexityCallback(texts, tokenizer))
    with pytest.raises(UsageError, match="Module has no attribute 'model': name the network among inner"):
        fit(trainer, Module(network), tokenizer)
    trainer = trainer_of(tmp_path, LightningPerplexityCallback(texts, tokenizer, network="inner"))
    with pytest.raises(UsageError, match="the network is ModuleDict"):
        fit(trainer, Module(network), tokenizer)
    with pytest.raises(UsageError, match="every_n_steps is 0"):
        LightningPerplexityCallback(texts, tokenizer, every_n_steps=0)


WORKER = """
import json, sys, warnings
from pathlib import Path
import torch
from lmgauge.integrations import in_memory
from tests.integrations.test_lightning_callback import Module, callback_of, fit, trainer_of
from tests.integrations.tiny import make_network, make_tokenizer, weights_of

folder, rank = Path(sys.argv[1]), int(sys.argv[2])
evaluated = []
plain = in_memory.NamedTexts.evaluate
in_memory.NamedTexts.evaluate = lambda self, network: evaluated.append(1) or plain(self, network)
network, tokenizer = make_network(), make_tokenizer()
callback = callback_of({"front": folder / "front.txt"}, tokenizer, every_n_steps=1)
trainer = trainer_of(folder, callback, strategy="ddp", devices=2, max_steps=2)
fit(trainer, Module(network), tokenizer)
assert trainer.world_size == 2
report = {
    "evaluated": bool(evaluated),
    "perplexity": callback.evaluations["front"].perplexity,
    "logged": float(trainer.callback_metrics["front_perplexity"]),
    "weight": float(network.transformer.wte.weight.double().sum()),
}
(folder / f"{rank}.json").write_text(json.dumps(report))
torch.distributed.destroy_process_group()
"""


def test_in_two_processes_the_first_evaluates_for_both(texts: Texts, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "tests"}
    run_two(WORKER, tmp_path, **world)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert (first.pop("evaluated"), second.pop("evaluated")) == (True, False)
    assert first == second
    assert first["logged"] == first["perplexity"]
