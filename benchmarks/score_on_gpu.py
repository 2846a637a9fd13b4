"""A Transformer of 1.1 billion weights on a GPU: text scored by lmgauge, lm-evaluation-harness and loops of transformers.

The network has TinyLlama's shape and random weights, made on the device; the tokenizer, 32,000 byte-level tokens, is trained
on the text that is given. Scored are documents of 2,000 tokens and sentences of about 25, in bfloat16; whole distributions
(entropy, rank, top 10; KL of two networks) on a quarter of them. Each contestant has a process of its own, which imports
while the one before it is measured. Loading is excluded, and so is a warm-up on a part of the same texts; tokenizing is not.
What counts is wall seconds, and memory of the GPU beyond the weights. The harness tries batch sizes on a quarter of the
texts; its best one goes on to all. A contestant that fails says so in its row.

`products` are the matrix products of the layers and the output layer and nothing else, at the best of some numbers of
tokens: an upper bound of the rate. `--tiny --device cpu` tries the whole out without a GPU.

    python benchmarks/score_on_gpu.py --text books.txt --runs 2
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness import Goal, median

LONG, SHORT, COLUMNS, KL, PROFILE = PARTS = ("long", "short", "columns", "kl", "profile")
CASES = (LONG, SHORT)
OURS, HARNESS, LOOP, PRODUCTS = "lmgauge", "harness", "transformers", "products"
PROGRAMS = {
    LONG: (OURS, HARNESS, LOOP, PRODUCTS),
    SHORT: (OURS, HARNESS, LOOP, PRODUCTS),
    COLUMNS: (OURS, LOOP),
    KL: (OURS, LOOP),
    PROFILE: (OURS,),
}
BATCHES = {LONG: (8, 16, 32, 64), SHORT: (64, 256, 1024)}
LOOP_BATCH = 16  # of sentences, the default of evaluate's perplexity
TOP = 10
SAME = 1e-2  # relative, of nats in bfloat16
PLAIN, ENTROPY_RANK_TOP, KL_OF_TWO = "plain scoring", "entropy, rank, top 10", "KL of two"
END = "<|endoftext|>"
TRAINING_BYTES = 20_000_000


@dataclass(frozen=True)
class Sizes:
    """What is scored, and by what."""

    hidden: int = 2048
    layers: int = 22
    heads: int = 32
    key_heads: int = 4
    wide: int = 5632
    vocabulary: int = 32_000
    positions: int = 2048
    document: int = 2000  # tokens
    documents: int = 500
    sentences: int = 19_000
    looped: tuple[int, int] = (60, 400)  # texts whose distributions the plain loop makes
    products: tuple[int, ...] = (4096, 16_384, 65_536)  # tokens


TINY = Sizes(64, 2, 4, 2, 176, 1000, 128, 100, 12, 160, (2, 10), (256, 512))

Answer = dict[str, Any]


# --- what is scored, made once ---------------------------------------------------------------------------


def _make(folder: str, text_file: str, sizes: Sizes, device: str, share: float) -> None:
    """A network and its tokenizer, and the texts."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

    start = time.perf_counter()
    opened = gzip.open if text_file.endswith(".gz") else open
    with opened(text_file, "rb") as file:
        text = file.read(TRAINING_BYTES).decode("utf-8", "ignore")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=sizes.vocabulary, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, model_max_length=sizes.positions
    )
    wrapped.save_pretrained(folder)
    harness.note(f"tokenizer of {len(wrapped):,} tokens from {len(text):,} characters: {time.perf_counter() - start:.1f} s")

    start = time.perf_counter()
    config = LlamaConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.wide,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.key_heads,
        max_position_embeddings=sizes.positions,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    with torch.device(device):
        network = AutoModelForCausalLM.from_config(config, dtype=_dtype(device))
    network.save_pretrained(folder)
    count = sum(weight.numel() for weight in network.parameters())
    harness.note(f"network of {count:,} weights: {time.perf_counter() - start:.1f} s")

    documents = _documents(tokenizer, text, sizes.document, max(2, int(sizes.documents * share)))
    sentences = [s for s in text.replace("\n", " ").split(". ") if 20 < len(s) < 200]
    sentences = sentences[: max(8, int(sizes.sentences * share))]
    Path(folder, "texts.json").write_text(json.dumps({LONG: documents, SHORT: sentences}))
    for case, texts in ((LONG, documents), (SHORT, sentences)):
        lengths = [len(encoded.ids) for encoded in tokenizer.encode_batch(texts)]
        each = f"{sum(lengths) / len(texts):.1f} each, {max(lengths)} at most"
        print(f"{case}: {len(texts):,} texts, {sum(lengths):,} tokens, {each}")
    where = torch.cuda.get_device_name() if device.startswith("cuda") else device
    import transformers

    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, {where}, {_dtype(device)}, {count:,} weights"
    )


