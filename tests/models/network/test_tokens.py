"""Ids, spans and reserved tokens of tokenizers of every kind, beside what the `transformers` library makes of the text."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import TEXT, byte_fallback, byte_level, lowercasing  # noqa: E402
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

from lmgauge.base.choices import SegmentEnd  # noqa: E402
from lmgauge.base.errors import InputError, ModelFileError  # noqa: E402
from lmgauge.models.network.sequences import BlockEvents, block_events  # noqa: E402
from lmgauge.models.network.tokens import (  # noqa: E402
    CONFIG_KEY,
    NO_ID,
    TokenMap,
    TrainedHere,
    foreign_tokens,
    history_of,
    trained_here,
    trained_tokens,
)
from lmgauge.models.training.tokenizers import write_tokenizer  # noqa: E402
from lmgauge.scores import OOV  # noqa: E402
from lmgauge.scores.context_policy import ContextPolicy  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402
from lmgauge.text.tokenizers import make_tokenizer  # noqa: E402
from lmgauge.text.vocabulary import BOS, EOS, UNK, Vocabulary  # noqa: E402

LINES = TEXT.splitlines()
ODD = [
    "",
    " ",
    "  ",
    "\t",
    "a",
    " a",
    "a ",
    "é",
    "e\u0301",
    "🙂",
    "👩‍👩‍👧",
    "株式会社",
    "\u00a0",
    "\u3000",
    "ﬁ ﬀ",
    "İ",
    "ß",
    "\ufeffx",
    "▁",
    "Ġ",
    "<0x41>",
]


def wrapped(backend: Any, **special: str) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def unigram() -> Any:
    """SentencePiece's kind (Kudo 2018), with a space before the text."""
    backend = Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator(LINES, trainer)
    return wrapped(backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def word_level(unk: str = "[UNK]", bos: str = "[BOS]", eos: str = "[EOS]") -> Any:
    """Words between white space."""
    words = sorted({word for line in LINES for word in line.split()})
    ids = {token: number for number, token in enumerate(dict.fromkeys([unk, bos, eos, *words]))}
    backend = Tokenizer(models.WordLevel(ids, unk_token=unk))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return wrapped(backend, unk_token=unk, bos_token=bos, eos_token=eos)


def with_added() -> Any:
    """Tokens added to those that were learned: one of letters, one of several bytes a character, one with a space in it."""
    tokenizer = byte_level()
    tokenizer.add_tokens(["cat sat", "株式", AddedToken("<sep>", normalized=False), "🙂"])
    return tokenizer


def with_prefix() -> Any:
    """RoBERTa's kind: a space is put before the text."""
    tokenizer = byte_level()
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return wrapped(backend, bos_token="<|end|>", eos_token="<|end|>")


KINDS = {
    "byte-level": byte_level,
    "byte-fallback": byte_fallback,
    "lowercasing": lowercasing,
    "unigram": unigram,
    "word-level": word_level,
    "added": with_added,
    "prefix": with_prefix,
}
EXACT = ("byte-level", "byte-fallback", "prefix")  # their pieces spell every text, byte by byte


@cache
def tokenizer_of(kind: str) -> Any:
    return KINDS[kind]()


@cache
def tokens_of(kind: str) -> TokenMap:
    return foreign_tokens(tokenizer_of(kind), kind)


def rows(tokens: TokenMap, lines: list[str], end: SegmentEnd = "none") -> BlockEvents:
    policy = ContextPolicy(end=end)
    (block,) = Corpus.from_strings(lines)
    return block_events(block, tokens, policy, spans=True)


def split(found: BlockEvents) -> list[tuple[np.ndarray, np.ndarray]]:
    bounds = np.cumsum(found.counts)[:-1]
    return list(zip(np.split(found.ids, bounds), np.split(found.ends, bounds), strict=True))


def library_ids(kind: str, line: str) -> list[int]:
    ids: list[int] = tokenizer_of(kind)(line, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return ids


def assert_right(kind: str, line: str) -> None:
    """The library's own ids, and spans that tile the text; the bytes of each where pieces spell them."""
    tokens = tokens_of(kind)
    ((ids, ends),) = split(rows(tokens, [line]))
    assert tokens.network_ids[ids].tolist() == library_ids(kind, line)
    text = line.encode()
    if len(ends):
        assert ends[-1] == len(text)
    assert (np.diff(ends, prepend=0) >= 0).all()
    if kind in EXACT and "▁" not in line:
        spans = [text[start:end] for start, end in pairwise([0, *ends.tolist()])]
        strings = [tokens.vocabulary.tokens[number] for number in ids]
        spelled = [piece_bytes(string, byte_level=kind != "byte-fallback") for string in strings]
        assert b"".join(spelled) in (b"".join(spans), b" " + b"".join(spans))
        assert spelled[2:] == spans[2:]  # a space that is put before the text has no byte, alone or with what follows


def piece_bytes(string: str, *, byte_level: bool) -> bytes:
    """What a piece spells, asked of the library's decoders."""
    if string.startswith("<0x"):
        return bytes([int(string[3:5], 16)])
    if not byte_level:
        return string.replace("▁", " ").encode()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet(), key=ord)
    printable = [character for character in alphabet if ord(character) < 256]
    others = sorted(set(range(256)) - {ord(character) for character in printable})
    table = {character: ord(character) for character in printable}
    table |= dict(zip([character for character in alphabet if ord(character) >= 256], others, strict=True))
    return bytes(table[character] for character in string)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_librarys_and_spans_tile(kind: str) -> None:
    for line in [*LINES, *ODD]:
        assert_right(kind, line)


@settings(max_examples=25)
@given(
    st.sampled_from(sorted(KINDS)),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=25),
)
def test_any_text(kind: str, line: str) -> None:
    assert_right(kind, line)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_do_not_change_each_other(kind: str) -> None:
    lines = [*LINES, *ODD]
    together = split(rows(tokens_of(kind), lines))
    for line, (ids, ends) in zip(lines, together, strict=True):
        ((own_ids, own_ends),) = split(rows(tokens_of(kind), [line]))
        assert ids.tolist() == own_ids.tolist()
        assert ends.tolist() == own_ends.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_line_ends_as_text(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8", newline="\n")
    tokens = tokens_of(kind).reading_line_ends()
    policy = ContextPolicy(end="newline")
    (block,) = Corpus.from_files(path)
    found = split(block_events(block, tokens, policy, spans=True))
    for line, (ids, ends) in zip(LINES, found, strict=True):
        assert tokens.network_ids[ids].tolist() == library_ids(kind, line + "\n")
        if len(ends):
            assert ends[-1] == len(line.encode())
    # A record has no line end, and gets none.
    assert split(rows(tokens, LINES, "newline"))[0][0].tolist() == split(rows(tokens_of(kind), LINES))[0][0].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_the_decoder_gives_back_is_exact(kind: str) -> None:
    lines = [line for line in [*LINES, *ODD] if line]
    lossy = rows(tokens_of(kind), lines).lossy.tolist()
    for line, told in zip(lines, lossy, strict=True):
        back = tokenizer_of(kind).backend_tokenizer.decode(library_ids(kind, line), skip_special_tokens=False)
        assert told == (back != line), (line, back)
    if kind in ("byte-level", "byte-fallback", "added"):
        assert not any(lossy[: len([line for line in LINES if line])])


def test_bytes_of_a_character_belong_to_the_tokens_that_spell_them() -> None:
    ((ids, ends),) = split(rows(tokens_of("byte-fallback"), ["a\U0001f600b"]))
    strings = [tokens_of("byte-fallback").vocabulary.tokens[number] for number in ids]
    spans = dict(zip(strings, pairwise([0, *ends.tolist()]), strict=True))
    assert [spans[f"<0x{byte:02X}>"] for byte in "\U0001f600".encode()] == [(1, 2), (2, 3), (3, 4), (4, 5)]


def test_added_tokens_have_their_text() -> None:
    tokens = tokens_of("added")
    line = "the cat sat <sep> 株式会社 🙂"
    ((ids, ends),) = split(rows(tokens, [line]))
    spans = pairwise([0, *ends.tolist()])
    found = {
        tokens.vocabulary.tokens[i]: line.encode()[a:b].decode(errors="replace")
        for i, (a, b) in zip(ids, spans, strict=True)
    }
    for added in ("cat sat", "<sep>", "株式", "🙂"):
        assert found[added].strip() == added


# -- special tokens -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "line"), [("byte-level", "x <|end|> y<|end|>"), ("byte-fallback", "a <s> b</s> <unk> c"), ("added", "<|end|>")]
)
def test_special_tokens_spelled_out_in_the_text_are_text(kind: str, line: str) -> None:
    assert_right(kind, line)
    ((ids, _),) = split(rows(tokens_of(kind), [line]))
    assert not set(ids.tolist()) & {UNK, BOS, EOS}


