"""`lmgauge.select_documents` on real text: what is selected, how much, and what is written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge import Corpus, select_documents
from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering import selection as selection_module
from lmgauge.filtering.selection import COLUMNS
from lmgauge.results import Selection
from lmgauge.settings import SelectionSettings

TEXTS = Path(__file__).parent.parent / "data"
FILES = ("pool.jsonl", "out.jsonl")
QUICK = SelectionSettings(order=2, share=0.25)


def lines_of(name: str) -> list[str]:
    path = TEXTS / name
    text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    return [line for line in text.decode().split("\n") if line.strip()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pool of novels and encyclopedia articles, and an encyclopedia's text as the target."""
    folder = tmp_path_factory.mktemp("select")
    wiki = lines_of("wikitext2.train.txt.gz")[:300]
    books = lines_of("classic-books.train.txt")[:600]
    records = [{"text": text, "from": "wiki", "n": i} for i, text in enumerate(wiki)]
    records += [{"text": text, "from": "books", "n": 1000 + i} for i, text in enumerate(books)]
    records.sort(key=lambda record: record["n"] % 97)
    (folder / "pool.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (folder / "target.txt").write_text("\n".join(lines_of("wikitext2.test.txt")) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def selection(folder: Path) -> Selection:
    return select_documents(
        folder / "pool.jsonl",
        folder / "target.txt",
        folder / "out.jsonl",
        settings=QUICK,
    )


def test_the_threshold_falls_and_the_bytes_fit(folder: Path) -> None:
    tried = [
        select_documents(folder / "pool.jsonl", folder / "target.txt", order=2, share=share).chosen
        for share in (0.125, 0.5, 1)
    ]
    thresholds = [cut.threshold for cut in tried]
    assert thresholds == sorted(thresholds)
    assert all(cut.bytes <= cut.share * tried[-1].bytes for cut in tried)


def test_selecting_beats_chance_on_real_text(folder: Path, selection: Selection) -> None:
    """A model of what is selected finds other text of the target's kind easier than one of as much text at random."""
    texts = {name: [json.loads(line)["text"] for line in (folder / name).read_text().splitlines()] for name in FILES}
    size, random = sum(map(len, texts["out.jsonl"])), []
    while sum(map(len, random)) < size:
        random.append(texts["pool.jsonl"][37 * len(random) % 900])
    words = sorted({word for text in texts["pool.jsonl"] for word in text.split()} - {"<unk>"})
    other = lines_of("wikitext2.train.txt.gz")[300:600]
    alike, by_chance = (
        lmgauge.perplexity(
            lmgauge.train("witten-bell", Corpus.from_strings(some), order=2, words=words, reserved="escape"),
            other,
        )
        for some in (texts["out.jsonl"], random)
    )
    assert alike < 0.9 * by_chance
    assert selection.documents == 900


def test_the_output_has_the_selected_records_with_every_field(folder: Path, selection: Selection) -> None:
    written = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    pool = [json.loads(line) for line in (folder / "pool.jsonl").read_text().splitlines()]
    assert selection.outputs == (str(folder / "out.jsonl"),)
    assert len(written) == selection.chosen.documents
    own = [{key: value for key, value in record.items() if key not in COLUMNS} for record in written]
    chosen = {record["n"] for record in written}
    assert own == [record for record in pool if record["n"] in chosen]
    assert max(record["cross_entropy_difference"] for record in written) == pytest.approx(selection.chosen.threshold)
    for record in written:
        inside, outside, difference = (record[name] for name in COLUMNS)
        assert difference == pytest.approx(inside - outside)
    of_wiki = sum(record["from"] == "wiki" for record in written)
    assert of_wiki > 0.6 * len(written)  # a third of the pool


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(folder: Path, selection: Selection, tmp_path: Path) -> None:
    again = select_documents(folder / "pool.jsonl", folder / "target.txt", tmp_path / "out.jsonl", settings=QUICK, threads=1)
    assert (tmp_path / "out.jsonl").read_bytes() == (folder / "out.jsonl").read_bytes()
    assert again.signature == selection.signature
    assert again.to_dict() | {"outputs": []} == selection.to_dict() | {"outputs": []}


def test_every_form_of_file_selects_the_same_texts(folder: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in (folder / "pool.jsonl").read_text().splitlines()]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "pool.parquet", row_group_size=100)
    rows = [list(records[0]), *(map(str, record.values()) for record in records)]
    (tmp_path / "pool.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    text = "".join(record["text"] + "\n" for record in records)
    (tmp_path / "pool.txt.gz").write_bytes(gzip.compress(text.encode()))
    settings = SelectionSettings(order=2, share=0.2)
    outputs = {}
    for name in ("pool.parquet", "pool.tsv", "pool.txt.gz"):
        output = tmp_path / f"out.{name.partition('.')[2]}"
        select_documents(tmp_path / name, folder / "target.txt", output, settings=settings)
        outputs[name] = output
    select_documents(folder / "pool.jsonl", folder / "target.txt", tmp_path / "out.jsonl", settings=settings)
    expected = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert pq.read_table(outputs["pool.parquet"]).to_pylist() == expected
    names, *cells = [line.split("\t") for line in outputs["pool.tsv"].read_text(encoding="utf-8").splitlines()]
    assert [dict(zip(names, row, strict=True)) for row in cells] == [
        {name: str(value) for name, value in record.items()} for record in expected
    ]
    assert gzip.decompress(outputs["pool.txt.gz"].read_bytes()).decode().splitlines() == [r["text"] for r in expected]


def test_lines_can_be_written_as_records(folder: Path, tmp_path: Path) -> None:
    texts = [json.loads(line)["text"] for line in (folder / "pool.jsonl").read_text().splitlines()]
    (tmp_path / "pool.txt").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    settings = SelectionSettings(order=2, share=0.1)
    select_documents(tmp_path / "pool.txt", folder / "target.txt", tmp_path / "out.jsonl", settings=settings)
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [list(record) for record in written] == [["id", "text", *COLUMNS]] * len(written)
    assert {record["text"] for record in written} <= set(texts)


def test_several_files_go_into_a_folder_and_bad_records_are_counted(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "pool.jsonl").read_text().splitlines()
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[::2], "{bad", '{"text": null}', "", '{"text": ""}']) + "\n")
    (tmp_path / "b.jsonl").write_text("\n".join(['{"other": 1}', *lines[1::2]]) + "\n")
    pool = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    settings = SelectionSettings(order=2, max_difference=-0.3)
    result = select_documents(pool, folder / "target.txt", tmp_path / "out" / "", settings=settings)
    assert (result.documents, result.without_words) == (901, 1)
    assert any("3 records left out" in note for note in result.notes)
    written = [json.loads(line) for name in "ab" for line in (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()]
    assert len(written) == result.chosen.documents
    assert max(record["cross_entropy_difference"] for record in written) == result.chosen.threshold <= -0.3


def test_records_are_found_again_whatever_stands_between_them(folder: Path, tmp_path: Path) -> None:
    texts: list[str | None] = [f"the number {i}" if i % 7 else [None, "", "a\0b", " "][i // 7 % 4] for i in range(200)]
    usable = [text for text in texts if text is not None and "\0" not in text and text.strip()]
    rows = [{"text": text, "n": i} for i, text in enumerate(texts)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pool.parquet", row_group_size=13)
    lines = [json.dumps(row) + ("\r\n" if i % 5 == 0 else "\n\n" if i % 3 == 0 else "\n") for i, row in enumerate(rows)]
    (tmp_path / "pool.jsonl").write_bytes(b"\xef\xbb\xbf" + "".join([*lines[:50], "[1]\n", *lines[50:]]).encode().rstrip())
    (tmp_path / "pool.txt").write_bytes(b"\xef\xbb\xbf" + "\n".join(text or "" for text in texts).encode())
    every = SelectionSettings(order=2, share=1)
    for form in ("parquet", "jsonl", "txt"):
        output = tmp_path / f"out.{form}"
        result = select_documents(tmp_path / f"pool.{form}", folder / "target.txt", output, settings=every)
        if form == "txt":
            written = output.read_text(encoding="utf-8").splitlines()
        else:
            records = (
                pq.read_table(output).to_pylist()
                if form == "parquet"
                else map(json.loads, output.read_text(encoding="utf-8").splitlines())
            )
            written = [record["text"] for record in records if texts[record["n"]] == record["text"]]
        assert written == usable
        assert result.chosen.documents == len(usable)


def assert_refused(folder: Path, message: str, pool: Any = None, **options: Any) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises((InputError, UsageError), match=message):
        select_documents(
            folder / "pool.jsonl" if pool is None else pool, folder / "target.txt", **({"settings": QUICK} | options)
        )
    assert sorted(folder.iterdir()) == before


def test_what_cannot_be_selected_is_refused_and_leaves_nothing(folder: Path) -> None:
    pool = folder / "pool.jsonl"
    assert_refused(folder, "would replace", output=pool)
    assert_refused(folder, "would replace", output=folder / "target.txt")
    assert_refused(folder, "standard output is for the answer", output="-")
    assert_refused(folder, "say how much is selected", settings=SelectionSettings())
    assert_refused(
        folder, "give a higher --max-difference", output=folder / "x" / "y", settings=SelectionSettings(max_difference=-99.0)
    )
    assert_refused(folder, "this one is strings", pool=Corpus.from_strings(["a b", "c d"]), output=folder / "x")
    assert_refused(folder, "the pool is read several times", pool=Corpus.from_strings(iter(["a b", "c d"])))
    assert_refused(
        folder,
        "whole files are not written",
        pool=Corpus.from_files(pool, unit="document", format="text"),
        output=folder / "x",
    )
    replacing = Corpus.from_files(pool, errors="replace")
    assert_refused(folder, "nothing in them is replaced", pool=replacing, output=folder / "x")
    assert_refused(folder, "no document of the pool has a word", pool=Corpus.from_strings([" ", "  "]))
    assert_refused(folder, "takes no given text", pool=Corpus.from_strings(["a", "b"], given=["c", "d"]))


def test_a_record_with_a_field_of_the_name_of_a_column_is_refused(folder: Path, tmp_path: Path) -> None:
    records = [json.loads(line) | {COLUMNS[2]: 1} for line in (folder / "pool.jsonl").read_text().splitlines()]
    (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, records)))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "pool.parquet")
    with pytest.raises(InputError, match="there is already a field 'cross_entropy_difference'"):
        select_documents(
            tmp_path / "pool.jsonl",
            folder / "target.txt",
            tmp_path / "new" / "x.jsonl",
            settings=SelectionSettings(share=0.5),
        )
    with pytest.raises(InputError, match="there is already a field 'cross_entropy_difference'"):
        select_documents(tmp_path / "pool.parquet", folder / "target.txt", tmp_path / "new" / "x.parquet", share=0.5)
    lines = (folder / "pool.jsonl").read_text().splitlines()
    (tmp_path / "pool.jsonl").write_text("\n".join([*lines, json.dumps(records[0])]))  # only seen when it is written
    with pytest.raises(InputError, match=r"pool.jsonl:901: there is already a field 'cross_entropy_difference'"):
        select_documents(
            tmp_path / "pool.jsonl", folder / "target.txt", tmp_path / "new" / "x.jsonl", settings=SelectionSettings(share=1)
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.jsonl", "pool.parquet"]


def test_a_selection_shows_itself(selection: Selection) -> None:
    assert repr(selection).startswith("<Selection: ")
    assert "most like the target" in str(selection)
    assert selection.charts == ("differences",)
    assert lmgauge.select_documents is select_documents


def test_a_pool_that_shrank_before_it_was_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"the cat sat {i}\n" for i in range(200)]
    (tmp_path / "pool.txt").write_text("".join(lines))
    (tmp_path / "target.txt").write_text("the cat sat\nthe cat ran\n" * 20)
    write = selection_module._write_selected

    def after_it_shrank(*own: Any, **named: Any) -> list[str]:
        (tmp_path / "pool.txt").write_text("".join(lines[:-1]))
        return write(*own, **named)

    monkeypatch.setattr(selection_module, "_write_selected", after_it_shrank)
    with pytest.raises(InputError, match=r"pool\.txt: it changed while documents were selected from it: select again"):
        select_documents(
            tmp_path / "pool.txt", tmp_path / "target.txt", tmp_path / "out.txt", share=0.5, smoothing="laplace", order=2
        )
    assert not (tmp_path / "out.txt").exists()