def _documents(tokenizer: Any, text: str, length: int, most: int) -> list[str]:
    """Pieces of the text that come to `length` tokens or a few less: each ends before a token that begins with a space."""
    documents: list[str] = []
    step = 400 * length
    for begin in range(0, len(text), step):
        chunk = text[begin : begin + step]
        encoded = tokenizer.encode(chunk)
        tokens, offsets, first = encoded.tokens, encoded.offsets, 0
        while first + length < len(tokens) and len(documents) < most:
            end = next((i for i in range(first + length, first, -1) if tokens[i].startswith("Ġ")), first + length)
            documents.append(chunk[offsets[first][0] : offsets[end][0]])
            first = end
        if len(documents) == most:
            break
    return documents


def _dtype(device: str) -> Any:
    import torch

    return torch.bfloat16 if device.startswith("cuda") else torch.float32


# --- a child's own measure -------------------------------------------------------------------------------


class Meter:
    """Wall seconds, and memory of the GPU beyond what is held now (of the process, without one)."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.cuda = torch, device.startswith("cuda")
        self._held = torch.cuda.memory_allocated() if self.cuda else harness.peak_bytes()

    def sync(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize()

    def __call__(self, work: Callable[[], Answer]) -> Answer:
        if self.cuda:
            self.torch.cuda.reset_peak_memory_stats()
        self.sync()
        start = time.perf_counter()
        answer = work()
        self.sync()
        seconds = time.perf_counter() - start
        peak = self.torch.cuda.max_memory_allocated() if self.cuda else harness.peak_bytes()
        return {**answer, "seconds": seconds, "memory": peak - self._held}

    def repeat(self, label: str, runs: int, warm: Callable[[], object], work: Callable[[], Answer]) -> Iterator[Answer]:
        """An answer a run after a warm-up; one that says what went wrong if something does."""
        try:
            warm()
            for _ in range(runs):
                yield {"label": label, **self(work)}
        except Exception as error:
            traceback.print_exc()
            yield {"label": label, "error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        if self.cuda:
            self.torch.cuda.empty_cache()

    def each(self, work: Callable[[], object], times: int) -> float:
        """Seconds of one call, the mean of some in a row."""
        if not self.cuda:
            start = time.perf_counter()
            for _ in range(times):
                work()
            return (time.perf_counter() - start) / times
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / times


@dataclass(frozen=True)
class Job:
    """What a child is to do."""

    folder: str
    device: str
    part: str
    program: str
    runs: int
    tiny: bool
    batch_tokens: int  # of lmgauge; 0: as it chooses

    @property
    def sizes(self) -> Sizes:
        return TINY if self.tiny else Sizes()

    def texts(self, case: str) -> list[str]:
        texts: list[str] = json.loads(Path(self.folder, "texts.json").read_text())[case]
        return texts

    def quarter(self, case: str) -> list[str]:
        texts = self.texts(case)
        return texts[: max(1, len(texts) // 4)]


# --- lmgauge ---------------------------------------------------------------------------------------------


def _our_model(job: Job) -> Any:
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import load_neural

    dtype = "bfloat16" if job.device.startswith("cuda") else "float32"
    options = ScoringOptions(dtype=dtype, device=job.device, end="none", batch_tokens=job.batch_tokens or None)  # type: ignore[arg-type]
    return load_neural(job.folder, options)


def _our_scores(model: Any, texts: list[str]) -> Answer:
    from lmgauge.text.documents import Corpus

    batches = list(model.score(Corpus.from_strings(texts)))
    return {"tokens": sum(map(len, batches)), "nats": float(sum(batch.logprob.sum() for batch in batches))}


def _score(job: Job) -> Iterator[Answer]:
    model = _our_model(job)
    meter = Meter(job.device)
    texts, few = job.texts(job.part), job.quarter(job.part)
    seconds = []
    for answer in meter.repeat(OURS, job.runs, lambda: _our_scores(model, few), lambda: _our_scores(model, texts)):
        seconds += [answer["seconds"]] if "seconds" in answer else []
        yield answer
    if seconds:
        yield {"breakdown": _breakdown(model, meter, texts, median(seconds))}


def _breakdown(model: Any, meter: Meter, texts: list[str], whole: float) -> list[list[str]]:
    """Rows of a table: what the time of a scoring goes into, each step by itself over the same batches."""
    import torch

    from lmgauge.models.network.sequences import events_in_units
    from lmgauge.models.network.torch.engine import batches
    from lmgauge.text.documents import Corpus
    from lmgauge.text.work_units import pieces

    split = model.engine.split

    def clock(work: Callable[[], Any]) -> tuple[Any, float]:
        meter.sync()
        start = time.perf_counter()
        made = work()
        meter.sync()
        return made, time.perf_counter() - start

    cut = (piece for block in Corpus.from_strings(texts) for piece in pieces(block))
    groups, tokenizing = clock(lambda: list(events_in_units(cut, model.tokens, model.context_policy, spans=True)))
    jobs, windows = clock(lambda: [[j for events in group for j in model.jobs_of_segments(events)[0]] for group in groups])
    made, batching = clock(lambda: [batch for some in jobs for batch in batches(some, model.engine.batch_tokens)])

    def on_device(values: Any) -> Any:
        return torch.from_numpy(values).to(split.device)

    @torch.inference_mode()
    def forward() -> None:
        with split.ready():
            for batch in made:
                split.last(on_device(batch.ids), on_device(batch.rows))

    @torch.inference_mode()
    def output() -> None:
        for batch in made:
            states = random[: len(batch.targets)]
            split.log_probabilities(states, on_device(batch.targets))

    _, network = clock(forward)
    width = split.output.weight.shape[1]
    most = max(len(batch.targets) for batch in made)
    random = torch.randn(most, width, device=split.device, dtype=split.output.weight.dtype)
    _, last = clock(output)
    shown, padded = sum(len(batch.targets) for batch in made), sum(batch.ids.size for batch in made)
    steps = {
        "tokenizing and spans": tokenizing,
        "windows": windows,
        "batches": batching,
        "network below the output layer": network,
        "output layer": last,
    }
    steps["the rest"] = whole - sum(steps.values())
    rows = [[name, f"{seconds:.3f}", f"{100 * seconds / whole:.1f} %"] for name, seconds in steps.items()]
    about = f"{len(made)} batches of {padded / len(made):,.0f} tokens, {100 * (padded / shown - 1):.1f} % padding"
    return [*rows, [f"whole; {about}; {model.engine.batch_tokens:,} at a time", f"{whole:.3f}", "100 %"]]


def _our_distributions(job: Job) -> Iterator[Answer]:
    import numpy as np

    import distributions_neural
    from lmgauge.scores.distributions import Entropy, Rank, TopK, reduce, reduce_pair
    from lmgauge.scores.distributions.reductions import KullbackLeibler
    from lmgauge.text.documents import Corpus

    models = [_our_model(job) for _ in range(2 if job.part == KL else 1)]
    if job.part == KL:
        distributions_neural._rounded(models[1].engine.split.network)

    def plain(texts: list[str]) -> Answer:
        return _our_scores(models[0], texts)

    def columns(texts: list[str], first: int) -> Answer:
        batches = list(reduce(models[0], Corpus.from_strings(texts), [Entropy(), Rank(), TopK(TOP)]))
        made = {name: np.concatenate([batch.extra[name] for batch in batches]) for name in batches[0].extra}
        some = int(np.concatenate([batch.segment_events for batch in batches])[:first].sum())
        means = {"entropy": made["entropy"], "rank": made["rank"], "top": made["top_logprobs"]}
        return {"tokens": len(made["rank"])} | {name: float(values[:some].mean()) for name, values in means.items()}

    def divergence(texts: list[str], first: int) -> Answer:
        blocks = list(reduce_pair(models[0], models[-1], Corpus.from_strings(texts), KullbackLeibler()))
        made = np.concatenate([own["kl_ab"] for _, _, own in blocks])
        some = int(np.concatenate([batch.segment_events for batch, _, _ in blocks])[:first].sum())
        return {"tokens": len(made), "kl": float(made[:some].mean())}

    meter = Meter(job.device)
    work, whole = (KL_OF_TWO, divergence) if job.part == KL else (ENTROPY_RANK_TOP, columns)
    for case, first in zip(CASES, job.sizes.looped, strict=True):
        texts = job.quarter(case)
        few = texts[: max(1, len(texts) // 4)]

        def both(work: Callable[[], Answer], label: str, warm: Callable[[], object], case: str = case) -> Iterator[Answer]:
            for answer in meter.repeat(label, job.runs, warm, work):
                yield {"case": case, **answer}

        yield from both(functools.partial(plain, texts), PLAIN, functools.partial(plain, few))
        yield from both(functools.partial(whole, texts, first), work, functools.partial(whole, few, first))


def _profile(job: Job) -> Iterator[Answer]:
    import cProfile
    import io
    import pstats

    from torch.profiler import ProfilerActivity, profile

    from lmgauge.models.network.sequences import events_in_units
    from lmgauge.models.network.torch.engine import batches
    from lmgauge.text.documents import Corpus

    model = _our_model(job)
    meter = Meter(job.device)

    def scored(jobs: Any) -> Answer:
        return {"tokens": sum(map(len, model.engine.score(jobs)))}

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if meter.cuda else [])]
    order = "self_device_time_total" if meter.cuda else "self_cpu_time_total"
    for case in CASES:
        text = Corpus.from_strings(job.quarter(case))
        group = next(iter(events_in_units(iter(text), model.tokens, model.context_policy, spans=True)))
        jobs = [own for events in group for own in model.jobs_of_segments(events)[0]]
        made = list(batches(jobs, model.engine.batch_tokens))
        batch = made[len(made) // 2] if case == SHORT else made[0]
        chosen = [jobs[number] for number in batch.jobs]
        for _ in range(2):
            model.engine.score(chosen)
        alone = meter(functools.partial(scored, chosen))
        with profile(activities=activities) as seen:
            model.engine.score(chosen)
            meter.sync()
        table = seen.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=70)
        shape = " x ".join(map(str, batch.ids.shape))
        head = f"one batch, {case}: {shape} ids, {alone['seconds'] * 1e3:.1f} ms without the profiler"
        yield {"text": f"{head}\n{table}"}
    texts = job.quarter(SHORT)
    watch = cProfile.Profile()
    watch.runcall(_our_scores, model, texts)
    for key in ("tottime", "cumtime"):
        out = io.StringIO()
        pstats.Stats(watch, stream=out).strip_dirs().sort_stats(key).print_stats(25)
        yield {"text": f"the processor's side, {len(texts):,} short texts, by {key}\n{out.getvalue()}"}


# --- others ----------------------------------------------------------------------------------------------


def _harness(job: Job) -> Iterator[Answer]:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    network, tokenizer = _loaded(job)
    model = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=1, max_length=job.sizes.positions)
    meter = Meter(job.device)

    def scores(texts: list[str], batch: int) -> Answer:
        model.batch_size_per_gpu = batch
        requests = [Instance(request_type="loglikelihood_rolling", doc={}, arguments=(text,), idx=0) for text in texts]
        return {"nats": float(sum(model.loglikelihood_rolling(requests, disable_tqdm=True)))}

    texts, few = job.texts(job.part), job.quarter(job.part)
    tokens, tokens_of_few = (sum(len(model.tok_encode(text)) for text in some) for some in (texts, few))
    tried: dict[int, float] = {}
    for batch in BATCHES[job.part]:
        label = f"{HARNESS}, batch {batch}, of a quarter"
        for answer in meter.repeat(
            label, 1, functools.partial(scores, few[:batch], batch), functools.partial(scores, few, batch)
        ):
            if "seconds" in answer:
                tried[batch] = answer["seconds"]
            yield answer | {"tokens": tokens_of_few, "partial": True}
    if tried:
        best = min(tried, key=lambda batch: tried[batch])
        for answer in meter.repeat(
            f"{HARNESS}, batch {best}", job.runs, lambda: scores(few[:best], best), lambda: scores(texts, best)
        ):
            yield answer | {"tokens": tokens, "best": True}


def _loaded(job: Job) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    network = AutoModelForCausalLM.from_pretrained(job.folder, dtype=_dtype(job.device)).to(job.device).eval()
    return network, AutoTokenizer.from_pretrained(job.folder)


def _loop(job: Job) -> Iterator[Answer]:
    """Documents one by one with labels, as transformers' pages do; sentences in padded batches, as evaluate does."""
    import torch

    network, tokenizer = _loaded(job)
    tokenizer.pad_token = tokenizer.eos_token
    loss_of = torch.nn.CrossEntropyLoss(reduction="none")

    @torch.no_grad()
    def one_by_one(texts: list[str]) -> Answer:
        count, total = 0, 0.0
        for text in texts:
            ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]], device=job.device)
            count += ids.shape[1] - 1
            total -= float(network(ids, labels=ids).loss) * (ids.shape[1] - 1)
        return {"tokens": count, "nats": total}

    @torch.no_grad()
    def in_batches(texts: list[str]) -> Answer:
        count, total = 0, 0.0
        encoded = tokenizer(texts, padding=True, return_tensors="pt", return_attention_mask=True).to(job.device)
        for begin in range(0, len(texts), LOOP_BATCH):
            ids = encoded["input_ids"][begin : begin + LOOP_BATCH]
            mask = encoded["attention_mask"][begin : begin + LOOP_BATCH]
            first = torch.full((len(ids), 1), tokenizer.bos_token_id, device=job.device)
            ids, mask = torch.cat([first, ids], 1), torch.cat([torch.ones_like(first), mask], 1)
            logits = network(ids, attention_mask=mask).logits
            losses = loss_of(logits[:, :-1].contiguous().transpose(1, 2), ids[:, 1:].contiguous()) * mask[:, 1:]
            total -= float(losses.double().sum())
            count += int(mask[:, 1:].sum())
        return {"tokens": count, "nats": total}

    meter = Meter(job.device)
    work, label = (one_by_one, LOOP) if job.part == LONG else (in_batches, f"{LOOP}, batch {LOOP_BATCH}")
    texts = job.texts(job.part)
    yield from meter.repeat(label, 1, lambda: work(texts[: 2 * LOOP_BATCH]), lambda: work(texts))


