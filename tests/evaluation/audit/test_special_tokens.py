"""Planted faults of special tokens, each in six forms: an audit names every one of them, and none where all is sound."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.evaluation.audit.auditing import audit, audit_run
from tests.models.network.conftest import TEXT, network
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.audit.checks import FAIL, PASS, Audit
from lmgauge.evaluation.runs import open_run
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.torch.model import NeuralModel

LINES = ["The cat sat on the mat .", "It was a long day ;", "The end"]
TOKENS = ["The", " cat", " sat"]
FAMILIES = {
    "llama-2": ("<s>", "</s>"),
    "llama-3": ("<|begin_of_text|>", "<|end_of_text|>"),
    "gemma": ("<bos>", "<eos>"),
    "deepseek": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "command-r": ("<BOS_TOKEN>", "<EOS_TOKEN>"),
    "bert": ("[CLS]", "[SEP]"),
}
"""Six tokenizers by what begins and what ends a text."""


def tokenizer_of(family: str, sets: int) -> Any:
    """A tokenizer of a family that sets what begins a text so many times before it."""
    special = list(FAMILIES[family])
    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    own.train_from_iterator(TEXT.splitlines(), trainer)
    first = special[0]
    if sets:
        whole = " ".join([*[first] * sets, "$A"])
        own.post_processor = processors.TemplateProcessing(single=whole, special_tokens=[(first, own.token_to_id(first))])
    return PreTrainedTokenizerFast(tokenizer_object=own, bos_token=first, eos_token=special[1])


def audited(family: str, sets: int, **options: Any) -> Audit:
    tokenizer = tokenizer_of(family, sets)
    model = NeuralModel.wrap(network("llama", len(tokenizer)), tokenizer, ScoringOptions(**options))
    return audit(model, Corpus.from_strings(LINES), levels=["coverage"])


def named(found: Audit) -> str:
    """The evidence of the check of special tokens, where it fails."""
    return next((check.evidence for check in found.failures if check.name == "special tokens"), "")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_that_sets_one_token_is_sound(family: str) -> None:
    found = audited(family, 1)
    assert found.passed, str(found)
    check = next(check for check in found.checks if check.name == "special tokens")
    assert check.evidence.startswith(f"Of the first segment {FAMILIES[family][0]} (0) is shown")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_that_sets_it_twice(family: str) -> None:
    assert named(audited(family, 2)) == f"What its tokenizer sets before a text begins with {FAMILIES[family][0]} (0) twice."


@pytest.mark.parametrize("first_token", ["uniform", "eos"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_first_token_that_is_missing(family: str, first_token: str) -> None:
    evidence = named(audited(family, 1, first_token=first_token))
    assert evidence.startswith(f"Scored without {FAMILIES[family][0]} (0), which its tokenizer sets before a text")
    assert ", with it " in evidence


# -- tables of other programs -------------------------------------------------------------------------------------------
Row = tuple[str, float]


def table(folder: Path, head: Sequence[Row], *, laid: bool = True, lines: int = 8) -> Audit:
    """The audit of an imported table whose segments begin with these rows."""
    own = [*head, *((token, -1.5) for token in TOKENS)]
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence_id", "token", "logprob"])
        rows.writerows([i, token, score] for i in range(lines) for token, score in own)
    text = Corpus.from_strings(["The cat sat"] * lines) if laid else None
    result = lmgauge.import_scores(folder / "table.csv", folder / "run", log_unit="nats", text=text)
    found = audit_run(open_run(folder / "run"), text)
    assert any("special tokens: " in note for note in result.notes) == bool(named(found))
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("laid", [True, False])
@pytest.mark.parametrize("first", [0.0, -9.0])
def test_a_table_that_begins_with_a_special_token_twice(tmp_path: Path, family: str, laid: bool, first: float) -> None:
    """The first of the two has a score, or none (0 in minicons)."""
    name = FAMILIES[family][0]
    evidence = named(table(tmp_path, [(name, first), (name, -4.0)], laid=laid))
    assert evidence.startswith(f"8 segments begin with a row for {name}, which the text has not")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("laid", [True, False])
def test_a_table_with_one_that_has_no_score_is_sound(tmp_path: Path, family: str, laid: bool) -> None:
    assert named(table(tmp_path, [(FAMILIES[family][0], 0.0)], laid=laid)) == ""


@pytest.mark.parametrize("head", [[("<|im_start|>", 0.0), ("<|start_header_id|>", -4.0)], []])
def test_two_that_are_not_equal_are_sound(tmp_path: Path, head: list[Row]) -> None:
    assert named(table(tmp_path, head, laid=False)) == ""


def test_a_reply_of_vllm_that_begins_with_it_twice(tmp_path: Path) -> None:
    places = [{str(i): {"decoded_token": token, "logprob": -2.0}} for i, token in enumerate(["<s>", *TOKENS])]
    (tmp_path / "log").write_text(json.dumps({"prompt_token_ids": [0, 0, 1, 2, 3], "prompt_logprobs": [None, *places]}))
    result = lmgauge.import_scores(tmp_path / "log", tmp_path / "run")
    assert any(note.startswith("special tokens: 1 segments begin with a row for <s>") for note in result.notes)


def test_what_the_text_itself_has_is_no_fault(tmp_path: Path) -> None:
    rows = [{"segment": 0, "start": 0, "end": 3, "token": "<s>", "logprob": -1.0, "kind": "token"}]
    rows += [{"segment": 0, "start": 3, "end": 7, "token": " cat", "logprob": -1.0, "kind": "token"}]
    (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = Corpus.from_strings(["<s> cat"])
    assert named(audit_run(open_run(tmp_path / "table.jsonl"), text)) == ""
    result = lmgauge.evaluate_scores(tmp_path / "table.jsonl", text)
    assert not any("special tokens" in note for note in result.notes)
    assert PASS in {check.verdict for check in audit_run(open_run(tmp_path / "table.jsonl"), text).checks}
    assert FAIL not in {check.verdict for check in audit_run(open_run(tmp_path / "table.jsonl"), text).checks}