@pytest.mark.parametrize("special", ["[BOS]", "[EOS]"])
def test_a_word_that_is_a_special_token_is_not_another_one(special: str) -> None:
    """Text is never a special token: such a word is one that the tokenizer does not know, and counted as that."""
    tokens = tokens_of("word-level")
    line = f"The {special} cat"
    ((ids, _),) = split(rows(tokens, [line]))
    assert ids.tolist()[1] == UNK


@pytest.mark.parametrize("special", ["<s>", "</s>"])
def test_such_a_word_neither_begins_nor_ends_a_text(special: str) -> None:
    tokens = foreign_tokens(word_level("<unk>", "<s>", "</s>"), "words")
    assert rows(tokens, [f"The {special} cat"]).ids.tolist()[1] == UNK


@pytest.mark.parametrize("unk", ["<unk>", "[UNK]"])
def test_unknown_words_are_counted(unk: str) -> None:
    tokens = foreign_tokens(word_level(unk), "words")
    assert not tokens.vocabulary.closed
    assert tokens.network_ids[UNK] == 0
    found = rows(tokens, ["The xyz cat"])
    assert found.ids.tolist()[1] == UNK
    batch = found.batch(np.zeros(3), tokens)
    assert batch.kind.tolist() == [0, OOV, 0]


