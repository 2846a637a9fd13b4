"""What is done to a text before it is cut, against the slow twin and against others' programs; and the way back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.normalizers import PUNCTUATION, ccnet

import lmgauge
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.encoding import encode
from lmgauge.text.normalizers import NormalizedSegments, NormalizingTokenizer, normalize
from lmgauge.text.tokenizers import load_tokenizer, make_tokenizer, with_normalizer
from lmgauge.text.vocabulary import EOS, Vocabulary

# White space and controls of all kinds, capital sigmas, letters that become several, digits, and marks that change places.
ODD = "aZ 09\t\n\x01\x1c\x7f\x85\xa0\u2028\u3000ΣσİIßéÉ«—…．１猫ー한ทẪ\u0301\u0327\u0345\u1b44\ua9c0\u302e\u0900\ufe0f😀"
ODD += "\U0001d15e\U0001d160\U0001d165\U0001d16d"
characters = st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
texts = st.lists(st.text(characters, max_size=12), min_size=1, max_size=5)


def segments_of(*strings: str) -> Segments:
    (segments,) = Corpus.from_strings(strings)
    return segments


def strings_of(segments: Segments) -> list[str]:
    return [segments.text(i).decode() for i in range(len(segments))]


def normalized(*strings: str) -> list[str]:
    return strings_of(normalize(segments_of(*strings)).segments)


def every_end(result: NormalizedSegments) -> list[list[tuple[int, int]]]:
    """Return for each segment where its characters end, in bytes, and where these ends are in the source."""
    lists = [np.cumsum([len(letter.encode()) for letter in text]).tolist() for text in strings_of(result.segments)]
    counts = np.array([len(ends) for ends in lists], np.int64)
    sources = iter(result.source_ends(np.array([end for ends in lists for end in ends], np.int64), counts).tolist())
    return [[(end, next(sources)) for end in ends] for ends in lists]


def test_the_rules() -> None:
    assert normalized("Hello World 1984", "Ünïcödé", "«a» – b…", "a\tb\nc\x7f", "ΟΔΟΣ ΣΣ", "٣４", "") == [
        *("hello world 0000", "unicode", '"a" - b...', "abc", "οδος σς", "00", "")
    ]


def test_white_space_at_the_ends_goes_first() -> None:
    """What stands behind a control character that is not white space stays, as it did at the end before."""
    assert normalized(" a ", "\u3000\x85a\xa0", "a \x01 ", "\x01 a", " \t ") == ["a", "a", "a ", " a", ""]


def test_every_mark_of_punctuation() -> None:
    assert normalized("".join(PUNCTUATION)) == ["".join(PUNCTUATION.values())]


@settings(deadline=None)
@given(texts)
def test_normalized_as_by_the_twin(strings: list[str]) -> None:
    result = normalize(segments_of(*strings))
    assert strings_of(result.segments) == [ccnet(text) for text in strings]
    assert result.changed.tolist() == [ccnet(text) != text for text in strings]


@settings(deadline=None)
@given(texts)
def test_the_way_back_ends_at_characters_and_never_goes_back(strings: list[str]) -> None:
    segments = segments_of(*strings)
    result = normalize(segments)
    for i, pairs in enumerate(every_end(result)):
        text, ends = segments.text(i), [end for _, end in pairs]
        assert ends == sorted(ends)
        for end in set(ends):
            assert 0 < end <= len(text)
            text[:end].decode()


def test_the_way_back_of_letters_is_letter_by_letter() -> None:
    """What comes of a beginning is a beginning of what comes of the whole."""
    text = "  Ünd «Über» — 1984…\u0301 한글．ẪX"
    result = normalize(segments_of(text))
    whole = strings_of(result.segments)[0].encode()
    (pairs,) = every_end(result)
    for i, end in pairs:
        beginning = ccnet("." + text.encode()[:end].decode().lstrip() + ".")[1:-1].encode()
        assert whole.startswith(beginning)
        assert len(beginning) >= i
        before = text.encode()[:end].decode()[:-1]
        assert len(ccnet("." + before.lstrip() + ".")[1:-1].encode()) < i


def test_what_lies_between_segments_is_not_looked_at() -> None:
    data = np.frombuffer(b"\xff\xe9ABC\xc3\xc3\x89 D\xc3\xa9\xa9", np.uint8)
    segments = Segments(data, np.array([2, 6, 9], np.int64), np.array([5, 8, 12], np.int64), "x")
    result = normalize(segments)
    assert strings_of(result.segments) == ["abc", "e", "de"]
    assert [[end for _, end in pairs] for pairs in every_end(result)] == [[1, 2, 3], [2], [1, 3]]
    bytes_of = normalize(segments_of("a猫É"))
    every_byte = bytes_of.source_ends(np.arange(1, 6), np.array([5]))
    assert every_byte.tolist() == [1, 2, 3, 4, 6]  # within a character that stays, the way back goes byte by byte


def test_no_segments_at_all() -> None:
    nothing = np.zeros(0, np.int64)
    assert len(normalize(Segments(np.zeros(0, np.uint8), nothing, nothing, "x")).segments) == 0


def test_as_datatrove_does_but_for_numbers() -> None:
    """datatrove has CCNet's rules, but makes one 0 of each number; single digits are the same."""
    perplexity = pytest.importorskip("datatrove.utils.perplexity")
    theirs = perplexity.KenlmModel.__new__(perplexity.KenlmModel)
    apart = re.sub(r"\d(?=\d|[.,،٫⎖⎗⎘]\d)", "", " " + ODD + " ".join(PUNCTUATION) + " 1 2 x")
    for text in (apart.replace("\x1c", ""), "Ein Éclair: 5 «Stück» — für 3…", "ΟΔΟΣ"):
        assert theirs.normalize(text) == ccnet(text) == normalized(text)[0]
    assert theirs.normalize("in 1984") == "in 0"
    assert normalized("in 1984") == ["in 0000"]


TEXT = "  Die «Öfen» —  heiß…\u3000"


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
