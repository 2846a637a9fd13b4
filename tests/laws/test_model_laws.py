"""The six laws of CONTRIBUTING.md, over random small corpora, for every smoothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.ngram import KINDS

import lmgauge
from lmgauge import Corpus, NgramModel, ScoreBatch
from lmgauge.text.vocabulary import BOS, EOS

ADDITIVE = ("mle", "laplace", "lidstone")
WORDS = ["a", "b", "c", "dd", "ä", "漢字", "x"]
words = st.sampled_from(WORDS)
separators = st.sampled_from([" ", " ", " ", "  ", "\t", "\u3000"])  # U+3000 is no ASCII white space: it joins words


@st.composite
def texts(draw: st.DrawFn, unseen: bool = False) -> list[str]:
    """Lines of few words, so that n-grams repeat; blanks at the ends and between, empty lines."""
    choices = st.sampled_from([*WORDS, "new", "\U0001f600"]) if unseen else words
    lines = draw(st.lists(st.lists(choices, max_size=9), min_size=1, max_size=12))
    made = ["".join(part for word in line for part in (word, draw(separators))) for line in lines]
    ragged = [line if draw(st.booleans()) else line.strip(" \t") for line in made]
    return ragged if any(ragged) else ["a", *ragged]


@st.composite
def trainings(
    draw: st.DrawFn, tokenizers: Sequence[str] = ("whitespace", "character", "byte")
) -> tuple[str, list[str], dict[str, Any]]:
    """Any kind with any of its options, and a text."""
    kind = draw(st.sampled_from(KINDS))
    options: dict[str, Any] = {"order": draw(st.integers(1, 5)), "vocabulary": draw(st.sampled_from(["open", "closed"]))}
    if kind == "lidstone":
        options["k"] = draw(st.sampled_from([1e-3, 0.5, 3.0]))
    if kind not in ADDITIVE:
        options["interpolate"] = draw(st.booleans())
        options["cutoffs"] = draw(st.sampled_from([(), (0, 0, 1), (0, 1), (0, 1, 2)]))
        options["prune"] = draw(st.sampled_from([None, None, None, 1e-4, 1e-1]))
    if kind == "absolute-discounting":
        options["discount"] = draw(st.sampled_from([None, 0.0, 0.4, (0.1, 0.9)]))
    if options["vocabulary"] == "open":
        options["min_count"] = draw(st.sampled_from([1, 1, 2]))
    options["context"] = draw(st.sampled_from(["sentence", "stream"]))
    options["tokenizer"] = draw(st.sampled_from(list(tokenizers)))
    options["eos"] = draw(st.sampled_from([True, True, False]))
    return kind, draw(texts()), options


@st.composite
def models(draw: st.DrawFn, tokenizers: Sequence[str] = ("whitespace", "character", "byte"), **fixed: Any) -> NgramModel:
    """Any model of `trainings`."""
    kind, lines, options = draw(trainings(tokenizers))
    options["threads"] = draw(st.integers(1, 3))
    return lmgauge.train(kind, Corpus.from_strings(lines), **{**options, **fixed})  # type: ignore[arg-type]


def score(model: NgramModel, lines: Sequence[str], **options: Any) -> list[ScoreBatch]:
    block_bytes = options.pop("block_bytes", 1 << 20)
    return list(model.score(Corpus.from_strings(lines, block_bytes=block_bytes), **options))


def logprobs(batches: Sequence[ScoreBatch]) -> list[float]:
    return [value for batch in batches for value in batch.logprob.tolist()]


def by_segment(batches: Sequence[ScoreBatch]) -> list[list[float]]:
    found: list[list[float]] = []
    for batch in batches:
        bounds = np.concatenate(([0], np.cumsum(batch.segment_events))).tolist()
        values = batch.logprob.tolist()
        found += [values[begin:end] for begin, end in pairwise(bounds)]
    return found


# -- 1. coverage --------------------------------------------------------------------------------------------------------


@given(models(), texts(unseen=True))
def test_spans_tile_the_text(model: NgramModel, lines: list[str]) -> None:
    spans: dict[int, list[tuple[int, int]]] = {}
    kinds: dict[int, list[int]] = {}
    for batch in score(model, lines, block_bytes=20):
        for segment, start, end, kind in zip(
            batch.row_segments().tolist(), batch.starts().tolist(), batch.ends.tolist(), batch.kind.tolist(), strict=True
        ):
            spans.setdefault(segment, []).append((start, end))
            kinds.setdefault(segment, []).append(kind)
    ends = int(model.settings.eos)
    assert ends == 0 or list(spans) == list(range(len(lines)))
    for segment, line in enumerate(lines):
        if segment not in spans:
            assert not line.strip(" \t")  # without tokens there is no event for its blanks to belong to
            continue
        reached = 0
        for start, end in spans[segment]:
            assert start == reached
            assert end >= start
            reached = end
        assert reached == len(line.encode())
        assert kinds[segment].count(2) == ends
        assert not ends or kinds[segment][-1] == 2  # </s> is last, and takes the white space that is left
        if model.tokenizer.unit == "word":
            covered = [line.encode()[a:b].decode().strip(" \t") for a, b in spans[segment]]
            assert covered == [*[word for word in line.replace("\t", " ").split(" ") if word], *[""] * ends]


@given(models(), texts(unseen=True))
def test_denominators_are_counted_from_the_text(model: NgramModel, lines: list[str]) -> None:
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(lines))
    assert evaluation.segments == len(lines)
    assert evaluation.bytes == sum(len(line.encode()) for line in lines)
    assert evaluation.characters == sum(map(len, lines))
    assert evaluation.words == sum(len(line.encode().split()) for line in lines)


# -- 2. normalisation ---------------------------------------------------------------------------------------------------


@settings(max_examples=120)
@given(models(tokenizers=("whitespace",)), st.data())
def test_probabilities_sum_to_one(model: NgramModel, data: st.DataObject) -> None:
    """After every context, seen or not; but for maximum likelihood, which knows nothing of contexts it has not seen."""
    ids = [i for i in range(len(model.vocabulary)) if i != EOS or model.context_policy.runs_on]
    context = data.draw(st.lists(st.sampled_from(ids), max_size=model.order + 1))
    p = np.exp(model.log_distribution(context))
    total = math.fsum(p.tolist())
    assert p.min() >= 0
    assert p[BOS] == 0
    if model.vocabulary.closed:
        assert p[0] == 0
    if not model.settings.eos:
        assert p[EOS] == 0
    if model.settings.kind == "mle" and total == 0:
        return
    assert total == pytest.approx(1, abs=1e-6)


@settings(max_examples=60)
@given(models(tokenizers=("whitespace",), order=3), st.data())
def test_every_context_sums_to_one(model: NgramModel, data: st.DataObject) -> None:
    size = len(model.vocabulary)
    for context in [[], *([i] for i in range(size)), *([i, j] for i in range(size) for j in range(size))]:
        total = math.fsum(np.exp(model.log_distribution(context)).tolist())
        assert total == pytest.approx(1, abs=1e-6) or (model.settings.kind == "mle" and total == 0), context


# -- 3. causality -------------------------------------------------------------------------------------------------------


@given(models(), texts(unseen=True), st.lists(words, max_size=4), st.data())
def test_later_text_changes_nothing_before_it(
    model: NgramModel, lines: list[str], other: list[str], data: st.DataObject
) -> None:
    """Tokens are cut off after a line's first ones, and others put in their place; later lines change as well."""
    at = data.draw(st.integers(0, len(lines) - 1))
    pieces = [*lines[at].split(" ")]
    kept = " ".join(pieces[: data.draw(st.integers(0, len(pieces)))])
    changed = [*lines[:at], " ".join([kept, *other]), *data.draw(texts())]
    before = by_segment(score(model, lines, block_bytes=16))
    after = by_segment(score(model, changed, block_bytes=16))
    assert after[:at] == before[:at]
    common = _common_tokens(model, lines[at], changed[at])
    assert after[at][:common] == before[at][:common]


