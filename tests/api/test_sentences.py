"""Hand it a sentence: strings, lists, generators and columns are scored; what is not text is told the right call."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.base.json_text import to_json
from lmgauge.results import ScoredText, ScoredTexts

TEXTS = ["the cat sat", "the dog sat", "a bird sat"]


@pytest.fixture(scope="module")
def model() -> lmgauge.NgramModel:
    return lmgauge.train(
        "modified-kneser-ney", Corpus.from_strings(["the cat sat", "the dog ran", "a cat ran"] * 3), order=2
    )


@pytest.fixture(scope="module")
def closed() -> lmgauge.NgramModel:
    """A model that rules words out."""
    return lmgauge.train("mle", Corpus.from_strings(["a b", "a"]), order=1, vocabulary="closed")


def test_perplexity_is_that_of_evaluate(model: lmgauge.NgramModel, tmp_path: Path) -> None:
    expected = lmgauge.evaluate(model, Corpus.from_strings(TEXTS)).perplexity
    assert lmgauge.perplexity(model, TEXTS) == expected
    assert lmgauge.evaluate(model, texts=TEXTS).perplexity == expected
    assert lmgauge.perplexity(model, (text for text in TEXTS)) == expected
    assert lmgauge.perplexity(model, np.array(TEXTS)) == expected
    assert lmgauge.perplexity(model, TEXTS[0]) == lmgauge.perplexity(model, TEXTS[:1])
    model.save(tmp_path / "model")
    assert lmgauge.perplexity(tmp_path / "model", TEXTS) == expected
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    assert lmgauge.evaluate(model, tmp_path / "lines.txt").perplexity == expected


def test_a_column_of_a_data_frame(model: lmgauge.NgramModel) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "source": list("aba")})
    assert lmgauge.perplexity(model, frame["text"]) == lmgauge.perplexity(model, TEXTS)
    scored = lmgauge.score_text(model, frame["text"])
    table = scored.to_pandas()
    assert list(table["text"]) == TEXTS
    assert table["perplexity"].tolist() == [item.perplexity for item in scored]
    tokens = scored.tokens_to_pandas()
    assert tokens["segment"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert tokens["logprob"].sum() == pytest.approx(table["log_probability"].sum())
    assert scored[0].to_pandas()["token"].tolist() == ["the", "cat", "sat", "</s>"]
    with pytest.raises(lmgauge.base.errors.UsageError, match=r'give the column that holds the text, as in frame\["text"\]'):
        lmgauge.perplexity(model, frame)
    with pytest.raises(lmgauge.base.errors.UsageError, match="text 2 is float, not a string"):
        lmgauge.perplexity(model, pandas.Series(["the cat", math.nan]))


def test_one_string_token_by_token(model: lmgauge.NgramModel) -> None:
    scored = model.score_text("the cat sat")
    assert isinstance(scored, ScoredText)
    assert scored == lmgauge.score_text(model, "the cat sat")
    assert scored.tokens == ("the", "cat", "sat", "</s>")
    assert scored.kinds == ("token", "token", "token", "eos")
    assert scored.spans == ((0, 3), (3, 7), (7, 11), (11, 11))
    context = [model.vocabulary.tokens.index(token) for token in ("<s>", "the", "cat", "sat", "</s>")]
    expected = [model.log_distribution(context[:i])[context[i]] for i in range(1, 5)]
    assert scored.logprobs == pytest.approx(expected, rel=1e-15)
    assert scored.log_probability == pytest.approx(sum(expected), rel=1e-15)
    assert scored.perplexity == lmgauge.perplexity(model, "the cat sat")
    assert scored.cross_entropy == pytest.approx(math.log(scored.perplexity))
    assert json.loads(to_json(scored.to_dict()))["tokens"][1]["token"] == "cat"
    total = f"4 events, {sum(expected):.4f} nats, perplexity {scored.perplexity:.4f}"
    assert repr(scored) == f"<ScoredText: {total}>"
    assert str(scored).splitlines()[-1] == total


def test_several_strings_are_a_sequence(model: lmgauge.NgramModel) -> None:
    scored = model.score_text(iter(TEXTS))
    assert isinstance(scored, ScoredTexts)
    assert [item.text for item in scored] == TEXTS
    assert [item.perplexity for item in scored] == [lmgauge.perplexity(model, text) for text in TEXTS]
    events = sum(len(item) for item in scored)
    total = math.fsum(item.log_probability for item in scored)
    assert lmgauge.perplexity(model, TEXTS) == pytest.approx(math.exp(-total / events), rel=1e-12)
    assert [line.split()[-1] for line in str(scored).splitlines()[2:]] == [text.split()[-1] for text in TEXTS]
    assert len(scored.to_dict()) == 3
    assert len(model.score_text([])) == 0


def test_unknown_words_empty_strings_and_newlines(model: lmgauge.NgramModel) -> None:
    scored = model.score_text("a bird sat")
    assert scored.kinds[1] == "oov"
    assert scored.summary()["oov"] == 1
    assert "<unk> (bird) " in str(scored)
    assert [row.split()[0] for row in str(scored).splitlines() if "unknown word" in row] == ["<unk>"]
    empty = model.score_text("")
    assert empty.tokens == ("</s>",)
    assert empty.perplexity == lmgauge.perplexity(model, "")
    lines = model.score_text("the cat\nsat\n")
    assert lines.tokens == ("the", "cat", "sat", "</s>")
    assert lines.spans[-1] == (11, 12)  # white space at the end belongs to the end
    assert "\n" not in str(model.score_text(["the cat\nsat"])).splitlines()[1]
    assert model.score_text("\u00fc \u65e5\u672c").spans[-1] == (9, 9)


def test_probability_zero_is_infinite_and_no_crash(closed: lmgauge.NgramModel) -> None:
    scored = closed.score_text("a zebra")
    assert scored.logprobs[1] == -math.inf
    assert scored.perplexity == math.inf == lmgauge.perplexity(closed, "a zebra")
    assert scored.summary()["zero_probability_events"] == 1
    assert "-∞ nats, perplexity ∞" in str(scored)
    assert json.loads(to_json(scored.to_dict()))["log_probability"] == "-inf"


def test_a_model_without_ends_has_no_events_in_an_empty_string() -> None:
    class NoEnds(lmgauge.CustomModel):
        def score(self, segments: Any, *, spans: bool = True, threads: int | None = None) -> Iterator[Any]:
            for batch in super().score(segments, spans=spans, threads=threads):
                yield batch.of_segments(0, 0)

        def log_distribution(self, context_ids: Any) -> Any:
            return np.log(np.full(4, 0.25))

    scored = lmgauge.score_text(NoEnds(["a"]), "")
    assert (scored.tokens, scored.perplexity, scored.cross_entropy) == ((), None, None)
    assert str(scored).endswith("0 events, 0.0000 nats")


def test_every_kind_of_model_has_the_method(model: lmgauge.NgramModel) -> None:
    other = lmgauge.train("witten-bell", Corpus.from_strings(["the cat sat", "the dog ran", "a cat ran"] * 3), order=2)
    mixed = lmgauge.mix([model, other], weights=[0.5, 0.5])
    assert mixed.score_text("the cat").perplexity == pytest.approx(lmgauge.perplexity(mixed, "the cat"), rel=1e-14)

    class Uniform(lmgauge.CustomModel):
        def log_distribution(self, context_ids: Any) -> Any:
            return np.log(np.array([0.1, 0.1, 0.2, 0.3, 0.3]))

    assert Uniform(["x", "y"]).score_text("x y").logprobs == pytest.approx(np.log([0.3, 0.3, 0.2]))


def test_a_network_in_memory_is_a_model() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.models.network.conftest import TOKENIZERS
    from tests.models.network.conftest import network as make_network

    tokenizer = TOKENIZERS["byte-level"]()
    network = make_network("gpt2", len(tokenizer))
    with pytest.raises(lmgauge.base.errors.UsageError, match=r"lmgauge.models.NeuralModel.wrap\(network, tokenizer\)"):
        lmgauge.perplexity(network, "the cat")
    model = lmgauge.models.NeuralModel.wrap(network, tokenizer)
    scored = model.score_text("the cat sat")
    assert scored.perplexity == pytest.approx(lmgauge.perplexity(model, ["the cat sat"]), rel=1e-6)
    assert scored.spans[-1][1] == 11


MODEL = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a sentence alone": (
        lambda: lmgauge.evaluate("the cat sat"),
        'neither text nor texts is given: write lmgauge.evaluate(model, "test.txt"), or lmgauge.evaluate(model, texts=',
    ),
    "a sentence as a path": (
        lambda: lmgauge.evaluate(MODEL, "the cat sat"),
        "to pass strings: lmgauge.Corpus.from_strings([...])",
    ),
    "sentences as paths": (
        lambda: lmgauge.evaluate(MODEL, ["the cat sat", "the dog"]),
        "to pass strings: lmgauge.Corpus.from_strings([...])",
    ),
    "a very long sentence as a path": (
        lambda: lmgauge.evaluate(MODEL, "the cat sat " * 1000),
        "to pass strings: lmgauge.Corpus.from_strings([...])",
    ),
    "files and strings": (lambda: lmgauge.evaluate(MODEL, "a.txt", texts=["a"]), "both text (files) and texts (strings)"),
    "a number": (lambda: lmgauge.perplexity(MODEL, 3), 'give a string or several, as in ["the cat sat"'),  # type: ignore[arg-type]
    "bytes": (lambda: lmgauge.perplexity(MODEL, b"a b"), "texts are strings, not bytes"),  # type: ignore[arg-type]
    "None": (lambda: lmgauge.perplexity(MODEL, None), "texts"),  # type: ignore[arg-type]
    "a list of numbers": (lambda: lmgauge.perplexity(MODEL, [1, 2]), "text 1 is int, not a string"),  # type: ignore[list-item]
    "nothing": (lambda: lmgauge.perplexity(MODEL, []), "nothing to evaluate"),
    "strings before the model": (lambda: lmgauge.perplexity(["a b"], MODEL), "texts are strings"),  # type: ignore[arg-type]
    "no model": (lambda: lmgauge.perplexity(7, "a b"), "a model is an object"),  # type: ignore[arg-type]
    "a sentence for a model": (lambda: lmgauge.perplexity("the cat sat", "a b"), "no such model"),
    "documents of strings": (
        lambda: lmgauge.evaluate(MODEL, texts=["a"], document="file"),
        "Corpus.from_strings(texts, documents=[...])",
    ),
    "options of a loaded model": (
        lambda: lmgauge.evaluate(MODEL, texts=["a"], scoring=lmgauge.settings.ScoringOptions(context=3)),
        "scoring is for models named by their path",
    ),
    "no models": (lambda: lmgauge.evaluate([], texts=["a"]), "there is no model in the list"),
    "a NUL": (lambda: lmgauge.score_text(MODEL, "a\0b"), "NUL"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_the_right_call(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(lmgauge.LmgaugeError) as error:
        call()
    assert words in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_string_for_score_is_told_score_text(model: lmgauge.NgramModel) -> None:
    with pytest.raises(UsageError, match="score_text takes a string"):
        model.score("the cat sat")  # type: ignore[arg-type]  # as with KenLM


def test_options_that_no_model_takes_are_refused(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "model")
    with pytest.raises(lmgauge.base.errors.UsageError, match="--context is for neural models"):
        lmgauge.evaluate(tmp_path / "model", texts=["a"], scoring=lmgauge.settings.ScoringOptions(context=3))


def test_models_may_be_named(model: lmgauge.NgramModel) -> None:
    results = lmgauge.evaluate({"mine": model, "same": model}, texts=TEXTS)
    assert [result.model for result in results] == ["mine", "same"]
