"""Windows: every token is a target once an epoch, and what a model reads is the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.base.errors import InputError
from lmgauge.models.training.data import WindowSource, make_source, read_text
from lmgauge.models.training.settings import preset_settings
from lmgauge.text.documents import Corpus
from lmgauge.text.tokenizers import make_tokenizer

KINDS = ("ffnn", "lstm", "transformer")


def ids_of(lengths: list[int], context: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Each token another id, so that a target tells where it stands; `<s>` and `</s>` as in training."""
    ids, following = [1] if context == "stream" else [], 3
    for length in lengths:
        ids += ([1] if context == "sentence" else []) + list(range(following, following + length)) + [2]
        following += length
    return np.array(ids, np.int64)


def targets_of(source: WindowSource, epoch: int) -> list[int]:
    return sorted(t for window in source.windows(epoch) for t in window.targets.flatten().tolist() if t != -100)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=8, max_size=30),
    st.sampled_from(KINDS),
    st.sampled_from(["stream", "sentence"]),
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(0, 3),
)
def test_every_token_is_a_target_once(
    lengths: list[int], kind: Any, context: str, batch: int, steps: int, epoch: int
) -> None:
    chosen = preset_settings(kind, batch_size=batch, steps=steps, context=context)
    ids = ids_of(lengths, context)
    source = make_source(ids, chosen)
    assert targets_of(source, epoch) == sorted(i for i in ids.tolist() if i != 1)
    windows = list(source.windows(epoch))
    assert len(windows) == source.count(epoch)
    assert all(window.inputs.shape == window.targets.shape for window in windows)
    assert windows[0].fresh
    after = dict(zip(ids[1:].tolist(), ids[:-1].tolist(), strict=True))
    for window in windows:
        for given_id, target in zip(window.inputs.flatten().tolist(), window.targets.flatten().tolist(), strict=True):
            assert target in (-100, 2) or given_id == after[target]


@pytest.mark.parametrize("context", ["stream", "sentence"])
@pytest.mark.parametrize("kind", KINDS)
def test_going_on_within_an_epoch(kind: Any, context: str) -> None:
    source = make_source(
        ids_of([5, 0, 12, 3, 7, 9, 1], context), preset_settings(kind, batch_size=2, steps=4, context=context)
    )
    whole = list(source.windows(3))
    for begin in range(len(whole) + 1):
        rest = list(source.windows(3, begin))
        assert len(rest) == len(whole) - begin
        for one, two in zip(rest, whole[begin:], strict=True):
            assert torch.equal(one.inputs, two.inputs)
            assert torch.equal(one.targets, two.targets)
            assert one.fresh is two.fresh


def test_streams_follow_on_from_window_to_window() -> None:
    windows = list(make_source(np.arange(1, 42), preset_settings("lstm", batch_size=4, steps=3)).windows(0))
    rows = torch.cat([window.inputs for window in windows], 1)
    assert rows.tolist() == [list(range(1 + 10 * i, 11 + 10 * i)) for i in range(4)]
    assert [window.fresh for window in windows] == [True, False, False, False]


def test_another_order_each_epoch() -> None:
    source = make_source(ids_of([4] * 40, "sentence"), preset_settings("lstm", batch_size=4, steps=5, context="sentence"))
    first, second, again = (torch.cat([w.inputs for w in source.windows(e)]).tolist() for e in (0, 1, 0))
    assert first == again != second


def test_long_sentences_keep_their_state_and_attention_starts_anew() -> None:
    ids = ids_of([11], "sentence")
    lstm = list(make_source(ids, preset_settings("lstm", batch_size=1, steps=5, context="sentence")).windows(0))
    assert [window.fresh for window in lstm] == [True, False, False]
    attention = list(make_source(ids, preset_settings("transformer", batch_size=1, steps=5, context="sentence")).windows(0))
    assert all(window.fresh for window in attention)


def test_windows_are_no_wider_than_their_longest_piece() -> None:
    chosen = preset_settings("lstm", batch_size=3, steps=5, context="sentence")
    (window,) = make_source(ids_of([1, 2, 0], "sentence"), chosen).windows(0)
    assert window.inputs.shape == (3, 3)
    long, rest = make_source(
        ids_of([6], "sentence"), preset_settings("lstm", batch_size=1, steps=5, context="sentence")
    ).windows(0)
    assert (long.inputs.shape, rest.inputs.shape) == ((1, 5), (1, 2))


def test_text_shorter_than_a_batch() -> None:
    with pytest.raises(InputError, match="3 tokens, less than one for each of the 20"):
        make_source(np.array([1, 3, 4, 2]), preset_settings("lstm"))


def test_reading() -> None:
    tokenizer = make_tokenizer("whitespace")
    text, vocabulary = read_text(
        Corpus.from_strings(["a b a", "<unk> c"]), tokenizer, None, context="stream", reserved="unk", min_count=2
    )
    assert text.ids.tolist() == [1, 3, 0, 3, 2, 0, 0, 2]
    assert (text.events, text.unknown, text.segments, vocabulary.tokens[3:]) == (7, 3, 2, ["a"])
    valid, same = read_text(
        Corpus.from_strings(["a z"]), tokenizer, vocabulary, context="sentence", reserved="unk", name="validation"
    )
    assert valid.ids.tolist() == [1, 3, 0, 2]
    assert same is vocabulary
