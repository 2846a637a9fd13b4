"""Binary files that KenLM reads: as large as its own, with the scores of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models.ngram.kenlm.test_reader import WRITTEN, scored, sentences
from tests.reference.kenlm import murmur, take_apart

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.models.ngram.arpa_reader import read_arpa
from lmgauge.models.ngram.kenlm.reader import read_kenlm


@pytest.mark.parametrize("form", WRITTEN)
@pytest.mark.parametrize(
    ("kind", "options"),
    [("kneser-ney", {}), ("good-turing", {"cutoffs": (0, 0, 1)}), ("witten-bell", {"vocabulary": "closed"})],
)
def test_kenlm_gives_the_scores_of_the_model(kind: Any, options: dict[str, Any], form: str, tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    model = lmgauge.train(kind, lmgauge.Corpus.from_strings(sentences(7, 150)), order=3, **options)
    model.save(tmp_path / "lm.binary", **WRITTEN[form])
    theirs, texts = kenlm.Model(str(tmp_path / "lm.binary")), sentences(8, 100)
    wanted = np.array([value for text in texts for value, _, _ in theirs.full_scores(text)]) * np.log(10)
    ours = scored(model, texts).logprob
    possible = np.isfinite(ours)  # a closed vocabulary rules unseen words out; build_binary gives them -100
    if "quantized" in form:
        assert wanted[possible].mean() == pytest.approx(ours[possible].mean(), abs=0.1)
    else:
        assert np.allclose(ours[possible], wanted[possible], atol=2e-6)


def test_pruned_models_keep_what_longer_ngrams_need(tmp_path: Path) -> None:
    model = lmgauge.train("modified-kneser-ney", lmgauge.Corpus.from_strings(sentences(9, 300)), order=4, prune=1e-4)
    for form in ("probing", "trie"):
        model.save(tmp_path / "lm.binary", **WRITTEN[form])
        texts = sentences(10, 60)
        assert np.allclose(
            scored(read_kenlm(tmp_path / "lm.binary"), texts).logprob, scored(model, texts).logprob, atol=3e-6
        )


def test_bits_that_say_what_can_be_longer(tmp_path: Path) -> None:
    """`b` ends no bigram's beginning and `</s>` begins none: KenLM shortens states by the sign of a zero weight."""
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "a a b"]), order=2)
    model.save(tmp_path / "lm.binary")
    twin = take_apart((tmp_path / "lm.binary").read_bytes())
    weight = dict(zip(twin.words, (twin.values[0][(i,)][1] for i in range(len(twin.words))), strict=True))
    assert np.signbit(weight["</s>"])
    assert weight["</s>"] == 0
    assert weight["a"] < 0


def test_words_of_a_trie_are_sorted_by_their_hashes(tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(sentences(11, 20)), order=2)
    model.save(tmp_path / "lm.klm", trie=True)
    words = take_apart((tmp_path / "lm.klm").read_bytes()).words
    assert words[0] == "<unk>"
    assert words[1:] == sorted(model.vocabulary.tokens[1:], key=lambda word: murmur(word.encode()))


def test_bins_hold_equally_many_values(tmp_path: Path) -> None:
    from lmgauge._kernels import _native

    values, centers = np.sort(np.random.default_rng(2).normal(size=1000).astype(np.float32)), np.empty(16, np.float32)
    _native.center_bins(values, centers)
    wanted = [values[1000 * i // 16 : 1000 * (i + 1) // 16].astype(np.float64).mean() for i in range(16)]
    assert np.allclose(centers, wanted, atol=1e-7)
    codes = np.empty(1000, np.uint32)
    _native.encode_bins(values, centers, 0, codes)
    assert codes.tolist() == np.abs(values[:, None] - centers).argmin(axis=1).tolist()


@pytest.mark.parametrize("form", ["trie", "quantized trie"])
def test_a_trie_of_an_arpa_file_is_that_of_build_binary(form: str, data: Path, tmp_path: Path) -> None:
    read_arpa(data / "kenlm4" / "kenlm4.arpa.gz", logs=True).save(tmp_path / "lm.binary", **WRITTEN[form])
    theirs = data / "kenlm4" / f"{form.replace(' ', '-')}.binary"
    assert (tmp_path / "lm.binary").read_bytes() == theirs.read_bytes()


def test_a_probing_table_of_an_arpa_file_holds_what_that_of_build_binary_holds(data: Path, tmp_path: Path) -> None:
    """Keys that meet at a bucket stand in the order in which they came, which is another."""
    read_arpa(data / "kenlm4" / "kenlm4.arpa.gz", logs=True).save(tmp_path / "lm.binary")
    ours, theirs = (path.read_bytes() for path in (tmp_path / "lm.binary", data / "kenlm4" / "probing.binary"))
    assert len(ours) == len(theirs)
    (one, *higher), (other, *their_higher) = take_apart(ours).values, take_apart(theirs).values
    words, their_words = take_apart(ours).words, take_apart(theirs).words
    assert {words[i]: value for (i,), value in one.items()} == {their_words[i]: value for (i,), value in other.items()}
    assert [sorted(table.values()) for table in higher] == [sorted(table.values()) for table in their_higher]


@pytest.mark.parametrize("form", [{}, {"trie": True, "quantize": (8, 8)}])
def test_the_file_is_the_same_each_time(form: dict[str, Any], tmp_path: Path) -> None:
    corpus = lmgauge.Corpus.from_strings(sentences(12, 100))
    for name, threads in (("a.bin", 1), ("b.bin", 3)):
        lmgauge.train("kneser-ney", corpus, order=3, threads=threads).save(tmp_path / name, **form)
    assert (tmp_path / "a.bin").read_bytes() == (tmp_path / "b.bin").read_bytes()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("laplace", {"order": 2}, "does not back off"),
        ("witten-bell", {"order": 1}, "n-grams of two words or more"),
        ("witten-bell", {"context": "stream"}, "contexts run across lines"),
        ("witten-bell", {"eos": False}, "needs </s>"),
    ],
)
def test_models_without_such_a_form_are_refused(kind: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = lmgauge.train(kind, lmgauge.Corpus.from_strings(["a b", "a"]), **options)
    with pytest.raises(UsageError, match=message):
        model.save(tmp_path / "lm.binary")
    assert not list(tmp_path.iterdir())
