"""Text scored by a causal Transformer by lmgauge, lm-evaluation-harness and two well-known loops, one thread each.

The network has random weights: 6 layers, 512 wide, GPT-2's kind, a byte-level vocabulary of 50 thousand trained here. Each
run has a process of its own; loading is excluded, tokenizing is not, and what counts is CPU seconds, which other work on the
machine moves least. The sums of log-probabilities must agree before any rate is printed.

`transformers` is the loop of its documentation (windows one by one, labels of context masked); `evaluate` is the loop of its
perplexity metric (padded batches of 16, all logits, loss of every position), written out here, as the package fetches it
from a hub each time. The machine's own rate is that of the matrix products alone, in the same shapes.

On a processor without bfloat16 products the contestants in bfloat16 are left out: they would take hours.

    python benchmarks/score_neural.py --runs 3
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import harness
from harness import Goal, median

LAYERS, WIDTH, POSITIONS, VOCABULARY = 6, 512, 1024, 50_257
LONG, SHORT = "long documents", "short sentences"
SAME_NATS = {LONG: 1e-3, SHORT: 1e-5}  # relative, float32; the last windows of long documents differ
TRAINING_BYTES = 30_000_000
DOCUMENTS, DOCUMENT_CHARACTERS = 4, 17_000
SENTENCES, SENTENCE_CHARACTERS = 800, (20, 200)
CONTESTANTS = {
    LONG: [
        ("lmgauge", "float32", 0),
        ("harness", "float32", 8),
        ("harness", "float32", 1),
        ("transformers", "float32", 1),
        ("lmgauge", "bfloat16", 0),
        ("harness", "bfloat16", 8),
        ("products", "float32", 0),
        ("products", "bfloat16", 0),
    ],
    SHORT: [
        ("lmgauge", "float32", 0),
        ("harness", "float32", 8),
        ("harness", "float32", 64),
        ("evaluate", "float32", 16),
        ("lmgauge", "bfloat16", 0),
    ],
}


# --- what is scored, made once ---------------------------------------------------------------------------


def _make(folder: str) -> None:
    """A network and its tokenizer, and the texts."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    with harness.book_text("train.txt").open(encoding="utf-8") as file:
        text = file.read(TRAINING_BYTES)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    end = "<|endoftext|>"
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end, model_max_length=POSITIONS)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(wrapped),
        n_positions=POSITIONS,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=8,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    wrapped.save_pretrained(folder)
    held_out = harness.book_text("test.txt").read_text(encoding="utf-8")
    step = len(held_out) // DOCUMENTS
    documents = [held_out[i * step : i * step + DOCUMENT_CHARACTERS] for i in range(DOCUMENTS)]
    shortest, longest = SENTENCE_CHARACTERS
    sentences = [s for s in held_out.replace("\n", " ").split(". ") if shortest < len(s) < longest][:SENTENCES]
    Path(folder, "texts.json").write_text(json.dumps({LONG: documents, SHORT: sentences}))


# --- contestants: each returns tokens, nats and CPU seconds ----------------------------------------------


def _score(folder: str, texts: list[str], dtype: str, batch: int) -> tuple[int, float, float]:
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import load_neural
    from lmgauge.text.documents import Corpus

    model = load_neural(folder, ScoringOptions(dtype=dtype, end="none"))  # type: ignore[arg-type]
    list(model.score(Corpus.from_strings(["warm up"]), threads=1))
    start = time.process_time()
    batches = list(model.score(Corpus.from_strings(texts), threads=1))
    seconds = time.process_time() - start
    return sum(map(len, batches)), float(sum(part.logprob.sum() for part in batches)), seconds


def _harness(folder: str, texts: list[str], dtype: str, batch: int) -> tuple[int, float, float]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=folder, device="cpu", dtype=dtype, batch_size=batch)
    requests = [Instance(request_type="loglikelihood_rolling", doc={}, arguments=(text,), idx=0) for text in texts]
    start = time.process_time()
    nats = model.loglikelihood_rolling(requests, disable_tqdm=True)
    seconds = time.process_time() - start
    return sum(len(model.tok_encode(text)) for text in texts), float(sum(nats)), seconds


