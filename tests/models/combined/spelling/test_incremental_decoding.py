"""Events written as text, step by step: the rows of a text are what its steps cost, and choices lead to the text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.models.combined.spelling.incremental_decoding import Step
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.scores import SEPARATOR, SPELLING
from lmgauge.text.vocabulary import EOS, UNK

LINES = ["to be or not to be", "that  is the question", "\tto sleep, perchance", "isn't it: to-day", "", "to die - no  "]
ODD = [
    "",
    "   ",
    " to  be ",
    "to\tbe",
    "日本 x\u3000y",
    "isn't n'a it",
    "\u00a0no-break",
    "zork to",
    "<unk> <<unk>> <s",
    "é😀 ",
]


def trained(tokenizer: str) -> SpelledModel:
    if tokenizer == "icu":
        pytest.importorskip("icu4py")
    model = lmgauge.train(
        "modified-kneser-ney", Corpus.from_strings(LINES), order=2, tokenizer=tokenizer, vocabulary="spelled",
        reserved="escape",
    )  # fmt: skip
    assert isinstance(model, SpelledModel)
    return model


TOKENIZERS = ("whitespace", "icu", "treebank", "character")


@pytest.fixture(scope="module")
def models() -> dict[str, SpelledModel]:
    return {}


def of(models: dict[str, SpelledModel], tokenizer: str) -> SpelledModel:
    if tokenizer not in models:
        models[tokenizer] = trained(tokenizer)
    return models[tokenizer]


def walked(model: SpelledModel, text: str) -> list[tuple[float, dict[str, float], bytes, list[int]]]:
    """Of each event: its logprob, the parts step by step, its bytes as written, and the choices."""
    (batch,) = model.score(Corpus.from_strings([text]))
    writer, begin = model.writer(), 0
    events: list[tuple[float, dict[str, float], bytes, list[int]]] = []
    for token, end in zip(batch.token_ids.tolist(), batch.ends.tolist(), strict=True):
        parts, choices = {SPELLING: 0.0, SEPARATOR: 0.0}, list[int]()

        def choose(step: Step, parts: dict[str, float] = parts, choices: list[int] = choices) -> int:
            assert np.exp(step.logprob).sum() == pytest.approx(1, abs=1e-9)
            parts[step.part] += float(step.logprob[step.wanted])
            choices.append(step.wanted)
            return step.wanted

        piece = writer.write(token, choose, text.encode()[begin:end])
        assert piece == text.encode()[begin:end]
        begin = end
        events.append((float(batch.event_logprob()[len(events)]), parts, piece, choices))
    assert bytes(writer.text) == text.encode()
    for row, (_, parts, _, choices) in enumerate(events):
        for part, nats in parts.items():
            column = float(batch.extra[part][row]) if part in batch.extra else 0.0
            assert nats == pytest.approx(column, abs=1e-6 * max(1, len(choices)))
    return events


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("text", [*LINES, *ODD], ids=repr)
def test_rows_are_what_their_steps_cost(models: dict[str, SpelledModel], tokenizer: str, text: str) -> None:
    assert b"".join(piece for _, _, piece, _ in walked(of(models, tokenizer), text)) == text.encode()


@settings(max_examples=60)
@given(text=st.text(st.sampled_from("to be\t,'é日\u2003<n"), max_size=12), tokenizer=st.sampled_from(TOKENIZERS))
def test_any_text_is_written_by_the_choices_it_makes(models: dict[str, SpelledModel], text: str, tokenizer: str) -> None:
    model = of(models, tokenizer)
    (batch,) = model.score(Corpus.from_strings([text]))
    steps = iter([choice for _, _, _, choices in walked(model, text) for choice in choices])
    again = model.writer()
    for token in batch.token_ids.tolist():
        again.write(token, lambda step: next(steps))  # without the text
    assert bytes(again.text) == text.encode()


def test_a_writer_goes_on_behind_a_text(models: dict[str, SpelledModel]) -> None:
    """White space that the text ends with is not written again, and what was before it is what it is predicted from."""
    model = of(models, "whitespace")
    told: list[list[Step]] = []
    for text, begin in ((b"to  be", 2), (b"to  be ", 2), (b" ", None), (b"", None)):
        steps: list[Step] = []
        writer = model.writer(text, begin)
        choose: Any = lambda step, steps=steps: steps.append(step) or int(np.argmax(step.logprob))  # noqa: E731
        piece = writer.write(model.vocabulary.id("or"), choose)
        assert piece.strip() == b"or"
        assert bytes(writer.text) == text + piece
        told.append(steps)
    assert [len(steps) for steps in told] == [1, 0, 0, 1]
    assert not np.array_equal(told[0][0].logprob, told[3][0].logprob)


def test_white_space_between_words_is_never_empty(models: dict[str, SpelledModel]) -> None:
    model = of(models, "whitespace")
    writer = model.writer()
    writer.write(model.vocabulary.id("to"), lambda step: int(np.argmax(step.logprob)))
    steps: list[Step] = []

    def unknown(step: Step) -> int:
        steps.append(step)
        return len(step.logprob) - 1 if len(steps) == 1 else int(np.argmax(step.logprob))

    writer.write(model.vocabulary.id("be"), unknown)
    known = model.separators.known if model.separators else ()
    assert steps[0].logprob[known.index("")] == -math.inf
    assert steps[1].logprob[steps[1].end] == -math.inf


def test_an_unseen_word_has_letters_and_an_end(models: dict[str, SpelledModel]) -> None:
    steps: list[Step] = []
    model = of(models, "whitespace")

    def choose(step: Step) -> int:
        steps.append(step)
        return step.wanted

    assert model.writer().write(UNK, choose, "zé日".encode()) == "zé日".encode()
    letters = [step for step in steps if step.part == SPELLING]
    assert letters[0].logprob[EOS] == -math.inf  # no word is empty
    assert letters[-1].wanted == letters[-1].end == EOS
    assert [len(step.logprob) for step in letters].count(0x110000) == 3  # z, é and 日 are outside the alphabet