def _loop_of_distributions(job: Job) -> Iterator[Answer]:
    """Texts one by one, all logits at once."""
    import torch
    from torch.nn.functional import kl_div, log_softmax

    import distributions_neural

    networks = [_loaded(job) for _ in range(2 if job.part == KL else 1)]
    tokenizer = networks[0][1]
    if job.part == KL:
        distributions_neural._rounded(networks[1][0])

    @torch.no_grad()
    def scored(texts: list[str]) -> Answer:
        sums, events = dict.fromkeys(("entropy", "rank", "top", "kl"), 0.0), 0
        for text in texts:
            ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]], device=job.device)
            logprobs = [log_softmax(network(ids[:, :-1]).logits[0].float(), -1) for network, _ in networks]
            targets = ids[0, 1:, None]
            events += len(targets)
            if job.part == KL:
                a, b = logprobs
                sums["kl"] += float(kl_div(b, a, reduction="none", log_target=True).sum(-1).double().sum())
            else:
                (a,) = logprobs
                sums["entropy"] -= float((a.exp() * a).sum(-1).double().sum())
                sums["rank"] += float((1 + (a > a.gather(-1, targets)).sum(-1)).double().sum())
                sums["top"] += float(a.topk(TOP, -1).values.double().mean(-1).sum())
        names = ("kl",) if job.part == KL else ("entropy", "rank", "top")
        return {"tokens": events} | {name: sums[name] / events for name in names}

    meter = Meter(job.device)
    for case, first in zip(CASES, job.sizes.looped, strict=True):
        texts = job.quarter(case)[:first]
        label = f"{LOOP}: {KL_OF_TWO if job.part == KL else ENTROPY_RANK_TOP}"
        answers = meter.repeat(label, 1, functools.partial(scored, texts[:4]), functools.partial(scored, texts))
        yield from ({"case": case, **answer} for answer in answers)


