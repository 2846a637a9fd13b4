"""Reading text: the same content whatever its packing, and one clear sentence for what cannot be read."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.arrow import skip_unwritable

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.segments import count_text

TEXT = "erste Zeile\n\nдве строки\n三行目\n".encode()
LINES = ["erste Zeile", "", "две строки", "三行目"]


def texts(corpus: Corpus) -> list[str]:
    return [part.text(i).decode() for part in corpus for i in range(len(part))]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    return bytes(zstandard.ZstdCompressor().compress(data))


@contextmanager
def tracked_memory() -> Iterator[Callable[[], int]]:
    """The most bytes that Python held at a time within the block."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


# -- lines ---------------------------------------------------------------------------------------------------------


def test_lines_with_their_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", TEXT)
    (part,) = Corpus.from_files(path)
    assert isinstance(part, Segments)
    assert [part.text(i).decode() for i in range(len(part))] == LINES
    assert (part.terminator, part.first, part.first_line, part.line(2), part.source) == (1, 0, 1, 3, str(path))
    assert part.data.dtype == np.uint8
    assert part.starts.dtype == part.ends.dtype == np.int64
    assert part.groups is None
    assert part.byte_count() == len(TEXT)


def test_report_and_fingerprint(tmp_path: Path) -> None:
    corpus = Corpus.from_files(write(tmp_path / "a.txt", TEXT))
    with pytest.raises(UsageError, match="read to its end"):
        _ = corpus.report.fingerprint
    list(corpus)
    assert (corpus.report.segments, corpus.report.bytes) == (4, len(TEXT))
    assert corpus.report.characters == len(TEXT.decode())
    assert corpus.report.sha256 == hashlib.sha256(TEXT).hexdigest()
    assert corpus.report.fingerprint == corpus.report.sha256[:6]
    assert corpus.report.notes() == []


@pytest.mark.parametrize(
    ("data", "noted"),
    [
        (TEXT.replace(b"\n", b"\r\n"), "4 CRLF line ends read as LF"),
        (b"\xef\xbb\xbf" + TEXT, "byte order mark dropped from 1 file"),
        (TEXT[:-1], "final newline supplied for 1 of 1 files"),
        (TEXT.replace(b"\n", b"\r\n")[:-1], "final newline supplied"),
        (TEXT.replace(b"\n", b"\r\r\n"), "4 CRLF"),
    ],
    ids=["crlf", "bom", "no final newline", "cut crlf", "cr cr lf"],
)
def test_variants_of_a_text_are_the_same_text(tmp_path: Path, data: bytes, noted: str) -> None:
    corpus = Corpus.from_files(write(tmp_path / "a.txt", data))
    assert texts(corpus) == LINES
    assert corpus.report.sha256 == hashlib.sha256(TEXT).hexdigest()
    assert corpus.report.characters == len(TEXT.decode())
    assert noted in "; ".join(corpus.report.notes())


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("unit", ["line", "document"])
def test_a_byte_order_mark_is_kept_as_text_if_asked(tmp_path: Path, block_bytes: int, unit: Any) -> None:
    path = write(tmp_path / "a.txt", b"\xef\xbb\xbf" + TEXT)
    corpus = Corpus.from_files(path, keep_bom=True, block_bytes=block_bytes, unit=unit)
    marked = "\ufeff" + TEXT.decode()
    assert texts(corpus) == (marked.removesuffix("\n").split("\n") if unit == "line" else [marked])
    assert (corpus.report.characters, corpus.report.bom, corpus.report.bom_kept) == (len(marked), 0, 1)
    assert "byte order mark at the start is counted as text" in "; ".join(corpus.report.notes())
    alone = Corpus.from_files(write(tmp_path / "b.txt", b"\xef\xbb\xbf"), keep_bom=True)
    assert texts(alone) == ["\ufeff"]


def test_only_newlines_end_lines(tmp_path: Path) -> None:
    line = "a\vb\fc\x1cd\x85e\u2028f\rg"
    assert texts(Corpus.from_files(write(tmp_path / "a.txt", line.encode() + b"\n"))) == [line]


