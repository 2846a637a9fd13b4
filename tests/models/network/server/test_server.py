"""What is found out of a server when it is met: its model, how to ask it, and whether its scores are in their places."""

from __future__ import annotations

from typing import Any

import pytest
from tests.models.network.server.toy_server import SPELLINGS, ToyServer, toy_scores, toy_tokens

from lmgauge.base.errors import UsageError
from lmgauge.models.network.server.http import Endpoint, ServerError
from lmgauge.models.network.server.server import PROBE, Server, locate
from lmgauge.scores.imports.replies import PromptTokens


def connect(toy: ToyServer, name: str = "", before: str = "") -> Server:
    endpoint = Endpoint(toy.url + name)
    try:
        return Server.connect(endpoint, before)
    finally:
        endpoint.close()


def located(toy: ToyServer, text: str, before: str = "") -> Any:
    server = connect(toy, before=before)
    try:
        return server.locate(text)
    finally:
        server.endpoint.close()


def ends_of(text: str) -> list[int]:
    tokens = toy_tokens(text)
    return [len(b"".join(tokens[: i + 1])) for i in range(len(tokens))]


@pytest.mark.parametrize("spelling", sorted(SPELLINGS))
@pytest.mark.parametrize("bos", ["shown", "hidden", "none"])
@pytest.mark.parametrize("form", ["legacy", "content"])
def test_every_dialect_gives_the_same_tokens_and_scores(spelling: str, bos: str, form: str) -> None:
    text = "Ein naïves 東京, 1984 😀!\n"
    with ToyServer(spelling=spelling, bos=bos, form=form).running() as toy:
        found = located(toy, text)
    expected = toy_scores(text, b"" if bos == "none" else b"<s>")
    assert found.exact
    assert found.ends == ends_of(text)
    assert found.logprob == [*([expected[0]] if bos == "shown" else [None]), *expected[1:]]


@pytest.mark.parametrize("adds", [None, 0, 1, 3])
@pytest.mark.parametrize("tells_usage", [True, False])
@pytest.mark.parametrize("offsets", ["characters", "bytes", None])
def test_what_the_server_adds_is_left_out(adds: int | None, tells_usage: bool, offsets: str | None) -> None:
    text = "The café is open"
    with ToyServer(adds=adds, tells_usage=tells_usage, offsets=offsets).running() as toy:
        assert located(toy, text).logprob == toy_scores(text)


def test_prompt_logprobs_where_echo_is_refused() -> None:
    with ToyServer(form="prompt_logprobs", spelling="dropped").running() as toy:
        server = connect(toy)
        found = server.locate("The café is open")
        server.endpoint.close()
        assert server.asking == "prompt_logprobs"
        assert toy.requests[-1][2] == {
            "model": "toy", "prompt": "The café is open", "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0
        }  # fmt: skip
    assert found.exact
    # The first token has no name there: it may be a BOS token, or the space of the first word.
    assert found.logprob == [None, *toy_scores("The café is open")]


@pytest.mark.parametrize(
    ("toy", "words"),
    [
        (ToyServer(form="none"), "without log-probabilities; start the server so that it gives them .*--logits_all true"),
        (ToyServer(form="unechoed"), "without the tokens of the prompt; scoring needs a server that answers `echo`"),
        (ToyServer(form="none", failures=[None, (500, '{"error": {"message": "logprobs is not supported"}}')]),
         "HTTP 500: logprobs is not supported. Scoring needs a server that answers `echo`"),
        (ToyServer(failures=[None, (200, '{"choices": []}')], form="none"), "answers in a form that is not known"),
    ],
)  # fmt: skip
def test_servers_that_do_not_score_prompts(toy: ToyServer, words: str) -> None:
    with toy.running(), pytest.raises(ServerError, match=words):
        connect(toy)


def test_refused_keys_are_not_asked_about_twice() -> None:
    with ToyServer(failures=[None, 401]).running() as toy:
        with pytest.raises(ServerError, match="wants a key"):
            connect(toy)
        assert len(toy.requests) == 2


@pytest.mark.parametrize("bos", ["none", "hidden", "shown"])
@pytest.mark.parametrize("adds", [None, 0, 3])
def test_scores_out_of_place_are_refused(bos: str, adds: int | None) -> None:
    words = r"out of place.*llama-cpp-python.*FILE\.gguf"
    with ToyServer(misplaced=True, bos=bos, adds=adds).running() as toy, pytest.raises(ServerError, match=words):
        connect(toy)


