"""Tokenizers behind a normalizer: any of them, with spans of the text as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.normalizers import ccnet

import lmgauge
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.encoding import encode
from lmgauge.text.normalizing_tokenizer import NormalizingTokenizer
from lmgauge.text.tokenizers import load_tokenizer, make_tokenizer, with_normalizer
from lmgauge.text.vocabulary import EOS, Vocabulary

TEXT = "  Die «Öfen» —  heiß…\u3000"


def segments_of(*texts: str) -> Segments:
    (segments,) = Corpus.from_strings(texts)
    return segments


def pieces(tokenizer: Any, text: str) -> list[tuple[str, str]]:
    """Return each token and its piece of the text."""
    tokens = tokenizer.tokenize(segments_of(text))
    ends = tokens.span_ends.tolist()
    cut = [text.encode()[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
    return list(zip((string.decode() for string in tokens.strings()), cut, strict=True))


def test_words_and_where_they_are_from() -> None:
    assert pieces(make_tokenizer("whitespace", "ccnet"), TEXT) == [
        *(("die", "  Die"), ('"ofen"', " «Öfen»"), ("-", " —"), ("heiß...", "  heiß…"))
    ]


def test_a_character_that_becomes_several_is_the_first_ones() -> None:
    assert pieces(make_tokenizer("character", "ccnet"), "a…b\u0301c") == [
        *(("a", "a"), (".", "…"), (".", ""), (".", ""), ("b", "b"), ("c", "\u0301c"))
    ]


@pytest.mark.parametrize("name", ["whitespace", "character", "byte"])
def test_the_encoder_does_the_same(name: str) -> None:
    """Kernels see the normalized text, spans are of the source; ends of lines reach its end."""
    tokenizer = make_tokenizer(name, "ccnet")
    segments = segments_of(TEXT, "", "plain text", "A B", " \t ")
    tokens = tokenizer.tokenize(segments)
    vocabulary = Vocabulary.from_tokens(sorted({string.decode() for string in tokens.strings()}))
    encoded = encode(segments, tokenizer, vocabulary, bos=False, spans=True)
    inner = encoded.ids != EOS
    assert [vocabulary.token(int(i)).encode() for i in encoded.ids[inner]] == tokens.strings()
    assert encoded.span_ends[inner].tolist() == tokens.span_ends.tolist()
    assert encoded.span_ends[~inner].tolist() == (segments.ends - segments.starts).tolist()
    assert encoded.lossy.tolist() == tokens.lossy.tolist() == [True, False, False, True, True]
    without = encode(segments, tokenizer, vocabulary, bos=False, eos=False, spans=True)
    assert without.ids.tolist() == encoded.ids[inner].tolist()
    assert without.span_ends.tolist() == tokens.span_ends.tolist()


def test_given_text_is_normalized_with_what_follows() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["the cat sat"]), order=2, normalizer="ccnet")
    corpus = Corpus.from_strings([" SAT"], given=["The CAT"])
    (batch,) = model.score(corpus)
    assert batch.strings.tokens[int(batch.token_ids[0])] == "sat"
    assert batch.ends.tolist() == [4, 4]
    whole = model.score_text("the cat sat").logprobs
    assert batch.logprob.tolist() == list(whole[2:])


def test_the_name_is_a_spelling() -> None:
    tokenizer = make_tokenizer("ccnet+byte")
    assert isinstance(tokenizer, NormalizingTokenizer)
    assert (tokenizer.name, tokenizer.inner.name, tokenizer.normalizer) == ("ccnet+byte", "byte", "ccnet")
    assert tokenizer.fingerprint == make_tokenizer("byte", "ccnet").fingerprint != make_tokenizer("byte").fingerprint
    assert with_normalizer("byte", "ccnet") == "ccnet+byte"
    assert with_normalizer(make_tokenizer("byte"), "ccnet").name == "ccnet+byte"  # type: ignore[union-attr]
    assert make_tokenizer(tokenizer, "ccnet").name == "ccnet+byte"


def test_what_tokens_stand_for_is_normalized_text() -> None:
    tokenizer = make_tokenizer("ccnet+byte")
    assert tokenizer.detokenize(["<0x41>", "<0x20>"]) == "A "
    assert lmgauge.train("laplace", Corpus.from_strings([TEXT]), tokenizer="ccnet+byte", order=1).score_text(TEXT)
    assert make_tokenizer("whitespace", "ccnet").token_bytes(["a"]) == [b"a"]  # type: ignore[attr-defined]


def test_settings_make_the_tokenizer_again(tmp_path: Any) -> None:
    tokenizer = make_tokenizer("whitespace", "ccnet")
    assert load_tokenizer(tokenizer.settings(), tmp_path).fingerprint == tokenizer.fingerprint
    changes: list[tuple[dict[str, object], str]] = [
        ({"normalizer": "nfc"}, "unknown normalizer 'nfc'"),
        ({"tokenizer": None}, "do not say what is behind ccnet"),
        ({"tokenizer": tokenizer.settings()}, "do not say what is behind ccnet"),
        ({"tokenizer": {"name": "../x"}}, "unknown tokenizer"),
    ]
    for change, message in changes:
        with pytest.raises(ModelFileError, match=message):
            load_tokenizer(tokenizer.settings() | change, tmp_path)


def test_unknown_names_are_refused() -> None:
    for call in (make_tokenizer, with_normalizer):
        with pytest.raises(UsageError, match="normalizer 'nfc': choose ccnet"):
            call("byte", "nfc")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown tokenizer"):
        make_tokenizer("nfc+byte")


def test_a_model_says_it_everywhere(tmp_path: Any) -> None:
    """In its folder, its fingerprint, and in the signature of what it scores; and bits are bounds."""
    train = Corpus.from_strings(["The cat sat.", "A dog sat!"])
    plain, changed = (lmgauge.train("witten-bell", train, order=2, normalizer=name) for name in (None, "ccnet"))
    assert "the" in changed.vocabulary
    assert "The" not in changed.vocabulary
    changed.save(tmp_path / "model")
    again = load_ngram_model(tmp_path / "model")
    assert again.fingerprint == changed.fingerprint != plain.fingerprint
    text = Corpus.from_strings(["THE DOG", "the cat"])
    result = lmgauge.evaluate(again, text)
    assert "|unit:word|norm:ccnet|" in result.signature
    assert result.fingerprints["normalizer"] == "ccnet"
    assert result.bits_per_byte_is_bound
    assert any("normalizer" in reason for reason in result.bound_reasons)
    assert "norm:" not in lmgauge.evaluate(plain, text).signature
    assert np.allclose(again.score_text("THE DOG").logprobs, again.score_text(ccnet("THE DOG")).logprobs, rtol=0, atol=0)
