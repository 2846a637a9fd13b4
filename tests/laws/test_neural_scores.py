"""The laws of CONTRIBUTING.md for scores of neural networks, over random text in any script."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.models.network.conftest import TOKENIZERS, network  # noqa: E402

from lmgauge.base.errors import InputError, UsageError  # noqa: E402
from lmgauge.evaluation.denominators import count_denominators  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch.model import NeuralModel  # noqa: E402
from lmgauge.scores import ScoreBatch  # noqa: E402
from lmgauge.scores.distributions import Rank  # noqa: E402
from lmgauge.scores.distributions.reduce import reduce  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402

EXAMPLES = settings(max_examples=12)
characters = st.one_of(
    st.sampled_from(list("the cat sat. \t")), st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n")
)
lines = st.lists(st.text(characters, max_size=30), min_size=1, max_size=6)
kinds = st.sampled_from([("gpt2", "byte-level"), ("llama", "byte-fallback"), ("gpt2", "lowercasing")])
policies = st.sampled_from(
    [
        {},
        {"context": 8, "stride": 8},
        {"context": 8, "stride": 3},
        {"stream": True, "context": 16, "stride": 8},
        {"end": "none"},
        {"first_token": "uniform", "context": 5},
    ]
)


@cache
def parts(kind: str, tokenizer: str) -> tuple[Any, Any]:
    """A network and its tokenizer, made once."""
    own = TOKENIZERS[tokenizer]()
    return network(kind, len(own)), own


def model(kind: tuple[str, str], policy: dict[str, Any], **options: Any) -> NeuralModel:
    torch.set_num_threads(1)
    return NeuralModel.wrap(*parts(*kind), ScoringOptions(**policy, **options))


def score(scored: NeuralModel, text: list[str], **options: Any) -> list[ScoreBatch]:
    return list(scored.score(Corpus.from_strings(text, **options), threads=1))


def by_segment(batches: list[ScoreBatch]) -> list[list[float]]:
    found: list[list[float]] = []
    for batch in batches:
        bounds = np.concatenate(([0], np.cumsum(batch.segment_events))).tolist()
        found += [batch.logprob[begin:end].tolist() for begin, end in pairwise(bounds)]
    return found


@EXAMPLES
@given(kinds, policies, lines)
def test_spans_tile_the_text(kind: tuple[str, str], policy: dict[str, Any], text: list[str]) -> None:
    corpus = Corpus.from_strings(text, block_bytes=40)
    for block, batch in zip(corpus, model(kind, policy).score(corpus), strict=True):
        assert batch.segments.tolist() == list(range(block.first, block.first + len(block)))
        assert len(batch) == batch.segment_events.sum() == len(batch.ends)
        starts, ends, owners = batch.starts(), batch.ends, batch.row_segments()
        assert (starts <= ends).all()
        for segment in batch.segments.tolist():
            rows = owners == segment
            size = len(block.text(segment - block.first))
            if not rows.any():
                assert size == 0 or batch.lossy[segment - block.first]
                continue
            assert starts[rows][0] == 0
            assert ends[rows][-1] == size
            assert (starts[rows][1:] == ends[rows][:-1]).all()
        assert count_denominators(block).bytes == sum(len(block.text(i)) for i in range(len(block)))
        assert not np.isnan(batch.logprob).any()
        assert (batch.logprob <= 0).all()


@EXAMPLES
@given(kinds, policies, lines)
def test_sums_of_parts_are_the_sum_of_the_whole(kind: tuple[str, str], policy: dict[str, Any], text: list[str]) -> None:
    scored = model(kind, policy)
    whole = by_segment(score(scored, text))
    blocks = by_segment(score(scored, text, block_bytes=25))
    assert [len(one) for one in whole] == [len(one) for one in blocks]
    for one, other in zip(whole, blocks, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    if not scored.context_policy.runs_on:
        alone = [by_segment(score(scored, [line]))[0] for line in text]
        total = math.fsum(value for values in whole for value in values)
        apart = math.fsum(value for values in alone for value in values)
        assert apart == pytest.approx(total, rel=1e-6, abs=1e-4)


@EXAMPLES
@given(kinds, policies, lines, st.integers(1, 200), st.randoms())
def test_neighbours_in_the_batch_change_nothing(
    kind: tuple[str, str], policy: dict[str, Any], text: list[str], tokens: int, random: Any
) -> None:
    one = by_segment(score(model(kind, policy, batch_tokens=tokens), text))
    other = model(kind, policy, batch_tokens=10_000)
    order = list(range(len(text)))
    if not other.context_policy.runs_on:
        random.shuffle(order)
    found = by_segment(score(other, [text[i] for i in order]))
    for place, i in enumerate(order):
        np.testing.assert_allclose(found[place], one[i], atol=1e-4)


@EXAMPLES
@given(kinds, policies, lines, lines, st.data())
def test_what_comes_later_changes_nothing(
    kind: tuple[str, str], policy: dict[str, Any], text: list[str], later: list[str], data: st.DataObject
) -> None:
    scored = model(kind, policy)
    known = by_segment(score(scored, text))
    longer = by_segment(score(scored, text + later))[: len(text)]
    for one, other in zip(known, longer, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    # Within a segment, too: the same tokens before, whatever stands after them.
    line = data.draw(st.sampled_from(text))
    (one,) = score(scored, [line])
    (other,) = score(scored, [line + " x" + later[0]])
    ids = zip(one.token_ids.tolist(), other.token_ids.tolist(), strict=False)
    same = next((i for i, (a, b) in enumerate(ids) if a != b), min(len(one), len(other)))
    np.testing.assert_allclose(one.logprob[:same], other.logprob[:same], atol=1e-4)


@EXAMPLES
@given(kinds, policies, st.text(characters, max_size=20))
def test_probabilities_sum_to_one_and_are_the_scores(kind: tuple[str, str], policy: dict[str, Any], line: str) -> None:
    scored = model(kind, policy)
    (batch,) = score(scored, [line])
    context = [1]
    for token, logprob in zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True):
        distribution = scored.log_distribution(context)
        assert math.fsum(np.exp(distribution)) == pytest.approx(1, abs=1e-9)
        assert distribution[token] == pytest.approx(logprob, abs=1e-4)
        context.append(token)


PIECES = st.sampled_from(["The cat", " sat", " on the", " mat", "Zw", "ölf", " 株式", "🙂", "\n", " "])


@EXAMPLES
@given(
    kinds,
    st.sampled_from(
        [{"end": "none"}, {"end": "none", "first_token": "uniform"}, {"end": "none", "first_token": "unscored"}]
    ),
    st.lists(PIECES, min_size=1, max_size=3).map("".join),
    st.lists(PIECES, min_size=1, max_size=3).map("".join),
)
def test_text_after_given_text_has_the_rows_of_both_as_one(
    kind: tuple[str, str], policy: dict[str, Any], before: str, text: str
) -> None:
    """p(given and text) = p(given) p(text | given), and no row depends on the segments beside it."""
    scored = model(kind, policy)
    (whole,) = score(scored, [before + text])
    size = len(before.encode())
    own = whole.ends > size
    if not own.any():
        with pytest.raises(InputError, match="nothing to score"):
            list(scored.score(Corpus.from_strings([text], given=[before])))
        return
    (batch,) = scored.score(Corpus.from_strings([text], given=[before]))
    assert batch.token_ids.tolist() == whole.token_ids[own].tolist()
    assert batch.logprob == pytest.approx(whole.logprob[own], abs=scored.tolerance)
    assert batch.ends.tolist() == (whole.ends[own] - size).tolist()
    (several,) = scored.score(Corpus.from_strings(["The mat", text, "a cat"], given=["on", before, "sat"]))
    assert several.logprob[several.row_segments() == 1] == pytest.approx(batch.logprob, abs=scored.tolerance)
    reduced = next(reduce(scored, Corpus.from_strings([text], given=[before]), [Rank()]))
    assert reduced.logprob == pytest.approx(batch.logprob, abs=scored.tolerance)


def test_given_text_is_followed_apart_and_fits_one_window() -> None:
    scored = model(("gpt2", "byte-level"), {"end": "none", "context": 6})
    (batch,) = scored.score(Corpus.from_strings([" sat"], given=["The cat"], boundary="apart"))
    assert batch.before is not None
    ids = [1, *batch.before.ids.tolist()]
    for token, logprob in zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True):
        assert logprob == pytest.approx(
            float(scored.log_distribution(np.array(ids, np.uint32))[token]), abs=scored.tolerance
        )
        ids.append(token)
    with pytest.raises(InputError, match=r"<strings>, record 2: .* do not fit into one window of .*, which has room for 6"):
        list(scored.score(Corpus.from_strings([" sat", " sat on the mat"], given=["The cat", "The cat"])))
    running = model(("gpt2", "byte-level"), {"stream": True, "context": 16, "stride": 8})
    with pytest.raises(UsageError, match=r"its context (continues|spans)"):
        list(running.score(Corpus.from_strings([" sat"], given=["The cat"])))