@pytest.mark.parametrize("unit", ["line", "document"])
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_segments(tmp_path: Path, unit: str, data: bytes) -> None:
    corpus = Corpus.from_files(write(tmp_path / "a.txt", data), unit=unit)  # type: ignore[arg-type]
    assert texts(corpus) == []
    assert corpus.report.sha256 == hashlib.sha256(b"").hexdigest()
    assert corpus.report.missing_final_newline == 0


def test_a_file_of_one_newline_is_one_blank_line(tmp_path: Path) -> None:
    assert texts(Corpus.from_files(write(tmp_path / "a.txt", b"\n"))) == [""]


def test_a_byte_order_mark_is_a_character_elsewhere(tmp_path: Path) -> None:
    assert texts(Corpus.from_files(write(tmp_path / "a.txt", "a\n\ufeffb\n\ufeff".encode()))) == [
        "a",
        "\ufeffb",
        "\ufeff",
    ]


def test_a_very_long_line(tmp_path: Path) -> None:
    line = "ä" * 3_000_000
    corpus = Corpus.from_files(write(tmp_path / "a.txt", f"x\n{line}\ny".encode()), block_bytes=1 << 16)
    assert texts(corpus) == ["x", line, "y"]
    assert corpus.report.characters == len(line) + 5


@pytest.mark.parametrize("unit", ["line", "document"])
@pytest.mark.parametrize("before", [b"", b"a line\n"])
def test_a_nul_is_refused_before_the_line_ends(tmp_path: Path, unit: str, before: bytes) -> None:
    """A file of zeros, such as /dev/zero, may have no end."""
    path = write(tmp_path / "a.txt", before + bytes(1 << 20))
    corpus = Corpus.from_files(path, unit=unit, block_bytes=16)
    with tracked_memory() as peak, pytest.raises(InputError, match=rf"byte {len(before)}: NUL"):
        list(corpus)
    assert peak() < 1 << 19


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmgauge.records.lines.MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr("lmgauge.records.parquet.MAX_RECORD_BYTES", 1000)
    packed = gzip.compress(b"a b " * (1 << 18))
    for name, data in (("a.txt", b"x" * 2000), ("a.txt.gz", packed), ("b.jsonl", b'{"text": "' + b"x" * 2000)):
        with pytest.raises(InputError, match=rf"{name}: there is no newline within 1,000 bytes.*newlines"):
            list(Corpus.from_files(write(tmp_path / name, data), block_bytes=100, errors="replace"))
    assert texts(Corpus.from_files(write(tmp_path / "c.txt", b"x" * 900 + b"\n"), block_bytes=100)) == ["x" * 900]
    assert len(texts(Corpus.from_files(tmp_path / "a.txt", unit="document", block_bytes=100))[0]) == 2001
    path = parquet(tmp_path / "d.parquet", text=["a", "x" * 2000])
    with pytest.raises(InputError, match=r"d\.parquet, row 2: column 'text' holds 2,000 bytes in one cell"):
        list(Corpus.from_files(path))


