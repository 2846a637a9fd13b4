"""Turns of conversations on servers: the toy model's own numbers, whatever a server adds, hides and tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.network.server.toy_server import SPELLINGS, ToyServer, toy_logprob, toy_scores, toy_tokens

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server.http import KEY_VARIABLE, ServerError
from lmgauge.models.network.server.model import CompletionsModel, load_completions
from lmgauge.scores import EOS_KIND, FRAMING, TOKEN, ScoreBatch
from lmgauge.text.documents import Corpus

pytest.importorskip("jinja2")

CHAT = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN = CHAT.removeprefix("{{ bos_token }}")
TOLD = {"chat_template": CHAT, "bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True}
CONVERSATIONS = [
    [
        {"role": "user", "content": "The café?"},
        {"role": "assistant", "content": "It is open 🙂"},
        {"role": "user", "content": "東京"},
        {"role": "assistant", "content": "  two  spaces "},
    ],
    [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
]
CORPUS = Corpus.from_conversations(CONVERSATIONS)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


def expected(bos: bytes = b"<s>", *, end_of_turn: bool = True) -> list[list[float]]:
    """Log-probabilities of each turn's tokens and of the token that ends it."""
    turns = []
    for messages in CONVERSATIONS:
        before = bos
        for message in messages:
            before += f"<|im_start|>{message['role']}\n".encode()
            own = [*toy_tokens(message["content"].strip()), b"<|im_end|>"]
            scores = []
            for token in own:
                scores.append(toy_logprob(before, token))
                before += token
            before += b"\n"
            if message["role"] == "assistant":
                turns.append(scores if end_of_turn else scores[:-1])
    return turns


def scored(toy: ToyServer, **options: Any) -> tuple[CompletionsModel, ScoreBatch, list[list[float]]]:
    model = load_completions(toy.url, ScoringOptions(**options)).framed()
    [batch] = model.score(CORPUS)
    return model, batch, [part.tolist() for part in np.split(batch.logprob, np.cumsum(batch.segment_events)[:-1])]


def prompts(toy: ToyServer) -> list[str]:
    return [content["prompt"] for _, _, content in toy.requests if "<|im_start|>" in content.get("prompt", "")]


@pytest.mark.parametrize("switch", ["heard", "ignored", "refused"])
@pytest.mark.parametrize(
    ("specials", "form"), [("read", "legacy"), ("read", "prompt_logprobs"), ("hidden", "legacy"), ("hidden", "content")]
)
@pytest.mark.parametrize("spelling", ["dropped", "pieces", "escaped"])
def test_the_bos_token_stands_once_whatever_the_server_does(switch: str, specials: str, form: str, spelling: str) -> None:
    toy = ToyServer(switch=switch, specials=specials, form=form, spelling=spelling, tells={"/tokenizer_info": TOLD})
    with toy.running():
        model, batch, turns = scored(toy)
    assert turns == expected()
    assert model.notes == []
    assert {prompt.startswith("<s>") for prompt in prompts(toy)} == {switch == "heard" and form != "prompt_logprobs"}
    assert batch.lossy.tolist() == [False, True, False]  # the template strips the second
    kinds = np.split(batch.kind, np.cumsum(batch.segment_events)[:-1])
    assert all(kind.tolist() == [TOKEN] * (len(kind) - 1) + [EOS_KIND] for kind in kinds)
    assert batch.ends[np.cumsum(batch.segment_events) - 1].tolist() == [15, 14, 0]
    assert batch.strings.tokens[batch.token_ids[batch.segment_events[0] - 2]] != "<|im_end|>"


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
def test_spans_are_bytes_of_the_content(spelling: str) -> None:
    with ToyServer(specials="read", spelling=spelling, tells={"/props": TOLD}).running() as toy:
        _, batch, turns = scored(toy)
    assert turns == expected()
    words = toy_tokens("It is open 🙂")
    assert batch.ends[: batch.segment_events[0]].tolist() == [*np.cumsum([len(word) for word in words]).tolist(), 15]


def test_the_chat_endpoint_is_never_asked() -> None:
    with ToyServer(specials="read", tells={"/tokenizer_info": TOLD}).running() as toy:
        scored(toy)
    asked = {"GET /v1/models", "POST /v1/completions", "GET /tokenizer_info", "GET /props"}
    assert {path for path, _, _ in toy.requests} == asked
    assert len(prompts(toy)) == 3


