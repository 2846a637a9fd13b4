"""Text drawn from models: by seed the same, by temperature and top-k as asked, in the proportions of the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import UsageError
from lmgauge.models import sampling
from lmgauge.models.combined.spelling.incremental_decoding import EventWriter
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.combined.spelling.speller import Spelling
from lmgauge.models.sampling import sample
from lmgauge.text.vocabulary import BOS, EOS, UNK


@pytest.fixture(scope="module")
def model(data: Path) -> NgramModel:
    return lmgauge.train("modified-kneser-ney", data / "pud.en.txt", order=3)


@pytest.fixture(scope="module")
def small() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(["a b", "a c", "a b c", "b", "b a"]), order=2)


def test_same_seed_same_text(model: NgramModel, tmp_path: Path) -> None:
    first = list(lmgauge.sample(model, 5, seed=7))
    assert first == list(lmgauge.sample(model, 5, seed=7))
    assert first != list(lmgauge.sample(model, 5, seed=8))
    assert first[:2] == list(lmgauge.sample(model, 2, seed=7))
    model.save(tmp_path / "model")
    assert first == list(lmgauge.sample(tmp_path / "model", 5, seed=7))


def test_tokens_come_in_the_model_s_proportions(small: NgramModel) -> None:
    count = 4000
    drawn = Counter(text.split(" ")[0] for text in sample(small, count, seed=3, allow_unk=True, max_tokens=1))
    p = np.exp(small.log_distribution([1]))
    for token_id, token in enumerate(small.vocabulary.tokens):
        if token_id == 1:
            continue
        expected = p[token_id]
        name = "" if token_id == EOS else token
        assert abs(drawn[name] / count - expected) < 4 * (expected * (1 - expected) / count) ** 0.5 + 1e-9


def test_unknown_words_are_not_drawn_unless_allowed(small: NgramModel) -> None:
    assert not [text for text in sample(small, 300, seed=1) if "<unk>" in text]
    assert [text for text in sample(small, 300, seed=1, allow_unk=True) if "<unk>" in text]


def test_temperature_zero_takes_the_most_probable(small: NgramModel) -> None:
    texts = set(sample(small, 5, temperature=0, max_tokens=20))
    assert len(texts) == 1
    ids = [1]
    for word in [*texts.pop().split(" "), "</s>"][:20]:
        logprob = small.log_distribution(ids)
        logprob[UNK] = -np.inf
        assert small.vocabulary.token(int(np.argmax(logprob))) == word
        ids.append(small.vocabulary.id(word))


def test_low_temperatures_are_safer_than_high_ones(model: NgramModel) -> None:
    def mean(temperature: float) -> float:
        texts = [t for t in sample(model, 30, seed=5, temperature=temperature, max_tokens=10) if t]
        return lmgauge.evaluate(model, Corpus.from_strings(texts)).perplexity_without_eos or 0

    assert mean(0.3) < mean(1.0) < mean(3.0)
    assert list(sample(model, 3, temperature=1e-300)) == list(sample(model, 3, temperature=0))


@pytest.mark.parametrize("top_k", [1, 2, 3, 10_000])
def test_top_k_draws_from_the_k_most_probable(small: NgramModel, top_k: int) -> None:
    logprob = small.log_distribution([1])
    logprob[UNK] = -np.inf
    allowed = {small.vocabulary.token(int(i)) for i in np.argsort(-logprob, kind="stable")[:top_k]}
    drawn = {text or "</s>" for text in sample(small, 200, seed=2, top_k=top_k, max_tokens=1)}
    assert drawn <= allowed
    assert len(drawn) == min(top_k, 4)


def test_a_prompt_begins_each_segment_and_conditions_it(small: NgramModel) -> None:
    texts = list(sample(small, 400, seed=4, prompt="a", max_tokens=1))
    assert all(text == "a" or text.startswith("a ") for text in texts)
    p = np.exp(small.log_distribution([1, small.vocabulary.id("a")]))
    share = sum(text == "a b" for text in texts) / len(texts)
    assert share == pytest.approx(p[small.vocabulary.id("b")] / (1 - p[UNK]), abs=0.1)


@pytest.mark.parametrize("tokenizer", ["character", "byte"])
def test_characters_and_bytes_are_joined(data: Path, tokenizer: str) -> None:
    model = lmgauge.train("witten-bell", data / "pud.de.txt", order=4, tokenizer=tokenizer)
    texts = list(lmgauge.sample(model, 3, seed=1, max_tokens=60, prompt="Das "))
    assert all(text.startswith("Das ") for text in texts)
    assert any(" " in text[4:] for text in texts)
    assert not any("<0x" in text for text in texts)


def test_max_tokens_ends_a_segment(model: NgramModel) -> None:
    assert max(len(text.split(" ")) for text in sample(model, 20, max_tokens=3)) == 3
    assert list(sample(model, 0)) == []


@pytest.mark.parametrize(
    "options",
    [
        {"count": -1},
        {"max_tokens": 0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": 0},
        {"seed": -1},
    ],
    ids=repr,
)
def test_bad_options_are_refused(model: NgramModel, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        list(lmgauge.sample(model, **options))


def test_a_context_nothing_can_follow_is_an_error() -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a b"]), order=2)
    assert list(lmgauge.sample(model, 2)) == ["a b", "a b"]
    with pytest.raises(UsageError, match="no token has a probability above zero"):
        list(lmgauge.sample(model, 1, prompt="zzz"))


# -- spelled models -----------------------------------------------------------------------------------------------------


def spelled(lines: list[str], **options: Any) -> SpelledModel:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=2, vocabulary="spelled", **options)
    assert isinstance(model, SpelledModel)
    return model


@pytest.fixture(scope="module")
def tiny() -> SpelledModel:
    return spelled(["a b", "a  c", "ab c", "", "b\ta "])


@pytest.mark.parametrize("tokenizer", ["whitespace", "character", "treebank"])
def test_what_is_drawn_can_be_scored(tokenizer: str) -> None:
    model = spelled(["a b", "a  c", "ab c, a", "", "b\ta "], tokenizer=tokenizer)
    texts = list(lmgauge.sample(model, 40, seed=2))
    assert texts == list(lmgauge.sample(model, 40, seed=2))
    assert texts != list(lmgauge.sample(model, 40, seed=3))
    result = lmgauge.evaluate(model, Corpus.from_strings(texts))
    assert np.isfinite(result.perplexity)
    assert result.oov > 0
    if tokenizer == "whitespace":
        assert any("\t" in text for text in texts)
        assert any("  " in text for text in texts)


@pytest.mark.parametrize("tokenizer", ["whitespace", "character"])
def test_the_rows_of_a_drawn_text_are_what_was_drawn(tokenizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word that was spelled is one that the model knows, and no two words run together."""
    model = spelled(["a b", "a  c", "ab c", "", "b\ta "], tokenizer=tokenizer)
    drawn: list[int] = []
    write = EventWriter.write

    def noted(writer: EventWriter, token: int, choose: Any, text: bytes | None = None) -> bytes:
        if text is None:
            drawn.append(token)
        return write(writer, token, choose, text)

    monkeypatch.setattr(EventWriter, "write", noted)
    for text in sample(model, 60, seed=5, max_tokens=1000):
        (batch,) = model.score(Corpus.from_strings([text]))
        assert batch.token_ids.tolist() == drawn
        drawn.clear()