def test_documents(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.txt", TEXT), write(tmp_path / "b.txt", TEXT[:-1].replace(b"\n", b"\r\n"))
    corpus = Corpus.from_files([first, second], unit="document", block_bytes=7)
    parts = list(corpus)
    assert [part.text(0) for part in parts] == [TEXT, TEXT]
    assert [part.first for part in parts] == [0, 1]
    assert all(part.terminator == 0 for part in parts)
    assert (corpus.report.segments, corpus.report.bytes) == (2, 2 * len(TEXT))
    size = len(TEXT).to_bytes(8, "little")
    assert corpus.report.sha256 == hashlib.sha256((size + TEXT) * 2).hexdigest()


# -- compression ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    packed = PACKERS[suffix](TEXT) + PACKERS[suffix](b"mehr\n")  # several members, as `cat a.gz b.gz` makes
    corpus = Corpus.from_files(write(tmp_path / f"a.txt{suffix}", packed))
    assert texts(corpus) == [*LINES, "mehr"]
    assert corpus.report.sha256 == hashlib.sha256(TEXT + b"mehr\n").hexdigest()


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_cut_off_file_is_an_error(tmp_path: Path, suffix: str, keep: float) -> None:
    rng = np.random.default_rng(5)
    packed = PACKERS[suffix](b"\n".join(b"%d" % n for n in rng.integers(0, 10**9, 20_000)))
    path = write(tmp_path / f"a.txt{suffix}", packed[: int(len(packed) * keep)])
    with pytest.raises(InputError, match=r"a\.txt.*(ends too early|damaged)") as error:
        list(Corpus.from_files(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(5)
    packed = bytearray(PACKERS[suffix](b"\n".join(b"%d" % n for n in rng.integers(0, 10**9, 20_000))))
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(255 - byte for byte in packed[middle : middle + 64])
    with pytest.raises(InputError, match=rf"a\.txt\{suffix}"):
        list(Corpus.from_files(write(tmp_path / f"a.txt{suffix}", bytes(packed))))


@pytest.mark.parametrize("suffix", PACKERS)
def test_what_follows_a_complete_stream_is_a_stream_or_an_error(tmp_path: Path, suffix: str) -> None:
    packed = PACKERS[suffix](TEXT)
    for rest in (b"\xfe" + packed[1:], b"rubbish", packed[:-1], packed[:2]):
        with pytest.raises(InputError, match=rf"a\.txt\{suffix}: .*(damaged|ends too early)"):
            list(Corpus.from_files(write(tmp_path / f"a.txt{suffix}", packed + rest)))


def test_padding_of_xz_streams(tmp_path: Path) -> None:
    """Zero bytes, a multiple of four, after any stream (section 2.2 of the .xz format)."""
    packed = lzma.compress(TEXT)
    for zeros in (4, 8, 1 << 17):
        path = write(tmp_path / "a.txt.xz", packed + bytes(zeros) + packed + bytes(zeros))
        assert texts(Corpus.from_files(path)) == LINES * 2
    for wrong in (packed + bytes(3), packed + bytes(6) + packed):
        with pytest.raises(InputError, match=r"a\.txt\.xz.*damaged: \d zero bytes follow"):
            list(Corpus.from_files(write(tmp_path / "a.txt.xz", wrong)))


@pytest.mark.parametrize("suffix", PACKERS)
def test_text_under_a_compressed_name(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InputError, match="damaged"):
        list(Corpus.from_files(write(tmp_path / f"a{suffix}", b"plain text, not packed\n" * 9)))


def test_packed_data_under_a_plain_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gzip-compressed"):
        list(Corpus.from_files(write(tmp_path / "a.txt", gzip.compress(TEXT)), errors="replace"))


def test_zstd_with_a_window_larger_than_the_default(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=28)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(TEXT) + packer.flush()
    assert texts(Corpus.from_files(write(tmp_path / "a.zst", packed))) == LINES


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"pip install 'lmgauge\[zstd\]'"):
        list(Corpus.from_files(write(tmp_path / "a.zst", b"x")))


# -- invalid text --------------------------------------------------------------------------------------------------


def test_invalid_utf8_is_named_by_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path / "latin1.txt", b"\xef\xbb\xbfgut\r\n\xc3\xa4 caf\xe9 cr\xe8me\n")
    with pytest.raises(InputError, match=rf"{path}, line 2, byte 14: 0xE9 is not valid UTF-8: .*--errors replace"):
        list(Corpus.from_files(path, block_bytes=4))


def test_nul_is_named_by_line_and_byte(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3, byte 5: NUL \(0x00\) is not text; is this UTF-16"):
        list(Corpus.from_files(write(tmp_path / "a.txt", b"a\nb\nc\0d\xff\n")))


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
def test_utf16_is_refused(tmp_path: Path, codec: str) -> None:
    with pytest.raises(InputError, match="UTF-16"):
        list(Corpus.from_files(write(tmp_path / "a.txt", "text\n".encode(codec)), errors="replace"))


def test_replace_counts_bytes(tmp_path: Path) -> None:
    data = b"a\xe2\x82b\n\0\xff\n\xf0\x9f\x98\n"  # a cut euro sign, NUL, a stray byte, a cut emoji
    corpus = Corpus.from_files(write(tmp_path / "a.txt", data), errors="replace")
    assert texts(corpus) == [line.decode("utf-8", "replace").replace("\0", "\ufffd") for line in data.split(b"\n")[:-1]]
    assert corpus.report.replaced == 2 + 1 + 1 + 3
    assert corpus.report.characters == 3 + 1 + 2 + 1 + 1 + 1


def test_skip_counts_lines_and_keeps_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"one\nb\xffd\nthree\r\n\0\nfive\n")
    corpus = Corpus.from_files(path, errors="skip")
    (part,) = corpus
    assert [part.text(i) for i in range(3)] == [b"one", b"three", b"five"]
    assert [part.line(i) for i in range(3)] == [1, 3, 5]
    assert corpus.report.skipped == 2
    assert part.byte_count() == corpus.report.bytes == len(part.data) == 15
    assert corpus.report.characters == 15
    assert texts(Corpus.from_files(write(tmp_path / "b.txt", b"\xff\n"), errors="skip")) == []


def test_skipping_documents(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.txt", b"ok\n"), write(tmp_path / "b.txt", b"no\0\n")]
    corpus = Corpus.from_files(paths, unit="document", errors="skip")
    assert texts(corpus) == ["ok\n"]
    assert corpus.report.skipped == 1


# -- JSONL ---------------------------------------------------------------------------------------------------------


def jsonl(*records: object) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def test_jsonl_records(tmp_path: Path) -> None:
    data = jsonl({"text": "eins\nzwei", "id": 3}) + b"\n  \n" + jsonl({"text": ""}, {"text": "三😀"})
    path = write(tmp_path / "a.jsonl.gz", gzip.compress(data))
    corpus = Corpus.from_files(path)
    (part,) = corpus
    assert [part.text(i).decode() for i in range(3)] == ["eins\nzwei", "", "三😀"]
    assert [part.line(i) for i in range(3)] == [1, 4, 5]
    assert part.terminator == 0
    assert corpus.report.characters == 9 + 0 + 2
    assert corpus.report.bytes == part.byte_count() == 9 + 7


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{oops", r":2: not valid JSON"),
        (b"[1]", r":2: a JSON object .* needed, not a list"),
        (b'{"txt": "x"}', r":2: no field 'text'; the fields are 'txt': name one of them \(--field\)"),
        (b'{"text": 3}', r":2: field 'text' holds a number, not a string"),
        (b'{"text": null}', r":2: field 'text' holds null"),
        (b"[" * 100_000, r":2: not usable JSON"),
        (b'{"text": "a", "n": ' + b"1" * 5000 + b"}", r":2: not usable JSON"),
        (b'{"text": "a\\u0000"}', r"record 2: NUL"),
        (b'{"text": "a\\ud800"}', r"record 2: a lone surrogate"),
        (b'{"text": "\xff"}', r"line 2, byte 27: 0xFF"),
    ],
    ids=["json", "list", "field", "number", "null", "deep", "digits", "nul", "surrogate", "bytes"],
)
def test_jsonl_errors(tmp_path: Path, line: bytes, message: str) -> None:
    path = write(tmp_path / "a.ndjson", b'{"text": "fine"}\n' + line + b"\n")
    with pytest.raises(InputError, match=message) as error:
        list(Corpus.from_files(path))
    assert "\n" not in str(error.value)


def test_jsonl_field_and_group(tmp_path: Path) -> None:
    records = [{"body": "a", "lang": "de"}, {"body": "b", "lang": "tr"}, {"body": "c", "lang": "de"}]
    path = write(tmp_path / "records.dat", jsonl(*records))
    corpus = Corpus.from_files(path, format="jsonl", field="body", group="lang", block_bytes=1)
    codes = [code for part in corpus for code in part.groups.tolist()]  # type: ignore[union-attr]
    assert codes == [0, 1, 0]
    assert corpus.group_names == ["de", "tr"]
    with pytest.raises(InputError, match=r":1: no field 'year'"):
        list(Corpus.from_files(path, format="jsonl", field="body", group="year"))


UNUSABLE = [
    b"{oops",
    b"[1]",
    b'{"txt": "x"}',
    b'{"text": null}',
    b'{"text": "x", "key": null}',
    b'{"text": "x", "key": 1.5}',
]


def test_records_that_cannot_be_used_are_skipped_and_counted(tmp_path: Path) -> None:
    good = [b'{"text": "eins", "key": "a"}', b'{"text": "zwei", "key": "b"}']
    path = write(tmp_path / "a.jsonl", b"\n".join([UNUSABLE[0], good[0], *UNUSABLE[1:], b"\xff", good[1]]) + b"\n")
    for block_bytes in (1, 1 << 20):
        corpus = Corpus.from_files(path, errors="skip", id="key", block_bytes=block_bytes)
        parts = list(corpus)
        assert [part.text(i) for part in parts for i in range(len(part))] == [b"eins", b"zwei"]
        assert [name for part in parts for name in part.identifiers()] == ["a", "b"]
        assert [part.line(i) for part in parts for i in range(len(part))] == [2, 9]
        assert (corpus.report.skipped, corpus.report.unusable) == (7, 6)
        invalid, unusable = corpus.report.notes()
        assert invalid.startswith("1 segment left out: not valid text")
        assert unusable.startswith("6 records left out: no usable text; the first: ")
        assert "a.jsonl:1: not valid JSON" in unusable
    for policy in ("fail", "replace"):
        with pytest.raises(InputError, match=r"a\.jsonl:1: not valid JSON"):
            list(Corpus.from_files(path, errors=policy, block_bytes=1))  # type: ignore[arg-type]


def test_a_field_that_no_record_has_is_an_error_even_when_skipping(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", jsonl({"text": "a"}, {"text": "b"}))
    with pytest.raises(InputError, match=r"no record of the text can be used; the first: .*a\.jsonl:1: no field 'body'"):
        list(Corpus.from_files(path, errors="skip", field="body"))


def test_an_id_is_text_or_an_integer(tmp_path: Path) -> None:
    for value, what in ((None, "null"), (1.5, "a number"), ([], "a list"), ("\ud800", "a lone surrogate"), ("\0", "NUL")):
        path = write(tmp_path / "a.jsonl", jsonl({"text": "a", "key": value}))
        with pytest.raises(InputError, match=rf"a\.jsonl:1: the field 'key' holds .*{what}"):
            list(Corpus.from_files(path, id="key"))


# -- Parquet -------------------------------------------------------------------------------------------------------


def parquet(path: Path, **columns: object) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, row_group_size=3)
    return path


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
@pytest.mark.parametrize("block_bytes", [1, 40, 1 << 20])
def test_parquet(tmp_path: Path, kind: str, block_bytes: int) -> None:
    import pyarrow as pa

    strings = ["eins", "", "三行", "a\r\nb", "x" * 100, "😀"] * 3
    array = pa.array(strings, getattr(pa, kind)() if kind != "dictionary" else None)
    array = array.dictionary_encode() if kind == "dictionary" else array
    path = parquet(tmp_path / "a.parquet", other=list(range(18)), text=array, year=[1800, 1900] * 9)
    corpus = Corpus.from_files(path, group="year", block_bytes=block_bytes)
    parts = list(corpus)
    expected = [text.replace("\r\n", "\n") for text in strings]
    assert [part.text(i).decode() for part in parts for i in range(len(part))] == expected
    assert [code for part in parts for code in part.groups.tolist()] == [0, 1] * 9  # type: ignore[union-attr]
    assert corpus.group_names == ["1800", "1900"]
    assert [part.line(i) for part in parts for i in range(len(part))] == list(range(1, 19))
    assert corpus.report.characters == sum(map(len, expected))
    same = Corpus.from_strings(expected)
    list(same)
    assert corpus.report.sha256 == same.report.sha256


def two_columns_of_one_name(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), path)
    return path


