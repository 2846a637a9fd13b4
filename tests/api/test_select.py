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
from lmgauge.errors import InputError, UsageError
from lmgauge.filtering import selection_search
from lmgauge.filtering.selection_scores import COLUMNS
from lmgauge.results import Selection
from lmgauge.settings import SelectionSettings

TEXTS = Path(__file__).parent.parent / "data"
QUICK = SelectionSettings(order=2, cuts=(0.125, 0.25, 0.5, 1))


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
        Corpus.from_files(folder / "target.txt", document="heading"),
        folder / "out.jsonl",
        settings=QUICK,
    )


def test_selecting_beats_chance_on_real_text(selection: Selection) -> None:
    tried = selection.cuts
    assert [cut.share for cut in tried] == [0.125, 0.25, 0.5, 1]
    for cut in tried[:3]:
        assert cut.selected is not None
        assert cut.random is not None
        assert cut.selected.perplexity < cut.random.perplexity
        assert cut.random.ratio == pytest.approx(cut.selected.perplexity / cut.random.perplexity)
        assert cut.selected.interval is not None
        assert cut.selected.interval.low < cut.selected.perplexity < cut.selected.interval.high
    assert tried[-1].random is None
    assert selection.chosen is selection.best
    assert selection.chosen.share < 1


def test_the_threshold_falls_and_the_bytes_fit(selection: Selection) -> None:
    thresholds = [cut.threshold for cut in selection.cuts]
    assert thresholds == sorted(thresholds)
    whole = selection.cuts[-1].bytes
    assert all(cut.bytes <= cut.share * whole for cut in selection.cuts)
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
    target = Corpus.from_files(folder / "target.txt", document="heading")
    again = select_documents(folder / "pool.jsonl", target, tmp_path / "out.jsonl", settings=QUICK, threads=1)
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
    assert result.chosen.selected is None
    assert result.held_out_events == 0


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


def test_held_out_texts_in_the_pool_are_never_selected(folder: Path) -> None:
    pool = [json.loads(line)["text"] for line in (folder / "pool.jsonl").read_text().splitlines()]
    held_out = lines_of("wikitext2.test.txt")[:100]
    copied = [text for text in held_out if len(text.encode()) >= 40]
    result = select_documents(
        Corpus.from_strings(pool + copied), folder / "target.txt", held_out=Corpus.from_strings(held_out), settings=QUICK
    )
    assert result.cuts[-1].documents == len(pool)
    assert any(
        note.startswith(f"held-out texts that are in the pool, byte for byte: {len(copied)};") for note in result.notes
    )


def test_a_best_share_at_the_end_of_those_tried_says_so(folder: Path, selection: Selection) -> None:
    target = Corpus.from_files(folder / "target.txt", document="heading")
    at_the_end = SelectionSettings(order=2, cuts=(selection.chosen.share, 1))
    result = select_documents(folder / "pool.jsonl", target, settings=at_the_end)
    assert result.notes[-1] == "the smallest share that was tried is the best one; smaller ones may be better still (--cuts)"
    assert result.notes[-1] not in selection.notes


def test_a_tolerance_takes_a_smaller_share(folder: Path, selection: Selection) -> None:
    settings = SelectionSettings(order=2, cuts=QUICK.cuts, tolerance=5.0)
    target = Corpus.from_files(folder / "target.txt", document="heading")
    generous = select_documents(folder / "pool.jsonl", target, settings=settings)
    assert generous.chosen.share == 0.125
    assert generous.best is not None
    assert generous.best.share == selection.chosen.share
    assert "within 5" in generous.signature


