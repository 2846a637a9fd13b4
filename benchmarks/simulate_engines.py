"""How often `lmgauge agree` errs: planted faults of engines that it finds, sound pairs that it suspects.

A small Transformer is trained on books and scores held-out books, a document each, again and again: each pass adds up the
products of its matrices in another order, as other batches, chunks and kernels do, in bfloat16, float32 and float16. A draw
takes 40 documents of 500 tokens; the first engine, its noise floor and the second engine are three passes. Sound pairs are
nothing but that: each document in three passes of its own, or all of them in the same three, as engines with kernels of
their own compute. In the others the second engine has one of these faults:

* a temperature of 1.01, or of 0.99;
* probabilities among all tokens, where the first drew the text from the most likely ones (top-p 0.95, top-k 50);
* at the first token of each chunk of 128, the log-probability of the token before it;
* the weights before the last step of training;
* one layer in bfloat16 (beside float32 and float16);
* a context without the first token of the document.

A row that is missing in one table is refused by name, which tests hold.

    python benchmarks/simulate_engines.py --draws 200

The texts come from the folder of LMGAUGE_DATA. It prints rates, and MISS where a fault is found in less than 95 % of the
draws, or more than 5 % of the sound pairs are suspected. It takes about 20 minutes of a core.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.nn import functional

import harness
import lmgauge
from harness import Goal

LAYERS, WIDTH, HEADS, VOCABULARY, WINDOW = 2, 64, 2, 1024, 128
TRAINING_BYTES, STEPS, BATCH, RATES = 2_000_000, 300, 16, (3e-3, 3e-4)
DOCUMENTS, TOKENS, DRAWN, PASSES, WHOLE_PASSES, CHUNK = 60, 500, 40, 6, 24, 128
FORMATS = ("bfloat16", "float32", "float16")
POWER, FALSE_ALARMS = 0.95, 0.05


@dataclass(frozen=True)
class Pass:
    """How the model computes once."""

    format: str = "float32"
    order: int = 0  # seed of the order in which products are added up
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = VOCABULARY
    bfloat16_layer: int = -1
    whole: bool = False  # one order for all documents


# --- the model --------------------------------------------------------------------------------------------


def new_weights() -> dict[str, Any]:
    """Weights at the beginning."""
    torch.manual_seed(0)
    sizes = {"embed": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        sizes |= {f"{layer}.attend": (WIDTH, 3 * WIDTH), f"{layer}.join": (WIDTH, WIDTH)}
        sizes |= {f"{layer}.up": (WIDTH, 4 * WIDTH), f"{layer}.down": (4 * WIDTH, WIDTH)}
    return {name: (torch.randn(size) * 0.02).requires_grad_() for name, size in sizes.items()}


def logits_of(weights: dict[str, Any], ids: Any, how: Pass = Pass(), cache: list[Any] | None = None) -> Any:
    """Logits [texts, tokens, vocabulary] in float32; with a cache, of tokens behind those that it has."""
    dtype, order = getattr(torch, how.format), torch.Generator().manual_seed(how.order)

    def product(x: Any, name: str) -> Any:
        # Added up in float32, as tensor cores do, in the order of this pass, and rounded to the format.
        w = weights[name].to(x.dtype).float()
        if how.order == 0:
            return (x.float() @ w).to(x.dtype)
        parts = torch.randperm(len(w), generator=order).chunk(int(torch.randint(1, 5, (), generator=order)))
        return sum(x[..., part].float() @ w[part] for part in parts).to(x.dtype)

    before = cache[0][0].shape[2] if cache else 0
    places = torch.arange(before + ids.shape[1])
    behind = places[before:, None] - places  # ALiBi (Press, Smith & Lewis 2022): no positions, so that texts may be long
    slopes = 2.0 ** (-8 / HEADS * torch.arange(1, HEADS + 1))[:, None, None]
    bias = torch.where(behind < 0, -torch.inf, -slopes * behind)
    x = weights["embed"][ids].to(dtype)
    for layer in range(LAYERS):
        x = x.to(torch.bfloat16 if layer == how.bfloat16_layer else dtype)
        parts = product(normal(x), f"{layer}.attend").unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        q, k, v = parts.float().unbind()
        if cache is not None:
            if before:
                k, v = (torch.cat(pair, 2) for pair in zip(cache[layer], (k, v), strict=True))
            cache[layer : layer + 1] = [(k, v)]
        attention = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + bias).softmax(-1).to(x.dtype)
        x = x + product((attention.float() @ v).to(x.dtype).transpose(1, 2).flatten(2), f"{layer}.join")
        x = (x + product(functional.gelu(product(normal(x), f"{layer}.up")), f"{layer}.down")).to(dtype)
    return normal(x).float() @ weights["embed"].to(dtype).float().T


def normal(x: Any) -> Any:
    """A layer's input with mean 0 and variance 1."""
    return functional.layer_norm(x.float(), (WIDTH,)).to(x.dtype)


