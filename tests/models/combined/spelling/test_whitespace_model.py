"""Separators and words side by side are the text: nothing is left out, and nothing is said twice."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge._kernels import _native
from lmgauge.models.combined.spelling.whitespace_model import (
    AROUND,
    EMPTY,
    FIRST,
    INNER,
    LAST,
    SeparatorModel,
    _rows_of,
    _rules,
    around,
)
from lmgauge.scores import EOS_KIND, OOV, SPELLED, ScoreBatch
from lmgauge.text.segments import WHITE_SPACE, Segments

DATA = Path(__file__).parents[3] / "data"
TOKENIZERS = ("whitespace", "treebank", "icu")

hostile = st.text(
    st.sampled_from(f"{WHITE_SPACE}{WHITE_SPACE}   ab.,'\"(n1é三ไท\u0301\u0301\u200d\u200b\ufeff\u202e😀<unk>/s")
    | st.characters(codec="utf-8")
).map(lambda text: text.replace("\0", "").replace("\r", ""))


@cache
def model_of(tokenizer: str) -> lmgauge.models.SpelledModel:
    if tokenizer == "icu":
        pytest.importorskip("icu4py")
    text = lmgauge.Corpus.from_strings(["a b don't", "The  (ab), 三 ไทย.", " a\u00a0b", ""])
    model = lmgauge.train("witten-bell", text, order=2, tokenizer=tokenizer, vocabulary="spelled", reserved="escape")
    assert isinstance(model, lmgauge.models.SpelledModel)
    return model


def divided(block: Segments, batch: ScoreBatch, separators: SeparatorModel) -> list[tuple[bytes, bytes]]:
    """Return the bytes that each row spans: its separator, and its token."""
    pieces = []
    for row, segment in enumerate((batch.row_segments() - block.first).tolist()):
        start = block.starts[segment]
        begin = start + batch.starts()[row]
        piece = block.data[begin : start + batch.ends[row]].tobytes()
        token = piece.decode().lstrip(separators.alphabet).encode()
        pieces.append((piece[: len(piece) - len(token)], token))
    return pieces


def contexts(block: Segments, batch: ScoreBatch, separators: SeparatorModel) -> np.ndarray[Any, Any]:
    """Return the place of each separator, and what is around it, int64 [2, rows]."""
    context, which = np.empty(len(batch), np.int32), np.empty(len(batch), np.int32)
    _native.find_separators(_rows_of(block, batch), _rules((), divided=separators.divided), context, which)
    return np.array(np.divmod(context, AROUND))


def said(model: lmgauge.models.SpelledModel, texts: list[str]) -> list[str]:
    """Return each text as the rows say it: the separator before each token, and the token by its id or its letters."""
    restored = []
    for block in lmgauge.Corpus.from_strings(texts):
        batch = model.inner.score_block(block, spans=True)
        owner = np.repeat(np.arange(len(block)), batch.segment_events)
        separators = divided(block, batch, model.separators)
        unseen = np.flatnonzero(batch.kind == OOV)
        words = model._words(block, batch, model.separators.score(block, batch))
        letters = {row: words.text(i).decode() for i, row in enumerate(unseen.tolist())}
        pieces = [""] * len(block)
        for row, segment in enumerate(owner.tolist()):
            known = "" if batch.kind[row] == EOS_KIND else model.vocabulary.tokens[batch.token_ids[row]]
            assert letters.get(row) not in model.vocabulary.tokens
            pieces[segment] += separators[row][0].decode() + letters.get(row, known)
        restored += pieces
    return restored


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(st.lists(hostile, min_size=1, max_size=3))
def test_hostile_texts_are_said_byte_for_byte(tokenizer: str, texts: list[str]) -> None:
    assert said(model_of(tokenizer), texts) == texts


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize(
    "text", ["a \u0301b", "\u0301", " \u0301", "a\u202fb 10\u202f000 a\u202f", "\x1ca\x1c\x85b\u3000", "\u00a0", "a \u200db"]
)
def test_marks_that_hold_on_to_white_space(tokenizer: str, text: str) -> None:
    model = model_of(tokenizer)
    assert said(model, [text, f"{text} a", f"a{text}"]) == [text, f"{text} a", f"a{text}"]
    scored = model.score_text(text)
    assert np.isfinite(scored.logprobs).all()


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize(
    "name", ["pud.en.txt", "pud.th.txt", "pud.zh-Hant.txt", "pud.ar.txt", "pud.ko.txt", "akutagawa.ja.txt"]
)
def test_real_texts_are_said_byte_for_byte(tokenizer: str, name: str) -> None:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    assert said(model_of(tokenizer), lines) == lines


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(hostile, hostile.filter(bool))
def test_words_that_begin_in_given_text_are_spelled_whole(tokenizer: str, before: str, text: str) -> None:
    model = model_of(tokenizer)
    (block,) = lmgauge.Corpus.from_strings([text], given=[before])
    batch = model.inner.score_block(block, spans=True)
    unseen = np.flatnonzero(batch.kind == OOV)
    words = model._words(block, batch, model.separators.score(block, batch))
    (joined,) = lmgauge.Corpus.from_strings([before + text])
    tokens = model.tokenizer.tokenize(joined).strings()[-(len(batch) - 1) :]
    assert [words.text(i) for i in range(len(words))] == [tokens[row] for row in unseen.tolist()]
    costs = model.separators.score(block, batch).logprobs
    ((blank, _), *_) = divided(block, batch, model.separators)
    cut = len(before.encode())
    starts, ends = model.tokenizer.tokenize(joined).starts, model.tokenizer.tokenize(joined).ends
    inside = bool(((starts < cut) & (cut < ends)).any())
    assert (costs[0] < 0) == (not inside and (len(blank) > 0 or not _ends_white(before, model)))
    assert (model.spelled(block, batch).kind[unseen] == SPELLED).all()


def _ends_white(text: str, model: lmgauge.models.SpelledModel) -> bool:
    return text.endswith(tuple(model.separators.alphabet))


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(st.lists(hostile.filter(bool), min_size=1, max_size=3), st.booleans())
def test_the_kernel_sees_what_stands_around_separators(tokenizer: str, texts: list[str], is_given: bool) -> None:
    model = model_of(tokenizer)
    model_of_spaces = model.separators
    before = [f'{text} "' for text in texts] if is_given else None
    for block in lmgauge.Corpus.from_strings(texts, given=before):
        batch = model.inner.score_block(block, spans=True)
        _, sides = contexts(block, batch, model_of_spaces)
        owner, pieces = batch.row_segments() - block.first, divided(block, batch, model_of_spaces)
        for row, segment in enumerate(owner.tolist()):
            start = int(block.starts[segment] if block.given_starts is None else block.given_starts[segment])
            left = block.data[start : int(block.starts[segment] + batch.starts()[row])].tobytes()
            right = pieces[row][1]
            right = b"" if batch.kind[row] == EOS_KIND else right
            quoted = left.count(b'"') % 2 == 1
            assert sides[row] == around(left, right, quoted=quoted, divided=model_of_spaces.divided)


def test_places() -> None:
    model = model_of("treebank")
    (block,) = lmgauge.Corpus.from_strings([" a, b ", "", "  "])
    batch = model.inner.score_block(block, spans=True)
    places, _ = contexts(block, batch, model.separators)
    assert places.tolist() == [FIRST, INNER, INNER, LAST, EMPTY, EMPTY]
    assert [blank for blank, _ in divided(block, batch, model.separators)] == [b" ", b"", b" ", b" ", b"", b"  "]
