"""Bases of `divergence` that are stored, once for many candidates: hidden states beside whole rows and the sampled base.

The network and the text are those of `score_neural.py` (6 layers, 512 wide, 50,257 tokens, random weights); the candidate is
the network with each row of its weights rounded to 8 bits. Then contexts of growing length, for which a network of Llama's
kind with 2 layers, 256 wide, stores its hidden states, and a candidate is compared with them at all events. Each run has a
process and one thread of its own; what counts is CPU seconds, and memory beyond what the program holds after loading. The KL
of hidden states must be that of whole rows, 1e-6 relative, before anything is printed.

    python benchmarks/stored_bases.py --contexts 1024 4096 16384
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import distributions_neural
import harness
import score_neural
from harness import Goal, median

CHARACTERS, CHARACTERS_A_TOKEN = 6_000, 4
KINDS = ("float32", "bfloat16", "states", "top")
NAMES = {"float32": "whole rows, float32", "bfloat16": "whole rows, bfloat16", "states": "hidden states", "top": "sampled"}
LAYERS, WIDTH, LONGEST = 2, 256, 1 << 16
SAME = 1e-6


def _make(folder: str) -> None:
    """A network for long contexts, with the tokenizer of the other one."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(_short())
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=LONGEST, bos_token_id=0, eos_token_id=0, **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _short() -> str:
    name = f"transformer-{score_neural.LAYERS}-{score_neural.WIDTH}-{score_neural.VOCABULARY}"
    return str(harness.made_network(name, score_neural.__file__, "texts.json"))


def _child(folder: str, kind: str, characters: str, file: str) -> None:
    """Store a base, compare a candidate with it, and print what both took."""
    import torch

    import lmgauge
    from lmgauge.settings import ScoringOptions

    torch.set_num_threads(1)
    base, candidate = (lmgauge.load_model(folder, ScoringOptions(dtype="float32", end="none")) for _ in range(2))
    distributions_neural._rounded(candidate.engine.split.network)  # type: ignore[attr-defined]
    texts: list[str] = json.loads(Path(_short(), "texts.json").read_text())[score_neural.LONG]
    corpus = lmgauge.Corpus.from_strings([" ".join(texts * 8)[: int(characters)]])
    base.score_text("warm up")
    exact: Any = None if kind == "top" else kind
    start, before = time.process_time(), harness.peak_bytes()
    saved = lmgauge.save_base(base, corpus, file, exact=exact, events=None, threads=1)
    stored, memory = time.process_time(), harness.peak_bytes()
    result = lmgauge.divergence(file, candidate, corpus, threads=1, model=base if kind == "states" else None)
    harness.print_json(
        {
            "events": saved.events,
            "file": saved.file_bytes,
            "whole": saved.whole_bytes,
            "kl": result.kl_ab_nats.value,
            "store": stored - start,
            "store memory": memory - before,
            "compare": time.process_time() - stored,
            "memory": harness.peak_bytes() - before,
        }
    )


def _run(folder: str, kind: str, characters: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, __file__, "child", folder, kind, str(characters), str(Path(work, "base.parquet"))]
        answer: dict[str, Any] = json.loads(harness.run_child(command).out.strip().splitlines()[-1])
        return answer


# --- the run ---------------------------------------------------------------------------------------------

Runs = dict[str, list[dict[str, Any]]]


def _median(measured: Runs, kind: str, name: str) -> float:
    return median([answer[name] for answer in measured[kind]])


def _goals(measured: Runs) -> list[Goal]:
    states, whole = (measured[kind][0] for kind in ("states", "float32"))
    if abs(states["kl"] / whole["kl"] - 1) > SAME:
        harness.give_up(f"KL is {states['kl']} from hidden states, {whole['kl']} from whole rows")
    return [
        Goal("hidden states: bytes of whole rows, float32, over theirs", whole["file"] / states["file"], 50, True),
        Goal(
            "hidden states: CPU over that of whole rows, float32",
            _both(measured, "states") / _both(measured, "float32"),
            1,
            False,
        ),
    ]


def _both(measured: Runs, kind: str) -> float:
    return _median(measured, kind, "store") + _median(measured, kind, "compare")


def main() -> int:
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--contexts", type=int, nargs="*", default=[1024, 4096, 16384], help="about this many tokens each")
    arguments = options.parse_args()
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    measured: Runs = {kind: [] for kind in KINDS}
    harness.interleave(KINDS, arguments.runs, lambda kind: measured[kind].append(_run(_short(), kind, CHARACTERS)))
    goals = _goals(measured)
    rows = []
    for kind, answers in measured.items():
        one, (store, compare) = answers[0], (_median(measured, kind, name) for name in ("store", "compare"))
        size = one["file"] / one["events"]
        times = [f"{store:.1f}", f"{compare:.1f}", f"{_both(measured, kind) / _both(measured, 'float32'):.2f}"]
        rows.append([NAMES[kind], f"{size:,.0f}", f"1/{one['whole'] / one['file']:.1f}", *times, f"{one['kl']:.8g}"])
    head = ["stored", "bytes an event", "of 16 bits a token", "store, CPU s", "compare, CPU s", "x whole rows", "KL, nats"]
    harness.print_table(head, rows)
    folder = str(harness.made_network(f"long-{LAYERS}-{WIDTH}", __file__, "tokenizer.json")) if arguments.contexts else ""
    rows = []
    for context in arguments.contexts:
        one = _run(folder, "states", CHARACTERS_A_TOKEN * context)
        memory = [harness.megabytes(one[name]) for name in ("store memory", "memory")]
        row = [f"{one['events']:,}", f"{one['file'] / one['events']:,.0f}", f"{one['store']:.1f}", f"{one['compare']:.1f}"]
        rows.append([*row, *memory, f"{one['kl']:.5g}"])
    head = [
        "tokens of context",
        "bytes an event",
        "store, CPU s",
        "compare, CPU s",
        "to store, MB",
        "in all, MB",
        "KL, nats",
    ]
    harness.print_table(head, rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        _make(sys.argv[2])
    elif sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