def _loaded(folder: str, dtype: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def _transformers(folder: str, texts: list[str], dtype: str, batch: int) -> tuple[int, float, float]:
    import torch

    model, tokenizer = _loaded(folder, dtype)
    start, count, total = time.process_time(), 0, 0.0
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]])
            previous = 0
            for begin in range(0, ids.shape[1], POSITIONS - 1):
                end = min(begin + POSITIONS, ids.shape[1])
                labels = ids[:, begin:end].clone()
                labels[:, : max(0, previous - begin)] = -100
                predicted = int((labels[:, 1:] != -100).sum())
                total -= float(model(ids[:, begin:end], labels=labels).loss) * predicted
                count, previous = count + predicted, end
                if end == ids.shape[1]:
                    break
    return count, total, time.process_time() - start


def _evaluate(folder: str, texts: list[str], dtype: str, batch: int) -> tuple[int, float, float]:
    import torch

    model, tokenizer = _loaded(folder, dtype)
    tokenizer.pad_token = tokenizer.eos_token
    loss_of = torch.nn.CrossEntropyLoss(reduction="none")
    start, count, total = time.process_time(), 0, 0.0
    encoded = tokenizer(texts, padding=True, return_tensors="pt", return_attention_mask=True)
    for begin in range(0, len(texts), batch):
        ids, mask = encoded["input_ids"][begin : begin + batch], encoded["attention_mask"][begin : begin + batch]
        first = torch.full((len(ids), 1), tokenizer.bos_token_id)
        ids, mask = torch.cat([first, ids], 1), torch.cat([torch.ones_like(first), mask], 1)
        with torch.no_grad():
            logits = model(ids, attention_mask=mask).logits
        losses = loss_of(logits[:, :-1].contiguous().transpose(1, 2), ids[:, 1:].contiguous()) * mask[:, 1:]
        total -= float(losses.double().sum())
        count += int(mask[:, 1:].sum())
    return count, total, time.process_time() - start


def _products(folder: str, texts: list[str], dtype: str, batch: int) -> tuple[int, float, float]:
    """The matrix products of a forward pass and nothing else: an upper bound of the rate."""
    import torch

    kind = getattr(torch, dtype)
    layer = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    tokens, tile = 2048, 2048
    work = [(tokens, *shape, LAYERS) for shape in layer] + [(1024, WIDTH, tile, 2 * VOCABULARY / tile)]
    best = [float("inf")] * len(work)
    with torch.inference_mode():
        for i, (m, k, n, _) in enumerate(work):
            a, b = torch.randn(m, k).to(kind), torch.randn(n, k).to(kind)
            for _ in range(20):
                start = time.process_time()
                torch.mm(a, b.T)
                best[i] = min(best[i], time.process_time() - start)
    return tokens, float("nan"), sum(seconds * times for seconds, (*_, times) in zip(best, work, strict=True))


CHILDREN: dict[str, Callable[[str, list[str], str, int], tuple[int, float, float]]] = {
    "lmgauge": _score,
    "harness": _harness,
    "transformers": _transformers,
    "evaluate": _evaluate,
    "products": _products,
}


def _child(folder: str, case: str, name: str, dtype: str, batch: str) -> None:
    import torch

    torch.set_num_threads(1)
    texts = json.loads(Path(folder, "texts.json").read_text())[case]
    tokens, nats, seconds = CHILDREN[name](folder, texts, dtype, int(batch))
    harness.print_json({"tokens": tokens, "nats": nats, "seconds": seconds, "peak": harness.peak_bytes()})


# --- the run ---------------------------------------------------------------------------------------------


def _label(contestant: Sequence[Any]) -> str:
    name, dtype, batch = contestant
    return f"{name}, {dtype}" + (f", batch {batch}" if batch else "")


