"""What programs write, as they wrote it or as they document it; the texts are ours.

KenLM's, llama.cpp's, the harness' and minicons' are real: of models of the text itself, of a network with random weights.
SRILM is not on any package index: its layout, with numbers of the same trigrams.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LINES = ["the cat sat on the mat", "a dog ran", "the zebra sat on café", "“naïve” 東京"]

KENLM = (
    "the=3 2 -0.24773183\tcat=4 3 -0.21959929\tsat=5 3 -0.35046458\ton=6 3 -0.09890125\tthe=3 3 -0.05171505\t"
    "mat=7 3 -0.09438018\t</s>=2 1 -1.8948896\tTotal: -2.9576817 OOV: 0\n"
    "a=9 2 -0.80796665\tdog=10 3 -0.054684136\tran=11 3 -0.08661541\t</s>=2 1 -1.8948896\tTotal: -2.8441558 OOV: 0\n"
    "the=3 2 -0.24773183\tzebra=0 1 -2.7515976\tsat=5 1 -1.1570908\ton=6 2 -0.73198\tcafé=13 1 -2.3303342\t"
    "</s>=2 1 -1.2928296\tTotal: -8.511564 OOV: 1\n"
    "“naïve”=0 1 -2.496325\t東京=20 1 -1.4272442\t</s>=2 1 -1.2928296\tTotal: -5.2163987 OOV: 1\n"
    "Perplexity including OOVs:\t9.473054170060713\nPerplexity excluding OOVs:\t6.214950201432741\nOOVs:\t2\nTokens:\t20\n"
)

SRILM_LINES = ["the cat sat on the mat", "", "a zebra"]
SRILM = (
    "the cat sat on the mat\n"
    "\tp( the | <s> ) \t= [2gram] 0.5653 [ -0.2477318 ]\n"
    "\tp( cat | the ...) \t= [3gram] 0.6031 [ -0.2195993 ]\n"
    "\tp( sat | cat ...) \t= [3gram] 0.4462 [ -0.3504646 ]\n"
    "\tp( on | sat ...) \t= [3gram] 0.7963 [ -0.09890125 ]\n"
    "\tp( the | on ...) \t= [3gram] 0.8877 [ -0.05171505 ]\n"
    "\tp( mat | the ...) \t= [3gram] 0.8047 [ -0.09438018 ]\n"
    "\tp( </s> | mat ...) \t= [1gram] 0.01274 [ -1.89489 ]\n"
    "1 sentences, 6 words, 0 OOVs\n"
    "0 zeroprobs, logprob= -2.957682 ppl= 2.645261 ppl1= 3.111239\n\n"
    "a zebra\n"
    "\tp( a | <s> ) \t= [2gram] 0.1556 [ -0.8079667 ]\n"
    "\tp( <unk> | a ...) \t= [OOV] 0 [ -inf ]\n"
    "\tp( </s> | <unk> ...) \t= [1gram] 0.05 [ -1.30103 ]\n"
    "1 sentences, 2 words, 1 OOVs\n"
    "0 zeroprobs, logprob= -2.108997 ppl= 11.33664 ppl1= 128.5278\n\n"
    "file test.txt: 2 sentences, 8 words, 1 OOVs\n"
    "0 zeroprobs, logprob= -5.066679 ppl= 3.655648 ppl1= 5.29431\n"
)

LLAMA_CPP = (
    "perplexity: calculating perplexity over 8 chunks, n_ctx=32, batch_size=2048, n_seq=64\n"
    "perplexity: 0.03 seconds per pass - ETA 0.00 minutes\n"
    "[1]381.2549,[2]415.0472,[3]427.4900,[4]416.8636,[5]402.0828,[6]410.7949,[7]417.8135,[8]420.5258,\n"
    "Final estimate: PPL = 420.5258 +/- 16.93781\n"
)


def _sample(number: int, text: str, logprob: str) -> dict[str, Any]:
    arguments = {"gen_args_0": {"arg_0": text}}
    return {
        "doc_id": number,
        "doc": {"text": text},
        "target": text,
        "arguments": arguments,
        "resps": [[logprob]],
        "filter": "none",
    }


HARNESS_LOGPROBS = ["-37.95278549194336", "-17.72449493408203", "-65.5", "-27.25"]
HARNESS = "".join(json.dumps(_sample(i, *row)) + "\n" for i, row in enumerate(zip(LINES, HARNESS_LOGPROBS, strict=True)))
ANSWERS = json.dumps(
    {
        "doc_id": 0,
        "doc": {"q": "the cat", "choices": ["sat on", "ran to the mat"], "gold": 0},
        "target": "0",
        "arguments": {
            "gen_args_0": {"arg_0": "the cat", "arg_1": " sat on"},
            "gen_args_1": {"arg_0": "the cat", "arg_1": " ran"},
        },
        "resps": [[["-12.25", "False"]], [["-25.5", "False"]]],
        "filter": "none",
    }
)

MINICONS = json.dumps(
    [[["<|endoftext|>", 0.0], ["the", -6.5], ["Ġcat", -6.25]], [["a", -5.5], ["Ġdog", -5.625], ["ĠcafÃ©", -7.0]]]
)
FRAME = "sentence,token,surprisal_bits\n1,the,2.0\n1,cat,2.0\n2,a,1.5\n2,dog,1.5\n"


def _place(token: str, logprob: float, number: int) -> dict[str, Any]:
    return {str(number): {"logprob": logprob, "rank": 1, "decoded_token": token}}


VLLM = json.dumps(
    {
        "model": "tiny",
        "choices": [{"index": 0, "text": "!", "prompt_logprobs": [None, _place("the", -1.0, 5), _place(" cat", -2.0, 7)]}],
        "usage": {"completion_tokens": 1},
    }
)
REQUEST_OUTPUT = json.dumps(
    {
        "request_id": "1",
        "prompt_token_ids": [0, 5, 7],
        "prompt_logprobs": [None, _place("a", -0.1, 9) | _place("the", -1.0, 5), _place(" cat", -2.0, 7)],
    }
)
OPENAI = json.dumps(
    {
        "model": "m",
        "choices": [
            {
                "text": "the cat sat on",
                "logprobs": {"tokens": ["the", " cat", " sat", " on"], "token_logprobs": [None, -1.0, -2.0, -0.5]},
            }
        ],
        "usage": {"completion_tokens": 1, "prompt_tokens": 3},
    }
)


OUTPUTS: dict[str, list[bytes]] = {
    "kenlm": [KENLM.encode()],
    "srilm": [SRILM.encode()],
    "llama.cpp": [LLAMA_CPP.encode()],
    "lm-evaluation-harness": [HARNESS.encode(), ANSWERS.encode()],
    "vllm": [VLLM.encode(), REQUEST_OUTPUT.encode()],
    "openai": [OPENAI.encode()],
    "minicons": [MINICONS.encode(), FRAME.encode()],
    "score-table": [b'{"segment": 0, "logprob": -0.5}\n'],
}
"""Program -> files of it."""


def written(folder: Path, content: str | bytes, name: str = "log") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
