"""Static mixtures: exact where an n-gram is listed, sums of one everywhere, the twin in tests/reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.test_pruning import reference
from tests.reference.static_mixture import probability
from tests.reference.static_mixture import static_mixture as slow_static_mixture

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import UsageError
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.mixture.static import static_mixture
from lmgauge.models.ngram.pruning import prune_model
from lmgauge.text.vocabulary import BOS

KINDS = ["modified-kneser-ney", "witten-bell", "absolute-discounting", "good-turing"]


def model(lines: list[str], kind: str = "witten-bell", order: int = 3, **options: Any) -> NgramModel:
    return lmgauge.train(kind, Corpus.from_strings(lines), order=order, **options)  # type: ignore[arg-type]


words = st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join)
lines = st.lists(words, min_size=1, max_size=5).filter(any)


@settings(max_examples=60)
@given(
    lines,
    lines,
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
    st.integers(1, 2),
)
def test_listed_ngrams_are_exact_and_sums_are_one(
    one: list[str], other: list[str], kind: Any, order: int, weight: float, closed: bool, rarest: int
) -> None:
    options: dict[str, Any] = {"vocabulary": "closed"} if closed else {"min_count": rarest}
    mixture = MixtureModel([model(one, kind, **options), model(other, order=order, prune=1e-2)], [weight, 1 - weight])
    static = static_mixture(mixture)
    assert static.vocabulary.tokens == mixture.vocabulary.tokens
    spelled = [(word,) for word in range(len(static.vocabulary))]
    from lmgauge.models.ngram.ngram_arrays import levels_of

    for level in levels_of(static.tables):
        spelled = [(*spelled[p], w) for p, w in zip(level.parents.tolist(), level.words.tolist(), strict=True)]
        for context in {gram[:-1] for gram in spelled}:
            exact, mine = (np.exp(each.log_distribution(np.array(context, np.uint32))) for each in (mixture, static))
            assert mine.sum() == pytest.approx(1.0, abs=1e-5)
            ends = [g[-1] for g, listed in zip(spelled, level.listed.tolist(), strict=True) if listed and g[:-1] == context]
            assert mine[ends] == pytest.approx(exact[ends], rel=1e-5, abs=1e-7)
    assert np.exp(static.log_distribution([BOS, *static.vocabulary.ids(["zzz", "a"])])).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kinds", [("modified-kneser-ney", "witten-bell"), ("witten-bell", "modified-kneser-ney")])
@pytest.mark.parametrize("rarest", [1, 2])
def test_the_twin_says_the_same(data: Path, tmp_path: Path, kinds: tuple[str, str], rarest: int) -> None:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    parts = [model(text[:14], kinds[0], min_count=rarest), model(text[12:30], kinds[1], 2)]
    static = reference(static_mixture(MixtureModel(parts, [0.4, 0.6])), tmp_path)
    slow = slow_static_mixture([reference(part, tmp_path) for part in parts], [0.4, 0.6])
    assert static.probability.keys() == slow.probability.keys()
    for gram, p in slow.probability.items():
        if gram != ("<s>",):
            assert static.probability[gram] == pytest.approx(p, rel=1e-5)
    for context, weight in slow.weight.items():
        assert static.weight[context] == pytest.approx(weight, rel=1e-3)
    assert probability(slow, ("First", "never")) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_itself_is_that_model(data: Path, kind: str) -> None:
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")[:300]
    one = model(text, kind, 4)
    static = static_mixture(MixtureModel([one, one], [0.25, 0.75]))
    assert static.types == one.types
    corpus = Corpus.from_strings(text[200:])
    own, mixed = (np.concatenate([batch.logprob for batch in each.score(corpus)]) for each in (one, static))
    assert mixed == pytest.approx(own, abs=1e-4)
    assert static.tables.unigrams[:, 0] == pytest.approx(one.tables.unigrams[:, 0], rel=1e-6)


def test_mixtures_in_mixtures_and_weights_of_zero() -> None:
    parts = [model(["a b c"]), model(["b c d"], order=2), model(["d d d a"])]
    inner = MixtureModel(parts[:2], [0.5, 0.5])
    nested = static_mixture(MixtureModel([inner, parts[2]], [0.4, 0.6]))
    flat = static_mixture(MixtureModel(parts, [0.2, 0.2, 0.6]))
    assert nested.types == flat.types
    assert nested.log_distribution([BOS, 3]) == pytest.approx(flat.log_distribution([BOS, 3]), abs=1e-6)
    assert static_mixture(MixtureModel(parts[:2], [1.0, 0.0])).types[1:] == parts[0].types[1:]


def test_what_has_no_ngrams_to_merge() -> None:
    backs_off = model(["a b"])
    with pytest.raises(UsageError, match="does not back off"):
        static_mixture(MixtureModel([backs_off, model(["a b"], "laplace")], [0.5, 0.5]))
    with pytest.raises(UsageError, match="run on across lines"):
        static_mixture(MixtureModel([backs_off, model(["a b"], context="stream")], [0.5, 0.5]))
    with pytest.raises(UsageError, match="n-gram models alone"):
        static_mixture(lmgauge.cache(backs_off, weight=0.5))
    assert static_mixture(MixtureModel([backs_off, model(["a b"], "laplace", 1)], [0.5, 0.5])).order == 3


def test_kenlm_reads_what_is_merged_and_pruned(data: Path, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    text = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")
    parts = [model(text[:400], "modified-kneser-ney"), model(text[350:700], order=2)]
    merged = static_mixture(MixtureModel(parts, [0.6, 0.4]))
    for name, one in (("merged", merged), ("pruned", prune_model(merged, size=sum(merged.types) // 2))):
        lmgauge.models.write_arpa(one, tmp_path / f"{name}.arpa")
        theirs = kenlm.Model(str(tmp_path / f"{name}.arpa"))
        for line in text[700:740]:
            ours = sum(one.score_text(line).logprobs) / np.log(10)
            assert theirs.score(line) == pytest.approx(ours, abs=1e-4)