def test_begin_and_end_that_are_one_token() -> None:
    tokens = tokens_of("byte-level")
    assert tokens.bos == tokens.eos == 0
    assert tokens.predicted_ids[BOS] == NO_ID
    assert tokens.predicted_ids[EOS] == 0
    assert tokens.network_ids[BOS] == 0
    predicted = tokens.predicted_ids[tokens.predicted_ids != NO_ID]
    assert sorted(predicted.tolist()) == list(range(len(tokenizer_of("byte-level"))))


def test_an_unknown_token_that_is_the_end_of_text_is_none() -> None:
    """GPT-2 names its end of text as unknown token, and no text ever becomes it."""
    tokens = tokens_of("byte-level")
    assert tokenizer_of("byte-level").unk_token == "<|end|>"
    assert tokens.network_ids[UNK] == NO_ID
    assert tokens.vocabulary.closed


def test_a_tokenizer_without_special_tokens() -> None:
    tokens = tokens_of("lowercasing")
    assert (tokens.bos, tokens.eos) == (NO_ID, NO_ID)
    assert tokens.network_ids[UNK] == 0
    assert not tokens.trained_here


@pytest.mark.parametrize("kind", KINDS)
def test_every_id_once(kind: str) -> None:
    tokens = tokens_of(kind)
    assert len(tokens.network_ids) == len(tokens.vocabulary)
    ids = tokens.predicted_ids[tokens.predicted_ids != NO_ID]
    assert sorted(ids.tolist()) == list(range(len(tokenizer_of(kind))))
    assert len(set(tokens.vocabulary.tokens)) == len(tokens.vocabulary)


