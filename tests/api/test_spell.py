"""Models that are given a speller afterwards: which can be, where it goes, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models import SpelledModel

TEXT = ["the cat sat on the mat", "the dog sat", "a cat  and a dog"] * 5
STRANGE = ["the zebra  sat", "", "a\tcat"]
LEARN = Corpus.from_strings(TEXT)


def of_words(**options: object) -> lmgauge.NgramModel:
    return lmgauge.train("witten-bell", LEARN, order=2, **options)  # type: ignore[call-overload, no-any-return]


def mixture() -> lmgauge.LanguageModel:
    return lmgauge.mix([of_words(), lmgauge.train("laplace", LEARN, order=1)], weights=(0.5, 0.5))


def with_cache() -> lmgauge.LanguageModel:
    return lmgauge.cache(of_words(), weight=0.2)


KINDS: dict[str, Callable[[], lmgauge.LanguageModel]] = {
    "words": of_words,
    "characters": lambda: of_words(tokenizer="character"),
    "stream": lambda: of_words(context="stream"),
    "mixture": mixture,
    "cache": with_cache,
}


def nats(model: lmgauge.LanguageModel) -> list[float]:
    corpus = Corpus.from_strings(STRANGE)
    return [float(x) for batch in model.score(corpus) for x in batch.logprob]


@pytest.mark.parametrize("kind", KINDS)
def test_in_its_own_folder_or_another_it_is_the_same_model(kind: str, tmp_path: Path) -> None:
    plain = KINDS[kind]()
    plain.save(tmp_path / "plain")  # type: ignore[attr-defined]
    spelled = lmgauge.spell(plain, LEARN)
    assert lmgauge.load_model(tmp_path / "plain").fingerprint == plain.fingerprint  # nothing was written
    lmgauge.spell(tmp_path / "plain", LEARN, output=tmp_path / "copy")
    assert lmgauge.load_model(tmp_path / "plain").fingerprint == plain.fingerprint
    lmgauge.spell(tmp_path / "plain", LEARN, output=tmp_path / "plain")
    for folder in ("copy", "plain"):
        model = lmgauge.load_model(tmp_path / folder)
        assert isinstance(model, SpelledModel)
        assert model.fingerprint == spelled.fingerprint
        assert nats(model) == nats(spelled)
    assert all(math.isfinite(x) for x in nats(spelled))
    assert not lmgauge.evaluate(spelled, texts=STRANGE).bits_per_byte_is_bound


@pytest.mark.parametrize("name", ["theirs.arpa", "trie.binary"])
def test_files_of_other_programs_become_folders(name: str, tmp_path: Path) -> None:
    of_words().save(tmp_path / name, trie=name.startswith("trie"))
    with pytest.raises(UsageError, match="is a file"):
        lmgauge.spell(tmp_path / name, LEARN, output=tmp_path / name)
    with pytest.raises(UsageError, match="is a folder"):
        lmgauge.spell(tmp_path / name, LEARN, output=tmp_path / "other.arpa")
    before = (tmp_path / name).read_bytes()
    lmgauge.spell(tmp_path / name, LEARN, output=tmp_path / "folder")
    assert lmgauge.load_model(tmp_path / "folder").label == "arpa2+spelled"
    assert (tmp_path / name).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {name, "folder"}


def test_a_probing_file_is_spelled_in_memory_only(tmp_path: Path) -> None:
    of_words().save(tmp_path / "probing.binary")
    with pytest.raises(UsageError, match="or the ARPA file it was built from"):
        lmgauge.spell(tmp_path / "probing.binary", LEARN, output=tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    assert all(math.isfinite(x) for x in nats(lmgauge.spell(tmp_path / "probing.binary", LEARN)))


def test_the_tokenizer_of_a_file_can_be_said(tmp_path: Path) -> None:
    of_words(tokenizer="treebank").save(tmp_path / "theirs.arpa")
    spelled = lmgauge.spell(tmp_path / "theirs.arpa", LEARN, output=tmp_path / "folder", tokenizer="treebank")
    assert spelled.tokenizer.name == "treebank"
    assert nats(lmgauge.load_model(tmp_path / "folder")) == nats(spelled)
    of_words().save(tmp_path / "words")
    with pytest.raises(UsageError, match="is for ARPA files"):
        lmgauge.spell(tmp_path / "words", LEARN, tokenizer="treebank")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tokenizer": "byte"}, "its tokens are bytes"),
        ({"vocabulary": "closed"}, "closed"),
        ({"eos": False}, "ends of lines"),
        ({"normalizer": "ccnet"}, "normalizer"),
    ],
)
def test_what_cannot_be_spelled_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        lmgauge.spell(of_words(**options), LEARN)


def test_a_speller_is_replaced_only_if_asked(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    lmgauge.train("witten-bell", LEARN, output=folder, vocabulary="spelled")
    with pytest.raises(UsageError, match="--replace"):
        lmgauge.spell(folder, LEARN, output=folder)
    before = lmgauge.load_model(folder).fingerprint
    again = lmgauge.spell(folder, LEARN, output=folder, replace=True, order=2, max_count=5)
    assert again.fingerprint != before
    assert lmgauge.load_model(folder).fingerprint == again.fingerprint
    (folder / "spelling" / "config.json").write_text("{")
    lmgauge.spell(folder, LEARN, output=folder, replace=True)
    assert lmgauge.load_model(folder).fingerprint == before


def test_the_options_are_those_of_training(tmp_path: Path) -> None:
    trained = lmgauge.train("witten-bell", LEARN, order=2, vocabulary="spelled")
    assert lmgauge.spell(of_words(), LEARN).fingerprint == trained.fingerprint
    assert lmgauge.spell(of_words(), LEARN, order=8, max_count=None).fingerprint == trained.fingerprint
    for wrong in ({"order": 0}, {"max_count": 0}):
        with pytest.raises(UsageError, match="must be a whole number, 1 or more"):
            lmgauge.spell(of_words(), LEARN, **wrong)  # type: ignore[arg-type]


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="no word"):
        lmgauge.spell(of_words(), Corpus.from_strings(["", "  "]))


def test_what_is_read_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXT) + "\n")
    of_words().save(tmp_path / "model")
    with pytest.raises(UsageError, match="would replace"):
        lmgauge.spell(tmp_path / "model", tmp_path / "text.txt", output=tmp_path)
    with pytest.raises(UsageError, match="would replace"):
        lmgauge.spell(tmp_path / "model", tmp_path / "text.txt", output=tmp_path / "text.txt")


def test_a_run_that_is_stopped_leaves_the_model_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.models.combined.spelling import storage

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "model"
    of_words().save(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(storage, "write_config", stopped)
    with pytest.raises(KeyboardInterrupt):
        lmgauge.spell(folder, LEARN, output=folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


# -- what other functions make of spelled models ------------------------------------------------------------------------
def test_a_smaller_model_and_an_adapting_one_are_spelled_too(tmp_path: Path) -> None:
    spelled = lmgauge.spell(of_words(), LEARN)
    pruned = lmgauge.prune(spelled, to_size=15, output=tmp_path / "small", text=LEARN)
    assert lmgauge.load_model(tmp_path / "small").fingerprint == pruned.model.fingerprint
    with pytest.raises(UsageError, match="is a folder"):
        lmgauge.prune(spelled, to_size=15, output=tmp_path / "small.arpa")
    adapting = lmgauge.cache(spelled, LEARN, output=tmp_path / "adapting")
    assert nats(lmgauge.load_model(tmp_path / "adapting")) == nats(adapting)
    assert adapting.fingerprint == lmgauge.spell(lmgauge.cache(of_words(), LEARN), LEARN).fingerprint


def test_another_model_takes_the_speller_only_if_it_knows_the_same_words() -> None:
    spelled = lmgauge.spell(of_words(), LEARN)
    other = lmgauge.train("laplace", LEARN, order=1)
    assert nats(spelled.around(other)) == nats(lmgauge.spell(other, LEARN))
    with pytest.raises(UsageError, match="learn its spelling anew"):
        spelled.around(of_words(min_count=6))
    with pytest.raises(UsageError, match="learn its spelling anew"):
        spelled.around(of_words(tokenizer="treebank"))


def test_documents_count_spelled_words_as_unseen() -> None:
    scores = [
        lmgauge.Scorer({"m": model}).score_texts(["the zebra sat"]).columns()
        for model in (of_words(), lmgauge.spell(of_words(), LEARN))
    ]
    assert [table["m_unseen"].tolist() for table in scores] == [[1 / 3], [1 / 3]]
    assert scores[1]["m_bits"][0] > scores[0]["m_bits"][0]