def test_models_beyond_memory_are_trained_on_disk(
    folder: Path, selection: Selection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from lmgauge.errors import NotEnoughMemoryError
    from lmgauge.models.ngram import training

    def refuse(*arguments: Any, **options: Any) -> None:
        raise NotEnoughMemoryError("too little")

    monkeypatch.setattr(training, "train_ngram", refuse)
    target = Corpus.from_files(folder / "target.txt", document="heading")
    result = select_documents(folder / "pool.jsonl", target, settings=QUICK, temp=tmp_path)
    assert result.to_dict() | {"outputs": []} == selection.to_dict() | {"outputs": []}
    assert list(tmp_path.iterdir()) == []


def _written(path: Path) -> Path:
    path.write_text("a b\nc d\n")
    return path


def assert_refused(folder: Path, message: str, pool: Any = None, **options: Any) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises((InputError, UsageError), match=message):
        select_documents(folder / "pool.jsonl" if pool is None else pool, folder / "target.txt", **options)
    assert sorted(folder.iterdir()) == before


def test_what_cannot_be_selected_is_refused_and_leaves_nothing(folder: Path) -> None:
    share, pool = SelectionSettings(share=0.5), folder / "pool.jsonl"
    assert_refused(folder, "would replace", output=pool)
    assert_refused(folder, "would replace", output=folder / "target.txt")
    assert_refused(folder, "would replace", output=folder / "held.txt", held_out=_written(folder / "held.txt"))
    assert_refused(folder, "standard output is for the answer", output="-")
    assert_refused(folder, "temp: .* is not a folder", temp=folder / "x")
    assert_refused(folder, "held-out text is for trying shares", held_out=folder / "target.txt", settings=share)
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
    assert_refused(folder, "no document of the pool has a word", pool=Corpus.from_strings([" ", "  "]), settings=share)
    assert_refused(folder, "takes no given text", pool=Corpus.from_strings(["a", "b"], given=["c", "d"]))


def test_a_record_with_a_field_of_the_name_of_a_column_is_refused(folder: Path, tmp_path: Path) -> None:
    records = [json.loads(line) | {COLUMNS[2]: 1} for line in (folder / "pool.jsonl").read_text().splitlines()]
    (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, records)))
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "pool.parquet")
    with pytest.raises(InputError, match="there is a field 'cross_entropy_difference' already"):
        select_documents(
            tmp_path / "pool.jsonl",
            folder / "target.txt",
            tmp_path / "new" / "x.jsonl",
            settings=SelectionSettings(share=0.5),
        )
    with pytest.raises(InputError, match="there is a field 'cross_entropy_difference' already"):
        select_documents(tmp_path / "pool.parquet", folder / "target.txt", tmp_path / "new" / "x.parquet")
    lines = (folder / "pool.jsonl").read_text().splitlines()
    (tmp_path / "pool.jsonl").write_text("\n".join([*lines, json.dumps(records[0])]))  # only seen when it is written
    with pytest.raises(InputError, match=r"pool.jsonl:901: there is a field 'cross_entropy_difference' already"):
        select_documents(
            tmp_path / "pool.jsonl", folder / "target.txt", tmp_path / "new" / "x.jsonl", settings=SelectionSettings(share=1)
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.jsonl", "pool.parquet"]


def test_a_selection_shows_itself(selection: Selection) -> None:
    assert repr(selection).startswith("<Selection: ")
    assert "Selecting helps" in str(selection) or "No sign" in str(selection)
    assert selection.charts == ("shares", "differences")
    frame = selection.to_pandas()
    assert frame["share"].tolist() == [0.125, 0.25, 0.5, 1.0]
    assert lmgauge.select_documents is select_documents


def test_a_pool_that_shrank_before_it_was_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"the cat sat {i}\n" for i in range(200)]
    (tmp_path / "pool.txt").write_text("".join(lines))
    (tmp_path / "target.txt").write_text("the cat sat\nthe cat ran\n" * 20)
    write = selection_search.write_selected

    def after_it_shrank(*own: Any, **named: Any) -> list[str]:
        (tmp_path / "pool.txt").write_text("".join(lines[:-1]))
        return write(*own, **named)

    monkeypatch.setattr(selection_search, "write_selected", after_it_shrank)
    with pytest.raises(InputError, match=r"pool\.txt: it changed while documents were selected from it: select again"):
        select_documents(
            tmp_path / "pool.txt", tmp_path / "target.txt", tmp_path / "out.txt", share=0.5, smoothing="laplace", order=2
        )
    assert not (tmp_path / "out.txt").exists()
