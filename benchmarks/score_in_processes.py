"""A text scored by one process with all threads, and by as many processes of one thread each: wall seconds, and their ratio.

The network has random weights, GPT-2's kind, in two widths: products of narrow layers are too small for threads to share
well. The second pass over the text is measured, when all processes have loaded the network. Rows must be those of one
process with one thread, bit for bit, before any time is printed.

    python benchmarks/score_in_processes.py --runs 3
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import harness
from harness import median

WIDTHS, LAYERS, POSITIONS, VOCABULARY = (64, 256), 4, 256, 2000
REPEATS = {64: 9, 256: 4}  # of the text: groups of 65,536 tokens are many beside the processes
TEXT = Path(__file__).resolve().parents[1] / "tests" / "data" / "classic-books.train.txt"


def make(folder: str, width: int) -> None:
    """A network and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end, alphabet = "<|endoftext|>", pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[end], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT.read_text(encoding="utf-8").splitlines(), trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"n_positions": POSITIONS, "n_embd": width, "n_layer": LAYERS, "n_head": 4}
    GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0, **sizes)).save_pretrained(folder)


def main() -> None:
    arguments = harness.parser(str(__doc__), runs=3).parse_args()
    import lmgauge

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    lines = TEXT.read_text(encoding="utf-8").splitlines()
    rows = []
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as folder:
            make(folder, width)
            alone = lmgauge.load_model(folder, device="cpu")
            shared = lmgauge.load_model(folder, device="cpu", processes=cores)
            text = lmgauge.Corpus.from_strings(lines * REPEATS[width])

            def scored(model: Any, threads: int, text: Any = text) -> tuple[float, Any]:
                began = time.perf_counter()
                logprob = np.concatenate([batch.logprob for batch in model.score(text, spans=False, threads=threads)])
                return time.perf_counter() - began, logprob

            _, expected = scored(alone, 1)
            _, found = scored(shared, cores)
            if not np.array_equal(expected, found):
                harness.give_up("the rows of several processes are not those of one")
            times: dict[str, list[float]] = {"threads": [], "processes": []}
            for _ in range(arguments.runs):
                times["threads"].append(scored(alone, cores)[0])
                times["processes"].append(scored(shared, cores)[0])
            one, many = median(times["threads"]), median(times["processes"])
            rows.append([str(width), f"{len(found):,}", f"{one:.2f}", f"{many:.2f}", f"{one / many:.2f}"])
    head = ["width", "tokens", f"1 process, {cores} threads: s", f"{cores} processes, 1 thread each: s", "times as fast"]
    harness.print_table(head, rows)


if __name__ == "__main__":
    main()
