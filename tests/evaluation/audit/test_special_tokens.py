"""Planted faults of special tokens, each in six forms: an audit names every one of them, and none where all is sound."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.evaluation.audit.auditing import audit, audit_run
from tests.models.network.conftest import TEXT
from tests.models.network.test_chat_template import TEMPLATES
from tests.models.network.test_chat_template import TOKENS as TEMPLATE_TOKENS
from tests.models.network.test_framed_turns import network
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError
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


def tokenizer_of(special: Sequence[str], sets: int) -> Any:
    """A tokenizer with special tokens that sets the first, which begins a text, so many times before it."""
    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=310, special_tokens=[*special], initial_alphabet=alphabet, show_progress=False)
    own.train_from_iterator(TEXT.splitlines(), trainer)
    first = special[0]
    if sets:
        whole = " ".join([*[first] * sets, "$A"])
        own.post_processor = processors.TemplateProcessing(single=whole, special_tokens=[(first, own.token_to_id(first))])
    fast = PreTrainedTokenizerFast(tokenizer_object=own, bos_token=first, eos_token=special[1])
    fast.add_special_tokens({"additional_special_tokens": special[2:]})
    return fast


def audited(family: str, sets: int, **options: Any) -> Audit:
    tokenizer = tokenizer_of(FAMILIES[family], sets)
    model = NeuralModel.wrap(network(len(tokenizer)), tokenizer, ScoringOptions(**options))
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


# -- conversations -------------------------------------------------------------------------------------------------------
class Form(NamedTuple):
    """A chat template: what stands around a turn."""

    bos: str
    header: str  # with {} for the role
    end: str
    others: tuple[str, ...] = ()  # special tokens besides these

    def special(self) -> list[str]:
        """The special tokens, that which begins a text first."""
        return [self.bos, self.end.strip(), *self.others]

    def template(self, *, begins: int = 1, asks: str | None = "", preamble: str = "", end: str | None = None) -> str:
        """The source in Jinja; asks: what stands behind the header of a generation prompt, None if there is none."""
        turn = self.header.format("{{ m.role }}") + preamble_of_turns(preamble) + "{{ m.content | trim }}"
        loop = "{% for m in messages %}" + turn + (self.end if end is None else end) + "{% endfor %}"
        prompt = self.header.format("assistant") + (asks or "")
        asked = "" if asks is None else "{% if add_generation_prompt %}" + prompt + "{% endif %}"
        return "{{ bos_token }}" * begins + loop + asked


def preamble_of_turns(preamble: str) -> str:
    return "{% if m.role == 'assistant' %}" + preamble + "{% endif %}" if preamble else ""


FORMS = {
    "llama-3": Form(
        "<|begin_of_text|>", "<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>", ("<|start_header_id|>",)
    ),
    "gemma": Form("<bos>", "<start_of_turn>{}\n", "<end_of_turn>\n", ("<start_of_turn>",)),
    "qwen": Form("<|endoftext|>", "<|im_start|>{}\n", "<|im_end|>\n", ("<|im_start|>",)),
    "phi": Form("<s>", "<|{}|>\n", "<|end|>\n", ("<|user|>", "<|assistant|>")),
    "command-r": Form("<BOS_TOKEN>", "<|TURN|>{}: ", "<|END_OF_TURN_TOKEN|>", ("<|TURN|>",)),
    "deepseek": Form("<｜begin▁of▁sentence｜>", "<｜{}｜>", "<｜end▁of▁sentence｜>", ("<｜user｜>", "<｜assistant｜>")),
}
PREAMBLES = {
    "llama-3": "<think>\n\n</think>\n\n",
    "gemma": "<|channel|>final\n",
    "qwen": "<think></think>",
    "phi": "<reasoning>none</reasoning>",
    "command-r": "<|START_RESPONSE|>",
    "deepseek": "</think>",
}
CONVERSATIONS = [
    [{"role": "user", "content": "The cat?"}, {"role": "assistant", "content": "It sat on the mat ."}],
    [{"role": "user", "content": "Who came?"}, {"role": "assistant", "content": "nobody came ."}],
]


def audited_turns(name: str, sets: int = 1, *, end_of_turn: bool = True, **parts: Any) -> Audit:
    form = FORMS[name]
    tokenizer = tokenizer_of(form.special(), sets)
    tokenizer.chat_template = form.template(**parts)
    model = NeuralModel.wrap(network(len(tokenizer)), tokenizer, ScoringOptions(end_of_turn=end_of_turn))
    corpus = Corpus.from_conversations(CONVERSATIONS)
    result, found = lmgauge.evaluate(model, corpus), audit(model.framed(), corpus, levels=["coverage"])
    assert any(note.startswith("special tokens: ") for note in result.notes) == bool(named(found))
    return found


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("asks", ["", "its own"])
def test_a_template_that_asks_for_what_turns_begin_with_is_sound(name: str, asks: str) -> None:
    preamble = asks and PREAMBLES[name]
    found = audited_turns(name, asks=preamble, preamble=preamble)
    assert found.passed, str(found)
    check = next(check for check in found.checks if check.name == "special tokens")
    assert check.evidence.startswith(f"Of the first segment {FORMS[name].bos} (0) ")


@pytest.mark.parametrize("name", FORMS)
def test_a_template_and_a_tokenizer_without_a_first_token_are_sound(name: str) -> None:
    assert audited_turns(name, 0, begins=0).passed


@pytest.mark.parametrize("name", FORMS)
def test_a_template_that_begins_with_a_token_twice(name: str) -> None:
    assert named(audited_turns(name, begins=2)) == f"What it sees of a text begins with {FORMS[name].bos} (0) twice."


@pytest.mark.parametrize("name", FORMS)
def test_a_template_without_the_first_token_that_the_tokenizer_sets(name: str) -> None:
    evidence = named(audited_turns(name, begins=0))
    figures = re.fullmatch(
        rf"Scored without {re.escape(FORMS[name].bos)} \(0\), which its tokenizer sets before a text: on its beginning "
        r"perplexity is ([0-9.,e+]+), with it ([0-9.,e+]+) \(--template\)\.",
        evidence,
    )
    assert figures is not None, evidence
    ways = [FORMS[name].template(begins=begins) for begins in (0, 1)]
    assert list(figures.groups()) == [f"{of_template(name, way).perplexity:,.6g}" for way in ways]


def of_template(name: str, template: str) -> Any:
    tokenizer = tokenizer_of(FORMS[name].special(), 1)
    tokenizer.chat_template = template
    model = NeuralModel.wrap(network(len(tokenizer)), tokenizer, ScoringOptions())
    return lmgauge.evaluate(model, Corpus.from_conversations(CONVERSATIONS))


@pytest.mark.parametrize("name", FORMS)
def test_a_template_without_a_generation_prompt(name: str) -> None:
    evidence = named(audited_turns(name, asks=None))
    assert evidence.startswith("Its chat template has no generation prompt: who asks it for a turn does not show it ")
    assert FORMS[name].header.format("assistant").strip() in evidence


@pytest.mark.parametrize("name", FORMS)
def test_a_preamble_that_a_generation_prompt_has_not(name: str) -> None:
    evidence = named(audited_turns(name, preamble=PREAMBLES[name]))
    assert evidence == (
        f"Its chat template sets {PREAMBLES[name]!r} before a turn, its generation prompt does not (--template-args)."
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_generation_prompt_that_begins_to_think(name: str) -> None:
    evidence = named(audited_turns(name, asks="<think>\n"))
    assert evidence == (
        "Its generation prompt ends with '<think>', and the turns that its chat template renders do not begin with that."
    )


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("fault", ["option", "template"])
def test_the_end_of_a_turn_that_is_not_scored(name: str, fault: str) -> None:
    found = audited_turns(name, end_of_turn=fault == "template", end="\n" if fault == "template" else None)
    assert named(found) == (
        "Its chat template ends a turn without a special token, so that its end is not scored."
        if fault == "template"
        else f"The token that ends a turn, {FORMS[name].end.strip()}, is not scored (--no-end-of-turn)."
    )


def of_published(name: str, **options: Any) -> str:
    """What is named of a template as models have it."""
    source, known = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"), TEMPLATE_TOKENS[name]
    ends = [known.get("bos_token", "<s>"), known["eos_token"]]
    tokenizer = tokenizer_of([*ends, *(token for token in known["specials"] if token not in ends)], "bos_token" in source)
    tokenizer.chat_template = source
    model = NeuralModel.wrap(network(len(tokenizer), 512), tokenizer, ScoringOptions(**options)).framed()
    return named(audit(model, Corpus.from_conversations(CONVERSATIONS), levels=["coverage"]))


@pytest.mark.parametrize("name", sorted({path.stem for path in TEMPLATES.glob("*.jinja")} - {"everything"}))
def test_templates_of_known_models(name: str) -> None:
    """All are sound but two, which ask for thoughts that contents do not have."""
    assert of_published(name) == {
        "deepseek-r1": "Its generation prompt ends with '<think>', and the turns that its chat template renders do not "
        "begin with that.",
        "qwen-3": "Its chat template sets '<think>\\n\\n</think>\\n\\n' before a turn, its generation prompt does not "
        "(--template-args).",
    }.get(name, "")


def test_arguments_of_a_template_mend_it() -> None:
    assert of_published("qwen-3", template_args={"enable_thinking": False}) == ""


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


# -- tables of turns: a mask that is off by one, and an end that has no row ---------------------------------------------
TURN = ["It", " sat", " on", " the", " mat", " ."]
ENDS = ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "</s>"]
Columns = tuple[list[str], list[int], list[int]]
"""Tokens, and where each begins and ends."""


def columns(end: str = "<|im_end|>") -> Columns:
    ends = [sum(map(len, TURN[: i + 1])) for i in range(len(TURN))]
    return [*TURN, end], [0, *ends], [*ends, ends[-1]]


def table_of_turns(folder: Path, own: Columns, *, segments: Sequence[int] = (0, 1)) -> Audit:
    """The audit of a score table of two turns with these rows."""
    rows = [
        {"segment": segment, "start": start, "end": end, "token": token, "logprob": -1.0, "kind": "token"}
        for segment in segments
        for token, start, end in zip(*own, strict=True)
    ]
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "".join(TURN)}]
    return audit_run(open_run(folder / "table.jsonl"), Corpus.from_conversations([messages, messages]))


@pytest.mark.parametrize("end", ENDS)
def test_a_table_of_turns_with_their_ends_is_sound(tmp_path: Path, end: str) -> None:
    found = table_of_turns(tmp_path, columns(end))
    assert found.passed, str(found)


@pytest.mark.parametrize("end", ENDS)
def test_a_table_of_turns_without_their_ends(tmp_path: Path, end: str) -> None:
    without = tuple(column[:-1] for column in columns(end))
    [check] = table_of_turns(tmp_path, without).failures  # type: ignore[arg-type]
    assert (check.name, check.evidence) == (
        "ends of turns",
        "No row scores what ends a turn, in 2 turns.",
    )


TOKENS_OF_TURN, STARTS, STOPS = columns()
SHIFTED: dict[str, tuple[Columns, str]] = {
    "tokens one late": ((["\n", *TOKENS_OF_TURN[:-1]], STARTS, STOPS), "spelling"),
    "tokens one early": (([*TOKENS_OF_TURN[1:], "\n"], STARTS, STOPS), "spelling"),
    "the first row is missing": ((TOKENS_OF_TURN[1:], STARTS[1:], STOPS[1:]), "spans"),
    "the last row of the text is missing": (([*TURN[:-1], "<|im_end|>"], STARTS[:-1], [*STOPS[:5], STOPS[4]]), "spans"),
    "spans one byte late": ((TOKENS_OF_TURN, [at + 1 for at in STARTS], [at + 1 for at in STOPS]), "spans"),
    "spans of the next token": ((TOKENS_OF_TURN, [*STARTS[1:], STOPS[-1]], [*STOPS[1:], STOPS[-1]]), "spans"),
}


@pytest.mark.parametrize("form", SHIFTED)
def test_a_mask_that_is_off_by_one_token(tmp_path: Path, form: str) -> None:
    own, check = SHIFTED[form]
    assert check in {failure.name for failure in table_of_turns(tmp_path, own).failures}


def test_a_log_whose_tokens_are_shifted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("token,logprob\n sat,-1\n on,-1\n the,-1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"the log is not about .*: at byte 0 of its segment the text is 'It sat on"):
        lmgauge.import_scores(
            tmp_path / "table.csv", tmp_path / "run", log_unit="nats", text=Corpus.from_strings(["It sat on the mat ."])
        )


@pytest.mark.parametrize("name", FORMS)
def test_a_network_whose_mask_is_off_by_one_token(name: str) -> None:
    """Its rows are those of the token before: the last of the frame has a row, and the end of the turn has none."""

    class Late(NeuralModel):
        def score(self, segments: Any, **options: Any) -> Any:
            for batch in super().score(segments, **options):
                yield replace(batch, token_ids=np.roll(batch.token_ids, 1), kind=np.roll(batch.kind, 1))

    tokenizer = tokenizer_of(FORMS[name].special(), 1)
    tokenizer.chat_template = FORMS[name].template()
    model = Late.wrap(network(len(tokenizer)), tokenizer, ScoringOptions()).framed()
    found = audit(model, Corpus.from_conversations(CONVERSATIONS), levels=["coverage"])
    assert "sentence ends" in {failure.name for failure in found.failures}