def test_parquet_errors(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["a", None], n=[1, 2])
    with pytest.raises(InputError, match=r"a\.parquet:2: field 'text' holds null"):
        list(Corpus.from_files(path))
    with pytest.raises(InputError, match=r"no column 'body'; the columns are 'text', 'n'"):
        list(Corpus.from_files(path, field="body"))
    with pytest.raises(InputError, match=r"column 'n' holds int64"):
        list(Corpus.from_files(path, field="n"))
    with pytest.raises(InputError, match=r"c\.parquet: several columns 'text'; the columns are"):
        list(Corpus.from_files(two_columns_of_one_name(tmp_path / "c.parquet")))
    with pytest.raises(InputError, match=r"b\.parquet: not a readable Parquet file"):
        list(Corpus.from_files(write(tmp_path / "b.parquet", path.read_bytes()[:-9])))


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("line_end", ["", "\r\n"])
def test_rows_with_null_are_skipped_and_counted(tmp_path: Path, block_bytes: int, line_end: str) -> None:
    texts = [None, "eins" + line_end, "zwei", None, "drei"]
    path = parquet(tmp_path / "a.parquet", text=texts, key=["a", "b", None, None, "e"])
    corpus = Corpus.from_files(path, errors="skip", id="key", block_bytes=block_bytes)
    parts = list(corpus)
    assert [part.text(i).strip() for part in parts for i in range(len(part))] == [b"eins", b"drei"]
    assert [name for part in parts for name in part.identifiers()] == ["b", "e"]
    assert [part.line(i) for part in parts for i in range(len(part))] == [2, 5]
    assert (corpus.report.skipped, corpus.report.unusable) == (3, 3)
    assert "a.parquet:1: field 'text' holds null" in corpus.report.left_out()[-1]
    assert corpus.report.notes()[:1] == corpus.report.left_out()
    with pytest.raises(InputError, match=r"a\.parquet:1: field 'text' holds null"):
        list(Corpus.from_files(path))


