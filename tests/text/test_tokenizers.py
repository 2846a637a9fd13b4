"""Tokens, their spans and what they lose, against plain Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lmgauge.base.errors import InputError, MissingExtraError, ModelFileError, UsageError
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.library_tokenizers import HuggingFaceTokenizer
from lmgauge.text.tokenizers import (
    ByteTokenizer,
    CharacterTokenizer,
    Tokenizer,
    Tokens,
    WhitespaceTokenizer,
    load_tokenizer,
    make_tokenizer,
)

DATA = Path(__file__).parent.parent / "data"


def segments_of(*texts: str) -> Segments:
    (segments,) = Corpus.from_strings(texts)
    return segments


def by_segment(tokens: Tokens) -> list[list[str]]:
    strings = iter(tokens.strings())
    return [[next(strings).decode() for _ in range(count)] for count in tokens.counts.tolist()]


def spans(tokens: Tokens) -> list[list[int]]:
    ends = iter(tokens.span_ends.tolist())
    return [[next(ends) for _ in range(count)] for count in tokens.counts.tolist()]


# -- built in ------------------------------------------------------------------------------------------------------


def test_words() -> None:
    segments = segments_of("ein Satz", "", "  zwei\tWörter ", "x", "a  b", " ")
    tokens = WhitespaceTokenizer().tokenize(segments)
    assert by_segment(tokens) == [["ein", "Satz"], [], ["zwei", "Wörter"], ["x"], ["a", "b"], []]
    assert spans(tokens) == [[3, 8], [], [6, 14], [1], [1, 4], []]
    assert tokens.lossy.sum() == 3
    assert tokens.starts.dtype == tokens.counts.dtype == tokens.span_ends.dtype == np.int64


def test_words_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a b\n\n\tc\nd")
    parts = list(Corpus.from_files(path, block_bytes=3))
    tokens = [WhitespaceTokenizer().tokenize(part) for part in parts]
    assert [line for part in tokens for line in by_segment(part)] == [["a", "b"], [], ["c"], ["d"]]
    assert sum(part.lossy.sum() for part in tokens) == 1


def test_words_are_split_at_ascii_white_space_alone() -> None:
    tokens = WhitespaceTokenizer().tokenize(segments_of("a\u00a0b\u3000c\x1cd\x85e a\vb\fc\rd\ne"))
    assert by_segment(tokens)[0] == ["a\u00a0b\u3000c\x1cd\x85e", "a", "b", "c", "d", "e"]


def test_words_of_segments_with_gaps_between() -> None:
    data = np.frombuffer(b"xxab cdyy efzz", np.uint8)
    starts, ends = np.array([2, 9, 12], np.int64), np.array([7, 12, 12], np.int64)
    segments = Segments(data, starts, ends, "x")
    tokens = WhitespaceTokenizer().tokenize(segments)
    assert by_segment(tokens) == [["ab", "cd"], ["ef"], []]
    assert spans(tokens) == [[2, 5], [3], []]
    assert tokens.lossy.sum() == 1
    assert by_segment(CharacterTokenizer().tokenize(segments)) == [list("ab cd"), list(" ef"), []]
    assert by_segment(ByteTokenizer().tokenize(segments))[2] == []


def test_characters() -> None:
    tokens = CharacterTokenizer().tokenize(segments_of("aß", "", "三😀 "))
    assert by_segment(tokens) == [["a", "ß"], [], ["三", "😀", " "]]
    assert spans(tokens) == [[1, 3], [], [3, 7, 8]]
    assert tokens.lossy.sum() == 0


def test_bytes() -> None:
    tokens = ByteTokenizer().tokenize(segments_of("A", "", "ß\n"))
    assert by_segment(tokens) == [["<0x41>"], [], ["<0xC3>", "<0x9F>", "<0x0A>"]]
    assert spans(tokens) == [[1], [], [1, 2, 3]]
    assert ByteTokenizer().detokenize(["<0xC3>", "<0x9F>", "<0xC3>", "<unk>"]) == "ß\ufffd<unk>"


@pytest.mark.parametrize("name", ["whitespace", "character", "byte"])
def test_no_segments(name: str) -> None:
    none = np.zeros(0, np.int64)
    empty = Segments(np.zeros(0, np.uint8), none, none, "x", terminator=1)
    tokens = make_tokenizer(name).tokenize(empty)
    assert (len(tokens), len(tokens.counts), tokens.lossy.sum()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "unit", "kernel"), [("whitespace", "word", 0), ("character", "character", 1), ("byte", "byte", 2)]
)
def test_identity(name: str, unit: str, kernel: int, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(name)
    assert isinstance(tokenizer, Tokenizer)
    assert (tokenizer.name, tokenizer.unit, tokenizer.kernel) == (name, unit, kernel)
    assert make_tokenizer(tokenizer) is tokenizer
    again = load_tokenizer(json.loads(json.dumps(tokenizer.settings())), tmp_path)
    assert (type(again), again.fingerprint) == (type(tokenizer), tokenizer.fingerprint)
    assert tokenizer.files() == {}


def test_unknown_tokenizers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown tokenizer 'words': choose whitespace, treebank, character"):
        make_tokenizer("words")
    with pytest.raises(UsageError, match="3 is not a tokenizer"):
        make_tokenizer(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"none/tokenizer\.json: no such file"):
        make_tokenizer("none/tokenizer.json")
    with pytest.raises(ModelFileError, match="unknown tokenizer"):
        load_tokenizer({"name": "/etc/passwd"}, tmp_path)
    with pytest.raises(ModelFileError, match="no name"):
        load_tokenizer({}, tmp_path)
    with pytest.raises(ModelFileError, match="no such file"):
        load_tokenizer({"name": "hf@123456"}, tmp_path)


@pytest.mark.parametrize(("spec", "module", "extra"), [("icu", "icu4py", "icu"), ("x.json", "tokenizers", "tokenizers")])
def test_missing_libraries_name_their_extra(
    spec: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text("{}")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"lmgauge\[{extra}\]"):
        make_tokenizer(spec)


# -- ICU -----------------------------------------------------------------------------------------------------------


def test_icu_words() -> None:
    pytest.importorskip("icu4py")
    tokenizer = make_tokenizer("icu")
    tokens = tokenizer.tokenize(segments_of("😀 it's 三行目です。", "", "ภาษาไทย", " \u3000"))
    lines = by_segment(tokens)
    assert lines[0][:2] == ["😀", "it's"]
    assert "".join(lines[0]) == "😀it's三行目です。"
    assert lines[1] == lines[3] == []
    assert "".join(lines[2]) == "ภาษาไทย"
    assert spans(tokens)[0][:2] == [4, 9]
    assert spans(tokens)[0][-1] == len("😀 it's 三行目です。".encode())
    assert tokens.lossy.sum() == 2
    assert tokenizer.detokenize(lines[2]) == "ภาษาไทย"


def test_icu_identity(tmp_path: Path) -> None:
    icu4py = pytest.importorskip("icu4py")
    japanese = make_tokenizer("icu:ja")
    assert (japanese.name, japanese.unit, japanese.kernel) == ("icu:ja", "word", None)
    assert japanese.settings()["icu"] == icu4py.icu_version
    assert japanese.fingerprint != make_tokenizer("icu").fingerprint
    assert [make_tokenizer(f"icu:{name}").locale for name in ("zh-Hant", "de_AT", "yue", "TH")] == [
        "zh-Hant",
        "de_AT",
        "yue",
        "TH",
    ]
    for name, language in (("xx", "xx"), ("klingon", "klingon"), ("t-h", "t")):
        with pytest.raises(UsageError, match=f"icu:{name}: there is no language '{language}'; icu alone goes by the script"):
            make_tokenizer(f"icu:{name}")
    assert load_tokenizer({**japanese.settings(), "name": "icu:xx"}, tmp_path).locale == "xx"  # an older model
    assert load_tokenizer(japanese.settings(), tmp_path).fingerprint == japanese.fingerprint


@pytest.mark.parametrize("language", ["zh-Hant", "th", "ar", "ko"])
def test_icu_covers_real_text(language: str) -> None:
    pytest.importorskip("icu4py")
    for segments in Corpus.from_files(DATA / f"pud.{language}.txt"):
        tokens = make_tokenizer("icu").tokenize(segments)
        for i, (words, ends) in enumerate(zip(by_segment(tokens), spans(tokens), strict=True)):
            text = segments.text(i).decode()
            assert "".join(words) == "".join(text.split())
            assert ends == sorted(ends)
            assert ends[-1] == len(text.rstrip().encode())


# -- tokenizer.json ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE tokenizer, which cuts through characters."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|end|>"],
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator((DATA / "pud.en.txt").read_text("utf-8").splitlines(), trainer)
    # Settings of some published files that must not touch a measurement:
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=12)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A <|end|>", None, [("<|end|>", 0)])
    path = tmp_path_factory.mktemp("hf") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="module")
def lower_cased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word-piece tokenizer that normalises: the kind that loses text."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator((DATA / "pud.en.txt").read_text("utf-8").splitlines(), trainer)
    path = tmp_path_factory.mktemp("hf") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_subwords(byte_level: Path) -> None:
    tokenizer = make_tokenizer(byte_level)
    texts = ["The people of 三行目 😀", "", "  two spaces ", "a literal <|end|> here"]
    tokens = tokenizer.tokenize(segments_of(*texts))
    lines = by_segment(tokens)
    assert [tokenizer.detokenize(line) for line in lines] == texts
    assert tokens.lossy.sum() == 0
    assert all("<|end|>" not in line for line in lines)
    for text, ends in zip(texts, spans(tokens), strict=True):
        assert ends == sorted(ends)
        assert not text or ends[-1] == len(text.encode())
    # 三 is three pieces here, and each has the byte that it stands for.
    position = len(b"The people of ")
    assert {position, position + 1, position + 2, position + 3} <= set(spans(tokens)[0])


def test_subwords_that_lose_text(lower_cased: Path) -> None:
    tokenizer = make_tokenizer(lower_cased)
    texts = ["the people", "The people", "the  people ", "Ünïcödé 三行 people"]
    tokens = tokenizer.tokenize(segments_of(*texts))
    assert tokens.lossy.sum() == 3
    for text, ends in zip(texts, spans(tokens), strict=True):
        assert ends == sorted(ends)
        assert ends[-1] == len(text.rstrip().encode())
    assert by_segment(tokens)[2] == by_segment(tokens)[0]


def test_subwords_identity(byte_level: Path, lower_cased: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(byte_level.parent)  # the directory will do
    assert tokenizer.name == f"hf@{tokenizer.fingerprint}"
    assert (tokenizer.unit, tokenizer.kernel) == ("subword", None)
    for name, content in tokenizer.files().items():
        (tmp_path / name).write_bytes(content)
    assert load_tokenizer(json.loads(json.dumps(tokenizer.settings())), tmp_path).fingerprint == tokenizer.fingerprint
    with pytest.raises(ModelFileError, match="not the file this model was made with"):
        load_tokenizer(tokenizer.settings(), lower_cased.parent)


def test_a_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    for content in (b"{}", b"\xff", b"[1, 2"):
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(InputError, match=r"not a usable tokenizer\.json") as error:
            make_tokenizer(tmp_path)
        assert "\n" not in str(error.value)


def test_a_tokenizer_without_the_unknown_token_that_it_names(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="[UNK]"))
    words.save(str(tmp_path / "tokenizer.json"))
    tokenizer = make_tokenizer(tmp_path)
    assert by_segment(tokenizer.tokenize(segments_of("a"))) == [["a"]]
    with pytest.raises(InputError, match=r"tokenizer\.json: not a usable tokenizer\.json: .*\[UNK\]") as error:
        tokenizer.tokenize(segments_of("unseen"))
    assert "\n" not in str(error.value)


def test_a_panic_of_the_library_is_an_error_of_the_file(byte_level: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust code that panics raises a BaseException by this name, which no module exports."""

    class PanicException(BaseException):
        pass

    class Broken:
        def encode_batch(self, texts: list[str], add_special_tokens: bool) -> None:
            raise failure

    tokenizer = make_tokenizer(byte_level)
    monkeypatch.setattr(tokenizer, "_tokenizer", Broken())
    failure: BaseException = PanicException("index out of bounds\nnote: run with RUST_BACKTRACE=1")
    with pytest.raises(InputError, match="index out of bounds") as error:
        tokenizer.tokenize(segments_of("a"))
    assert "\n" not in str(error.value)
    for failure in (KeyboardInterrupt(), MemoryError()):
        with pytest.raises(type(failure)):
            tokenizer.tokenize(segments_of("a"))


