"""What is typed is scored as `score_text` scores it, with the most probable tokens."""

from __future__ import annotations

import base64
import json
import math

import numpy as np
import pytest
from tests.explore.conftest import Served, models

import lmgauge
from lmgauge.distributions.reduce import reduce
from lmgauge.distributions.reductions import Entropy, Rank
from lmgauge.explore import typed
from lmgauge.explore.typed import LONGEST_TEXT, Typed
from lmgauge.text.documents import Corpus

TEXT = "the cat sees it\n\nfür 東京 then unknown"


def unpacked(column: str) -> list[int]:
    size, _, data = column.partition(":")
    return np.frombuffer(base64.b64decode(data), f"<u{size}").tolist()


@pytest.fixture(scope="module")
def model() -> Typed:
    return Typed(models()["a"], "a")


def test_it_is_what_score_text_says(one: Served) -> None:
    response = one.client.post("/api/score", json={"text": TEXT + "\n"})
    assert response.status_code == 200
    result = response.json()
    expected = models()["a"].score_text(TEXT.split("\n"))
    assert result["events"] == sum(len(line) for line in expected)
    assert result["bits"] == pytest.approx(sum(-line.log_probability for line in expected) / math.log(2), rel=1e-12)
    assert [passage["text"] for passage in result["passages"]] == TEXT.split("\n")
    for passage, line in zip(result["passages"], expected, strict=True):
        bits = [0.05 * steps for steps in unpacked(passage["runs"][0]["bits"])]
        assert bits == pytest.approx([-value / math.log(2) for value in line.logprobs], abs=0.026)
        assert unpacked(passage["runs"][0]["kinds"]) == [("token", "oov", "eos").index(kind) for kind in line.kinds]


def test_reserved_tokens_are_words(model: Typed) -> None:
    (passage,) = model.score("the <unk> </s>")["passages"]
    assert unpacked(passage["runs"][0]["kinds"]) == [0, 1, 1, 2]


def test_the_most_probable_tokens_are_those_of_the_distribution(model: Typed) -> None:
    own = models()["a"]
    tops = [top for passage in model.score(TEXT)["passages"] for top in passage["runs"][0]["tops"]]
    ids = {token: i for i, token in enumerate(own.vocabulary.tokens)}
    contexts = [[1], [1, ids["the"]], [1, ids["the"], ids["cat"]]]
    for top, context in zip(tops, contexts, strict=False):
        distribution = own.log_distribution(np.array(context, np.uint32))
        best = sorted(range(len(distribution)), key=lambda i: -distribution[i])[:5]
        assert [p for _, p in top] == pytest.approx([math.exp(distribution[i]) for i in best])
        assert len({token for token, _ in top}) == 5
    assert model.top(TEXT, 2)["top"] == tops[2]


def test_entropy_and_rank_are_those_of_the_distribution(model: Typed) -> None:
    own = models()["a"]
    columns = [passage["runs"][0]["columns"] for passage in model.score(TEXT)["passages"]]
    expected = next(iter(reduce(own, Corpus.from_strings(TEXT.split("\n")), [Entropy(), Rank()]))).extra
    assert [rank for line in columns for rank in unpacked(line["rank"])] == expected["rank"].tolist()
    entropies = [0.05 * steps for line in columns for steps in unpacked(line["entropy"])]
    assert entropies == pytest.approx((expected["entropy"] / math.log(2)).tolist(), abs=0.026)


def test_where_time_runs_out_the_last_events_come_first(model: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(typed.time, "monotonic", lambda: next(ticks))
    monkeypatch.setattr(typed, "TOP_SECONDS", 2)
    monkeypatch.setattr(typed, "_FIRST_LOOK", 2)
    passages = model.score(TEXT)["passages"]  # 2 events, 8 more, and then there is no time for the first
    tops = [top for passage in passages for top in passage["runs"][0]["tops"]]
    assert [bool(top) for top in tops] == [False] + [True] * 10
    assert unpacked(passages[0]["runs"][0]["columns"]["rank"])[0] == 255  # none
    monkeypatch.setattr(typed, "TOP_SECONDS", -1)
    passages = model.score(TEXT)["passages"]
    assert not any(top for passage in passages for top in passage["runs"][0]["tops"])
    assert [passage["runs"][0]["columns"] for passage in passages] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"text": "x" * (LONGEST_TEXT + 1)}, "20,001 characters"),
        ({"text": 7}, "posted as"),
        ([], "posted as"),
        ({}, "posted as"),
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "a \ud800 b"}, "surrogate"),
    ],
)
def test_what_cannot_be_scored_is_said(one: Served, content: object, said: str) -> None:
    response = one.client.post("/api/score", content=json.dumps(content), headers={"content-type": "application/json"})
    assert response.status_code in (400, 409)
    assert said in response.json()["error"]


@pytest.mark.parametrize("event", [-1, 100, "x", None, True])
def test_events_that_are_not_there_are_said(one: Served, event: object) -> None:
    response = one.client.post("/api/top", json={"text": "the cat", "event": event})
    assert response.status_code == 400
    assert "event" in response.json()["error"]


def test_what_is_no_json_is_said(one: Served) -> None:
    response = one.client.post("/api/score", content=b"{" * 5000, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert "not JSON" in response.json()["error"]


def test_without_a_model_nothing_is_scored(two: Served) -> None:
    assert "-m MODEL" in two.client.post("/api/score", json={"text": "a"}).json()["error"]


def test_nothing_typed_is_no_error(model: Typed) -> None:
    assert model.score("")["events"] == 1  # an empty line: its end


def test_unseen_words_that_are_spelled_show_what_their_letters_cost() -> None:
    text = Corpus.from_strings(["the cat sees it", "a dog sees"] * 2)
    spelled = lmgauge.train("witten-bell", text, order=2, vocabulary="spelled")
    (passage,) = Typed(spelled, "s").score("the  quokka")["passages"]
    (run,) = passage["runs"]
    assert unpacked(run["kinds"]) == [0, 3, 2]
    scored = next(spelled.score(Corpus.from_strings(["the  quokka"])))
    for name in ("spelling", "separator"):
        bits = [0.05 * steps for steps in unpacked(run["columns"][name])]
        assert bits == pytest.approx((-scored.extra[name] / math.log(2)).tolist(), abs=0.026)
    assert len(run["tops"][1]) == 5