def test_parquet_labels_that_are_no_utf8(tmp_path: Path) -> None:
    import pyarrow as pa

    torn = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    path = parquet(tmp_path / "a.parquet", text=["a"], key=torn)
    for role in ("id", "group", "document"):
        with pytest.raises(InputError, match=r"a\.parquet:1: .*not UTF-8"):
            list(Corpus.from_files(path, **{role: "key"}))  # type: ignore[arg-type]


def test_a_parquet_column_whose_name_is_no_utf8(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["a"], für=[1])
    path.write_bytes(path.read_bytes().replace("für".encode(), b"f\xff\xfer"))
    with pytest.raises(InputError, match=r"a\.parquet: not a readable Parquet file: a name in it is not valid UTF-8"):
        list(Corpus.from_files(path))


def test_parquet_whose_columns_are_not_as_its_groups_say(tmp_path: Path) -> None:
    """Arrow ends the process when it is asked for the metadata of such a column."""
    path = parquet(tmp_path / "a.parquet", text=["a", "b"])
    optional, required = b"\x25\x02\x18\x04text", b"\x25\x00\x18\x04text"
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, required))
    with pytest.raises(InputError, match=r"a\.parquet: "):
        list(Corpus.from_files(path))
    with pytest.raises(InputError, match=r"a\.parquet: "):
        lmgauge.score_documents(
            lmgauge.train("laplace", Corpus.from_strings(["a"]), order=1), path, tmp_path / "out.parquet"
        )