def test_detokenize_keeps_strings_it_does_not_know(byte_level: Path) -> None:
    assert make_tokenizer(byte_level).detokenize(["T", "<unk>", "Ġ", "p"]) == "T<unk> p"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "cat": 0}, "unk_token": "[UNK]"}}, r"2 tokens .* the id 0"),
        ({"model": {"type": "WordLevel", "vocab": {"[UNK]": 2**32 - 1}, "unk_token": "[UNK]"}}, r"ids up to 4,294,967,295"),
        (
            {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a", "continuing_subword_prefix": 1}},
            "continuing_subword_prefix .* must be strings",
        ),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA99999999"}}, "charsmap .* is damaged"),
    ],
)
def test_files_by_which_the_library_draws_or_dies(changes: dict[str, object], message: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    whole = json.loads(tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")).to_str())
    with pytest.raises(InputError, match=f"not a usable tokenizer.json: .*{message}"):
        HuggingFaceTokenizer(json.dumps(whole | changes).encode())


def test_an_added_token_takes_the_place_of_the_one_with_its_id() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    whole = json.loads(tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "b": 1}, unk_token="[UNK]")).to_str())
    marks = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    whole["added_tokens"] = [{"id": 1, "content": "a", **marks}]
    tokenizer = HuggingFaceTokenizer(json.dumps(whole).encode())
    assert [tokens.strings() for tokens in map(tokenizer.tokenize, Corpus.from_strings(["a"]))] == [[b"a"]]
