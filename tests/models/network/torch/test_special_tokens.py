"""What a network sees around a text, in words, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.models.network.conftest import byte_fallback, byte_level, network
from tokenizers import processors

import lmgauge
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.torch.model import NeuralModel

TEXTS = ["The cat sat on the mat .", "It was a long day ;"]
Make = Callable[..., Any]


def model(make: Make = byte_fallback, sets: str = "", **options: Any) -> NeuralModel:
    """A network whose tokenizer sets some tokens before a text."""
    tokenizer = make()
    if sets:
        ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in sets.split()]
        whole = processors.TemplateProcessing(single=f"{sets} $A", special_tokens=list(dict(ids).items()))
        tokenizer.backend_tokenizer.post_processor = whole
    return NeuralModel.wrap(network("llama", len(tokenizer)), tokenizer, ScoringOptions(**options))


def looked_at(one: NeuralModel, texts: list[str] = TEXTS) -> tuple[str, list[str], list[str]]:
    return one.special_tokens(next(iter(lmgauge.Corpus.from_strings(texts))))


def test_the_first_and_the_last_tokens_are_shown_with_their_ids() -> None:
    one = model(sets="<s>")
    ids = one._checkpoint.tokens.tokenizer.strings  # type: ignore[attr-defined]
    seen, faults, hints = looked_at(one, ["", "The cat sat on the mat ."])
    assert (faults, hints) == ([], [])
    assert seen.startswith("of the first segment <s> (1) is shown, ▁")
    assert seen.endswith(" scored")
    assert " … " in seen
    named = re.findall(r"(\S+) \((\d+)\)", seen)
    assert len(named) == 1 + 4 + 3
    assert all(ids[int(number)] == name for name, number in named)


def test_what_is_not_scored_is_not_called_scored() -> None:
    assert "of the first segment nothing is shown" in looked_at(model(first_token="uniform"))[0]
    shown = looked_at(model(first_token="unscored"))[0]
    assert re.match(r"of the first segment ▁\S+ \(\d+\) is shown, ", shown)
    with_end = looked_at(model(sets="<s>", end="eos"))[0]
    assert with_end.endswith("</s> (2) scored")
    given = lmgauge.Corpus.from_strings([" sat"], given=["The cat"])
    assert re.match(r"of the first segment <s> \(1\) ▁\S.* is shown", model(sets="<s>").special_tokens(next(iter(given)))[0])


def test_one_that_is_missing_is_named_with_both_figures() -> None:
    one = model(sets="<s>", first_token="uniform")
    [fault] = looked_at(one)[1]
    figures = [
        lmgauge.evaluate(one.with_options(ScoringOptions(first_token=first)), texts=TEXTS) for first in ("uniform", "bos")
    ]
    without, with_it = (f"{result.perplexity:,.6g}" for result in figures)
    assert fault == (
        f"scored without <s> (1), which its tokenizer sets before a text: on its beginning perplexity is {without}, with it "
        f"{with_it} (--first-token bos)"
    )
    assert figures[0].notes[0] == f"special tokens: {fault}"


def test_one_that_the_tokenizer_does_not_set_is_a_hint_with_both_figures() -> None:
    one = model()
    _, faults, hints = looked_at(one)
    figures = [
        lmgauge.evaluate(one.with_options(ScoringOptions(first_token=first)), texts=TEXTS) for first in ("bos", "uniform")
    ]
    so, without = (f"{result.perplexity:,.6g}" for result in figures)
    assert faults == []
    assert hints == [
        f"scored after <s> (1), which its tokenizer does not set before a text: on its beginning perplexity is {so}, "
        f"without it {without} (--first-token uniform)"
    ]


def test_a_token_that_stands_between_texts_is_in_its_place() -> None:
    assert looked_at(model(byte_level))[1:] == ([], [])


@pytest.mark.parametrize("protocol", ["hf-guide", "harness"])
def test_who_follows_another_program_is_told_nothing(protocol: Any) -> None:
    assert looked_at(model(protocol=protocol, context=16, stride=8 if protocol == "hf-guide" else None))[1:] == ([], [])


def test_a_long_text_is_scored_twice_at_its_beginning_only() -> None:
    one, asked = model(), 0
    again = one.with_options

    def counted(options: ScoringOptions) -> NeuralModel:
        changed = again(options)
        score = changed.score

        def counting(blocks: Any, **named: Any) -> Any:
            nonlocal asked
            for batch in score(blocks, **named):
                asked += len(batch)
                yield batch

        changed.score = counting  # type: ignore[method-assign]
        return changed

    one.with_options = counted  # type: ignore[method-assign]
    looked_at(one, ["The cat sat on the mat . " * 1000] * 100)
    assert 0 < asked <= 2 * 2048


def test_info_says_what_a_tokenizer_sets_around_a_text(checkpoint: Callable[..., Path]) -> None:
    known = lmgauge.info(checkpoint("llama", "byte-fallback"))
    assert known["set_around_a_text"] == "nothing before it, nothing behind it"
    assert known["special_tokens"]["bos_token"] == "<s> (1)"
    assert known["special_tokens"]["eos_token"] == "</s> (2)"
    assert known["chat_template"] == "none"
    assert model(sets="<s>").to_dict()["set_around_a_text"] == "<s> (1) before it, nothing behind it"