def test_texts_come_in_the_proportions_of_their_probability(tiny: SpelledModel) -> None:
    count = 1200
    drawn = Counter(sample(tiny, count, seed=4))
    for text, times in drawn.most_common(12):
        p = float(np.exp(sum(tiny.score_text(text).logprobs)))
        assert abs(times / count - p) < 4 * (p * (1 - p) / count) ** 0.5 + 1e-9, text
    new = sum(times for text, times in drawn.items() if not set(text.split()) <= {"a", "b", "c", "ab"})
    assert 0 < new < count


def test_temperature_zero_spells_the_most_probable_letters(tiny: SpelledModel) -> None:
    assert len(set(sample(tiny, 3, temperature=0))) == 1
    cold, hot = ("".join(sample(tiny, 60, seed=1, temperature=t)) for t in (0.3, 3.0))
    assert sum(ord(c) > 127 for c in cold) < sum(ord(c) > 127 for c in hot)


def test_words_that_never_end_are_ended(tiny: SpelledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_LONGEST_WORD", 3)
    monkeypatch.setattr(Spelling, "next_character", lambda self, prefix: _letters(self))
    unseen = [word for text in sample(tiny, 100, seed=1) for word in text.split() if word not in ("a", "b", "c", "ab")]
    assert set(unseen) == {"aaa"}


def _letters(spelling: Spelling) -> Any:
    p = np.full(len(spelling.speller.characters.vocabulary), 0.0)
    p[[EOS, spelling.speller.characters.vocabulary.id("a")]] = 1e-300, 1.0
    return p


def test_top_k_limits_words_and_not_letters(tiny: SpelledModel) -> None:
    likely = np.argsort(-tiny.log_distribution([BOS]), kind="stable")[:2]
    firsts = {text.split()[0] if text.strip() else "" for text in sample(tiny, 100, seed=2, top_k=2, max_tokens=1)}
    allowed = {tiny.vocabulary.token(int(i)) for i in likely}
    assert UNK in likely or firsts <= allowed | {""}


@pytest.mark.parametrize(
    ("prompt", "starts"), [("a", ("a ", "a\t", "a")), ("a ", ("a ",)), ("zork b", ("zork b",)), (" ", (" ",))]
)
def test_a_prompt_goes_on_where_it_ends(tiny: SpelledModel, prompt: str, starts: tuple[str, ...]) -> None:
    for text in sample(tiny, 30, seed=6, prompt=prompt, max_tokens=2):
        assert text.startswith(starts)
        assert text[len(prompt) : len(prompt) + 1].strip() == "" or prompt.endswith(" ")
    shown = sample(tiny, 30, seed=6, prompt="a ", max_tokens=1)
    assert any(text.split() == ["a", "b"] for text in shown)
