"""The tokens of GGUF files: names, fingerprints of the header, spans against the text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docs.gguf_file import header
from hypothesis import given
from hypothesis import strategies as st
from tests.models.network.gguf.gguf_files import byte_level_vocabulary, sentencepiece_vocabulary, write_gguf

from lmgauge.base.errors import ModelFileError
from lmgauge.models.network.gguf.model import (
    GgufTokenizer,
    chat_template,
    distinct_names,
    gguf_tokens,
    tokenizer_digest,
)
from lmgauge.models.network.gguf.network import GgufNetwork
from lmgauge.models.network.tokens import NO_ID
from lmgauge.text.documents import Corpus
from lmgauge.text.tokens import Tokenizer

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def test_names_are_distinct() -> None:
    assert distinct_names(["a", "", "a", "<s>", "</s>", "<s>"]) == [
        "a", "<row 1>", "a (id 2)", "<s> (text)", "</s> (text)", "<s> (text) (id 5)"
    ]  # fmt: skip


def test_the_digest_is_of_all_that_the_tokenizer_depends_on(tmp_path: Path) -> None:
    def digest(**settings: Any) -> str:
        path = tmp_path / "x.gguf"
        path.write_bytes(header({name.replace("__", "."): value for name, value in settings.items()}))
        return tokenizer_digest(path)

    tokens: dict[str, Any] = {"tokenizer__ggml__tokens": ["a", "b"], "tokenizer__ggml__scores": [0.5, 1.0]}
    one = digest(general__name="one", general__size=7, **tokens)
    assert one == digest(general__name="another", general__tags=["x", "y"], **tokens)
    assert one == digest(**dict(reversed(tokens.items())))
    assert one != digest(**tokens | {"tokenizer__ggml__tokens": ["a", "c"]})
    assert one != digest(**tokens | {"tokenizer__ggml__scores": [0.5, 2.0]})
    assert one != digest(**tokens, tokenizer__ggml__add_space_prefix=False)


def test_the_chat_template_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    long = "{{ bos_token }}é" * 3000
    settings: dict[str, Any] = {"tokenizer.chat_template.tool_use": "no", "tokenizer.chat_template": long, "b": 1}
    for changes, expected in (({}, long), ({"tokenizer.chat_template": ["a", "b"]}, None)):
        path.write_bytes(header(settings | changes))
        assert chat_template(path) == expected
    path.write_bytes(header({"a": 1}))
    assert chat_template(path) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "header is damaged"),
        (b"GGUF", "header is damaged"),
        (b"GGUX" + bytes(30), "not a GGUF file of version 2 or 3"),
        (header({}, version=9), "not a GGUF file of version 2 or 3"),
        (header({"a": "text"})[:-2], "header is damaged: a string reaches beyond its end"),
        (header({"a": [1.0, 2.0]})[:-1], "header is damaged: a list reaches beyond its end"),
        (header({"a": ["x", "y"]})[:-1], "header is damaged: a string reaches beyond its end"),
        (header({"a": 1})[:-8], "header is damaged"),
        (header({"a": 1}).replace(b"\x04\0\0\0\x01", b"\x63\0\0\0\x01"), "header is damaged"),
        (header({})[:16] + b"\xff" * 8, "not a GGUF file of version 2 or 3"),
    ],
)
def test_damaged_headers(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=rf"x\.gguf: .*{words}"):
        tokenizer_digest(path)


@pytest.fixture(scope="module")
def library() -> None:
    pytest.importorskip("llama_cpp")


@pytest.fixture(scope="module", params=["sentencepiece", "byte level"])
def network(library: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GgufNetwork:
    path = tmp_path_factory.mktemp("gguf") / "x.gguf"
    write_gguf(path, sentencepiece_vocabulary() if request.param == "sentencepiece" else byte_level_vocabulary())
    return GgufNetwork(path)


@given(texts=st.lists(TEXTS, max_size=4))
def test_tokens_give_any_text_back(network: GgufNetwork, texts: list[str]) -> None:
    tokenizer = gguf_tokens(network).tokenizer
    for block in Corpus.from_strings(texts):
        tokens = tokenizer.tokenize(block)
        assert not tokens.lossy.any()
        at = 0
        for i, count in enumerate(tokens.counts.tolist()):
            ends = tokens.span_ends[at : at + count]
            strings = [string.decode() for string in tokens.strings()[at : at + count]]
            assert (np.diff(ends, prepend=0) >= 0).all()
            assert (int(ends[-1]) if count else 0) == len(block.text(i))
            assert tokenizer.detokenize(strings) == block.text(i).decode()
            at += count


def test_the_vocabulary_has_all_tokens_and_ours_first(network: GgufNetwork) -> None:
    tokens = gguf_tokens(network)
    known = tokens.network_ids[tokens.network_ids != NO_ID]
    assert sorted(set(known.tolist())) == list(range(network.size))
    assert isinstance(tokens.tokenizer, Tokenizer)
    assert tokens.tokenizer.settings()["name"] == tokens.tokenizer.name == repr(tokens.tokenizer)[15:-2]
    assert tokens.tokenizer.name.endswith(tokens.tokenizer.fingerprint)
    assert tokens.tokenizer.files() == {}
    names = [tokens.vocabulary.token(i) for i in range(len(tokens.vocabulary))]
    assert names[:3] == ["<unk>", "<s>", "</s>"]
    strings = network.strings()
    for name, own in zip(names[3:], tokens.network_ids[3:].tolist(), strict=True):
        assert name == strings[own]


def test_special_tokens(library: None, tmp_path: Path) -> None:
    for vocabulary, ids, closed in (
        (sentencepiece_vocabulary(), [0, 1, 2], False),
        (byte_level_vocabulary(), [NO_ID, 262, 262], True),
        (byte_level_vocabulary(bos_token_id=11), [NO_ID, NO_ID, 262], True),  # a comma is no BOS token
    ):
        path = tmp_path / "x.gguf"
        write_gguf(path, vocabulary)
        tokens = gguf_tokens(GgufNetwork(path))
        assert tokens.network_ids[:3].tolist() == ids
        assert tokens.vocabulary.closed is closed


def test_names_of_special_tokens_in_a_text_are_text(network: GgufNetwork) -> None:
    tokenizer = gguf_tokens(network).tokenizer
    [block] = Corpus.from_strings(["<s></s><|endoftext|><unk>"])
    strings = tokenizer.tokenize(block).strings()
    assert not {b"<s>", b"</s>", b"<unk>"} & set(strings)
    assert tokenizer.detokenize([string.decode() for string in strings]) == "<s></s><|endoftext|><unk>"


def test_spans_are_the_bytes_of_each_token(network: GgufNetwork) -> None:
    [block] = Corpus.from_strings(["the 日 é"])
    tokens = gguf_tokens(network).tokenizer.tokenize(block)
    assert tokens.span_ends.tolist()[-6:] == [4, 5, 6, 7, 8, 10] or tokens.span_ends.tolist()[-6:] == [5, 6, 7, 8, 9, 10]


def test_unknown_strings_stand_as_they_are(network: GgufNetwork) -> None:
    tokenizer = gguf_tokens(network).tokenizer
    assert isinstance(tokenizer, GgufTokenizer)
    assert tokenizer.detokenize(["the cat", "?!"]) == "the cat?!"


def test_a_tokenizer_that_alters_text_is_told(network: GgufNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = network.tokenize(b"the cat")
    tokens = gguf_tokens(network)
    monkeypatch.setattr(network, "tokenize", lambda text, special: whole)
    [block] = Corpus.from_strings(["the  Cat", "the cat"])
    found = tokens.tokenizer.tokenize(block)
    assert found.lossy.tolist() == [True, False]
    assert found.span_ends[len(whole) - 1] == 8


def test_special_tokens_of_a_rendering_are_tokens_with_their_names_as_spans(network: GgufNetwork) -> None:
    tokens = gguf_tokens(network)
    bos, eos = tokens.named["bos_token"], tokens.named["eos_token"]
    assert {bos, eos} <= tokens.specials
    parts = [bos, "the cat", eos, " é", eos, "  sat.\n", eos]
    [block] = Corpus.from_strings(["".join(parts), "the cat"])
    ids, counts, ends, lossy = tokens.tokenizer.cut(block, special=True)  # type: ignore[attr-defined]
    assert not lossy.any()
    own, own_ends = ids[: counts[0]].tolist(), ends[: counts[0]].tolist()
    after = np.cumsum([len(part.encode()) for part in parts]).tolist()
    special = [i for i, token in enumerate(own) if token in (network.token_id("bos"), network.token_id("eos"))]
    assert [(own_ends[i - 1] if i else 0, own_ends[i]) for i in special] == [
        *((0, after[0]), (after[1], after[2]), (after[3], after[4]), (after[5], after[6]))
    ]
    assert ids[counts[0] :].tolist() == network.tokenize(b"the cat")