def test_our_names_for_special_tokens_may_be_ordinary_elsewhere() -> None:
    """OPT's `</s>` begins and ends texts, and its `<s>` is some other token."""
    tokenizer = byte_level()
    tokenizer.add_tokens(["<s>", "<unk>"])
    tokens = foreign_tokens(tokenizer, "opt")
    assert {"<s> (text)", "<unk> (text)"} <= set(tokens.vocabulary.tokens)
    assert sorted(set(tokens.predicted_ids.tolist()) - {NO_ID}) == list(range(len(tokenizer)))


# -- tokenizer and output layer -----------------------------------------------------------------------------------------


def test_a_tokenizer_larger_than_the_output_layer() -> None:
    tokens = tokens_of("byte-level")
    size = len(tokenizer_of("byte-level"))
    assert tokens.check_head(size, "m") is tokens
    with pytest.raises(
        ModelFileError, match=rf"m: the tokenizer has a token with id {size - 1}, but the output layer ends at {size - 2}"
    ):
        tokens.check_head(size - 1, "m")


def test_an_output_layer_larger_than_the_tokenizer() -> None:
    size = len(tokenizer_of("byte-level"))
    tokens = tokens_of("byte-level").check_head(size + 2, "m")
    assert tokens.vocabulary.tokens[-2:] == [f"<row {size}>", f"<row {size + 1}>"]
    assert tokens.network_ids[-2:].tolist() == [size, size + 1]
    assert tokens.vocabulary.closed == tokens_of("byte-level").vocabulary.closed
    assert split(rows(tokens, LINES))[0][0].tolist() == split(rows(tokens_of("byte-level"), LINES))[0][0].tolist()


def test_ids_with_a_hole_between_them() -> None:
    """Some tokenizers leave ids free between their own and those added later."""
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 5}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokens = foreign_tokens(wrapped(backend, unk_token="[UNK]"), "holes").check_head(7, "holes")
    assert tokens.vocabulary.tokens[3:] == ["a", "b", "<row 2>", "<row 3>", "<row 4>", "<row 6>"]
    assert tokens.network_ids[rows(tokens, ["b a c"]).ids].tolist() == [5, 1, 0]


def test_an_id_far_beyond_the_others_is_refused_before_the_library_makes_places_for_all_between() -> None:
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2**22}, unk_token="[UNK]"))
    with pytest.raises(ModelFileError, match="its 3 tokens have ids up to 4,194,304, and there is a place for each id"):
        foreign_tokens(wrapped(backend, unk_token="[UNK]"), "far")


def test_a_tokenizer_without_a_fast_form() -> None:
    class Slow:
        unk_token = None

    with pytest.raises(ModelFileError, match=r"its tokenizer \(Slow\) has no tokenizer\.json form"):
        foreign_tokens(Slow(), "m")  # type: ignore[arg-type]


# -- tokenizers of models trained here ----------------------------------------------------------------------------------


def trained(path: Path, spec: str = "whitespace", tokens: tuple[str, ...] = ("the", "cat", "é")) -> dict[str, Any]:
    tokenizer = make_tokenizer(spec)
    write_tokenizer(tokenizer, Vocabulary.from_tokens(tokens), path)
    return {"tokenizer": tokenizer.settings(), "vocabulary": "open", "context": "stream", "reserved": "refuse"}


def load(path: Path, told: object) -> TokenMap:
    settings = trained_here(told, path / "config.json", TrainedHere)
    assert settings is not None
    return trained_tokens(path, settings)


def damage(path: Path, change: Any) -> None:
    file = path / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("spec", ["whitespace", "character", "byte"])
