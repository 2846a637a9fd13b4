"""A network in forked children: torch's threads are not there, and waiting for them would have no end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("transformers")

FORKED = """
import multiprocessing, signal, warnings
warnings.simplefilter("ignore")  # of forks of a process that has threads, which this is about
import torch, transformers
import lmgauge
from lmgauge import Corpus

torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=300, n_positions=64, n_embd=256, n_layer=1, n_head=2)
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=__import__("tokenizers").Tokenizer(
        __import__("tokenizers").models.WordLevel({"<unk>": 0, "<s>": 1, "</s>": 2, "the": 3, "cat": 4}, unk_token="<unk>")
    ),
    unk_token="<unk>", bos_token="<s>", eos_token="</s>",
)
model = lmgauge.models.NeuralModel.wrap(transformers.GPT2LMHeadModel(config).eval(), tokenizer)

def score(i):
    signal.alarm(50)
    return lmgauge.evaluate(model, Corpus.from_strings(["the cat " * 20] * 20), threads=2).perplexity

class Scores(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        return score(i)

expected = score(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print([round(value / expected, 6) for value in pool.map(score, range(2))])
print([round(float(value) / expected, 6) for value in torch.utils.data.DataLoader(Scores(), num_workers=1)])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_network_scores_in_forked_children() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=180, check=True)
    assert done.stdout.splitlines() == ["[1.0, 1.0]"] * 2
