"""Tokenizers to train with: subwords learned on the spot, vocabularies that are given, files that AutoTokenizer reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.training.checkpoints import Checkpoint, CheckpointFolder
from lmgauge.models.training.tokenizers import (
    fixed_vocabulary,
    make_training_tokenizer,
    train_subwords,
    with_our_ids,
    write_tokenizer,
)
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import encode
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary, VocabularyBuilder

TEXTS = ["low lower lowest", "new newer newest", "wide wider widest"] * 5


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_have_our_first_ids_and_every_byte(kind: str) -> None:
    tokenizer = HuggingFaceTokenizer(train_subwords(kind, 280, Corpus.from_strings(TEXTS)))
    vocabulary = fixed_vocabulary(tokenizer)
    assert vocabulary is not None
    assert vocabulary.tokens[:3] == ["<unk>", "<s>", "</s>"]
    assert 259 <= len(vocabulary) <= 280
    (segments,) = Corpus.from_strings(["low\U0001f600 \x01 <s> né"])
    tokens = tokenizer.tokenize(segments)
    assert tokens.lossy.sum() == 0
    assert all(string.decode() in vocabulary for string in tokens.strings())
    assert b"<s>" not in tokens.strings()


def test_the_same_text_gives_the_same_subwords() -> None:
    assert train_subwords("bpe", 300, Corpus.from_strings(TEXTS)) == train_subwords("bpe", 300, Corpus.from_strings(TEXTS))


def test_subwords_are_kept_for_a_run_gone_on_with(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run")
    said: list[str] = []
    first = make_training_tokenizer("bpe:270", Corpus.from_strings(TEXTS), folder, said.append)
    folder.save(1, Checkpoint({}, {}, {}))
    again = make_training_tokenizer("bpe:270", Corpus.from_strings(["another text"]), folder, said.append)
    assert first.fingerprint == again.fingerprint
    assert len(said) == 1


def test_what_a_run_killed_before_its_first_checkpoint_left_is_not_used(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run")
    make_training_tokenizer("bpe:270", Corpus.from_strings(["another text"]), folder, print)
    found = make_training_tokenizer("bpe:270", Corpus.from_strings(TEXTS), folder, print)
    alone = make_training_tokenizer("bpe:270", Corpus.from_strings(TEXTS), CheckpointFolder(tmp_path), print)
    assert found.fingerprint == alone.fingerprint


def test_bytes_are_all_known() -> None:
    vocabulary = fixed_vocabulary(make_tokenizer("byte"))
    assert vocabulary is not None
    assert len(vocabulary) == 259
    assert fixed_vocabulary(make_tokenizer("whitespace")) is None


@pytest.mark.parametrize("spec", ["bpe:258", "bpe:", "unigram:-300", "bpe:1e3", "bpe:99999999999999999999", "bpe:10000001"])
def test_sizes_that_cannot_be(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="259 or more"):
        make_training_tokenizer(spec, Corpus.from_strings(TEXTS), CheckpointFolder(tmp_path), print)


def test_a_network_takes_no_tokenizer_that_its_folder_cannot_keep(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"tokenizer ccnet\+byte: the folder of a network keeps its tokenizer as a tokenizer"
    ):
        make_training_tokenizer("ccnet+byte", Corpus.from_strings(TEXTS), CheckpointFolder(tmp_path), print)


def test_empty_text() -> None:
    with pytest.raises(InputError, match="empty"):
        train_subwords("bpe", 300, Corpus.from_strings([]))


def foreign(kind: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    options: dict[str, Any] = {"show_progress": False, "initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    backend: Any = Tokenizer(models.BPE() if kind == "bpe" else models.Unigram())
    trainer: Any = trainers.BpeTrainer(vocab_size=290, special_tokens=["<|end|>"], **options)
    if kind == "unigram":
        trainer = trainers.UnigramTrainer(vocab_size=270, special_tokens=["<pad>", "<unk>"], unk_token="<unk>", **options)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(TEXTS, trainer)
    first = backend.id_to_token(0)
    backend.post_processor = processors.TemplateProcessing(single=f"{first} $A", special_tokens=[(first, 0)])
    return backend


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_from_elsewhere_keeps_its_tokens(kind: str, tmp_path: Path) -> None:
    theirs = foreign(kind)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = make_training_tokenizer(
        str(tmp_path / "tokenizer.json"), Corpus.from_strings(TEXTS), CheckpointFolder(tmp_path / "run"), print
    )
    vocabulary = fixed_vocabulary(ours)
    assert vocabulary is not None
    assert vocabulary.tokens[:3] == ["<unk>", "<s>", "</s>"]
    assert set(vocabulary.tokens[3:]) == set(theirs.get_vocab()) - {"<unk>"}
    text = "newest lower 😀 wide"
    (segments,) = Corpus.from_strings([text])
    strings = [string.decode() for string in ours.tokenize(segments).strings()]
    assert strings == theirs.encode(text, add_special_tokens=False).tokens
    write_tokenizer(ours, vocabulary, tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"] == vocabulary.ids(strings).tolist()


def test_ids_with_gaps_are_refused() -> None:
    content = json.loads(foreign("bpe").to_str())
    content["model"]["vocab"]["zzz"] = 5000
    with pytest.raises(InputError, match="its ids cannot be used"):
        with_our_ids(HuggingFaceTokenizer(json.dumps(content).encode()))


# -- as transformers reads it ---------------------------------------------------------------------------------------------
HUB_TEXTS = ["the cat sat", "été à  Paris", "日本 x\u3000y\u00a0z", "\U0001f600 e\u0301", "a\tb\x0bc", "<0x41> x<s>y"]
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
        tokenizer = HuggingFaceTokenizer(train_subwords(kind, int(size), Corpus.from_strings(HUB_TEXTS * 9)))
    else:
        tokenizer = make_tokenizer(spec)
    vocabulary = fixed_vocabulary(tokenizer)
    if vocabulary is None:
        builder = VocabularyBuilder()
        for segments in Corpus.from_strings(HUB_TEXTS):
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
