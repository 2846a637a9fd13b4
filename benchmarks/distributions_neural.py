"""Whole distributions of networks beside plain scoring, and beside the same done with transformers; one thread each.

The network and the texts are those of `score_neural.py`: 6 layers, 512 wide, 50,257 tokens, random weights. Measured are
entropy, rank and the ten most probable tokens of every event, and the KL divergence of two networks: the second is the
first with each row of its weights rounded to 8 bits. `transformers` is the loop that its users write: windows one by one,
all logits at once, `log_softmax`, sums, `topk`; `F.kl_div` of two. Each run has a process of its own; loading is excluded,
tokenizing is not. What counts is CPU seconds, and memory beyond what the program holds after loading. Means of entropies,
ranks and divergences must agree before any ratio is printed.

    python benchmarks/distributions_neural.py --runs 3
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import score_neural
from harness import Goal, median

TOP = 10
SAME = 1e-3  # relative, of means in float32
CASES = (score_neural.LONG, score_neural.SHORT)
PLAIN, COLUMNS, KL = "plain scoring", "entropy, rank, top 10", "KL of two"
OURS, LOOP = "lmgauge", "transformers"
WORK = [(OURS, PLAIN), (OURS, COLUMNS), (OURS, KL), (LOOP, COLUMNS), (LOOP, KL)]

Answer = dict[str, float]


def _rounded(network: Any) -> None:
    """Round each row of the weights to 8 bits, in place: 127 steps on either side of 0."""
    import torch

    with torch.no_grad():
        for weight in {id(p): p for p in network.parameters() if p.ndim == 2}.values():
            step = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
            weight.copy_((weight / step).round() * step)


# --- contestants: each yields once when it is loaded, and then its answer ------------------------------------


def _lmgauge(folder: str, texts: list[str], work: str) -> Iterator[Answer]:
    import numpy as np

    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import load_neural
    from lmgauge.scores.distributions import Entropy, Rank, TopK, reduce, reduce_pair
    from lmgauge.scores.distributions.reductions import KullbackLeibler
    from lmgauge.text.documents import Corpus

    options = ScoringOptions(dtype="float32", end="none")
    models = [load_neural(folder, options) for _ in range(2 if work == KL else 1)]
    if work == KL:
        _rounded(models[1].engine.split.network)  # type: ignore[attr-defined]
    list(models[0].score(Corpus.from_strings(["warm up"]), threads=1))
    text = Corpus.from_strings(texts)
    yield {}
    if work == PLAIN:
        batches = list(models[0].score(text, threads=1))
        yield {"events": sum(map(len, batches)), "nats": -float(np.mean(np.concatenate([b.logprob for b in batches])))}
    elif work == COLUMNS:
        batches = list(reduce(models[0], text, [Entropy(), Rank(), TopK(TOP)], threads=1))
        columns = {name: np.concatenate([batch.extra[name] for batch in batches]) for name in batches[0].extra}
        yield {
            "events": len(columns["rank"]),
            "entropy": float(columns["entropy"].mean()),
            "rank": float(columns["rank"].mean()),
            "top": float(columns["top_logprobs"].mean()),
        }
    else:
        blocks = [columns["kl_ab"] for _, _, columns in reduce_pair(*models, text, KullbackLeibler(), threads=1)]
        yield {"events": sum(map(len, blocks)), "kl": float(np.concatenate(blocks).mean())}


def _transformers(folder: str, texts: list[str], work: str) -> Iterator[Answer]:
    import torch
    from torch.nn.functional import kl_div, log_softmax
    from transformers import AutoModelForCausalLM, AutoTokenizer

    models = [AutoModelForCausalLM.from_pretrained(folder).eval() for _ in range(2 if work == KL else 1)]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if work == KL:
        _rounded(models[1])
    with torch.no_grad():
        models[0](torch.tensor([[0, 1]]))
        yield {}
        sums, events, size = dict.fromkeys(("entropy", "rank", "top", "kl"), 0.0), 0, score_neural.POSITIONS
        for text in texts:
            ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]])
            shown = ids[:, :-1]
            for begin in range(0, shown.shape[1], size):
                part = shown[:, begin : begin + size]
                logprobs = [log_softmax(model(part).logits[0], -1) for model in models]
                targets = ids[0, begin + 1 : begin + part.shape[1] + 1, None]
                events += len(targets)
                if work == KL:
                    a, b = logprobs
                    sums["kl"] += float(kl_div(b, a, reduction="none", log_target=True).sum(-1).double().sum())
                else:
                    (a,) = logprobs
                    sums["entropy"] -= float((a.exp() * a).sum(-1).double().sum())
                    sums["rank"] += float(1 + (a > a.gather(-1, targets)).sum(-1).double().mean()) * len(targets)
                    sums["top"] += float(a.topk(TOP, -1).values.double().mean()) * len(targets)
    names = ("kl",) if work == KL else ("entropy", "rank", "top")
    yield {"events": events} | {name: sums[name] / events for name in names}


CHILDREN: dict[str, Callable[[str, list[str], str], Iterator[Answer]]] = {OURS: _lmgauge, LOOP: _transformers}


def _child(folder: str, case: str, name: str, work: str) -> None:
    import torch

    torch.set_num_threads(1)
    texts = json.loads(Path(folder, "texts.json").read_text())[case]
    steps = CHILDREN[name](folder, texts, work)
    next(steps)
    before, start = harness.peak_bytes(), time.process_time()
    answer = next(steps)
    seconds = time.process_time() - start
    harness.print_json({**answer, "seconds": seconds, "memory": harness.peak_bytes() - before})


# --- the run ---------------------------------------------------------------------------------------------


def _measure(folder: Path, case: str, runs: int) -> dict[tuple[str, str], list[Answer]]:
    measured: dict[tuple[str, str], list[Answer]] = {pair: [] for pair in WORK}
    by_label = {f"{name}: {work}": (name, work) for name, work in WORK}

    def run(label: str) -> None:
        name, work = by_label[label]
        command = [sys.executable, __file__, "child", str(folder), case, name, work]
        measured[name, work].append(json.loads(harness.run_child(command).out.strip().splitlines()[-1]))

    harness.interleave(list(by_label), runs, run)
    for work in (COLUMNS, KL):
        ours, theirs = (measured[name, work][0] for name in (OURS, LOOP))
        for figure in ours.keys() - {"seconds", "memory"}:
            if abs(ours[figure] / theirs[figure] - 1) > (SAME if figure != "kl" else 0.05):  # the loop sums float32 as it is
                harness.give_up(f"{case}, {work}: {figure} is {ours[figure]} here, {theirs[figure]} in the loop")
    return measured


def _median(answers: list[Answer], name: str) -> float:
    return median([answer[name] for answer in answers])


def _print(case: str, measured: dict[tuple[str, str], list[Answer]]) -> None:
    plain = _median(measured[OURS, PLAIN], "seconds")
    rows = []
    for (name, work), answers in measured.items():
        figures = [f"{key} {answers[0][key]:.4g}" for key in ("nats", "entropy", "rank", "kl") if key in answers[0]]
        seconds, events = _median(answers, "seconds"), answers[0]["events"]
        memory = harness.megabytes(_median(answers, "memory"))
        rows.append(
            [name, work, f"{seconds:.1f}", f"{seconds / plain:.2f}", f"{events / seconds:,.0f}", memory, *figures[:1]]
        )
    print(f"\n{case}\n")
    harness.print_table(["program", "work", "CPU, s", "x plain", "events/s", "memory, MB", "mean"], rows)


def _goals(case: str, measured: dict[tuple[str, str], list[Answer]]) -> Iterator[Goal]:
    def ratio(a: tuple[str, str], b: tuple[str, str], name: str = "seconds") -> float:
        return _median(measured[a], name) / max(1.0, _median(measured[b], name))

    yield Goal(f"{case}: columns over plain scoring", ratio((OURS, COLUMNS), (OURS, PLAIN)), 1.4, False)
    yield Goal(f"{case}: KL over plain scoring", ratio((OURS, KL), (OURS, PLAIN)), 2.3, False)
    for work in (COLUMNS, KL):
        yield Goal(f"{case}: loop's CPU over ours, {work}", ratio((LOOP, work), (OURS, work)), 2.0, True)
        if case == score_neural.LONG:  # a short sentence has few logits
            yield Goal(f"{case}: loop's memory over ours, {work}", ratio((LOOP, work), (OURS, work), "memory"), 8.0, True)


def main() -> int:
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    options = harness.parser(__doc__ or "", runs=3)
    options.add_argument("--case", choices=CASES, action="append", help="texts to measure (all)")
    arguments = options.parse_args()
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    name = f"transformer-{score_neural.LAYERS}-{score_neural.WIDTH}-{score_neural.VOCABULARY}"
    folder = harness.made_network(name, score_neural.__file__, "texts.json")
    goals: list[Goal] = []
    for case in arguments.case or CASES:
        measured = _measure(folder, case, arguments.runs)
        _print(case, measured)
        goals += _goals(case, measured)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        sys.exit(main())
