"""What is typed is scored as `score_text` scores it, with the most probable tokens."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest
from tests.explore.conftest import Served, models

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.explore import passages
from lmgauge.explore.passages import LONGEST_TEXT, Playground
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.scores.distributions.reductions import Entropy, Rank
from lmgauge.text.documents import Corpus

TEXT = "the cat sees it\n\nfür 東京 then unknown"


def unpacked(column: str) -> list[int]:
    size, _, data = column.partition(":")
    return np.frombuffer(base64.b64decode(data), f"<u{size}").tolist()


def tops_of(run: dict[str, Any]) -> list[list[tuple[str, float]]]:
    """The most probable tokens of each event, with their probabilities."""
    tops = run["tops"]
    pairs = [
        (tops["words"][i], 2 ** (-bits / 1000)) for i, bits in zip(*map(unpacked, (tops["ids"], tops["bits"])), strict=True)
    ]
    return [pairs[begin : begin + tops["each"]] for begin in range(0, len(pairs), tops["each"])]


@pytest.fixture(scope="module")
def model() -> Playground:
    return Playground(models()["a"], "a")


def test_it_is_what_score_text_says(one: Served) -> None:
    response = one.client.post("/api/score", json={"text": TEXT + "\n"})
    assert response.status_code == 200
    result = response.json()
    expected = models()["a"].score_text(TEXT.split("\n"))
    assert result["events"] == sum(len(line) for line in expected)
    assert result["bits"] == pytest.approx(sum(-line.log_probability for line in expected) / math.log(2), rel=1e-12)
    assert [passage["text"] for passage in result["items"]] == TEXT.split("\n")
    for passage, line in zip(result["items"], expected, strict=True):
        bits = [0.05 * steps for steps in unpacked(passage["runs"][0]["bits"])]
        assert bits == pytest.approx([-value / math.log(2) for value in line.logprobs], abs=0.026)
        assert unpacked(passage["runs"][0]["kinds"]) == [("token", "oov", "eos").index(kind) for kind in line.kinds]


def test_reserved_tokens_are_words(model: Playground) -> None:
    (passage,) = model.score("the <unk> </s>")["items"]
    assert unpacked(passage["runs"][0]["kinds"]) == [0, 1, 1, 2]


def test_the_most_probable_tokens_are_those_of_the_distribution(model: Playground) -> None:
    own = models()["a"]
    tops = [top for item in model.score(TEXT)["items"] for top in tops_of(item["runs"][0])]
    ids = {token: i for i, token in enumerate(own.vocabulary.tokens)}
    contexts = [[1], [1, ids["the"]], [1, ids["the"], ids["cat"]]]
    for top, context in zip(tops, contexts, strict=False):
        distribution = own.log_distribution(np.array(context, np.uint32))
        best = sorted(range(len(distribution)), key=lambda i: -distribution[i])[:5]
        assert [p for _, p in top] == pytest.approx([math.exp(distribution[i]) for i in best], rel=1e-3)
        assert len({token for token, _ in top}) == 5


def test_entropy_and_rank_are_those_of_the_distribution(model: Playground) -> None:
    own = models()["a"]
    columns = [passage["runs"][0]["columns"] for passage in model.score(TEXT)["items"]]
    expected = next(iter(reduce(own, Corpus.from_strings(TEXT.split("\n")), [Entropy(), Rank()]))).extra
    assert [rank for line in columns for rank in unpacked(line["rank"])] == expected["rank"].tolist()
    entropies = [0.05 * steps for line in columns for steps in unpacked(line["entropy"])]
    assert entropies == pytest.approx((expected["entropy"] / math.log(2)).tolist(), abs=0.026)


def test_a_model_without_distributions_scores_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise UsageError("a server tells only of the tokens of the text")

    monkeypatch.setattr(passages, "reduce", refuse)
    model = Playground(models()["a"], "a")
    for _ in range(2):
        (run,) = model.score("the cat")["items"][0]["runs"]
        assert unpacked(run["kinds"]) == [0, 0, 2]
        assert "entropy" not in run["columns"]
        assert "tops" not in run


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"text": "x" * (LONGEST_TEXT + 1)}, "length <= 4000 - at `$.text`"),
        ({"text": 7}, "Expected `str`, got `int` - at `$.text`"),
        ([], "Expected `object`, got `array`"),
        ({"text": "a", "begin": True}, "Expected `int`"),
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "a \ud800 b"}, "surrogate"),
    ],
)
def test_what_cannot_be_scored_is_said(one: Served, content: object, said: str) -> None:
    response = one.client.post("/api/score", content=json.dumps(content), headers={"content-type": "application/json"})
    assert response.status_code in (400, 409)
    assert said in response.json()["error"]


def test_what_is_no_json_is_said(one: Served) -> None:
    response = one.client.post("/api/score", content=b"{" * 5000, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert "the request: is not one as lmgauge writes it" in response.json()["error"]


def test_without_a_model_nothing_is_scored(two: Served) -> None:
    assert "-m MODEL" in two.client.post("/api/score", json={"text": "a"}).json()["error"]


def test_nothing_typed_is_no_error(model: Playground) -> None:
    assert model.score("")["events"] == 1  # an empty line: its end


def test_unseen_words_that_are_spelled_show_what_their_letters_cost() -> None:
    text = Corpus.from_strings(["the cat sees it", "a dog sees"] * 2)
    spelled = lmgauge.train("witten-bell", text, order=2, vocabulary="spelled")
    (passage,) = Playground(spelled, "s").score("the  quokka")["items"]
    (run,) = passage["runs"]
    assert unpacked(run["kinds"]) == [0, 3, 2]
    scored = next(spelled.score(Corpus.from_strings(["the  quokka"])))
    for name in ("spelling", "separator"):
        bits = [0.05 * steps for steps in unpacked(run["columns"][name])]
        assert bits == pytest.approx((-scored.extra[name] / math.log(2)).tolist(), abs=0.026)
    assert len(tops_of(run)[1]) == 5
