"""Laws of reading and tokenising, over random text: nothing depends on packing, and spans tile."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.documents import document_numbers

from lmgauge.base.errors import InputError
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.segments import count_text
from lmgauge.text.split import split_corpus, write_split
from lmgauge.text.tokenizers import Tokenizer, make_tokenizer

law = settings(deadline=None)  # files are written, libraries imported: the first example is slow
DATA = Path(__file__).parent.parent / "data"
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
OTHER_FORMATS = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0")  # refused by name

# Much white space of all kinds and characters of every length in UTF-8, in an order that random text seldom has.
characters = st.sampled_from("ab \t\v\f\r\x1c\x85\xa0äß三行ทไ\u3000\u200d\u0301😀𝄞") | st.characters(
    exclude_categories=["Cs"], exclude_characters="\0\n"
)
# A carriage return at the end would be part of the line's end, a byte order mark at the start of the file's.
lines = st.text(characters, max_size=12).map(lambda line: line.rstrip("\r").lstrip("\ufeff"))
records = st.text(characters | st.just("\n"), max_size=12).map(lambda text: re.sub("\r+\n", "\n", text))


def read(data: bytes, name: str = "a.txt", block_bytes: int = 1 << 20, **options: object) -> Corpus:
    """Return a corpus that was read once, with its segments in `parts`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        corpus = Corpus.from_files(path, block_bytes=block_bytes, **options)  # type: ignore[arg-type]
        corpus.parts = list(corpus)  # type: ignore[attr-defined]
    return corpus


def parts_of(corpus: Corpus) -> list[Segments]:
    return corpus.parts  # type: ignore[attr-defined, no-any-return]


def texts_of(parts: list[Segments]) -> list[str]:
    return [part.text(i).decode() for part in parts for i in range(len(part))]


@law
@given(
    st.lists(lines, max_size=8),
    st.integers(1, 40),
    st.sampled_from(sorted(PACKERS)),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
def test_content_does_not_depend_on_packing(
    texts: list[str], block_bytes: int, suffix: str, line_end: str, mark: bool, cut: bool
) -> None:
    plain = "".join(line + "\n" for line in texts).encode()
    data = "".join(line + line_end for line in texts).encode()
    cut = cut and bool(texts) and texts[-1] != ""
    data = data.removesuffix(line_end.encode()) if cut else data
    packed = PACKERS[suffix]((b"\xef\xbb\xbf" if mark else b"") + data)
    corpus = read(packed, f"a.txt{suffix}", block_bytes)
    parts, report = parts_of(corpus), corpus.report
    assert texts_of(parts) == texts
    assert report.sha256 == hashlib.sha256(plain).hexdigest()
    assert (report.segments, report.bytes, report.characters) == (len(texts), len(plain), len(plain.decode()))
    assert report.crlf_lines == (0 if line_end == "\n" else len(texts) - cut)
    assert (report.bom, report.missing_final_newline) == (mark, cut)
    assert [part.first for part in parts] == np.cumsum([0, *map(len, parts)])[: len(parts)].tolist()
    assert [part.line(i) for part in parts for i in range(len(part))] == list(range(1, len(texts) + 1))
    for part in parts:  # what kernels rely on: lines fill the array, each with its newline
        assert part.data.tobytes() == b"".join(part.text(i) + b"\n" for i in range(len(part)))


@law
@given(st.lists(records, max_size=8), st.integers(1, 40))
def test_records_do_not_depend_on_blocks_or_format(texts: list[str], block_bytes: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings = Corpus.from_strings(texts, block_bytes=block_bytes)
    expected = "".join(texts)
    assert texts_of(list(strings)) == texts
    assert strings.report.characters == len(expected)
    jsonl = read("".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), "a.jsonl", block_bytes)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), sink, row_group_size=3)
    parquet = read(sink.getvalue().to_pybytes(), "a.parquet", block_bytes)
    for corpus in (jsonl, parquet):
        assert texts_of(parts_of(corpus)) == texts
        assert corpus.report.sha256 == strings.report.sha256
        assert corpus.report.characters == len(expected)


