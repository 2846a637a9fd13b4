"""The functions of `import lmgauge`: the words of the command line, and results that explain themselves."""

from __future__ import annotations

import inspect
import io
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, LanguageModel, NgramModel, Vocabulary
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.ngram.settings import NgramTrainingSettings


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "train.txt"
    path.write_text("a b c\nb c a\na b\n" * 5)
    return path


def test_a_path_several_or_a_corpus(text: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.txt"
    second.write_text("x y\n")
    one = lmgauge.train("laplace", text, order=2)
    assert lmgauge.train("laplace", str(text), order=2).fingerprint == one.fingerprint
    assert lmgauge.train("laplace", Corpus.from_files([text]), order=2).fingerprint == one.fingerprint
    both = lmgauge.train("laplace", [text, str(second)], order=2)
    assert "x" in both.vocabulary
    assert lmgauge.train("laplace", tmp_path / "*.txt", order=2).vocabulary.tokens.count("x") == 1


def test_options_are_settings_by_name(text: Path) -> None:
    whole = NgramTrainingSettings("absolute-discounting", order=2, discount=0.5, words=["a", "b"])
    by_name = lmgauge.train("absolute-discounting", text, order=2, discount=0.5, words=["a", "b"])
    assert lmgauge.train("absolute-discounting", text, training=whole).fingerprint == by_name.fingerprint
    assert lmgauge.train("absolute-discounting", text, training=whole, order=3).order == 3


def test_order_3_modified_kneser_ney(text: Path) -> None:
    model = lmgauge.train("modified-kneser-ney", text)
    assert isinstance(model, NgramModel)
    assert isinstance(model, LanguageModel)
    assert model.order == 3
    assert model.label == "mkn3"
    assert isinstance(model.vocabulary, Vocabulary)
    assert model.vocabulary.tokens == ["<unk>", "<s>", "</s>", "a", "b", "c"]
    assert "modified-kneser-ney" in repr(model)
    assert model.record.training["segments"] == 15
    assert model.record.training["events"] == 40 + 15
    assert model.to_dict()["types"] == model.types


def test_log_distribution(text: Path) -> None:
    model = lmgauge.train("witten-bell", text, order=2)
    given = model.log_distribution(np.array([1, 3], np.uint32))
    assert given.dtype == np.float64
    assert given.shape == (6,)
    assert given[1] == -np.inf
    assert np.array_equal(given, model.log_distribution([4, 4, 3]))  # a bigram model sees one word
    kept = given.copy()
    given[:] = 0  # what is handed out is the caller's
    assert np.array_equal(model.log_distribution([1, 3]), kept)
    for bad in ([6], [-1], [2**40]):
        with pytest.raises(UsageError, match="context ids"):
            model.log_distribution(bad)


def test_context_does_not_reach_over_the_beginning_of_a_sentence(text: Path) -> None:
    model = lmgauge.train("witten-bell", text, order=4)
    assert np.array_equal(model.log_distribution([3, 4, 2, 1, 3]), model.log_distribution([1, 3]))


def test_evaluate_one_several_and_groups(text: Path, tmp_path: Path) -> None:
    model = lmgauge.train("laplace", text, order=2)
    model.save(tmp_path / "model")
    one = lmgauge.evaluate(model, text)
    assert isinstance(one, lmgauge.results.Evaluation)
    assert lmgauge.evaluate(tmp_path / "model", text).perplexity == one.perplexity
    several = lmgauge.evaluate([model, str(tmp_path / "model")], text)
    assert isinstance(several, lmgauge.results.Evaluations)
    assert len(several) == 2
    assert len(several.to_dict()) == 2
    assert [line.split()[0] for line in str(several).splitlines()[2:4]] == [item.model for item in several]
    groups = lmgauge.evaluate(model, [text], by_group=True)
    assert [item.group is None for item in groups] == [True, False]


def test_progress_is_told_in_words(text: Path) -> None:
    stages: list[str] = []
    lmgauge.train("kneser-ney", text, prune=1e-9, progress=stages.append)
    words = "reading counting asking adjusting summing estimating dealing pruning: measuring placing"
    assert list(dict.fromkeys(stage.split(" ")[0] for stage in stages)) == words.split(" ")


def test_errors_are_ours_and_say_where(text: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.txt"):
        lmgauge.train("laplace", tmp_path / "missing.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        lmgauge.train("laplace", tmp_path / "empty.txt")
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xffd\n")
    with pytest.raises(InputError, match=r"bad\.txt.*2"):
        lmgauge.train("laplace", tmp_path / "bad.txt")
    with pytest.raises(ModelFileError, match="no such model"):
        lmgauge.evaluate(tmp_path / "nope", text)
    with pytest.raises(ModelFileError):
        lmgauge.evaluate(text, text)
    assert issubclass(lmgauge.base.errors.InputError, ValueError)
    assert issubclass(lmgauge.base.errors.UsageError, lmgauge.LmgaugeError)


def test_a_line_without_end_and_a_long_one(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.txt", tmp_path / "cut.txt"
    whole.write_bytes(b"a b\nc\n")
    cut.write_bytes(b"a b\nc")
    assert lmgauge.train("laplace", whole).fingerprint == lmgauge.train("laplace", cut).fingerprint
    long = tmp_path / "long.txt"
    long.write_bytes(b"a b c d " * 400_000)
    model = lmgauge.train("modified-kneser-ney", long, order=3)
    assert model.record.training["events"] == 1_600_001
    assert lmgauge.evaluate(model, long).events == 1_600_001


def test_words_with_a_lone_surrogate_are_refused(text: Path) -> None:
    with pytest.raises(lmgauge.LmgaugeError):
        lmgauge.train("laplace", text, words=["a", "\ud800"])


def test_standard_input_is_read_once(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(text.read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin())
    model = lmgauge.train("laplace", "-", order=2)
    assert model.fingerprint == lmgauge.train("laplace", text, order=2).fingerprint


def test_the_public_names_have_docstrings() -> None:
    for name in lmgauge.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(lmgauge, name)), name
