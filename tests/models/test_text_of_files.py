"""Models of other programs, whose files do not say how text is cut: CCNet's are a KenLM binary and a SentencePiece model."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.reference.normalizers import ccnet

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.registry import load_model

DATA = Path(__file__).parent.parent / "data"
OPTIONS: list[dict[str, Any]] = [{"tokenizer": "character"}, {"normalizer": "ccnet"}, {"tokenizer": "ccnet+whitespace"}]


def loaded(path: Path, **options: Any) -> NgramModel:
    model = load_model(path, **options)
    assert isinstance(model, NgramModel)
    return model


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what CCNet publishes for a language: en.sp.model, and a model of its pieces as words, in both forms."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("ccnet")
    lines = [ccnet(line) for line in (DATA / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:300]]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=400, minloglevel=2, num_threads=1
    )
    (folder / "en.sp.model").write_bytes(out.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    text = Corpus.from_strings([" ".join(pieces.encode_as_pieces(line)) for line in lines])
    model = lmgauge.train("modified-kneser-ney", text, order=4)
    for name in ("en.arpa.bin", "en.arpa"):
        model.save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["en.arpa.bin", "en.arpa"])
def test_a_model_of_ccnet_gives_the_perplexities_of_its_loop(theirs: Path, name: str) -> None:
    """datatrove's loop is the same: normalize, cut, and score each line of what is left; newlines were dropped before."""
    kenlm, sentencepiece = pytest.importorskip("kenlm"), pytest.importorskip("sentencepiece")
    lines = (DATA / "classic-books.test.txt").read_text(encoding="utf-8").splitlines()
    documents = ["\n".join(lines[i : i + 7]) for i in range(0, 140, 7)]
    documents += [
        *(DATA / "pud.de.txt").read_text(encoding="utf-8").splitlines()[:10],
        "Ünï — «x» 1984… 猫\u00a0",
        "",
        " \n ",
    ]
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(theirs / "en.sp.model"))
    model = kenlm.Model(str(theirs / "en.arpa.bin"))
    ours = loaded(theirs / name, tokenizer=str(theirs / "en.sp.model"), normalizer="ccnet").score_text(documents)
    for document, scored in zip(documents, ours, strict=True):
        text = " ".join(pieces.encode_as_pieces(ccnet(document)))
        log10, length = 0.0, 0
        for line in text.split("\n"):
            log10 += sum(score for score, _, _ in model.full_scores(line))  # model.score adds in single precision
            length += len(line.split()) + 1
        assert len(scored.logprobs) == length
        assert scored.perplexity == pytest.approx(10 ** (-log10 / length), rel=1e-6)
        assert scored.spans[-1][1] == len(document.encode())


def test_trained_here_it_is_the_same_model(theirs: Path, tmp_path: Path) -> None:
    """Trained on the text itself, and written for KenLM, it counts what CCNet counts in text that was cut before."""
    lines = (DATA / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:300]
    cut = {"tokenizer": str(theirs / "en.sp.model"), "normalizer": "ccnet"}
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=4, **cut)  # type: ignore[arg-type]
    model.save(tmp_path / "en.arpa.bin")
    model.save(tmp_path / "en")
    text = "It was 1775, — «the» best of times."
    expected = loaded(theirs / "en.arpa.bin", **cut).score_text(text)
    assert loaded(tmp_path / "en.arpa.bin", **cut).score_text(text).logprobs == expected.logprobs
    assert loaded(tmp_path / "en").score_text(text).tokens == expected.tokens
    within = lmgauge.train(
        "modified-kneser-ney",
        DATA / "pud.de.txt",
        order=3,
        output=tmp_path / "parts",
        memory="300M",
        **cut,  # type: ignore[arg-type]
    )
    whole = lmgauge.train("modified-kneser-ney", DATA / "pud.de.txt", order=3, **cut)  # type: ignore[arg-type]
    assert within.fingerprint == whole.fingerprint


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    model = lmgauge.train("witten-bell", Corpus.from_strings(["the cat", "a dog"]), order=2)
    for name in ("wb", "wb.arpa", "wb.binary"):
        model.save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["wb.arpa", "wb.binary"])
def test_files_take_a_normalizer_alone(words: Path, name: str) -> None:
    plain, changed = loaded(words / name), loaded(words / name, normalizer="ccnet")
    assert changed.score_text("The Cat").logprobs == plain.score_text("the cat").logprobs
    assert changed.fingerprint != plain.fingerprint
    assert changed.tokenizer.name == loaded(words / name, tokenizer="ccnet+whitespace").tokenizer.name == "ccnet+whitespace"


@pytest.mark.parametrize("options", OPTIONS)
def test_models_that_know_it_take_none(words: Path, options: dict[str, Any]) -> None:
    name = next(iter(options))
    with pytest.raises(UsageError, match=rf"^{name} is for ARPA files and KenLM's binaries .* does not take it"):
        load_model(words / "wb", **options)


def test_what_was_converted_is_still_of_another_program(words: Path, tmp_path: Path) -> None:
    loaded(words / "wb.arpa", normalizer="ccnet").save(tmp_path / "wb")
    stored = loaded(tmp_path / "wb")
    assert stored.tokenizer.name == "ccnet+whitespace"
    assert loaded(tmp_path / "wb", tokenizer="whitespace").score_text("The").kinds[0] == "oov"


def test_runs_say_what_was_chosen_by_its_name(words: Path, tmp_path: Path) -> None:
    scoring = lmgauge.settings.ScoringOptions(tokenizer="whitespace", normalizer="ccnet")
    (tmp_path / "text.txt").write_text("The Cat\n")
    lmgauge.evaluate([words / "wb", words / "wb.arpa"], tmp_path / "text.txt", scoring=scoring, output=tmp_path / "run")
    settings = {
        path.parent.name: json.loads(path.read_text())["settings"] for path in (tmp_path / "run").rglob("evaluation.json")
    }
    assert {name: (chosen["tokenizer"], chosen["normalizer"]) for name, chosen in settings.items()} == {
        "wb": (None, None),
        "wb.arpa": ("ccnet+whitespace", "ccnet"),
    }


def test_unknown_names_are_refused(words: Path) -> None:
    with pytest.raises(UsageError, match="unknown normalizer 'nfc': choose one of ccnet"):
        load_model(words / "wb.arpa", normalizer="nfc")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown tokenizer 'pieces'"):
        load_model(words / "wb.arpa", tokenizer="pieces")
