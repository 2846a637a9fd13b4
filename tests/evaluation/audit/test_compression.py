"""The two-step coder: it spends -log2 p bits, and the decoder needs nothing but the model and the words."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.evaluation.audit.auditing import audit, events_of
from tests.evaluation.audit.gallery import Sound, SoundWithoutEnds

from lmgauge.base.errors import MissingExtraError
from lmgauge.evaluation.audit.checks import FAIL, NOT_CHECKED, PASS
from lmgauge.evaluation.audit.compression import EventCoder, NoCodeError, check_compression, decode_segments, encode_segments
from lmgauge.evaluation.audit.subject import Rows, Subject
from lmgauge.models.custom import CustomModel
from lmgauge.scores import iter_segments
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS

constriction = pytest.importorskip("constriction")
LINES = ["to be or not to be", "that is the question", "to sleep", "", "perchance to dream"]


def code_bits(size: int, tokens: Sequence[int], logprob: NDArray[np.float64]) -> int:
    """Codes tokens with one distribution, checks that they come back, and returns the length in bits."""
    encoder = constriction.stream.queue.RangeEncoder()
    coder = EventCoder(size)
    for token in tokens:
        coder.encode(encoder, token, logprob)
    words = encoder.get_compressed()
    decoder, other = constriction.stream.queue.RangeDecoder(words), EventCoder(size)
    assert [other.decode(decoder, logprob) for _ in tokens] == list(tokens)
    return 32 * len(words)


@pytest.mark.parametrize("size", [2, 3, 31, 1000, 33_278, 300_000])
def test_code_length_is_the_claimed_bits(size: int) -> None:
    """Zipf's law over a large vocabulary, where one flat table of 24-bit probabilities would cost up to 2 %."""
    generator = np.random.default_rng(size)
    probability = generator.permutation(1 / np.arange(1, size + 1))
    logprob = np.log(probability / probability.sum())
    tokens = generator.choice(size, 2000, p=probability / probability.sum()).tolist()
    claimed = -math.fsum(logprob[tokens].tolist()) / math.log(2)
    assert abs(code_bits(size, tokens, logprob) - claimed) <= 34 + 1e-5 * claimed


def test_what_cannot_come_costs_nothing() -> None:
    logprob = np.full(100_000, -np.inf)
    logprob[[17, 99_999]] = np.log(0.5)
    assert abs(code_bits(100_000, [17, 99_999] * 500, logprob) - 1000) <= 34


@settings(max_examples=50)
@given(st.lists(st.integers(0, 49), min_size=1, max_size=60), st.integers(0, 2**32 - 1))
def test_any_tokens_under_any_distribution(tokens: list[int], seed: int) -> None:
    weights = np.random.default_rng(seed).exponential(size=50) ** 4
    logprob = np.log(weights / weights.sum())
    claimed = -math.fsum(logprob[tokens].tolist()) / math.log(2)
    # A probability near 2^-24 is rounded to a multiple of it: then a token costs less than it claims.
    assert code_bits(50, tokens, logprob) <= claimed + 34


def test_a_distribution_that_is_handed_out_again_changed_is_read_again() -> None:
    encoder, coder = constriction.stream.queue.RangeEncoder(), EventCoder(4)
    logprob = np.log([0.7, 0.1, 0.1, 0.1])
    coder.encode(encoder, 0, logprob)
    logprob[:] = -np.inf
    with pytest.raises(NoCodeError, match="nothing can follow"):
        coder.encode(encoder, 0, logprob)


def test_impossible_events_have_no_code() -> None:
    coder = EventCoder(4)
    encoder = constriction.stream.queue.RangeEncoder()
    with pytest.raises(NoCodeError, match="probability zero"):
        coder.encode(encoder, 3, np.log([0.5, 0.25, 0.25, 1e-320]) - np.array([0, 0, 0, 1000]))
    with pytest.raises(NoCodeError, match="nothing can follow"):
        coder.encode(encoder, 0, np.full(4, -np.inf))


def rows_beside(model: CustomModel, lines: Sequence[str]) -> list[Rows]:
    """The rows of lines, beside them."""
    segments = iter_segments(model.score(Corpus.from_strings(lines)))
    return [Rows.beside(rows, lines[rows.segment].encode()) for rows in segments]


def scored(model: Sound, lines: Sequence[str]) -> tuple[Subject, list[Rows]]:
    return Subject(model), rows_beside(model, lines)


def test_decoding_needs_model_and_code_alone() -> None:
    subject, rows = scored(Sound(LINES), LINES)
    code = encode_segments(subject, rows)
    assert {lane.words.dtype for lane in code} == {np.dtype(np.uint32)}
    fresh = Subject(Sound(LINES))
    assert events_of(decode_segments(fresh, code)) == [part.token_ids.tolist() for part in rows]


def test_segments_without_an_end_tell_their_length() -> None:
    subject, rows = scored(SoundWithoutEnds(LINES), LINES[:3])
    assert events_of(decode_segments(subject, encode_segments(subject, rows))) == [part.token_ids.tolist() for part in rows]


def test_long_texts_are_coded_in_lanes() -> None:
    class Uniform(CustomModel):
        """Eleven bits a word."""

        def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
            logprob = np.full(len(self.vocabulary), -np.log(len(self.vocabulary) - 1))
            logprob[BOS] = -np.inf
            return logprob

    words = np.array([f"w{i}" for i in range(2045)])
    lines = [" ".join(line) for line in np.random.default_rng(1).choice(words, (700, 10)).tolist()]
    model = Uniform(words.tolist())
    subject, rows = Subject(model), rows_beside(model, lines)
    code = encode_segments(subject, rows)
    assert len(code) > 1
    assert events_of(decode_segments(subject, code)) == [part.token_ids.tolist() for part in rows]
    length, decoding = check_compression(subject, rows)
    assert length.verdict == decoding.verdict == PASS, (length, decoding)


