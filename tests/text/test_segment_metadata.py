"""Which document a line or record belongs to, by every rule, and the id that its source gave it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.text.documents import Corpus

WIKITEXT = (
    """ \n = First = \n \n Some text . \n = x ; y = \n \n = = Section = = \n \n More . \n \n = Second = \n \n End . \n"""
)


def numbers_of(corpus: Corpus) -> list[int] | None:
    """Read a corpus once; the documents of its segments, None if unknown."""
    parts = list(corpus)
    if any(part.documents is None for part in parts):
        assert all(part.documents is None for part in parts)
        return None
    arrays = [part.documents for part in parts if part.documents is not None]
    assert all(array.dtype == np.int64 and len(array) == len(part) for array, part in zip(arrays, parts, strict=True))
    return [number for array in arrays for number in array.tolist()]


def known_by(corpus: Corpus) -> tuple[str, int]:
    return corpus.report.documents_by, corpus.report.documents


def write(folder: Path, **files: str) -> list[str]:
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content, encoding="utf-8")
    return [str(folder / name.replace("_", ".")) for name in files]


def jsonl(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# -- documents of plain text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["line", "document"])
def test_each_of_several_text_files_is_a_document(tmp_path: Path, unit: str) -> None:
    paths = write(tmp_path, a_txt="1\n2\n", empty_txt="", b_txt="3\n")
    corpus = Corpus.from_files(paths, unit=unit)  # type: ignore[arg-type]
    assert numbers_of(corpus) == ([0, 0, 1] if unit == "line" else [0, 1])
    assert known_by(corpus) == ("files", 2)  # a file without text is not counted
    assert numbers_of(Corpus.from_files([*paths, paths[0]], unit=unit)) == (  # type: ignore[arg-type]
        [0, 0, 1, 0, 0] if unit == "line" else [0, 1, 0]
    )


def test_documents_are_unknown_in_one_file_and_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, a, b = write(tmp_path, a_txt="1\n2\n", a_jsonl=jsonl({"text": "x"}), b_jsonl=jsonl({"text": "y"}))
    for paths in ([text], [text, text], [a, b], [text, a]):
        corpus = Corpus.from_files(paths)
        assert numbers_of(corpus) is None
        assert known_by(corpus) == ("unknown", 0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n")))
    assert numbers_of(Corpus.from_files("-")) is None
    corpus = Corpus.from_files([a, b], document="file")
    assert numbers_of(corpus) == [0, 1]
    assert known_by(corpus) == ("files", 2)


def test_what_the_user_says_goes_first(tmp_path: Path) -> None:
    paths = write(tmp_path, a_txt="1\n2\n", b_txt="3\n")
    assert numbers_of(Corpus.from_files(paths, document="unknown")) is None
    corpus = Corpus.from_files(paths, document="segment", block_bytes=1)
    assert numbers_of(corpus) == [0, 1, 2]
    assert known_by(corpus) == ("segments", 3)
    corpus = Corpus.from_files(paths[0], document="file")
    assert numbers_of(corpus) == [0, 0]
    assert known_by(corpus) == ("files", 1)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_blank_lines_end_documents(tmp_path: Path, block_bytes: int) -> None:
    paths = write(tmp_path, a_txt="\n \na\nb\n\t\n\nc\n\n", b_txt="d\n")
    corpus = Corpus.from_files(paths, document="blank-line", block_bytes=block_bytes)
    assert numbers_of(corpus) == [0, 0, 0, 0, 0, 0, 1, 1, 2]
    assert known_by(corpus) == ("blank lines", 3)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_headings_begin_documents(tmp_path: Path, block_bytes: int) -> None:
    (path,) = write(tmp_path, wiki_txt=WIKITEXT)
    corpus = Corpus.from_files(path, document="heading", block_bytes=block_bytes)
    assert numbers_of(corpus) == [0] * 10 + [1] * 3
    assert known_by(corpus) == ("headings", 2)
    (path,) = write(tmp_path, a_md="intro\n# One\n## Part\n#hash\n# \n  # in code\n# Two\n")
    corpus = Corpus.from_files(path, document="heading", block_bytes=block_bytes)
    assert numbers_of(corpus) == [0, 1, 1, 1, 1, 1, 2]
    (path,) = write(tmp_path, plain_txt="a\n\nb\n")
    corpus = Corpus.from_files(path, document="heading", block_bytes=block_bytes)
    assert numbers_of(corpus) == [0, 0, 0]


@pytest.mark.parametrize(("name", "articles"), [("test", 60), ("valid", 60), ("train", 601)])
def test_articles_of_wikitext(shared_data: Path, name: str, articles: int) -> None:
    """The paper (Merity et al. 2016, table 1) counts 60, 60 and 600; one line of the training text looks like a title."""
    corpus = Corpus.from_files(shared_data / f"open/wikitext-2/{name}.txt.gz", document="heading")
    for _ in corpus:
        pass
    assert corpus.report.documents == articles


@pytest.mark.parametrize("rule", ["file", "segment", "unknown", "blank-line", "heading"])
def test_the_text_stays_as_it_is(tmp_path: Path, rule: str) -> None:
    paths = write(tmp_path, wiki_txt=WIKITEXT, b_txt="\n")
    plain, marked = Corpus.from_files(paths), Corpus.from_files(paths, document=rule)
    assert [p.text(i) for p in plain for i in range(len(p))] == [p.text(i) for p in marked for i in range(len(p))]
    assert plain.report.sha256 == marked.report.sha256
    assert plain.report.notes() == marked.report.notes()


def test_lines_left_out_begin_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\na\n\n\xff\nb\n")
    corpus = Corpus.from_files(path, document="blank-line", errors="skip")
    assert numbers_of(corpus) == [0, 0, 1]


# -- documents that have names -------------------------------------------------------------------------------------


def test_a_field_of_json_lines(tmp_path: Path) -> None:
    records = [{"text": "1", "talk": "x"}, {"text": "2", "talk": 7}, {"text": "3", "talk": "x"}]
    paths = write(tmp_path, a_jsonl=jsonl(*records), b_jsonl=jsonl({"text": "4", "talk": "7"}, {"text": "5", "talk": "z"}))
    for block_bytes in (1, 1 << 20):
        corpus = Corpus.from_files(paths, document="talk", group="talk", block_bytes=block_bytes)
        assert numbers_of(corpus) == [0, 1, 0, 1, 2]
        assert known_by(corpus) == ("field talk", 3)
        assert corpus.group_names == ["x", "7", "z"]
    assert numbers_of(Corpus.from_files(paths, document="file")) == [0, 0, 0, 1, 1]
    with pytest.raises(InputError, match=r"a\.jsonl:1: no field 'speaker'"):
        list(Corpus.from_files(paths, document="speaker"))


@pytest.mark.parametrize("column", ["talk", "3"])
def test_a_column_of_a_table(tmp_path: Path, column: str) -> None:
    (path,) = write(tmp_path, a_tsv="who\ttext\ttalk\n" * (column == "talk") + "A\t1\tx\nB\t2\ty\nA\t3\tx\n")
    field = "text" if column == "talk" else "2"
    corpus = Corpus.from_files(path, field=field, document=column, id="who" if column == "talk" else "1", block_bytes=1)
    assert numbers_of(corpus) == [0, 1, 0]
    assert known_by(corpus) == (f"field {column}", 2)
    assert [name for part in corpus for name in part.identifiers()] == ["A", "B", "A"]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_a_column_of_parquet(tmp_path: Path, clean: bool, block_bytes: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = ["1", "2", "3" if clean else "3\r\n", "4"]
    for talks in (
        pa.array([5, 3, 5, 3]),
        pa.array(["e", "c", "e", "c"]).dictionary_encode(),
        pa.array(["e", "c", "e", "c"]),
    ):
        pq.write_table(pa.table({"text": texts, "talk": talks, "key": pa.array([9, 8, 7, 6])}), tmp_path / "a.parquet")
        corpus = Corpus.from_files(tmp_path / "a.parquet", document="talk", id="key", block_bytes=block_bytes)
        assert numbers_of(corpus) == [0, 1, 0, 1]
        assert known_by(corpus) == ("field talk", 2)
        assert [name for part in corpus for name in part.identifiers()] == ["9", "8", "7", "6"]


def test_names_beside_strings() -> None:
    for block_bytes in (1, 1 << 20):
        corpus = Corpus.from_strings(["a", "b", "c"], documents=["x", "y", "x"], groups="ppq", block_bytes=block_bytes)
        assert numbers_of(corpus) == [0, 1, 0]
        assert known_by(corpus) == ("names", 2)
        assert corpus.group_names == ["p", "q"]
    assert numbers_of(Corpus.from_strings(["a"])) is None
    with pytest.raises(UsageError, match="more texts than documents: text 2"):
        list(Corpus.from_strings(["a", "b"], documents=["x"]))
    with pytest.raises(UsageError, match="more documents than texts"):
        list(Corpus.from_strings(["a"], documents=["x", "y"]))
    assert not Corpus.from_strings(["a"], documents=iter("x")).rereadable


def test_documents_of_skipped_records_are_not_counted(tmp_path: Path) -> None:
    records = [{"text": "\0", "talk": "x"}, {"text": "2", "talk": "y"}]
    (path,) = write(tmp_path, a_jsonl=jsonl(*records))
    corpus = Corpus.from_files(path, document="talk", errors="skip")
    assert numbers_of(corpus) == [0]
    assert known_by(corpus) == ("field talk", 1)


# -- what cannot be ------------------------------------------------------------------------------------------------


def test_rules_that_do_not_fit_the_text(tmp_path: Path) -> None:
    text, records = write(tmp_path, a_txt="1\n", a_jsonl=jsonl({"text": "x"}))
    with pytest.raises(UsageError, match=r"a\.txt: lines of text have no field 'talk'; use .*, or file, "):
        Corpus.from_files([records, text], document="talk")
    with pytest.raises(UsageError, match=r"a\.txt: lines of text have no field 'key'"):
        Corpus.from_files([records, text], id="key")
    for rule in ("blank-line", "heading"):
        with pytest.raises(UsageError, match=rf"a\.jsonl: only plain text has documents by {rule}"):
            Corpus.from_files([text, records], document=rule)
        with pytest.raises(UsageError, match=f"documents by {rule} are made of lines"):
            Corpus.from_files(text, document=rule, unit="document")


def test_settings_read_the_text_again(tmp_path: Path) -> None:
    paths = write(tmp_path, a_txt="1\n\n2\n", b_txt="3\n")
    for rule in (None, "blank-line", "segment"):
        corpus = Corpus.from_files(paths, document=rule)
        settings = dict(corpus.settings)
        again = Corpus.from_files(settings.pop("paths"), **settings)
        assert numbers_of(again) == numbers_of(corpus)
        assert known_by(again) == known_by(corpus)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "tsv", "parquet"])
def test_fields_are_carried_along(tmp_path: Path, ending: str) -> None:
    rows = [("a b", "x", 1.5, "n"), ("c", "", 2.0, "n"), ("d", "x", 3.25, "m")]
    names = ("text", "condition", "rating", "id")
    path = tmp_path / f"in.{ending}"
    if ending == "parquet":
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        columns["condition"][1] = None
        pq.write_table(pa.table(columns), path)
    elif ending in ("csv", "tsv"):
        lines = [("\t" if ending == "tsv" else ",").join(map(str, row)) for row in (names, *rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    else:
        records = [dict(zip(names, row, strict=True)) for row in rows]
        records[1]["condition"] = None
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8", newline="\n")
    corpus = Corpus.from_files(path, id="id", keep=["condition", "rating"])
    (block,) = corpus
    kept = {"condition": ["x", "", "x"], "rating": ["1.5", "2.0", "3.25"]}
    assert block.kept(np.arange(3)) == kept
    assert block.part(1, 3).kept(np.array([1, 1])) == {name: [values[2]] * 2 for name, values in kept.items()}
    assert block.part(2, 3).ids == block.where(np.array([False, False, True])).ids == ["m"]
    assert corpus.report.repeated_ids == 1
    assert corpus.kept == ("condition", "rating")
    assert Corpus.from_files(**corpus.settings).kept == corpus.kept
    assert Corpus.from_files(path, keep="condition").kept == ("condition",)