def test_parquet_views_of_strings_with_nulls(tmp_path: Path) -> None:
    import pyarrow as pa

    skip_unwritable(pa.string_view())
    path = parquet(tmp_path / "a.parquet", text=pa.array(["a", None, "b"], pa.string_view()))
    assert [block.text(i) for block in Corpus.from_files(path, errors="skip") for i in range(len(block))] == [b"a", b"b"]


def test_parquet_strings_that_are_no_utf8(tmp_path: Path) -> None:
    import pyarrow as pa

    # Joined, the two make a well-formed 佀; each alone is ill-formed.
    data = pa.py_buffer(b"\xe4\xbd\x80")
    torn = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), data])
    path = parquet(tmp_path / "a.parquet", text=torn)
    with pytest.raises(InputError, match="record 1: 0xE4 is not valid UTF-8"):
        list(Corpus.from_files(path))
    corpus = Corpus.from_files(path, errors="replace")
    assert texts(corpus) == ["\ufffd", "\ufffd\ufffd"]
    assert corpus.report.replaced == 3


# -- names, groups, standard input ---------------------------------------------------------------------------------


def test_globs_are_sorted_and_files_labelled(tmp_path: Path) -> None:
    for name in ("b.txt", "a.train.txt.gz", "c.jsonl"):
        (tmp_path / "sub.txt").mkdir(exist_ok=True)
        data = jsonl({"text": name}) if "jsonl" in name else f"{name}\n".encode()
        write(tmp_path / name, gzip.compress(data) if name.endswith(".gz") else data)
    corpus = Corpus.from_files(str(tmp_path / "*"))
    parts = list(corpus)
    assert [part.text(0) for part in parts] == [b"a.train.txt.gz", b"b.txt", b"c.jsonl"]
    assert corpus.group_names == ["a.train", "b", "c"]
    assert [part.groups.tolist() for part in parts] == [[0], [1], [2]]  # type: ignore[union-attr]