def test_events_beyond_the_precision_of_the_coder_are_no_fault_of_the_model() -> None:
    """An event of 50 bits is coded in 24 or so; a model that claims more for likely events still fails."""
    model = Sound(LINES)
    word = model.vocabulary.id("question")
    model.table[:, word] = 2.0**-50
    model.table /= model.table.sum(axis=1, keepdims=True)
    subject, rows = scored(model, LINES * 20)
    length, decoding = check_compression(subject, rows)
    assert length.verdict == decoding.verdict == PASS, length
    assert length.details["code_bits"] < length.details["claimed_bits"] - length.details["allowed_difference_bits"]
    assert length.details["code_bits"] >= length.details["least_bits"] - length.details["allowed_difference_bits"]
    dearer = [dataclasses.replace(part, logprob=part.logprob - 0.5) for part in rows]
    assert check_compression(subject, dearer)[0].verdict == FAIL


class Counted(Sound):
    """Sound; it notes how many contexts it is asked about together."""

    contexts_at_a_time = 3
    asked: list[int]

    def log_distributions(self, contexts: NDArray[np.uint32]) -> NDArray[np.float64]:
        self.asked.append(len(contexts))
        return np.stack([self.log_distribution(context) for context in contexts])


class CountedWithoutEnds(Counted, SoundWithoutEnds): ...


@pytest.mark.parametrize("kind", [Counted, CountedWithoutEnds])
def test_segments_are_coded_side_by_side(kind: type[Counted]) -> None:
    """Of each step's contexts those that ended stay until they are half, and the code is as long as one by one."""
    model = kind(LINES)
    model.asked = []
    lines = [*LINES, "", *LINES[:1]]
    subject, rows = scored(model, lines)
    code = encode_segments(subject, rows)
    asked = list(model.asked)
    # The first three sentences have 7, 5 and 3 events with their ends: 3 steps of three; then one of them has ended.
    ends = kind is Counted
    assert asked[:3] == [3, 3, 3] if ends else [3, 3]
    assert {lane.side_by_side for lane in code} == {3}
    assert events_of(decode_segments(subject, code)) == [part.token_ids.tolist() for part in rows]
    assert model.asked[len(asked) :] == asked
    one_by_one = encode_segments(Subject((Sound if ends else SoundWithoutEnds)(LINES)), rows)
    assert {lane.side_by_side for lane in one_by_one} == {1}
    assert abs(sum(len(lane.words) for lane in one_by_one) - sum(len(lane.words) for lane in code)) <= 1


@pytest.mark.parametrize("kind", ["gpt2", "mamba"])
def test_networks_are_coded_side_by_side(kind: str) -> None:
    pytest.importorskip("transformers")
    from tests.models.network.conftest import TOKENIZERS, network

    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import NeuralModel

    tokenizer = TOKENIZERS["byte-level"]()
    model = NeuralModel.wrap(network(kind, len(tokenizer)), tokenizer, ScoringOptions(context=16, stride=8))
    subject, rows = Subject(model), rows_beside(model, [*LINES, "to be or not to be or to be " * 3])  # type: ignore[arg-type]
    assert subject.contexts_at_a_time > 1
    length, decoding = check_compression(subject, rows)
    assert length.verdict == decoding.verdict == PASS, (length, decoding)


def test_another_model_cannot_read_it() -> None:
    subject, rows = scored(Sound(LINES), LINES)
    code = encode_segments(subject, rows)
    other = Subject(Sound([*LINES[1:], LINES[0], "dream dream dream"]))
    with contextlib.suppress(NoCodeError):
        assert events_of(decode_segments(other, code)) != [part.token_ids.tolist() for part in rows]


def test_a_model_that_predicts_otherwise_while_decoding_fails() -> None:
    class Moody(Sound):
        """Each call of log_distribution is another one."""

        calls = 0

        def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
            self.calls += 1
            row = np.roll(self.table[context_ids[-1]][3:], self.calls % 3)
            return np.log(np.concatenate((self.table[context_ids[-1]][:3], row)) + 1e-300)

    subject, rows = scored(Moody(LINES), LINES)
    assert check_compression(subject, rows)[-1].verdict == FAIL


def test_impossible_segments_are_left_out() -> None:
    model = Sound(LINES)
    word = model.vocabulary.id("question")
    model.table[:, word] = 0
    model.table /= model.table.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        subject, rows = scored(model, LINES)
        length, decoding = check_compression(subject, rows)
        assert length.verdict == decoding.verdict == PASS
        assert length.details["impossible_segments"] == 1
        assert "Left out: 1 segment with an event of probability zero" in length.evidence
        nothing = check_compression(subject, [part for part in rows if word in part.token_ids])
    assert {check.verdict for check in nothing} == {NOT_CHECKED}
    assert "infinitely many bits" in nothing[0].evidence


def test_without_the_library_the_other_levels_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "constriction", None)
    found = audit(Sound(LINES), Corpus.from_strings(LINES))
    assert found.passed
    assert found.verdict("compression") == NOT_CHECKED
    assert "pip install 'lmgauge[audit]'" in found.checks[-1].evidence
    with pytest.raises(MissingExtraError):
        EventCoder(3)