def _products(job: Job) -> Iterator[Answer]:
    """The matrix products of a forward pass: without those of attention, and with them in two ways."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    sizes, kind = job.sizes, _dtype(job.device)
    meter = Meter(job.device)
    size = sizes.hidden // sizes.heads
    length = sizes.document if job.part == LONG else 26
    shapes = [
        *[(sizes.hidden, sizes.hidden)] * 2,  # query, output
        *[(sizes.hidden, sizes.key_heads * size)] * 2,  # key, value
        *[(sizes.hidden, sizes.wide)] * 2,
        (sizes.wide, sizes.hidden),
    ]

    def numbers(*shape: int) -> Any:
        return torch.randn(*shape, device=job.device, dtype=kind)

    def of_product(tokens: int, into: int, out: int) -> float:
        a, b = numbers(tokens, into), numbers(out, into)
        meter.each(lambda: torch.mm(a, b.T), 3)
        return meter.each(lambda: torch.mm(a, b.T), 10)

    def of_attention(tokens: int) -> dict[str, float]:
        # a few texts at a time: the squares of all would not fit
        texts = max(1, min(tokens // length, 8 if job.part == LONG else tokens))
        query, key, value = (numbers(texts, sizes.heads, length, size) for _ in range(3))
        squares = numbers(texts, sizes.heads, length, length)

        def whole() -> None:
            torch.matmul(query, key.transpose(2, 3))
            torch.matmul(squares, value)

        def fused() -> None:
            scaled_dot_product_attention(query, key, value, is_causal=True)

        seconds = {}
        for name, work in (("whole squares", whole), ("fused, causal", fused)):
            meter.each(work, 3)
            seconds[name] = meter.each(work, 10) * tokens / (texts * length)
        return seconds

    with torch.inference_mode():
        for tokens in sizes.products:
            try:
                layer = sum(of_product(tokens, *shape) for shape in shapes)
                rows = min(tokens, 8192)
                last = of_product(rows, sizes.hidden, sizes.vocabulary) * tokens / rows
                plain = sizes.layers * layer + last
                floating = 2 * tokens * (sizes.layers * sum(a * b for a, b in shapes) + sizes.hidden * sizes.vocabulary)
                note = f"{floating / plain / 1e12:.0f} TFLOP/s; output layer {100 * last / plain:.0f} %"
                yield {"label": f"products, {tokens:,} tokens", "tokens": tokens, "seconds": plain, "note": note}
                for name, seconds in of_attention(tokens).items():
                    label = f"products, {tokens:,} tokens, attention: {name}"
                    yield {"label": label, "tokens": tokens, "seconds": plain + sizes.layers * seconds}
            except RuntimeError as error:
                yield {"label": f"products, {tokens:,} tokens", "error": str(error).splitlines()[0]}
            if meter.cuda:
                torch.cuda.empty_cache()


CHILDREN: dict[str, dict[str, Callable[[Job], Iterator[Answer]]]] = {
    LONG: {OURS: _score, HARNESS: _harness, LOOP: _loop, PRODUCTS: _products},
    SHORT: {OURS: _score, HARNESS: _harness, LOOP: _loop, PRODUCTS: _products},
    COLUMNS: {OURS: _our_distributions, LOOP: _loop_of_distributions},
    KL: {OURS: _our_distributions, LOOP: _loop_of_distributions},
    PROFILE: {OURS: _profile},
}


def _child(text: str) -> None:
    """Import, wait for a line, work: one line of JSON an answer."""
    job = Job(**json.loads(text))
    import torch  # noqa: F401
    import transformers  # noqa: F401

    if job.program == OURS:
        import lmgauge.models.network.torch.model  # noqa: F401
    elif job.program == HARNESS:
        with contextlib.suppress(Exception):  # said again, and told, where it is used
            import lm_eval.models.huggingface  # noqa: F401
    sys.stdin.readline()
    answers = sys.stdout
    sys.stdout = sys.stderr  # answers alone go to standard output
    try:
        for answer in CHILDREN[job.part][job.program](job):
            print(json.dumps(answer), file=answers, flush=True)
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"label": job.program, "error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)


# --- the run ---------------------------------------------------------------------------------------------


class _Child:
    """A process that has its job and waits."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - as long as the process
        command = [sys.executable, __file__, "child", json.dumps(vars(job))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self._out, stderr=self._err)

    def answers(self, limit: float) -> list[Answer]:
        """What it has to say, until it ends or the time is over."""
        job = self.job
        ended = ""
        try:
            self._process.communicate(b"go\n", timeout=limit)
        except subprocess.TimeoutExpired:
            ended = f"ended after {limit:.0f} s"
            self.kill()
        except OSError as error:
            ended = str(error)
        if self._process.returncode and not ended:
            ended = f"ended with {self._process.returncode}"
        self._out.seek(0)
        self._err.seek(0)
        lines = self._out.read().decode(errors="replace").splitlines()
        answers = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        if ended:
            answers.append({"label": job.program, "error": ended})
        if any("error" in answer for answer in answers):
            said = self._err.read().decode(errors="replace").strip()[-3000:]
            print(f"--- {job.part}, {job.program} said:\n{said}\n---", file=sys.stderr, flush=True)
        return answers

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _rate(answers: Sequence[Answer]) -> float:
    return median([answer["tokens"] / answer["seconds"] for answer in answers])


