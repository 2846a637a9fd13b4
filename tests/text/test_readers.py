"""Text that is given before records: read from all formats alike, cleaned as text is, and part of the fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError

PAIRS = [("the cat", " sat"), ("", "on"), ("für\r\n漢", "字")]
CLEAN = [(before.replace("\r\n", "\n"), text) for before, text in PAIRS]


def read(corpus: Corpus) -> list[tuple[str, str]]:
    return [(block.given_text(i).decode(), block.text(i).decode()) for block in corpus for i in range(len(block))]


def write(path: Path, pairs: list[tuple[str, str]]) -> Path:
    if path.suffix == ".jsonl":
        lines = [json.dumps({"q": before, "a": text}) + "\n" for before, text in pairs]
        path.write_text("".join(lines), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"q": [before for before, _ in pairs], "a": [text for _, text in pairs]}), path)
    else:
        path.write_text("q\ta\n" + "".join(f"{before}\t{text}\n" for before, text in pairs), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_all_formats_give_the_same(ending: str, tmp_path: Path) -> None:
    strings = Corpus.from_strings([text for _, text in PAIRS], given=[before for before, _ in PAIRS])
    files = Corpus.from_files(write(tmp_path / f"x.{ending}", PAIRS), field="a", given="q")
    assert read(strings) == read(files) == CLEAN
    assert files.report.sha256 == strings.report.sha256
    assert files.report.bytes == sum(len(text.encode()) for _, text in PAIRS)
    assert files.report.given_bytes == sum(len(before.encode()) for before, _ in CLEAN)
    assert files.report.crlf_lines == 1


def test_columns_of_tsv(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", PAIRS[:2])
    assert read(Corpus.from_files(path, field="a", given="q")) == PAIRS[:2]
    assert read(Corpus.from_files(path, field="2", given="1"))[1:] == PAIRS[:2]


def test_each_string_of_a_list_comes_after_the_same_text(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"q": "2 + 2 =", "a": [" 4", " 5"], "topic": "sums"}\n', encoding="utf-8")
    corpus = Corpus.from_files(path, field="a", given="q", group="topic", lists=True)
    assert read(corpus) == [("2 + 2 =", " 4"), ("2 + 2 =", " 5")]
    assert corpus.report.given_bytes == 14
    assert read(Corpus.from_files(**corpus.settings)) == read(corpus)


def test_what_is_given_and_how_it_is_cut_is_in_the_fingerprint() -> None:
    corpora = [
        Corpus.from_strings(["b"]),
        Corpus.from_strings(["b"], given=[""]),
        Corpus.from_strings(["b"], given=["a"]),
        Corpus.from_strings(["b"], given=["a"], boundary="apart"),
        Corpus.from_strings(["ab"], given=[""]),
    ]
    for corpus in corpora:
        assert corpus.report.sha256 == ""
        for _ in corpus:
            pass
    assert len({corpus.report.sha256 for corpus in corpora}) == len(corpora)
    # As it was before there was given text: SHA-256 of the length and the byte.
    assert corpora[0].report.fingerprint == "1af464"


def test_settings_say_so_only_where_text_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", PAIRS)
    assert "given" not in Corpus.from_files(path, field="a").settings
    settings_of = Corpus.from_files(path, field="a", given="q", boundary="apart").settings
    assert (settings_of["given"], settings_of["boundary"]) == ("q", "apart")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"q": None, "a": "x"}, r":1: the field 'q' of given text holds null, not a string"),
        ({"q": 3, "a": "x"}, r":1: the field 'q' of given text holds a number, not a string"),
        ({"a": "x"}, r":1: no field 'q'; the fields are 'a'"),
        ({"q": "x", "a": ""}, r", record 1: the text to score after the given text is empty"),
        ({"q": "x\0", "a": "y"}, r", record 1: NUL \(0x00\) is not text"),
        ({"q": "\ud800", "a": "y"}, r", record 1: a lone surrogate"),
    ],
)
def test_records_that_cannot_be_used(record: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = json.dumps({"q": "the cat", "a": " sat"})
    path.write_text(f"{json.dumps(record)}\n{good}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(Corpus.from_files(path, field="a", given="q"))
    corpus = Corpus.from_files(path, field="a", given="q", errors="skip")
    assert read(corpus) == [("the cat", " sat")]
    assert corpus.report.skipped == 1
    assert (corpus.report.bytes, corpus.report.characters) == (4, 4)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    plain = tmp_path / "x.txt"
    plain.write_text("a\n", encoding="utf-8")
    with pytest.raises(UsageError, match="lines of text have no field 'q'"):
        Corpus.from_files(plain, given="q")
    with pytest.raises(UsageError, match="no text is given"):
        Corpus.from_strings(["a"], boundary="apart")
    with pytest.raises(UsageError, match="unknown boundary 'across'"):
        Corpus.from_strings(["a"], given=["b"], boundary="across")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="given is one string"):
        Corpus.from_strings(["a"], given="b")
    with pytest.raises(UsageError, match="there are more texts than given texts: text 2 has none"):
        read(Corpus.from_strings(["a", "b"], given=["c"]))
    with pytest.raises(UsageError, match="there are more given texts than texts"):
        read(Corpus.from_strings(["a"], given=["b", "c"]))
    with pytest.raises(UsageError, match="the given text of text 1 is int, not a string"):
        read(Corpus.from_strings(["a"], given=[3]))  # type: ignore[list-item]


@pytest.mark.parametrize("use", ["training", "split", "membership"])
def test_what_takes_no_given_text_says_so(use: str, tmp_path: Path) -> None:
    corpus = Corpus.from_strings(["a b", "b"], given=["c", "d"])
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]))
    calls = {
        "training": lambda: lmgauge.train("laplace", corpus),
        "split": lambda: lmgauge.split(corpus, tmp_path / "parts"),
        "membership": lambda: lmgauge.membership(model, corpus, Corpus.from_strings(["a"])),
    }
    with pytest.raises(UsageError, match=f"{use} takes no given text"):
        calls[use]()


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=3)
RECORDS = st.dictionaries(st.sampled_from(["q", "a", "z"]), VALUES, max_size=3)
LINES = st.one_of(
    RECORDS.map(lambda record: json.dumps(record).encode()), st.binary(max_size=12), VALUES.map(str).map(str.encode)
)


@settings(max_examples=150)
@given(st.lists(LINES, max_size=5), st.sampled_from(["fail", "replace", "skip"]), st.booleans(), st.integers(1, 60))
def test_any_file_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], errors: str, lists: bool, block_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    options = {"field": "a", "given": "q", "errors": errors, "lists": lists}
    corpus = Corpus.from_files(path, block_bytes=block_bytes, **options)  # type: ignore[arg-type]
    try:
        blocks = list(corpus)
    except InputError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert "fuzzed.jsonl" in refusal or "no record of the text can be used" in refusal
        return
    given_bytes = size = 0
    for block in blocks:
        assert block.given_starts is not None
        assert np.all(block.given_starts <= block.starts)
        assert np.all(block.starts < block.ends)
        given_bytes += sum(len(block.given_text(i).decode().encode()) for i in range(len(block)))
        size += sum(len(block.text(i).decode().encode()) for i in range(len(block)))
    assert (corpus.report.given_bytes, corpus.report.bytes) == (given_bytes, size)
    again = Corpus.from_files(path, **options)  # type: ignore[arg-type]
    assert read(again) == [
        (block.given_text(i).decode(), block.text(i).decode()) for block in blocks for i in range(len(block))
    ]
    assert again.report.sha256 == corpus.report.sha256