@law
@given(st.binary(max_size=40).filter(lambda data: not data.startswith(OTHER_FORMATS)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Replacing gives what Python's decoder gives, skipping the lines that it decodes, failing names the first byte."""
    bom = data.startswith(b"\xef\xbb\xbf")
    body = data[3 * bom :]
    plain = re.sub(rb"\r+\n", b"\n", body + b"\n" if body and not body.endswith(b"\n") else body)
    raw_lines = plain.split(b"\n")[:-1]
    replaced = read(data, block_bytes=5, errors="replace")
    assert texts_of(parts_of(replaced)) == [line.decode("utf-8", "replace").replace("\0", "\ufffd") for line in raw_lines]
    good = [line for line in raw_lines if b"\0" not in line and line.decode("utf-8", "ignore").encode() == line]
    skipped = read(data, block_bytes=5, errors="skip")
    assert [text.encode() for text in texts_of(parts_of(skipped))] == good
    assert skipped.report.skipped == len(raw_lines) - len(good)
    assert (replaced.report.replaced > 0) == (len(good) < len(raw_lines))
    if len(good) == len(raw_lines):
        assert texts_of(parts_of(read(data, block_bytes=5))) == [line.decode() for line in good]
        return
    with pytest.raises(InputError) as error:
        read(data, block_bytes=5)
    match = re.search(r"line (\d+), byte (\d+):", str(error.value))
    assert match is not None
    line, position = map(int, match.groups())
    assert data.count(b"\n", 0, position) == line - 1
    assert data[position] == 0 or data[position] >= 0x80
    assert b"\0" not in data[:position]


@law
@given(st.lists(records, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_counts_equal_python(texts: list[str], chosen: list[bool]) -> None:
    for part in Corpus.from_strings(texts):
        keep = np.flatnonzero(chosen[: len(part)])
        for index in (np.arange(len(part)), keep):  # all of them, and some with gaps between
            mine = [texts[i] for i in index.tolist()]
            counted = count_text(part.data, part.starts[index], part.ends[index], 0)[0]
            assert counted == sum(len(text.encode().split()) for text in mine)
            counted = count_text(part.data, part.starts[index], part.ends[index], 0)[1]
            assert counted == sum(map(len, mine))


@law
@given(st.lists(lines, max_size=8))
def test_counts_of_lines_equal_python(texts: list[str]) -> None:
    data = "".join(line + "\n" for line in texts).encode()
    for part in parts_of(read(data)):
        assert count_text(part.data, part.starts, part.ends, 1)[0] == len(data.split())
        assert count_text(part.data, part.starts, part.ends, 1)[1] == len(data.decode())


# -- documents -----------------------------------------------------------------------------------------------------

# Lines that are blank, headings, nearly headings, or text.
marked_lines = st.sampled_from(
    [
        "",
        " ",
        "\t\v",
        "a",
        " b ",
        " = A = ",
        "= ä =",
        " = A = B = ",
        " = = A = = ",
        "= = =",
        "= =",
        "=",
        "# A",
        "#",
        "# ",
        "## A",
    ]
) | st.text(st.sampled_from("=# a\xa0"), max_size=7)


@law
@given(
    st.lists(st.lists(marked_lines, max_size=8), min_size=1, max_size=3),
    st.sampled_from(["file", "blank-line", "heading"]),
    st.integers(1, 40),
)
def test_documents_do_not_depend_on_blocks(files: list[list[str]], rule: str, block_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.txt") for i in range(len(files))]
        for path, own in zip(paths, files, strict=True):
            path.write_bytes("".join(line + "\n" for line in own).encode())
        corpus = Corpus.from_files(paths, document=rule, block_bytes=block_bytes)
        parts = list(corpus)
    expected = document_numbers(files, rule)
    assert [number for part in parts if part.documents is not None for number in part.documents.tolist()] == expected
    assert corpus.report.documents == len(set(expected))


record_lines = st.sampled_from(
    [b"{oops", b'{"text": null}', b'{"text": "no talk"}', b"\xff", b'{"text": "\\u0000", "talk": "z"}']
) | st.builds(
    lambda text, talk: json.dumps({"text": text, "talk": talk}).encode(), records, st.sampled_from(["x", "y", 1, "1"])
)


@law
@given(st.lists(record_lines, max_size=10), st.integers(1, 60))
def test_records_left_out_shift_nothing(raw: list[bytes], block_bytes: int) -> None:
    """Documents are numbered by the records that stay, and each keeps its place in the file as its id."""
    good = [(number, json.loads(line)) for number, line in enumerate(raw, 1) if b'"talk"' in line and b"u0000" not in line]
    unusable = sum(line != b"\xff" and b'"talk"' not in line for line in raw)
    options: dict[str, object] = {"errors": "skip", "document": "talk"}
    if unusable and not good:
        with pytest.raises(InputError, match="no record of the text can be used"):
            read(b"\n".join(raw), "a.jsonl", block_bytes, **options)
        return
    corpus = read(b"\n".join(raw), "a.jsonl", block_bytes, **options)
    parts = parts_of(corpus)
    assert texts_of(parts) == [record["text"] for _, record in good]
    names = [str(record["talk"]) for _, record in good]
    order = list(dict.fromkeys(names))
    assert [n for part in parts if part.documents is not None for n in part.documents.tolist()] == list(
        map(order.index, names)
    )
    assert [name.rsplit(":", 1)[1] for part in parts for name in part.identifiers()] == [str(number) for number, _ in good]
    assert (corpus.report.unusable, corpus.report.skipped) == (unusable, len(raw) - len(good))


# -- tokenizers ----------------------------------------------------------------------------------------------------


@cache
def byte_level() -> Tokenizer:
    tokenizers = pytest.importorskip("tokenizers")
    from lmgauge.text.library_tokenizers import HuggingFaceTokenizer

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator((DATA / "pud.de.txt").read_text("utf-8").splitlines(), trainer)
    return HuggingFaceTokenizer(tokenizer.to_str().encode())


@cache
def lower_cased() -> Tokenizer:
    tokenizers = pytest.importorskip("tokenizers")
    from lmgauge.text.library_tokenizers import HuggingFaceTokenizer

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.NFKD(), tokenizers.normalizers.BertNormalizer()]
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator((DATA / "pud.de.txt").read_text("utf-8").splitlines(), trainer)
    return HuggingFaceTokenizer(tokenizer.to_str().encode())


@cache
def icu() -> Tokenizer:
    pytest.importorskip("icu4py")
    return make_tokenizer("icu")


@cache
def sentence_pieces() -> Tokenizer:
    library = pytest.importorskip("sentencepiece")
    from lmgauge.text.sentencepiece_tokenizer import SentencePieceTokenizer

    content = io.BytesIO()
    lines = (DATA / "pud.de.txt").read_text("utf-8").splitlines()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:300]),
        model_writer=content,
        vocab_size=400,
        model_type="bpe",
        minloglevel=2,
        num_threads=1,
    )
    return SentencePieceTokenizer(content.getvalue())


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "whitespace": lambda: make_tokenizer("whitespace"),
    "character": lambda: make_tokenizer("character"),
    "byte": lambda: make_tokenizer("byte"),
    "icu": icu,
    "byte-level": byte_level,
    "lower-cased": lower_cased,
    "sentencepiece": sentence_pieces,
    "normalized words": lambda: make_tokenizer("whitespace", "ccnet"),
    "normalized characters": lambda: make_tokenizer("character", "ccnet"),
    "normalized subwords": lambda: make_tokenizer(sentence_pieces(), "ccnet"),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@law
@given(texts=st.lists(records, max_size=8))
def test_spans_tile_and_loss_is_counted(name: str, texts: list[str]) -> None:
    """Span ends never go back nor past the text, and lossy segments are those that do not come back."""
    tokenizer = TOKENIZERS[name]()
    for part in Corpus.from_strings(texts):
        tokens = tokenizer.tokenize(part)
        assert len(tokens.counts) == len(part)
        assert len(tokens.starts) == len(tokens.ends) == len(tokens.span_ends) == tokens.counts.sum()
        strings = tokens.strings()
        position = lossy = 0
        for i, count in enumerate(tokens.counts.tolist()):
            ends = [0, *tokens.span_ends[position : position + count].tolist()]
            assert ends == sorted(ends)
            assert ends[-1] <= len(part.text(i))
            own = [string.decode() for string in strings[position : position + count]]
            lossy += tokenizer.detokenize(own) != texts[part.first + i]
            position += count
        # A model's own normalization may undo what ours did, such as letters of Korean syllables put together again.
        assert tokens.lossy.sum() == lossy or (name == "normalized subwords" and tokens.lossy.sum() > lossy)


@law
@given(st.lists(records, max_size=8))
def test_built_in_tokens_equal_python(texts: list[str]) -> None:
    for part in Corpus.from_strings(texts):
        raw = [part.text(i) for i in range(len(part))]
        words = make_tokenizer("whitespace").tokenize(part)
        assert words.strings() == [word for text in raw for word in text.split()]
        assert words.span_ends.tolist() == [m.end() for text in raw for m in re.finditer(rb"[^ \t\n\v\f\r]+", text)]
        assert len(words) == count_text(part.data, part.starts, part.ends, 0)[0]
        assert make_tokenizer("character").tokenize(part).strings() == [c.encode() for text in raw for c in text.decode()]
        assert make_tokenizer("byte").tokenize(part).strings() == [b"<0x%02X>" % byte for text in raw for byte in text]


@pytest.mark.parametrize("name", ["character", "byte", "byte-level"])
@law
@given(texts=st.lists(records, max_size=6))
def test_lossless_tokenizers_lose_nothing(name: str, texts: list[str]) -> None:
    tokenizer = TOKENIZERS[name]()
    for part in Corpus.from_strings(texts):
        assert tokenizer.tokenize(part).lossy.sum() == 0


# -- splitting -----------------------------------------------------------------------------------------------------


@law
@given(st.integers(1, 200), st.integers(0, 2**64 - 1), st.integers(0, 20), st.integers(0, 20))
def test_split_sizes_are_exact(count: int, seed: int, a: int, b: int) -> None:
    fractions = (a / 40, b / 40, 1 - a / 40 - b / 40)
    corpus = Corpus.from_strings([str(i) for i in range(count)], block_bytes=50)
    split = split_corpus(corpus, fractions, seed=seed)
    for size, share in zip(split.counts().values(), fractions, strict=True):
        assert abs(size - share * count) <= 1
    np.testing.assert_array_equal(split.assignment, split_corpus(corpus, fractions, seed=seed).assignment)


@law
@given(st.lists(lines, min_size=1, max_size=30), st.integers(0, 99))
def test_split_parts_are_a_partition(texts: list[str], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes("".join(line + "\n" for line in texts).encode())
        parts = write_split(Corpus.from_files(path, block_bytes=20), folder, (0.5, 0.25, 0.25), seed=seed).parts
        found = [line for part in parts for line in part.path.read_bytes().split(b"\n")[:-1]]
    assert sorted(found) == sorted(line.encode() for line in texts)