def test_ids_of_a_model_trained_here_are_its_vocabularys(spec: str, tmp_path: Path) -> None:
    words = {
        "whitespace": ("the", "cat", "é"),
        "character": tuple("the ca"),
        "byte": tuple(f"<0x{byte:02X}>" for byte in b"the ca"),
    }[spec]
    tokens = load(tmp_path, trained(tmp_path, spec, words))
    assert tokens.vocabulary.tokens == ["<unk>", "<s>", "</s>", *words]
    assert tokens.network_ids.tolist() == list(range(len(words) + 3))
    assert (tokens.trained_here, tokens.running, tokens.reserved) == (True, True, "refuse")
    library = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for line in ("the cat", "the the", "a hat", "cat"):
        found = rows(tokens, [line], "eos")
        assert tokens.network_ids[found.ids].tolist() == [*library(line)["input_ids"], EOS]
        assert found.ends[-1] == len(line)


def test_reserved_tokens_in_the_text_of_a_model_trained_here(tmp_path: Path) -> None:
    tokens = load(tmp_path, trained(tmp_path))
    with pytest.raises(InputError, match=r"reserved token <unk>.*--reserved"):
        rows(tokens, ["the <unk> cat"])
    for line in ("the <s> cat", "the </s> cat"):
        found = rows(tokens.with_reserved("escape"), [line], "eos")
        assert found.ids.tolist() == [3, UNK, 4, EOS]
        assert found.counts.tolist() == [4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.pop("model"), "is damaged"),
        (lambda content: content["model"]["vocab"].update(dog=4), "is damaged"),  # two tokens, one id
        (lambda content: content["model"]["vocab"].update(dog=17), "is damaged"),
        (lambda content: content["model"]["vocab"].update({"": 6}), "is damaged"),
        (lambda content: content["model"]["vocab"].update(the="x"), "is damaged"),
        (
            lambda content: content.update(
                added_tokens=[], model=content["model"] | {"vocab": {"<pad>": 0, "<s>": 1, "</s>": 2, "the": 3}}
            ),
            "does not begin with <unk>, <s>, </s>",
        ),
        (
            lambda content: content.update(model={"vocab": [["<unk>", 0], ["<s>", 0], ["</s>", 0], ["x", 0], ["x", 0]]}),
            "damaged",
        ),
    ],
)
def test_a_damaged_tokenizer(change: Any, message: str, tmp_path: Path) -> None:
    told = trained(tmp_path)
    damage(tmp_path, change)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path, told)


@pytest.mark.parametrize("missing", ["tokenizer", "vocabulary", "context", "reserved"])
def test_settings_that_are_missing(missing: str, tmp_path: Path) -> None:
    told = trained(tmp_path)
    del told[missing]
    with pytest.raises(ModelFileError, match=rf"config\.json: is not what .* missing required field `{missing}`; copy"):
        load(tmp_path, told)


@pytest.mark.parametrize("told", [{"tokenizer": {"name": "nothing"}}, {"tokenizer": 5}, {"reserved": "perhaps"}])
def test_settings_that_mean_nothing(told: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        rows(load(tmp_path, trained(tmp_path) | told), ["the cat"])


def test_a_missing_tokenizer(tmp_path: Path) -> None:
    told = trained(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError, match=r"has no tokenizer\.json; copy the whole folder"):
        load(tmp_path, told)


def test_the_epochs_of_a_training(tmp_path: Path) -> None:
    epochs = [{"epoch": 1, "perplexity": 9.5, "learning_rate": 1.0}]
    for config, found in ({}, []), ({CONFIG_KEY: "x"}, []), ({CONFIG_KEY: {"training": {"history": epochs}}}, epochs):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert history_of(tmp_path) == found


@pytest.mark.parametrize("told", [{}, {"training": 3}, {"training": {"history": [{"epoch": 1}]}}])
def test_epochs_that_are_damaged(told: object, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({CONFIG_KEY: told}))
    with pytest.raises(ModelFileError, match=r"config\.json: is not what a trained network says of itself"):
        history_of(tmp_path)