def test_equal_stems_are_told_apart_by_path(tmp_path: Path) -> None:
    paths = []
    for language in ("de", "en"):
        (tmp_path / language).mkdir()
        paths.append(str(write(tmp_path / language / "test.txt", TEXT)))
    corpus = Corpus.from_files([*paths, paths[0]])
    assert [part.groups.tolist()[0] for part in corpus] == [0, 1, 0]  # type: ignore[union-attr]
    assert corpus.group_names == paths
    assert all(part.groups is None for part in Corpus.from_files(paths, group=None))


def test_a_name_with_brackets_is_a_name(tmp_path: Path) -> None:
    assert texts(Corpus.from_files(write(tmp_path / "a[1].txt", b"x\n"))) == ["x"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.txt", "no such file"), (".", "is a directory"), ("*.none", "no file matches this pattern")],
)
def test_names_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Corpus.from_files(str(tmp_path / name))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", TEXT)
    path.chmod(0)
    with pytest.raises(InputError, match="permission denied"):
        list(Corpus.from_files(path))


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="field must be a string; got list"):
        Corpus.from_files("-", field=["text"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="group must be a string; got dict"):
        Corpus.from_files("-", group={})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown unit"):
        Corpus.from_files("-", unit="page")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown errors"):
        Corpus.from_files("-", errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unknown format"):
        Corpus.from_files("-", format="no-format")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no text to read"):
        Corpus.from_files([])
    with pytest.raises(UsageError, match="named twice"):
        Corpus.from_files(["-", "-"])
    with pytest.raises(UsageError, match="no field 'lang'; use"):
        Corpus.from_files("-", group="lang")
    with pytest.raises(UsageError, match="block-bytes must be a whole number, 1 or more; got 0"):
        Corpus.from_files("-", block_bytes=0)
    with pytest.raises(InputError, match="Parquet cannot be read from a pipe"):
        Corpus.from_files("-", format="parquet")


def test_standard_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    corpus = Corpus.from_files("-")
    assert not corpus.rereadable
    assert texts(corpus) == LINES
    assert not sys.stdin.buffer.closed
    with pytest.raises(UsageError, match="<stdin> can be read only once"):
        iter(corpus)


def test_standard_input_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="no standard input"):
        list(Corpus.from_files("-"))


def test_files_are_read_again_and_closed(tmp_path: Path) -> None:
    corpus = Corpus.from_files(write(tmp_path / "a.txt", TEXT * 100), block_bytes=10)
    iterator = iter(corpus)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]  # warnings are errors: a file left open would fail the test
    assert texts(corpus) == LINES * 100
    assert texts(corpus) == LINES * 100
    assert corpus.report.segments == 400


# -- strings -------------------------------------------------------------------------------------------------------


def test_strings_with_groups() -> None:
    corpus = Corpus.from_strings(["a", "b\r\nc", ""], groups=["x", "y", "x"], block_bytes=1)
    parts = list(corpus)
    assert [part.text(i) for part in parts for i in range(len(part))] == [b"a", b"b\nc", b""]
    assert [code for part in parts for code in part.groups.tolist()] == [0, 1, 0]  # type: ignore[union-attr]
    assert [part.first for part in parts] == [0, 1, 2][: len(parts)]
    assert corpus.group_names == ["x", "y"]
    assert corpus.report.files == 0