def test_models() -> None:
    with ToyServer(models=["a/big.gguf", "small"]).running() as toy:
        with pytest.raises(UsageError, match=r"serves 2 models \(a/big.gguf, small\); name one: http.*/v1#NAME"):
            connect(toy)
        assert connect(toy, "#small").model == "small"
        assert connect(toy, "#big.gguf").model == "a/big.gguf"
        with pytest.raises(ServerError, match=r"serves no model 'huge'; there are: a/big.gguf, small"):
            connect(toy, "#huge")
        toy.models = []
        with pytest.raises(UsageError, match="serves 0 models"):
            connect(toy)
        assert connect(toy, "#any").model == "any"
        toy.models = ["\ud800"]
        with pytest.raises(ServerError, match="the name of a model in /models has half a surrogate pair"):
            connect(toy)
        toy.models = None
        with pytest.raises(ServerError, match=r"has no list of models .*is /v1 missing"):
            connect(toy)
        assert connect(toy, "#any").model == "any"
        toy.failures = [500]
        with pytest.raises(ServerError, match="HTTP 500"):
            connect(toy, "#any")


def test_of_very_many_models_a_few_are_named() -> None:
    with ToyServer(models=[f"model{i:06}" * 20 for i in range(1000)]).running() as toy:
        with pytest.raises(UsageError, match=r"serves 1,000 models \(.*\.\.\. and 990 more\)") as told:
            connect(toy)
        assert len(str(told.value)) < 1200
        with pytest.raises(ServerError, match=r"serves no model 'x'; there are: .* and 990 more"):
            connect(toy, "#x")


def test_identity_is_of_the_model_and_not_of_the_day() -> None:
    with ToyServer().running() as toy:
        first, second = (connect(toy) for _ in range(2))
        assert first.identity() == second.identity() == ["toy", {"id": "toy", "max_model_len": 99}, ends_of(PROBE)]
        for server in (first, second):
            server.endpoint.close()


@pytest.mark.parametrize("bos", ["shown", "hidden", "none"])
def test_a_text_set_before(bos: str) -> None:
    text = "日 is the sun\n"
    with ToyServer(bos=bos, spelling="dropped").running() as toy:
        found = located(toy, text, "\n")
    assert found.logprob == toy_scores(text, b"\n" if bos == "none" else b"<s>\n")
    assert found.ends == ends_of(text)


def test_a_special_token_set_before() -> None:
    with ToyServer(bos="none").running() as toy:
        assert located(toy, "The sun", "<s>").logprob == toy_scores("The sun")
    with ToyServer(bos="hidden").running() as toy:  # nothing is shown of it, and the first token stays without a score
        assert located(toy, "The sun", "<s>").logprob == [None, *toy_scores("The sun")[1:]]


def test_a_text_set_before_that_does_not_stand_alone() -> None:
    with ToyServer().running() as toy, pytest.raises(ServerError, match="joins the text with what --bos sets before it"):
        connect(toy, before="A")


def reply(pieces: list[str], logprob: list[float | None], generated: int | None = 1) -> PromptTokens:
    return PromptTokens(list(pieces), logprob, [None] * len(pieces), generated, True)


def test_tokens_that_do_not_give_the_text_back() -> None:
    found = locate(reply(["<s>", "the", "cat", "."], [None, -1.0, -2.0, -3.0]), b"The  Cat")
    assert not found.exact
    assert found.pieces == ["the", "cat"]
    assert found.logprob == [-1.0, -2.0]
    assert found.ends == [0, 8]
    # without a BOS token
    found = locate(reply(["The", "dog", "."], [None, -2.0, -3.0]), b"The cat")
    assert (found.pieces, found.ends, found.exact) == (["The", "dog"], [3, 7], False)
    # with a text before it
    found = locate(reply(["\n", "the", "dog", "."], [None, -1.0, -2.0, -3.0]), b"The cat", b"\n")
    assert (found.pieces, found.logprob, found.exact) == (["the", "dog"], [-1.0, -2.0], False)
    with pytest.raises(ServerError, match="--bos"):
        locate(reply(["?", "the", "."], [None, -1.0, -2.0]), b"The cat", b"\n")


def test_added_tokens_that_show_nothing() -> None:
    assert locate(reply(["The", " cat", ""], [None, -1.0, -2.0]), b"The cat").ends == [3, 7]
    assert locate(reply(["The", " cat", ""], [None, -1.0, -2.0], 0), b"The cat").ends == [3, 7, 7]
    assert locate(reply(["caf", "", "", ""], [None, -1.0, -2.0, -3.0]), "café".encode()).ends == [3, 4, 5]


def test_scores_that_are_missing() -> None:
    with pytest.raises(ServerError, match="no log-probability for token 2, ' cat'"):
        locate(reply(["The", " cat", "s", "!"], [None, None, -2.0, -3.0]), b"The cats")