def _memory(answers: Sequence[Answer]) -> float:
    return median([answer["memory"] for answer in answers])


def _by_label(answers: Sequence[Answer], key: str = "label") -> dict[str, list[Answer]]:
    grouped: dict[str, list[Answer]] = {}
    for answer in answers:
        if "seconds" in answer and key in answer:
            grouped.setdefault(answer[key], []).append(answer)
    return grouped


def _failures(answers: Sequence[Answer], columns: int) -> list[list[str]]:
    return [
        [f"{answer.get('case', '')} {answer['label']}".strip(), *["-"] * (columns - 2), answer["error"][:90]]
        for answer in answers
        if "error" in answer
    ]


def _report_scoring(case: str, found: dict[str, list[Answer]]) -> list[Goal]:
    """Print a case's tables and return its goals."""
    everything = [answer for answers in found.values() for answer in answers]
    measured = _by_label(everything)
    ours = measured.get(OURS)
    theirs = [answers for label, answers in measured.items() if label.startswith(HARNESS)]
    whole = [answers for answers in theirs if answers[0].get("best")]  # none where its time was over
    best = max(whole or theirs, key=_rate, default=None)
    reference = ours[0]["nats"] / ours[0]["tokens"] if ours else None
    rows = []
    for label, answers in measured.items():
        first = answers[0]
        nats = first["nats"] / first["tokens"] if "nats" in first else None
        note = first.get("note", "")
        if nats is not None and reference is not None and not first.get("partial") and abs(nats / reference - 1) > SAME:
            note = "OTHER NATS"
        rows.append(
            [
                label,
                f"{_rate(answers):,.0f}",
                harness.seconds([answer["seconds"] for answer in answers]),
                f"{_rate(answers) / _rate(best):.2f}" if best else "",
                harness.megabytes(_memory(answers)) if "memory" in first else "",
                f"{nats:.5f}" if nats is not None else "",
                note,
            ]
        )
    print(f"\n{case}\n")
    harness.print_table(
        ["program", "tokens/s", "seconds", "x harness", "memory, MB", "nats/token", ""], rows + _failures(everything, 7)
    )
    for answer in everything:
        if "breakdown" in answer:
            print()
            harness.print_table([f"lmgauge, {case}", "seconds", "share"], answer["breakdown"])
    goals = []
    if ours and best:
        goals.append(Goal(f"{case}: rate over the harness's best", _rate(ours) / _rate(best), 2.0, True))
        goals.append(Goal(f"{case}: memory over the harness's", _memory(ours) / max(1.0, _memory(best)), 0.25, False))
    products = [_rate(answers) for label, answers in measured.items() if label.startswith(PRODUCTS)]
    if ours and products:
        without = [_rate(own) for label, own in measured.items() if label.startswith(PRODUCTS) and "attention" not in label]
        goals.append(Goal(f"{case}: share of the products' rate", _rate(ours) / max(without), 0.5, True))
        with_it = [_rate(own) for label, own in measured.items() if "attention: fused" in label]
        if with_it:
            goals.append(Goal(f"{case}: the same, attention fused", _rate(ours) / max(with_it), 0.5, True))
    return goals