def test_strings_errors() -> None:
    with pytest.raises(UsageError, match="one string"):
        Corpus.from_strings("text")
    with pytest.raises(UsageError, match="text 2 is int"):
        list(Corpus.from_strings(["a", 2]))  # type: ignore[list-item]
    with pytest.raises(UsageError, match="more texts than groups"):
        list(Corpus.from_strings(["a", "b"], groups=["x"]))
    with pytest.raises(UsageError, match="more groups than texts"):
        list(Corpus.from_strings(["a"], groups=["x", "y"]))
    with pytest.raises(InputError, match="record 2: NUL"):
        list(Corpus.from_strings(["a", "\0"]))
    corpus = Corpus.from_strings(iter(["a"]))
    assert texts(corpus) == ["a"]
    with pytest.raises(UsageError, match="only once"):
        iter(corpus)


# -- counting ------------------------------------------------------------------------------------------------------


def test_counts_of_lines_and_of_scattered_records() -> None:
    (lines,) = Corpus.from_strings(["ä b", " c\td ", ""])
    assert count_text(lines.data, lines.starts, lines.ends, 0)[1] == 3 + 5
    assert count_text(lines.data, lines.starts, lines.ends, 0)[0] == 4
    data = np.frombuffer("xx ä b##cd".encode(), np.uint8)
    starts, ends = np.array([3, 9], np.int64), np.array([7, 11], np.int64)
    assert count_text(data, starts, ends, 1)[1] == 3 + 2 + 2
    assert count_text(data, starts, ends, 0)[0] == 3
    none = np.zeros(0, np.int64)
    assert count_text(data, none, none, 1)[1] == count_text(data, none, none, 1)[0] == 0


def test_words_of_touching_records_stay_apart() -> None:
    (part,) = Corpus.from_strings(["ab", "cd", "", "ef g"])
    assert count_text(part.data, part.starts, part.ends, part.terminator)[0] == 4


def test_another_text_in_a_second_pass_is_refused(tmp_path: Path) -> None:
    """What is made in two passes must not be made of two texts: n-grams and the speller, weights and the test of them."""
    file = tmp_path / "a.txt"
    file.write_text("the cat\nsat\n", encoding="utf-8")
    corpus = Corpus.from_files(file)
    next(iter(corpus))  # a pass that is left early says nothing
    assert [len(block) for block in corpus] == [2]
    assert [len(block) for block in corpus.in_blocks(1)] == [1, 1]
    file.write_text("the dog\nsat\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.txt: changed while it was used, as it was read more than once; begin again"):
        list(corpus)
    assert [len(block) for block in Corpus.from_files(file)] == [2]


@pytest.mark.parametrize("ending", ["jsonl", "tsv", "parquet"])
def test_a_field_that_is_missing_is_told_its_option(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"in.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"a": ["x"], "b": ["y"]}), path)
    else:
        path.write_text('{"a": "x", "b": "y"}\n' if ending == "jsonl" else "a\tb\nx\ty\n", encoding="utf-8", newline="\n")
    options: dict[str, dict[str, Any]] = {
        "field": {},
        "group": {"field": "a", "group": "c"},
        "id": {"field": "a", "id": "c"},
        "keep": {"field": "a", "keep": ["b", "c"]},
    }
    for option, chosen in options.items():
        with pytest.raises(InputError, match=rf"'a', 'b': name one of them \(--{option}\)"):
            list(Corpus.from_files(path, **chosen))


@pytest.mark.parametrize("unit", ["line", "document"])
def test_line_ends_of_old_macs_are_said(unit: Literal["line", "document"], tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for raw, lone, crlf in (
        (b"a\rb\rc", 2, 0),
        (b"a\rb\r", 2, 0),
        (b"a\nb\r", 1, 0),
        (b"a\r\nb\r\n", 0, 2),
        (b"a\r\r\nb\n", 0, 1),
    ):
        path.write_bytes(raw)
        corpus = Corpus.from_files([path], unit=unit)
        for _ in corpus:
            pass
        assert (corpus.report.lone_returns, corpus.report.crlf_lines) == (lone, crlf), raw
        assert any("on old Macs, convert the file" in note for note in corpus.report.notes()) == bool(lone)
