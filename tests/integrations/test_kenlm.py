"""The kenlm package's names, held against the package where it is installed; and what pyctcdecode makes of them."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lmgauge
import lmgauge.integrations.kenlm as ours
from lmgauge import Corpus

WORDS = ["the", "cat", "sat", "on", "a", "mat", "zebra", "</s>"]


@pytest.fixture(scope="module")
def arpa(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kenlm") / "kn3.arpa"
    corpus = Corpus.from_files(data / "classic-books.train.txt")
    lmgauge.train("modified-kneser-ney", corpus, order=3).save(path)
    return path


@pytest.fixture(scope="module")
def model(arpa: Path) -> ours.Model:
    return ours.LanguageModel(str(arpa))


@pytest.fixture
def lines(data: Path) -> list[str]:
    return (data / "classic-books.test.txt").read_text(encoding="utf-8").splitlines()[:300]


def total(model: Any, sentence: str, **options: bool) -> float:
    return sum(score for score, _, _ in model.full_scores(sentence, **options))


def test_full_scores_add_up(model: ours.Model, lines: list[str]) -> None:
    for line in lines[:50]:
        assert total(model, line) == pytest.approx(model.score(line), abs=1e-3)
        for bos in (False, True):
            for eos in (False, True):
                assert total(model, line, bos=bos, eos=eos) == pytest.approx(model.score(line, bos=bos, eos=eos), abs=1e-3)


def test_states_add_up(model: ours.Model) -> None:
    state, other = ours.State(), ours.State()
    model.BeginSentenceWrite(state)
    accumulated = model.BaseScore(state, "the", other)
    accumulated += model.BaseScore(other, "cat", state)
    assert accumulated == pytest.approx(model.score("the cat", eos=False), abs=1e-5)
    accumulated += model.BaseScore(state, "</s>", other)
    assert accumulated == pytest.approx(model.score("the cat"), abs=1e-5)
    model.NullContextWrite(state)
    alone = model.BaseFullScore(state, "zzz", other)
    assert (alone.ngram_length, alone.oov) == (1, True)
    assert alone.log_prob == pytest.approx(model.score("zzz", bos=False, eos=False), abs=1e-5)
    assert repr(alone).startswith("FullScoreReturn(-")


def test_states_are_values_that_change(model: ours.Model) -> None:
    a, b, c = ours.State(), ours.State(), ours.State()
    assert a == b
    assert hash(a) == hash(b)
    model.BeginSentenceWrite(a)
    model.NullContextWrite(b)
    assert a != b
    assert b < a
    assert a >= b
    copied = copy.copy(a)
    assert copied == a == copy.deepcopy(a)
    model.BaseScore(a, "the", c)
    assert copied == a
    expected = model.BaseScore(c, "cat", b)
    assert model.BaseScore(c, "cat", c) == expected  # in place
    assert c == b
    fresh = ours.State()
    model.NullContextWrite(b)
    assert model.BaseScore(fresh, "the", c) == model.BaseScore(b, "the", a)


def test_states_of_another_model_are_refused(model: ours.Model, arpa: Path) -> None:
    state = ours.State()
    ours.Model(str(arpa)).BeginSentenceWrite(state)
    with pytest.raises(ValueError, match="another model"):
        model.BaseScore(state, "the", ours.State())


def test_what_surrounds_a_model(model: ours.Model, arpa: Path, tmp_path: Path) -> None:
    config = ours.Config()
    config.load_method, config.show_progress = ours.LoadMethod.READ, False
    config.arpa_complain = ours.ARPALoadComplain.NONE
    again = ours.Model(str(arpa).encode(), config)
    assert (again.order, again.path, repr(again)) == (3, str(arpa).encode(), "<Model from kn3.arpa>")
    assert ("the" in model, b"the" in model, "</s>" in model, "zzzz" in model) == (True, True, True, False)
    assert ("<unk>" in model, b"<unk>" in model) == (False, False)
    assert model.perplexity("the cat") == pytest.approx(10 ** (-model.score("the cat") / 3))
    kind, arguments = model.__reduce__()
    assert kind(*arguments).score("the cat") == model.score("the cat") == model.score(b"the  cat\n")
    with pytest.raises(OSError, match="Cannot read model"):
        ours.Model(str(tmp_path / "missing.arpa"))
    for wrong in (lambda: model.score(3), lambda: 3 in model):  # type: ignore[arg-type, operator]
        with pytest.raises(TypeError, match=r"incompatible|string"):
            wrong()
    long = " ".join(["the"] * 5000)
    assert model.score(long) == pytest.approx(total(model, long), rel=1e-4)


@pytest.mark.parametrize(
    "sentence", ["the\u00a0man said", "the\u2003man\x1csaid\x85", "the\x0bman\x0csaid\rso", b"the man", "", " "]
)
def test_words_end_at_the_white_space_of_ascii(model: ours.Model, sentence: str | bytes) -> None:
    """As for KenLM: a no-break space is a character of a word. (It once was not, and the perplexity 1,597 for 18,664.)"""
    words = len(list(model.full_scores(sentence)))  # with </s>
    assert model.perplexity(sentence) == pytest.approx(10 ** (-model.score(sentence) / words))


def test_the_package_gives_the_same(model: ours.Model, arpa: Path, lines: list[str]) -> None:
    kenlm = pytest.importorskip("kenlm")
    theirs = kenlm.Model(str(arpa))
    assert theirs.order == model.order
    for word in ("the", "zzzz", "<unk>", b"<unk>", "<s>", "</s>", ""):
        assert (word in model) == (word in theirs)
    for line in (*lines, "the\u00a0man said", "the\u2003man\x1csaid\x85", "the\x0bman\x0csaid\rso"):
        assert model.perplexity(line) == pytest.approx(theirs.perplexity(line), rel=1e-5)
        assert model.score(line) == pytest.approx(theirs.score(line), rel=2e-6, abs=1e-5)
        for bos, eos in ((True, True), (False, False)):
            rows = list(model.full_scores(line, bos, eos)), list(theirs.full_scores(line, bos, eos))
            assert [row[1:] for row in rows[0]] == [row[1:] for row in rows[1]]
            np.testing.assert_allclose([row[0] for row in rows[0]], [row[0] for row in rows[1]], atol=2e-6)
    rng = np.random.default_rng(0)
    names = sorted({word for line in lines[:40] for word in line.split()} | set(WORDS))
    for _ in range(300):
        pairs = [(ours.State(), ours.State()), (kenlm.State(), kenlm.State())]
        for (state, _other), one in zip(pairs, (model, theirs), strict=True):
            one.NullContextWrite(state)
        for word in rng.choice(names, 6).tolist():
            scores = [
                one.BaseFullScore(state, word, other) for (state, other), one in zip(pairs, (model, theirs), strict=True)
            ]
            assert scores[0].log_prob == pytest.approx(scores[1].log_prob, abs=2e-6)
            assert scores[0].ngram_length == scores[1].ngram_length
            assert scores[0].oov == scores[1].oov
            pairs = [(other, state) for state, other in pairs]


def _beams(module: ModuleType, arpa: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """What pyctcdecode makes of noise and a sentence, with `module` as its kenlm."""
    monkeypatch.setitem(sys.modules, "kenlm", module)  # the one line that a project needs: it imports kenlm by name
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyctcdecode"]:
        monkeypatch.delitem(sys.modules, name)
    from pyctcdecode import build_ctcdecoder  # type: ignore[import-not-found, import-untyped, unused-ignore]

    labels = ["", " ", *"abcdefghijklmnopqrstuvwxyz"]
    decoder = build_ctcdecoder(
        labels, str(arpa), unigrams=["the", "cat", "sat", "on", "a", "mat", "man", "and", "of", "that"]
    )
    rng = np.random.default_rng(3)
    beams = []
    for sentence in ("the man sat on a mat", "that cat and the man of the"):
        logits = rng.normal(size=(2 * len(sentence), len(labels))) * 1.5
        for i, letter in enumerate(sentence):
            logits[2 * i, labels.index(letter)] += 3
            logits[2 * i + 1, 0] += 3
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        beams += [(beam[0], beam[-1]) for beam in decoder.decode_beams(logits, beam_width=40)]
    return beams


def test_pyctcdecode_gives_the_same_beams(arpa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyctcdecode")
    theirs = _beams(pytest.importorskip("kenlm"), arpa, monkeypatch)
    mine = _beams(ours, arpa, monkeypatch)
    assert [text for text, _ in mine] == [text for text, _ in theirs]
    np.testing.assert_allclose([score for _, score in mine], [score for _, score in theirs], atol=1e-3)
    assert len(mine) > 10