def test_a_bos_token_that_stands_twice_is_named(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text(CHAT.replace("{{ bos_token }}", "<s>"))
    with ToyServer(switch="ignored", specials="hidden").running() as toy:
        model, _, turns = scored(toy, template=file)
        assert turns == expected(b"<s><s>")
        [note] = model.notes
        assert "BOS token stands twice before 3 segments" in note
        assert "--template-args bos_token=" in note
        model, _, turns = scored(toy, template=file, template_args=["bos_token=<s>"])
        assert turns == expected()
        assert model.notes == []
    with ToyServer(switch="ignored", specials="read").running() as toy:  # its name is seen where it is shown
        model, _, turns = scored(toy, template=file)
        assert turns == expected()
        assert model.notes == []


def test_a_bos_token_that_the_template_has_not_is_named() -> None:
    told = TOLD | {"chat_template": PLAIN}
    with ToyServer(switch="ignored", specials="read", tells={"/tokenizer_info": told}).running() as toy:
        model, _, turns = scored(toy)
        assert turns == expected()
        [note] = model.notes
        assert "sets a BOS token before 3 segments, which the chat template does not" in note
    with ToyServer(switch="heard", specials="read", tells={"/tokenizer_info": told}).running() as toy:
        model, _, turns = scored(toy)
        assert turns == expected(b"")
        assert model.notes == []


def test_special_tokens_that_nobody_tells_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text(CHAT)
    with ToyServer(specials="read").running() as toy:
        with pytest.raises(UsageError, match=r"does not tell the bos_token of .*--template-args bos_token="):
            scored(toy, template=file)
        assert scored(toy, template=file, template_args={"bos_token": "<s>"})[2] == expected()


def test_ends_of_turns_and_framing() -> None:
    with ToyServer(specials="read", tells={"/tokenizer_info": TOLD}).running() as toy:
        model, _, turns = scored(toy, end_of_turn=False)
        assert turns == expected(end_of_turn=False)
        assert str(model.context_policy).startswith("conversation,end=none")
        _, batch, turns = scored(toy, framing=True)
    assert [turn[-len(own) :] for turn, own in zip(turns, expected(), strict=True)] == expected()
    assert np.count_nonzero(batch.kind == FRAMING) == len(batch) - sum(map(len, expected()))


def test_without_a_template_contents_alone_are_text() -> None:
    with ToyServer(specials="read").running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        assert model.framed() is model
        [batch] = model.score(CORPUS)
        [note] = model.notes
    assert batch.logprob.tolist() == [*toy_scores("It is open 🙂"), *toy_scores("  two  spaces ")]
    assert "tells no chat template, and 3 segments of conversations are scored as text" in note


def test_options_of_text_are_refused_and_policies_told_apart() -> None:
    with ToyServer(specials="read", tells={"/tokenizer_info": TOLD}).running() as toy:
        for name, value in (("bos", "<s>"), ("end", "none")):
            model = load_completions(toy.url, ScoringOptions(**{name: value}))
            with pytest.raises(UsageError, match=f"{name}: a turn is shown after what its template makes"):
                model.framed()
        model = load_completions(toy.url, ScoringOptions())
        assert model.framed().raw is model
        assert len({model.fingerprint, model.framed().fingerprint}) == 2


def test_errors_say_which_segment() -> None:
    toy = ToyServer(specials="read", tells={"/tokenizer_info": TOLD}, limit=150)
    with toy.running(), pytest.raises(ServerError, match=r"<conversations>, line 1: .*maximum context length is 150 bytes"):
        scored(toy)


def test_evaluated_like_any_model() -> None:
    with ToyServer(specials="hidden", switch="ignored", tells={"/tokenizer_info": TOLD}).running() as toy:
        [framed, raw] = lmgauge.evaluate(toy.url, CORPUS, also_raw=True)
    nats = -sum(map(sum, expected()))
    assert framed.to_dict()["perplexity"] == pytest.approx(np.exp(nats / sum(map(len, expected()))))
    assert raw.model == f"{framed.model} (raw)"
