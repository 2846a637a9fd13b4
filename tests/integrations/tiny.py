"""A tiny network with a tokenizer and a trainer for it, as the frameworks meet them."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

from tests.programs import running

ROOT = Path(__file__).resolve().parent.parent.parent
LENGTH = 24
FIGURES = ("perplexity", "bits_per_byte", "bits_per_token", "word_perplexity", "cross_entropy")


def make_lines() -> list[str]:
    """Sentences to train and evaluate on."""
    return (ROOT / "tests" / "data" / "pud.en.txt").read_text(encoding="utf-8").splitlines()


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with `<|endoftext|>`, as GPT-2 has it."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[end], initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(make_lines(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=end, eos_token=end, pad_token=end)


def make_network() -> GPT2LMHeadModel:
    """A network with dropout, so that random numbers matter in training."""
    torch.manual_seed(7)
    sizes = {"vocab_size": 400, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0))


def rows_of(tokenizer: PreTrainedTokenizerFast, lines: Sequence[str]) -> list[dict[str, list[int]]]:
    """Lines cut and padded to one length."""
    encoded = [tokenizer.encode(line)[:LENGTH] for line in lines]
    return [
        {
            "input_ids": ids + [0] * (LENGTH - len(ids)),
            "attention_mask": [1] * len(ids) + [0] * (LENGTH - len(ids)),
            "labels": ids + [-100] * (LENGTH - len(ids)),
        }
        for ids in encoded
    ]


def trainer_of(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path, **arguments: Any) -> Trainer:
    """A trainer of four steps that writes nothing but what it is told to."""
    rows = rows_of(tokenizer, make_lines())
    defaults: dict[str, Any] = {
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "eval_strategy": "steps",
        "eval_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "learning_rate": 0.01,
        "seed": 3,
    }
    chosen = TrainingArguments(str(folder), **(defaults | arguments))
    return Trainer(network, chosen, train_dataset=rows, eval_dataset=rows[:8], processing_class=tokenizer)


def weights_of(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the weights."""
    return {name: weight.clone() for name, weight in network.state_dict().items()}


def same_weights(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Whether weights agree bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def run_python(program: str, *arguments: str, **environment: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A program in a Python of its own, with one thread, that finds the tests."""
    return running(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_two(program: str, folder: Path, **environment: str) -> None:
    """Run a program twice side by side, as process 0 and 1 of `folder`; each must end well."""
    workers = [
        _FORKED.Process(target=_run, args=(program, folder, rank, {**environment, "RANK": rank, "LOCAL_RANK": rank}))
        for rank in ("0", "1")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=300)
        worker.kill()
    said = [(folder / f"{rank}.txt").read_text(encoding="utf-8") for rank in ("0", "1")]
    assert [worker.exitcode for worker in workers] == [0, 0], said


_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    ["lightning.pytorch", "tests.integrations.tiny"]
)  # once, in place of seconds for each process


def _run(program: str, folder: Path, rank: str, environment: Mapping[str, str]) -> None:
    os.environ |= environment
    sys.argv = ["-c", str(folder), rank]
    torch.set_num_threads(1)
    with (folder / f"{rank}.txt").open("w", encoding="utf-8") as said, redirect_stdout(said), redirect_stderr(said):
        try:
            exec(program, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            raise
