"""Conversations scored in a chat template, compared with the same tokens as plain text: a small Transformer on one thread.

Plain means that each conversation is rendered once and is one segment, every token scored. In the template only what the
assistant says is scored; the sums over these tokens must agree before any figure is printed. `rendering` is the work of the
template alone, which the first contains. Where a template rewrites earlier turns, each turn is shown anew: no goal then.

    python benchmarks/score_conversations.py --runs 5
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import harness
from harness import Goal, median

LAYERS, WIDTH, POSITIONS, VOCABULARY = 4, 384, 4096, 16_000
TRAINING_BYTES, BOUND, SAME_NATS = 5_000_000, 1.03, 1e-5
CHATML = (
    "<|begin|>{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETTING = CHATML.replace(
    "{{ message.content }}",
    "{% if loop.last %}{{ message.content }}{% else %}{{ message.content.split('</think>')[-1] }}{% endif %}",
)
# Conversations, turns of each, words of a turn, template.
CASES = {
    "2 turns": (240, 2, 40, CHATML),
    "20 turns": (24, 20, 40, CHATML),
    "4 long turns": (12, 4, 400, CHATML),
    "20 turns, rewritten": (6, 20, 40, FORGETTING),
}
FRAMED, PLAIN, RENDERING = "in the template", "plain", "rendering"


def _make(folder: str) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    with harness.book_text("train.txt").open(encoding="utf-8") as file:
        text = file.read(TRAINING_BYTES)
    tokenizer, byte_level = Tokenizer(models.BPE()), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer, tokenizer.decoder = byte_level, decoders.ByteLevel()
    special = ["<|bos|>", "<|eos|>", "<|begin|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=byte_level.alphabet())
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=special[0], eos_token=special[1])
    wrapped.add_special_tokens({"additional_special_tokens": special[2:]})
    wrapped.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 6}
    ids = {"bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings": POSITIONS}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(wrapped), **sizes, **ids)).save_pretrained(folder)


def _conversations(case: str) -> list[list[dict[str, str]]]:
    count, turns, length, template = CASES[case]
    words = harness.book_text("test.txt").read_text(encoding="utf-8").split()[: count * turns * length]
    texts = [" ".join(words[at : at + length]) for at in range(0, len(words), length)]
    if template is FORGETTING:
        texts[1::2] = [f"<think>so</think>{text}" for text in texts[1::2]]
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    return [messages[at : at + turns] for at in range(0, len(messages), turns)]


def _child(folder: str, case: str, name: str) -> None:
    import torch

    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import load_neural
    from lmgauge.scores import iter_segments, starts_of
    from lmgauge.text.documents import Corpus

    torch.set_num_threads(1)
    (file := Path(folder, f"{case}.jinja")).write_text(CASES[case][3])
    conversations = _conversations(case)
    corpus = Corpus.from_conversations(conversations)
    model: Any = load_neural(folder, ScoringOptions(template=file)).framed()
    template, turns = model.tokens.framing, [turn for block in corpus for turn in block.turns or ()]
    if name == PLAIN:
        model = load_neural(folder, ScoringOptions(first_token="unscored", end="none"))
        cut = model.tokens.tokenizer.cut
        model.tokens.tokenizer.cut = lambda segments, **_: cut(segments, special=True)
        corpus = Corpus.from_strings([template.render(turn.conversation) for turn in turns if turn.at == 1])
    list(model.score(Corpus.from_conversations(conversations[:1]), threads=1))  # warm up
    cpu, wall = time.process_time(), time.perf_counter()
    batches = [*map(template.frame, turns)] if name == RENDERING else list(model.score(corpus, threads=1))
    answer: dict[str, float] = {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "nats": 0.0,
        "tokens": 0,
    }
    if name == FRAMED:
        answer["nats"] = float(sum(batch.logprob.sum() for batch in batches))
    elif name == PLAIN:
        answer["tokens"] = sum(map(len, batches))
        segments = (segment for segment in iter_segments(batches) for _ in range(CASES[case][1] // 2))
        for turn, segment in zip(turns, segments, strict=True):
            frame, starts = template.frame(turn), starts_of(segment.ends, segment.segment_events)
            begin = len(frame.before.encode())
            own = (starts >= begin) & (starts < begin + len((frame.content + frame.end).encode()))
            answer["nats"] += float(segment.logprob[own].sum())
    harness.print_json(answer)


def main() -> int:
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    arguments = harness.parser(__doc__ or "", runs=5).parse_args()
    harness.print_machine(harness.lmgauge_program(arguments.lmgauge))
    folder = harness.made_network(f"chat-{LAYERS}-{WIDTH}-{VOCABULARY}", __file__, "config.json")
    rows, goals = [], list[Goal]()
    for case, (count, turns, _, template) in CASES.items():
        answers: dict[str, list[dict[str, float]]] = {FRAMED: [], PLAIN: [], RENDERING: []}

        def run(name: str, case: str = case, answers: dict[str, list[dict[str, float]]] = answers) -> None:
            out = harness.run_child([sys.executable, __file__, "child", str(folder), case, name]).out
            answers[name].append(json.loads(out.strip().splitlines()[-1]))

        harness.interleave(list(answers), arguments.runs, run)
        nats = {name: own[0]["nats"] for name, own in answers.items()}
        if template is CHATML and abs(nats[FRAMED] / nats[PLAIN] - 1) > SAME_NATS:
            harness.give_up(f"{case}: {nats[FRAMED]} nats in the template, {nats[PLAIN]} plain")
        cpu, wall = ({name: median([one[key] for one in own]) for name, own in answers.items()} for key in ("cpu", "wall"))
        ratio = cpu[FRAMED] / cpu[PLAIN]
        figures = [f"{cpu[FRAMED]:.2f}", f"{cpu[PLAIN]:.2f}", f"{ratio:.3f}", f"{wall[FRAMED] / wall[PLAIN]:.3f}"]
        each = f"{1e6 * cpu[RENDERING] / (count * turns / 2):,.0f}"
        rows.append([case, f"{answers[PLAIN][0]['tokens']:,}", *figures, each])
        goals += [Goal(f"{case}: CPU over plain", ratio, BOUND, at_least=False)] if template is CHATML else []
    harness.print_table(["case", "tokens", "CPU, s", "plain, s", "CPU, x", "wall, x", "rendering, µs a turn"], rows)
    return harness.report_goals(goals)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    elif sys.argv[1:2] == ["make"]:
        _make(sys.argv[2])
    else:
        sys.exit(main())