def _measure(folder: Path, case: str, runs: int, dtypes: set[str]) -> dict[str, list[dict[str, Any]]]:
    by_label = {_label(contestant): contestant for contestant in CONTESTANTS[case] if contestant[1] in dtypes}
    measured: dict[str, list[dict[str, Any]]] = {label: [] for label in by_label}

    def run(label: str) -> None:
        name, dtype, batch = by_label[label]
        command = [sys.executable, __file__, "child", str(folder), case, name, dtype, str(batch)]
        measured[label].append(json.loads(harness.run_child(command).out.strip().splitlines()[-1]))

    harness.interleave(list(measured), runs, run)
    ours = measured["lmgauge, float32"][0]
    for label, answers in measured.items():
        loose = SAME_NATS[case] if "float32" in label else 1e-2  # bfloat16 rounds
        if answers[0]["nats"] == answers[0]["nats"] and abs(answers[0]["nats"] / ours["nats"] - 1) > loose:
            harness.give_up(f"{case}: {label} finds {answers[0]['nats']} nats, lmgauge {ours['nats']}")
    return measured


def _rate(answers: list[dict[str, Any]]) -> float:
    return median([answer["tokens"] / answer["seconds"] for answer in answers])


def _peak(answers: list[dict[str, Any]]) -> float:
    return median([answer["peak"] for answer in answers])


def _print(case: str, measured: dict[str, list[dict[str, Any]]]) -> None:
    base = _rate(measured["harness, float32, batch 8"])
    rows = [
        [
            label,
            f"{_rate(answers):,.0f}",
            f"{_rate(answers) / base:.2f}",
            harness.megabytes(_peak(answers)),
            f"{answers[0]['nats'] / answers[0]['tokens']:.6f}" if answers[0]["nats"] == answers[0]["nats"] else "",
        ]
        for label, answers in measured.items()
    ]
    print(f"\n{case}\n")
    harness.print_table(["program", "tokens/s", "x harness, batch 8", "peak, MB", "nats/token"], rows)


def main() -> int:
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments = harness.parser(__doc__ or "", runs=3).parse_args()
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    folder = harness.made_network(f"transformer-{LAYERS}-{WIDTH}-{VOCABULARY}", __file__, "texts.json")
    asked = "from lmgauge.models.network.torch.runtime import has_bfloat16_products as has; print(has())"
    has_bfloat16 = harness.run_child([sys.executable, "-c", asked]).out.strip() == "True"
    if not has_bfloat16:
        harness.note("no bfloat16: torch has no products for it on this processor")
    dtypes = {"float32", "bfloat16"} if has_bfloat16 else {"float32"}
    long, short = (_measure(folder, case, arguments.runs, dtypes) for case in (LONG, SHORT))
    _print(LONG, long)
    _print(SHORT, short)

    def ratio(measured: dict[str, list[dict[str, Any]]], a: str, b: str) -> float:
        return _rate(measured[a]) / _rate(measured[b])

    sentences = max(_rate(short[label]) for label in short if label.startswith("harness"))
    in_bfloat16 = []
    if has_bfloat16:
        wider = ratio(long, "lmgauge, bfloat16", "harness, bfloat16, batch 8")
        in_bfloat16.append(Goal("long documents, bfloat16", wider, 2.5, True))
    return harness.report_goals(
        [
            Goal("long documents, float32", ratio(long, "lmgauge, float32", "harness, float32, batch 8"), 1.8, True),
            *in_bfloat16,
            Goal("short sentences, over the better batch", _rate(short["lmgauge, float32"]) / sentences, 3.0, True),
            Goal(
                "evaluate's loop, short sentences",
                ratio(short, "lmgauge, float32", "evaluate, float32, batch 16"),
                6.0,
                True,
            ),
            Goal(
                "memory over the harness's at batch 8",
                _peak(long["lmgauge, float32"]) / _peak(long["harness, float32, batch 8"]),
                0.25,
                False,
            ),
            Goal(
                "share of the products' rate, float32, short sentences",  # long ones add attention, which is not counted
                _rate(short["lmgauge, float32"]) / _rate(long["products, float32"]),
                0.8,
                True,
            ),
        ]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    elif sys.argv[1:2] == ["make"]:
        _make(sys.argv[2])
    else:
        sys.exit(main())