def _common_tokens(model: NgramModel, first: str, second: str) -> int:
    a, b = (
        [token for segments in Corpus.from_strings([text]) for token in model.tokenizer.tokenize(segments).strings()]
        for text in (first, second)
    )
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# -- 4. batch invariance ------------------------------------------------------------------------------------------------


@given(models(), texts(unseen=True), st.integers(1, 60), st.integers(1, 4))
def test_blocks_and_threads_change_nothing(model: NgramModel, lines: list[str], block_bytes: int, threads: int) -> None:
    whole = score(model, lines, threads=1)
    parts = score(model, lines, threads=threads, block_bytes=block_bytes)
    assert logprobs(parts) == logprobs(whole)
    for name in ("context",):
        assert np.array_equal(
            np.concatenate([batch.extra[name] for batch in parts]), np.concatenate([batch.extra[name] for batch in whole])
        )
    bare = score(model, lines, threads=threads, block_bytes=block_bytes, spans=False)
    assert logprobs(bare) == logprobs(whole)


@given(models(context="sentence"), texts(unseen=True), st.randoms(use_true_random=False))
def test_neighbours_change_nothing(model: NgramModel, lines: list[str], random: Any) -> None:
    expected = by_segment(score(model, lines))
    for line, values in zip(lines, expected, strict=True):
        assert by_segment(score(model, [line])) == [values]
    order = list(range(len(lines)))
    random.shuffle(order)
    shuffled = by_segment(score(model, [lines[i] for i in order], block_bytes=24))
    assert shuffled == [expected[i] for i in order]


