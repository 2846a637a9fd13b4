"""Slow twins of the programs whose protocols are followed: each loop does what its source does, token by token of one text.

Written after the sources that `lmgauge.scores.context_policy` names; they take what a tokenizer makes of the text, as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy


@torch.no_grad()
def nats(network: Any, shown: Sequence[int]) -> list[float]:
    """Minus the log-probabilities of all tokens shown but the first, in float64 of float32 logits."""
    logits = network(torch.tensor([list(shown)])).logits[0, :-1].double()
    return cross_entropy(logits, torch.tensor(list(shown[1:])), reduction="none").tolist()


def guide(network: Any, ids: Sequence[int], max_length: int, stride: int) -> tuple[float, float]:
    """transformers' guide: the perplexity that it prints, and that of the tokens it scores, each counted once."""
    weighted = counted = 0.0
    each: list[float] = []
    reached = 0
    for begin in range(0, len(ids), stride):
        end = min(begin + max_length, len(ids))
        labels = end - reached  # the guide masks all others; the first of a window is shifted away if it is among them
        losses = nats(network, ids[begin:end])[-labels:]
        weighted += sum(losses) / len(losses) * (labels - 1)
        counted += labels - 1
        each += losses
        reached = end
        if end == len(ids):
            break
    return math.exp(weighted / counted), math.exp(sum(each) / len(each))


def gptq(network: Any, ids: Sequence[int], chunk: int) -> float:
    """GPTQ's llama_eval: the mean loss of each chunk, times its length; tokens that fill no chunk are dropped."""
    chunks = len(ids) // chunk
    total = 0.0
    for i in range(chunks):
        losses = nats(network, ids[i * chunk : (i + 1) * chunk])
        total += sum(losses) / len(losses) * chunk
    return math.exp(total / (chunks * chunk))


def llama_cpp(network: Any, ids: Sequence[int], chunk: int, bos: int | None) -> float:
    """llama-perplexity: in each chunk, which begins with BOS if the tokenizer adds one, what the second half predicts."""
    first = chunk // 2
    total, count = 0.0, 0
    for i in range(len(ids) // chunk):
        shown = list(ids[i * chunk : (i + 1) * chunk])
        if bos is not None:
            shown[0] = bos
        scored = nats(network, shown)[first:]  # the logits at `first` predict the token after it
        total, count = total + sum(scored), count + len(scored)
    return math.exp(total / count)