def _report_distributions(part: str, found: dict[str, list[Answer]]) -> list[Goal]:
    """Print the tables of whole distributions and return their goals."""
    work, bound = (KL_OF_TWO, 2.2) if part == KL else (ENTROPY_RANK_TOP, 1.4)
    everything = [answer for answers in found.values() for answer in answers]
    rows, goals = [], []
    for case, answers in _by_label(everything, "case").items():
        measured = _by_label(answers)
        plain, ours = measured.get(PLAIN), measured.get(work)
        theirs = measured.get(f"{LOOP}: {work}")
        for label, own in measured.items():
            first = own[0]
            figures = [f"{name} {first[name]:.5g}" for name in ("entropy", "rank", "top", "kl") if name in first]
            ratio = f"{_rate(plain) / _rate(own):.2f}" if plain else ""
            seconds = harness.seconds([answer["seconds"] for answer in own])
            memory = harness.megabytes(_memory(own))
            rows.append(
                [
                    f"{case}, {label}",
                    f"{first['tokens']:,}",
                    seconds,
                    f"{_rate(own):,.0f}",
                    ratio,
                    memory,
                    ", ".join(figures),
                ]
            )
        if plain and ours:
            goals.append(Goal(f"{case}: {work}, time over plain scoring's", _rate(plain) / _rate(ours), bound, False))
        if ours and theirs:
            goals.append(Goal(f"{case}: {work}, rate over the loop's", _rate(ours) / _rate(theirs), 2.0, True))
    print(f"\n{work}\n")
    head = ["work", "events", "seconds", "events/s", "x plain", "memory, MB", "means"]
    harness.print_table(head, rows + _failures(everything, 7))
    return goals