@settings(max_examples=40)
@given(texts(), st.sampled_from(KINDS), st.integers(1, 4), st.booleans())
def test_training_does_not_depend_on_threads_or_blocks(lines: list[str], kind: Any, order: int, stream: bool) -> None:
    options: dict[str, Any] = {"k": 0.5} if kind == "lidstone" else {}
    options |= {"order": order, "context": "stream" if stream else "sentence"}
    prints = {
        lmgauge.train(kind, Corpus.from_strings(lines, block_bytes=size), threads=threads, **options).fingerprint
        for threads, size in [(1, 1 << 20), (2, 10), (3, 50), (5, 1)]
    }
    assert len(prints) == 1


# -- 5. additivity ------------------------------------------------------------------------------------------------------


@given(models(context="sentence", eos=True), texts(unseen=True), st.data())  # every line has an event, so a number
def test_parts_add_up(model: NgramModel, lines: list[str], data: st.DataObject) -> None:
    groups = [data.draw(st.sampled_from("xyz")) for _ in lines]
    corpus = Corpus.from_strings(lines, groups=groups, block_bytes=data.draw(st.sampled_from([8, 40, 1 << 20])))
    whole, *parts = lmgauge.evaluate(model, corpus, by_group=True)
    assert {part.group for part in parts} == set(groups)
    for name in (
        "segments", "words", "characters", "bytes", "events", "tokens", "sentence_ends", "oov", "zero_probability_events",
        "lossy_segments",
    ):  # fmt: skip
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name), name
    assert math.fsum(part.log_probability for part in parts) == pytest.approx(whole.log_probability, rel=1e-14)
    alone = [lmgauge.evaluate(model, Corpus.from_strings([line])) for line in lines]
    assert math.fsum(part.log_probability for part in alone) == pytest.approx(whole.log_probability, rel=1e-14)
    for part in parts:
        chosen = [line for line, group in zip(lines, groups, strict=True) if group == part.group]
        by_itself = lmgauge.evaluate(model, Corpus.from_strings(chosen))
        for name in ("perplexity", "bits_per_byte", "bits_per_byte_is_bound", "oov_rate", "perplexity_without_zeros"):
            assert getattr(part, name) == getattr(by_itself, name), name


# -- 6. nothing silent --------------------------------------------------------------------------------------------------


@given(models(tokenizers=("whitespace",)), texts(unseen=True))
def test_nothing_is_silent(model: NgramModel, lines: list[str]) -> None:
    evaluation = lmgauge.evaluate(model, Corpus.from_strings(lines))
    values = np.array(logprobs(score(model, lines)))
    tokens = [word for line in lines for word in line.replace("\t", " ").split(" ") if word]
    unknown = [word for word in tokens if word not in model.vocabulary]
    lossy = [line for line in lines if " ".join(w for w in line.replace("\t", " ").split(" ") if w) != line]
    assert not np.isnan(values).any()
    assert values.max() <= 0
    assert evaluation.oov == len(unknown)
    assert evaluation.oov_rate == (len(unknown) / len(tokens) if tokens else 0)
    assert evaluation.lossy_segments == len(lossy)
    assert evaluation.zero_probability_events == np.count_nonzero(np.isinf(values))
    assert math.isinf(evaluation.perplexity) == bool(np.isinf(values).any())
    assert evaluation.bits_per_byte_is_bound == bool(unknown or lossy)
    if model.vocabulary.closed:
        assert evaluation.zero_probability_events >= len(unknown)
    for event in evaluation.first_zero_probability_events:
        segment = by_segment(score(model, lines))[event.segment]
        assert segment[event.position] == -math.inf


# -- both ways of asking ------------------------------------------------------------------------------------------------


@given(models(), texts(unseen=True))
def test_distribution_and_score_agree(model: NgramModel, lines: list[str]) -> None:
    context = [BOS]
    for batch in score(model, lines, block_bytes=30):
        segments = batch.row_segments().tolist()
        for i, (token, logprob) in enumerate(zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True)):
            if model.settings.context == "sentence" and (i == 0 or segments[i] != segments[i - 1]):
                context = [BOS]
            value = model.log_distribution(context)[token]
            assert value == logprob or value == pytest.approx(logprob, rel=1e-12, abs=1e-12)
            context = [*context, token]
