"""Subwords of a SentencePiece model: pieces and strings are the library's, spans tile the text, damage is refused."""

from __future__ import annotations

import io
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge.base.errors import InputError, ModelFileError
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.sentencepiece_tokenizer import SentencePieceTokenizer
from lmgauge.text.tokenizers import load_tokenizer, make_tokenizer
from lmgauge.text.tokens import Tokens, token_bytes

sentencepiece = pytest.importorskip("sentencepiece")
DATA = Path(__file__).parent.parent / "data"
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "bpe bytes": {"model_type": "bpe", "byte_fallback": True},
    "identity": {
        "model_type": "unigram",
        "normalization_rule_name": "identity",
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
    },
    "suffix": {"model_type": "unigram", "treat_whitespace_as_suffix": True},
    "own symbols": {"model_type": "bpe", "user_defined_symbols": ["<sep>", "the cat"]},
}
TEXTS = [
    "It was the best of times",
    "Ein  Wörterbuch, ",
    " a",
    "猫猫 x",
    "ﬁne\u00a0…",
    "▁ a▁",
    "",
    " ",
    "<s> </s> <unk> <sep>",
    "the cat",
]


characters = st.sampled_from("ab th▁e \u00a0ﬁ…ß猫\u0301é<>s/") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\0\r"
)


@pytest.fixture(scope="module")
def content() -> Callable[[str], bytes]:
    """Return the model of a kind, trained on the first lines of a book."""
    lines = (DATA / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:200]
    models: dict[str, bytes] = {}

    def of(kind: str) -> bytes:
        if kind not in models:
            out = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=out,
                vocab_size=400,
                minloglevel=2,
                hard_vocab_limit=False,
                num_threads=1,
                **KINDS[kind],
            )
            models[kind] = out.getvalue()
        return models[kind]

    return of


def segments_of(*texts: str) -> Segments:
    (segments,) = Corpus.from_strings(texts)
    return segments


def by_segment(tokens: Tokens) -> list[list[tuple[str, int]]]:
    pairs = zip((string.decode() for string in tokens.strings()), tokens.span_ends.tolist(), strict=True)
    return [[next(pairs) for _ in range(count)] for count in tokens.counts.tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_those_of_the_library(content: Callable[[str], bytes], kind: str) -> None:
    """As CCNet asks for them; and lossy is what the library does not decode to the text."""
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content(kind))
    ours = SentencePieceTokenizer(content(kind))
    tokens = ours.tokenize(segments_of(*TEXTS))
    assert [[piece for piece, _ in segment] for segment in by_segment(tokens)] == [theirs.encode_as_pieces(t) for t in TEXTS]
    back = [theirs.decode(theirs.encode_as_pieces(text)) for text in TEXTS]
    assert tokens.lossy.tolist() == [text != decoded for text, decoded in zip(TEXTS, back, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=50)
@given(texts=st.lists(st.text(characters, max_size=10), min_size=1, max_size=4))
def test_spans_tile(content: Callable[[str], bytes], kind: str, texts: list[str]) -> None:
    segments = segments_of(*texts)
    tokens = SentencePieceTokenizer(content(kind)).tokenize(segments)
    for i, segment in enumerate(by_segment(tokens)):
        ends = [0, *(end for _, end in segment)]
        assert ends == sorted(ends)
        assert ends[-1] <= len(segments.text(i))


def test_spans_are_the_bytes_that_pieces_spell(content: Callable[[str], bytes]) -> None:
    unigram, with_bytes = SentencePieceTokenizer(content("unigram")), SentencePieceTokenizer(content("bpe bytes"))
    ((*_, last),) = by_segment(unigram.tokenize(segments_of("of times")))
    assert last[1] == len("of times")
    (segment,) = by_segment(with_bytes.tokenize(segments_of("a 猫")))
    assert [end for piece, end in segment if piece.startswith("<0x")] == [3, 4, 5]
    (segment,) = by_segment(with_bytes.tokenize(segments_of("a  猫")))  # a space is dropped: these are the library's offsets
    assert [end for piece, end in segment if piece.startswith("<0x")] == [3, 3, 6]


@pytest.mark.parametrize("kind", KINDS)
def test_what_spells_the_text_has_the_offsets_of_the_library(content: Callable[[str], bytes], kind: str) -> None:
    lines = (DATA / "classic-books.test.txt").read_text(encoding="utf-8").splitlines()[:60]
    theirs = sentencepiece.SentencePieceProcessor(model_proto=content(kind))
    ours = by_segment(SentencePieceTokenizer(content(kind)).tokenize(segments_of(*lines)))
    for line, segment in zip(lines, ours, strict=True):
        if not any(piece.startswith("<0x") for piece, _ in segment):
            offsets = theirs.encode(line.encode(), out_type="offset_mapping")["offsets"]
            assert [end for _, end in segment] == [end for _, end in offsets]


def test_what_pieces_stand_for(content: Callable[[str], bytes]) -> None:
    tokenizer = SentencePieceTokenizer(content("bpe bytes"))
    assert token_bytes(tokenizer, ["▁the", "<0xC3>", "猫", "nowhere▁"]) == [b" the", b"\xc3", "猫".encode(), b"nowhere "]
    assert tokenizer.detokenize(["▁the", "▁of"]) == "the of"
    assert tokenizer.detokenize(["▁the", "</s>", "<unk>", "▁of"]) == "the</s><unk>of"
    assert tokenizer.detokenize([]) == ""


def test_a_model_keeps_the_file(content: Callable[[str], bytes], tmp_path: Path) -> None:
    (tmp_path / "en.sp.model").write_bytes(content("unigram"))
    model = lmgauge.train("kneser-ney", DATA / "classic-books.test.txt", tokenizer=str(tmp_path / "en.sp.model"), order=2)
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / "tokenizer.model").read_bytes() == content("unigram")
    again = load_ngram_model(tmp_path / "model")
    assert again.fingerprint == model.fingerprint
    assert again.score_text("It was a cat").logprobs == model.score_text("It was a cat").logprobs
    assert make_tokenizer(tmp_path / "model").fingerprint == again.tokenizer.fingerprint
    model.save(tmp_path / "model")  # a folder with such a file may be replaced
    (tmp_path / "model" / "tokenizer.model").write_bytes(content("bpe bytes"))
    with pytest.raises(ModelFileError, match=r"tokenizer\.model is not the file this model was made with"):
        lmgauge.load_model(tmp_path / "model")
    (tmp_path / "model" / "tokenizer.model").unlink()
    with pytest.raises(ModelFileError, match="no such file"):
        load_tokenizer(again.tokenizer.settings(), tmp_path / "model")