def _report(part: str, found: dict[str, list[Answer]]) -> list[Goal]:
    if part in CASES:
        return _report_scoring(part, found)
    if part in (COLUMNS, KL):
        return _report_distributions(part, found)
    for answers in found.values():
        for answer in answers:
            print(f"\n{answer.get('text') or answer}")
    return []


def _parse() -> Any:
    options = harness.parser(__doc__ or "", runs=2)
    options.add_argument(
        "--text", type=Path, help="text to train the tokenizer on and to score, plain or .gz (classic-books)"
    )
    options.add_argument("--device", default="cuda", help="where to compute (cuda)")
    options.add_argument("--tiny", action="store_true", help="a tiny network and few texts: to try this program out")
    options.add_argument("--only", default=",".join(PARTS[:-1]), help="parts, by commas (%(default)s)")
    options.add_argument(
        "--profile", action="store_true", help="print kernels by time, and functions: the part profile, too"
    )
    options.add_argument("--programs", default="", help="contestants, by commas (all)")
    options.add_argument("--share", type=float, default=1.0, help="of the texts (1)")
    options.add_argument("--batch-tokens", type=int, default=0, help="tokens at a time, of lmgauge (as it chooses)")
    options.add_argument("--limit", type=float, default=150, help="seconds of a contestant at most (150)")
    arguments = options.parse_args()
    arguments.parts = [*arguments.only.split(","), *([PROFILE] if arguments.profile else [])]
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        harness.give_up(f"--only {unknown[0]}: choose of {', '.join(PARTS)}")
    return arguments


