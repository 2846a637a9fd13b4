"""AutoTokenizer gives the ids that lmgauge gives, over any text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from lmgauge.models.training.hub_tokenizer import write_tokenizer
from lmgauge.models.training.tokenizers import fixed_vocabulary, train_subwords
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary, VocabularyBuilder

TEXTS = ["the cat sat", "été à  Paris", "日本 x\u3000y\u00a0z", "\U0001f600 e\u0301", "a\tb\x0bc", "<0x41> x<s>y"]
ODD = st.text(
    st.one_of(
        st.sampled_from("the cat<s>unk/ \t\x0b\x0c\u00a0\u3000\u0085\u2028é日\u0301\U0001f600"),
        st.characters(exclude_characters="\x00\n\r", exclude_categories=("Cs",)),
    ),
    max_size=30,
)
SPECS = ("whitespace", "character", "byte", "bpe:290", "unigram:290")


def tokenizer_of(spec: str) -> tuple[Tokenizer, Vocabulary]:
    kind, _, size = spec.partition(":")
    tokenizer: Tokenizer
    if size:
        tokenizer = HuggingFaceTokenizer(train_subwords(kind, int(size), Corpus.from_strings(TEXTS * 9)))
    else:
        tokenizer = make_tokenizer(spec)
    vocabulary = fixed_vocabulary(tokenizer)
    if vocabulary is None:
        builder = VocabularyBuilder()
        for segments in Corpus.from_strings(TEXTS):
            encode(segments, tokenizer, builder, bos=False)
        vocabulary = builder.finish()
    return tokenizer, vocabulary


@pytest.fixture(scope="module", params=SPECS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Vocabulary, Any]:
    tokenizer, vocabulary = tokenizer_of(request.param)
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(tokenizer, vocabulary, folder)
    return tokenizer, vocabulary, AutoTokenizer.from_pretrained(folder)


@settings(max_examples=150, deadline=None)
@given(ODD)
def test_the_same_ids(pair: tuple[Tokenizer, Vocabulary, Any], text: str) -> None:
    tokenizer, vocabulary, theirs = pair
    if {"<s>", "</s>"} & set(text.split()):
        return  # words that no vocabulary has, and texts may hold only where they were escaped
    (segments,) = Corpus.from_strings([text])
    ours = encode(segments, tokenizer, vocabulary, bos=False, reserved="unk").ids.tolist()
    assert theirs(text)["input_ids"] == ours[:-1]


def test_what_transformers_is_told(pair: tuple[Tokenizer, Vocabulary, Any]) -> None:
    tokenizer, vocabulary, theirs = pair
    assert (theirs.unk_token_id, theirs.bos_token_id, theirs.eos_token_id) == (0, 1, 2)
    assert len(theirs) == len(vocabulary)
    assert theirs.convert_ids_to_tokens(list(range(len(vocabulary)))) == vocabulary.tokens
    text = "the cat sat"
    assert theirs.decode(theirs(text)["input_ids"]) == text
    assert tokenizer.unit in ("word", "character", "byte", "subword")