def log_distributions(logits: Any, how: Pass) -> Any:
    """Log-probabilities of all tokens, over the most likely ones where a pass has only these."""
    logits = logits / how.temperature
    if how.top_k < VOCABULARY:
        logits = logits.masked_fill(logits < logits.topk(how.top_k).values[..., -1:], -torch.inf)
    if how.top_p < 1:
        ranked, tokens = logits.softmax(-1).sort(-1, descending=True)
        rest = ranked.cumsum(-1) - ranked >= how.top_p
        logits = logits.masked_fill(torch.zeros_like(rest).scatter(-1, tokens, rest), -torch.inf)
    return logits.log_softmax(-1)


def trained(ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The weights after training, and those one step before."""
    weights, chosen = new_weights(), torch.Generator().manual_seed(1)
    adam = torch.optim.Adam(weights.values())
    for step in range(STEPS + 1):
        adam.param_groups[0]["lr"] = RATES[0] + (RATES[1] - RATES[0]) * step / STEPS
        if step == STEPS:
            stale = {name: value.detach().clone() for name, value in weights.items()}
        at = torch.randint(len(ids) - WINDOW - 1, (BATCH, 1), generator=chosen) + torch.arange(WINDOW + 1)
        logits = logits_of(weights, ids[at][:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), ids[at][:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 0:
            harness.note(f"step {step}: {loss.item():.3f} nats a token")
    return {name: value.detach() for name, value in weights.items()}, stale


@torch.no_grad()
def drawn(weights: dict[str, Any], how: Pass) -> Any:
    """Texts [documents, tokens + 1] that the model writes, each behind the token 0."""
    torch.manual_seed(2)
    ids, cache = torch.zeros((DOCUMENTS, 1), dtype=torch.int64), list[Any]()
    while ids.shape[1] <= TOKENS:
        last = log_distributions(logits_of(weights, ids[:, -1:], how, cache)[:, -1], how)
        ids = torch.cat((ids, torch.multinomial(last.exp(), 1)), 1)
    return ids


@torch.no_grad()
def logprobs(weights: dict[str, Any], ids: Any, how: Pass, head: int = 0) -> np.ndarray:
    """Log-probabilities [documents, tokens] of the tokens behind the first; head: tokens left out of the context."""
    parts = []
    for number, text in enumerate(ids.split(1)):  # each in an order of its own, as batches are of other texts each time
        own_order = how if how.whole else replace(how, order=1000 * how.order + number)
        own = log_distributions(logits_of(weights, text[:, head:-1], own_order), how).gather(-1, text[:, head + 1 :, None])
        parts.append(functional.pad(own[..., 0], (head, 0)))
    return torch.cat(parts).double().numpy()


# --- pairs ------------------------------------------------------------------------------------------------


def shifted(values: np.ndarray) -> np.ndarray:
    """Log-probabilities where the first token of each chunk has that of the token before it."""
    values = values.copy()
    values[:, CHUNK::CHUNK] = values[:, CHUNK - 1 : -1 : CHUNK][:, : values[:, CHUNK::CHUNK].shape[1]]
    return values


def written(path: Path, ids: np.ndarray, values: np.ndarray) -> str:
    """A log with a row a document."""
    pq.write_table(pa.table({"token_ids": list(ids), "logprobs": list(values)}), path)
    return str(path)


def judged(folder: Path, ids: np.ndarray, tables: Sequence[np.ndarray]) -> lmgauge.results.EngineAgreement:
    """What lmgauge says of two engines and the floor of the first."""
    paths = [written(folder / f"{name}.parquet", ids, values) for name, values in zip("abf", tables, strict=True)]
    return lmgauge.agree(paths[0], paths[1], floor=paths[2], examples=0)


def main() -> int:
    options = harness.parser(__doc__ or "", runs=1)
    options.add_argument("--draws", type=int, default=200, metavar="N", help="pairs of each kind and format (200)")
    options.add_argument("--only", default="", metavar="TEXT", help="kinds of pairs with this text in their name")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    train, books = texts()
    weights, stale = trained(train)
    rng = np.random.default_rng(0)
    rows, goals = [], []
    shape: dict[str, Any] = {"top-p 0.95": {"top_p": 0.95}, "top-k 50": {"top_k": 50}}
    own_texts = {name: drawn(weights, Pass(**how)) for name, how in shape.items()}

    @cache
    def scored(how: Pass, text: str = "books", old: bool = False, head: int = 0) -> np.ndarray:
        return logprobs(stale if old else weights, own_texts.get(text, books), how, head)

    kinds: dict[str, Callable[[Pass], tuple[str, np.ndarray]]] = {
        "sound": lambda how: ("books", scored(how)),
        "sound, whole passes": lambda how: ("books", scored(replace(how, whole=True))),
        "temperature 1.01": lambda how: ("books", scored(replace(how, temperature=1.01))),
        "temperature 0.99": lambda how: ("books", scored(replace(how, temperature=0.99))),
        **{name: lambda how, name=name: (name, scored(how, name)) for name in shape},
        "a chunk's edge off by one": lambda how: ("books", shifted(scored(how))),
        "weights of one step before": lambda how: ("books", scored(how, old=True)),
        "one layer in bfloat16": lambda how: ("books", scored(replace(how, bfloat16_layer=1))),
        "first token not in the context": lambda how: ("books", scored(how, head=1)),
    }
    with tempfile.TemporaryDirectory() as place:
        for form in FORMATS:
            for kind, second in kinds.items():
                whole = kind.endswith("whole passes")
                passes = [Pass(form, order, whole=whole) for order in range(1, (WHOLE_PASSES if whole else PASSES) + 1)]
                if arguments.only not in kind or (kind == "one layer in bfloat16" and form == "bfloat16"):
                    continue
                beyond, sizes, floors = [], [], []
                firsts = np.array([scored(replace(how, **shape.get(kind, {})), second(how)[0]) for how in passes])
                text, seconds = second(passes[0])[0], np.array([second(how)[1] for how in passes])
                skip = int(kind.startswith("first token"))
                for _ in range(arguments.draws):
                    chosen = rng.permutation(DOCUMENTS)[:DRAWN]
                    # Each document in three passes of its own, as batches are of other documents each time.
                    orders = np.tile(np.arange(len(passes)), (DRAWN, 1))
                    drawn_orders = rng.permutation(orders.T).T if whole else rng.permuted(orders, axis=1)
                    first, again, other = drawn_orders.T[:3]
                    ids = own_texts.get(text, books)[chosen, 1 + skip :].numpy()
                    tables = [firsts[first, chosen], seconds[other, chosen], firsts[again, chosen]]
                    tables = [table[:, skip:] for table in tables]
                    said = judged(Path(place), ids, tables)
                    beyond.append(bool(said.beyond))
                    sizes.append(said.figures.mean_size.value)
                    floors.append(said.floor.mean_size.value)
                share = float(np.mean(beyond))
                aim = (FALSE_ALARMS, False) if kind.startswith("sound") else (POWER, True)
                goal = Goal(f"{form}, {kind}", share, *aim)
                goals.append(goal)
                rows.append([form, kind, f"{np.mean(sizes):.2g}", f"{np.mean(floors):.2g}", f"{100 * share:.1f} %"])
                harness.note(" ".join(map(str, rows[-1])))
    harness.print_table(["format", "second engine", "mean |Δ|, nats", "floor", "beyond the floor"], rows)
    return harness.report_goals(goals)


def texts() -> tuple[Any, Any]:
    """Training text as ids, and documents [DOCUMENTS, TOKENS + 1] of held-out books, each behind the token 0."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with harness.book_text("train.txt").open(encoding="utf-8") as file:
        text = file.read(TRAINING_BYTES)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    sizes: dict[str, Any] = {"vocab_size": VOCABULARY, "initial_alphabet": alphabet, "show_progress": False}
    trainer = trainers.BpeTrainer(special_tokens=["<s>"], **sizes)
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    held_out = harness.book_text("test.txt").read_text(encoding="utf-8")[: DOCUMENTS * TOKENS * 6]
    ids = torch.tensor(tokenizer.encode(held_out).ids[: DOCUMENTS * TOKENS]).view(DOCUMENTS, TOKENS)
    return torch.tensor(tokenizer.encode(text).ids), functional.pad(ids, (1, 0))


if __name__ == "__main__":
    sys.exit(main())