def main() -> int:
    os.environ["HF_HUB_OFFLINE"] = "1"
    begin = time.perf_counter()
    arguments = _parse()
    text = arguments.text or harness.book_text("test.txt")
    harness.print_machine("from Python")
    with tempfile.TemporaryDirectory(prefix="lmgauge-gpu-", dir=arguments.work) as folder:
        settings = {"folder": folder, "text": str(text), "device": arguments.device}
        settings |= {"tiny": arguments.tiny, "share": arguments.share}
        subprocess.run([sys.executable, __file__, "make", json.dumps(settings)], check=True)
        common = {"device": arguments.device, "runs": arguments.runs, "tiny": arguments.tiny}
        asked = arguments.programs.split(",") if arguments.programs else None
        jobs = [
            Job(folder=folder, part=part, program=program, batch_tokens=arguments.batch_tokens, **common)
            for part in arguments.parts
            for program in PROGRAMS[part]
            if asked is None or program in asked
        ]
        answers_of: dict[str, dict[str, list[Answer]]] = {part: {} for part in arguments.parts}
        goals: list[Goal] = []
        following = _Child(jobs[0]) if jobs else None
        try:
            for i, job in enumerate(jobs):
                child, following = following, _Child(jobs[i + 1]) if i + 1 < len(jobs) else None
                harness.note(f"{time.perf_counter() - begin:.0f} s: {job.part}, {job.program}")
                answers_of[job.part][job.program] = child.answers(arguments.limit) if child else []
                if i + 1 == len(jobs) or jobs[i + 1].part != job.part:
                    try:
                        goals += _report(job.part, answers_of[job.part])
                    except Exception:
                        traceback.print_exc()
                        print(json.dumps(answers_of[job.part]))
                    sys.stdout.flush()
        finally:
            if following is not None:
                following.kill()
    harness.note(f"{time.perf_counter() - begin:.0f} s in all")
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(sys.argv[2])
    elif sys.argv[1:2] == ["make"]:
        settings = json.loads(sys.argv[2])
        sizes = TINY if settings["tiny"] else Sizes()
        _make(settings["folder"], settings["text"], sizes, settings["device"], settings["share"])
    else:
        sys.exit(main())
