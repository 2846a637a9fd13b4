"""States and steps: what they refuse, how they behave as values, threads; the numbers are in `laws/test_state_laws.py`."""

from __future__ import annotations

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.ngram.decoder_state import NgramStates

LINES = ["the cat sat", "the dog sat", "a cat ran"]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3)


def test_states_are_values(model: NgramModel) -> None:
    state = model.begin()
    assert state == model.begin()
    assert state != model.begin(bos=False)
    assert state != "<s>"
    assert len({state, model.begin(), model.begin(bos=False)}) == 2
    assert copy.copy(state) is state
    assert copy.deepcopy({"state": state})["state"] is state
    with pytest.raises(AttributeError):
        state.order = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        pickle.dumps(state)  # of a model of this process
    assert repr(state) == "<NgramState: 1 word of context, order 3>"
    assert repr(model.step(state, "cat")[1]) == "<NgramState: 1 word of context, order 3>"


def test_nothing_before_scores_a_unigram(model: NgramModel) -> None:
    logprob, _ = model.step(model.begin(bos=False), "cat")
    assert logprob == pytest.approx(model.log_distribution([])[model.vocabulary.id("cat")], rel=1e-6)


def test_words_and_ids_are_the_same_steps(model: NgramModel) -> None:
    state = model.begin()
    word = model.vocabulary.id("the")
    assert model.step(state, "the") == model.step(state, word) == model.step(state, np.uint32(word))  # type: ignore[arg-type]
    assert model.step(state, "zebra") == model.step(state, 0)
    assert model.step(state, "") == model.step(state, 0)
    assert model.step(state, "</s>") == model.step(state, 2)


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        ("<s>", InputError, "reserved"),
        ("<unk>", InputError, "reserved"),
        (1, UsageError, "<s> is never predicted"),
        (-1, UsageError, "outside the vocabulary"),
        (10**30, UsageError, "outside the vocabulary"),
        (1.5, UsageError, "not float"),
        (b"the", UsageError, "not bytes"),
        ("\ud800", InputError, "surrogate"),
    ],
)
def test_words_that_are_refused(model: NgramModel, word: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        model.step(model.begin(), word)  # type: ignore[arg-type]
    with pytest.raises(error, match=says):
        model.step_batch(model.begin(), [word])  # type: ignore[list-item]


def test_reserved_words_follow_the_policy() -> None:
    read = lmgauge.train("witten-bell", Corpus.from_strings(["a <unk> b"]), order=2, reserved="escape")
    assert read.step(read.begin(), "<unk>") == read.step(read.begin(), read.vocabulary.id("<<unk>>"))
    unknown = read.with_reserved("unk")
    assert unknown.step(unknown.begin(), "<unk>") == unknown.step(unknown.begin(), 0)


def test_a_model_without_line_ends_rules_them_out() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, eos=False)
    assert model.step(model.begin(), "</s>")[0] == -math.inf
    assert model.step_batch(model.begin(), ["</s>"])[0].tolist() == [-math.inf]


def test_states_of_another_model_are_refused(model: NgramModel) -> None:
    other = model.with_reserved("unk")
    for states in (other.begin(), [other.begin()], other.step_batch(other.begin(), ["a"])[1]):
        with pytest.raises(UsageError, match="another model"):
            model.step_batch(states, ["a"])
    with pytest.raises(UsageError, match="another model"):
        model.step(other.begin(), "a")
    with pytest.raises(TypeError):
        model.step("the", "cat")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes states"):
        model.step_batch(["the"], ["cat"])  # type: ignore[list-item]
    assert model.begin() != other.begin()


def test_batches_say_what_does_not_fit(model: NgramModel) -> None:
    states = model.step_batch(model.begin(), ["the", "a"])[1]
    with pytest.raises(UsageError, match="got 2 states and 3 words"):
        model.step_batch(states, ["a", "b", "c"])
    with pytest.raises(UsageError, match="a list of words"):
        model.step_batch(states, "ab")
    with pytest.raises(UsageError, match="between 0 and"):
        model.step_batch(states, np.array([3, 99]))
    logprobs, after = model.step_batch(states[:0], [])
    assert (logprobs.tolist(), len(after)) == ([], 0)


def test_many_states_are_a_sequence(model: NgramModel) -> None:
    states = model.step_batch(model.begin(), ["the", "a", "the"])[1]
    assert repr(states) == "<NgramStates: 3 of order 3>"
    assert [states[0], states[-1]] == [states[2], states[0]]
    assert list(states[np.array([1, 0])]) == [states[1], states[0]]
    assert list(states[1:]) == [states[1], states[2]]
    with pytest.raises(IndexError):
        states[3]


def test_cells_that_no_step_leads_to_are_refused(model: NgramModel) -> None:
    states = model.step_batch(model.begin(), ["the"])[1]
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        cells = rng.integers(0, 1 << 63, states.cells.shape, dtype=np.uint64)
        cells[:, 0] = rng.integers(0, 5)
        try:
            model.step_batch(NgramStates(cells, model.reader), ["cat"])
        except ValueError:
            refused += 1
    assert refused > 150


def test_orders_beyond_what_fits_a_state_at_once() -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b c d e f g h i j k"]), order=10)
    state, logprobs = model.begin(), []
    for word in "abcdefghijk":
        logprob, state = model.step(state, word)
        logprobs.append(logprob)
    assert tuple(logprobs) == model.score_text("a b c d e f g h i j k").logprobs[:-1]


def test_threads_step_side_by_side(model: NgramModel) -> None:
    words = np.random.default_rng(1).integers(2, len(model.vocabulary), 20_000)
    expected = model.step_batch(model.begin(), words)[0]
    with ThreadPoolExecutor(4) as pool:
        for logprobs, _ in pool.map(lambda _: model.step_batch(model.begin(), words), range(8)):
            assert logprobs.tolist() == expected.tolist()


def test_a_string_scored_at_once_can_leave_the_process(model: NgramModel) -> None:
    scored = model.score_text("the cat")
    assert pickle.loads(pickle.dumps(scored)) == scored
    many = model.score_text(["the cat", "a"])
    assert pickle.loads(pickle.dumps(many)) == many
    assert copy.copy(model.score_text("the cat")).tokens == ("the", "cat", "</s>")
    with pytest.raises(AttributeError, match="no attribute 'words'"):
        _ = scored.words  # type: ignore[attr-defined]


def test_a_file_that_became_shorter_is_noticed(model: NgramModel, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model.save(tmp_path / "model")
    loaded = lmgauge.load_model(tmp_path / "model")
    assert isinstance(loaded, NgramModel)
    state = loaded.begin()
    file = tmp_path / "model" / "model.safetensors"
    with file.open("r+b") as opened:
        opened.truncate(100)
    for call in (loaded.begin, lambda: loaded.step_batch(state, ["a"]), lambda: loaded.score_text("a")):
        with pytest.raises(ModelFileError, match="shorter"):
            call()