def test_two_files_have_two_fingerprints(content: Callable[[str], bytes]) -> None:
    one, other = (SentencePieceTokenizer(content(kind)) for kind in ("unigram", "suffix"))
    assert one.fingerprint != other.fingerprint
    assert one.name.startswith("sp@")
    assert (
        pickle.loads(pickle.dumps(one)).tokenize(segments_of("a b")).strings() == one.tokenize(segments_of("a b")).strings()
    )


def test_damaged_files_are_refused_in_a_line(content: Callable[[str], bytes], tmp_path: Path) -> None:
    whole = content("bpe bytes")
    (tmp_path / "short.model").write_bytes(whole[:100])
    with pytest.raises(InputError, match=r"short.model: not a usable SentencePiece model: \S") as error:
        make_tokenizer(tmp_path / "short.model")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="no such file"):
        make_tokenizer(tmp_path / "missing.model")
    for nothing in (b"", b"{}", b"\0" * 50):
        with pytest.raises(InputError):
            SentencePieceTokenizer(nothing)


def test_mutated_files_are_read_or_refused(content: Callable[[str], bytes]) -> None:
    draw = random.Random(3)
    segments = segments_of(*TEXTS)
    outcomes = set()
    for _ in range(400):
        mutated = bytearray(content(draw.choice(("bpe bytes", "identity"))))
        for _ in range(draw.choice((1, 1, 3, 20))):
            at = draw.randrange(len(mutated))
            mutated[at : at + draw.choice((0, 1, 1, 1, 2, 9))] = draw.randbytes(draw.choice((0, 1, 1, 1, 2)))
        try:
            tokenizer = SentencePieceTokenizer(bytes(mutated))
            tokens = tokenizer.tokenize(segments)
            tokenizer.detokenize([string.decode() for string in tokens.strings()])
            owners = np.repeat(segments.ends - segments.starts, tokens.counts)
            assert ((tokens.span_ends >= 0) & (tokens.span_ends <= owners)).all()
            outcomes.add("read")
        except InputError as error:
            outcomes.add(f"refused in {len(str(error).splitlines())}")
    assert outcomes == {"read", "refused in 1"}


def test_a_normalization_that_makes_other_bytes_of_the_text(content: Callable[[str], bytes]) -> None:
    whole = content("unigram")
    damaged = whole.replace(b"\0fi\0", b"\0\xaa\xaa\0")
    assert damaged != whole
    with pytest.raises(InputError, match=r"the text cannot be cut: 'utf-8' codec can't decode"):
        list(map(SentencePieceTokenizer(damaged).tokenize, Corpus.from_strings(["ﬁne"])))
