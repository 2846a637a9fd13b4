"""Laws of filtering: every figure is that of an evaluation; no block, thread, process, order or restart changes a byte."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filtering.filtered import small_model
from tests.laws.test_model_laws import models, texts

import lmgauge
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.filtering import filter_file, filter_files
from lmgauge.filtering.results import FilteredDocuments
from lmgauge.records import parquet

Document = dict[str, Any]
Files = Mapping[str, bytes]

words = st.sampled_from(["a", "b", "c", "the", "cat", "unseen", "grün", "\u2028", "\r", "x" * 50])
bodies = st.lists(words, max_size=8).map(" ".join)
paragraphs = st.lists(bodies, min_size=1, max_size=4).map("\n".join)
languages = st.sampled_from(["en", "de", None, 7])
good = st.builds(lambda text, lang: json.dumps({"text": text, "lang": lang}), paragraphs, languages)
bad = st.sampled_from(['{"text": "a', "[]", '{"x": 1}', '{"text": null}', '{"text": "\\ud800"}', "", "  "])
rows_of_files = st.one_of(
    st.just([]), st.builds(lambda row, rows: [*rows, row], good, st.lists(st.one_of(good, good, bad), max_size=12))
)
jsonl = rows_of_files.map(lambda rows: "".join(f"{row}\n" for row in rows).encode())
rules = st.fixed_dictionaries(
    {},
    optional={
        "max_perplexity": st.floats(1, 30),
        "min_perplexity": st.floats(1, 10),
        "min_bytes": st.integers(0, 40),
        "min_tokens": st.integers(0, 10),
        "max_unseen": st.floats(0, 1),
    },
).filter(lambda chosen: chosen.get("min_perplexity", 1) <= chosen.get("max_perplexity", math.inf))
trees = st.dictionaries(
    st.sampled_from(["a.jsonl", "b.jsonl", "x/a.jsonl", "x/y/c.jsonl", "x%2Fa.jsonl"]), jsonl, min_size=1, max_size=4
)


@contextmanager
def written(files: Files) -> Iterator[Path]:
    """A folder with the files in its folder `in`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder, "in", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield Path(folder)


def filtered(folder: Path, names: Sequence[str], output: str = "out", **options: Any) -> FilteredDocuments:
    """Filter the named files into a folder."""
    paths = [folder / "in" / name for name in names]
    return lmgauge.filter_documents({"m": small_model()}, paths, f"{folder / output}/", **options)


def digests(folder: Path, below: str = "out") -> dict[str, str]:
    """The digests of what was written, but for what is remembered of files, which has their times."""
    files = sorted(path for path in (folder / below).rglob("*") if path.is_file())
    names = {path.relative_to(folder / below).as_posix(): path for path in files}
    skipped = ("_lmgauge/files/", "_lmgauge/work.json")
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in names.items() if not name.startswith(skipped)
    }


def summary(result: FilteredDocuments) -> dict[str, Any]:
    """The numbers of a result, without the run that they are from."""
    return {name: value for name, value in result.to_dict().items() if name not in ("output", "files_before")}


# -- figures ------------------------------------------------------------------------------------------------------------
@given(models(), st.lists(paragraphs, min_size=1, max_size=8))
def test_figures_are_those_of_an_evaluation(model: lmgauge.NgramModel, documents: list[str]) -> None:
    corpus, tally = lmgauge.Corpus.from_strings(documents), EventSums()
    for batch in model.score(corpus):
        tally.add(batch)
    rows = tally.per_segment()
    columns = lmgauge.Scorer({"m": model}).score_texts(documents).columns()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.exp(-rows.nats / rows.events)
    assert np.array_equal(columns["m_perplexity"], expected, equal_nan=True)
    assert columns["m_tokens"].tolist() == rows.events.tolist()
    possible = rows.zeros == 0
    assert np.array_equal(columns["m_bits"][possible], (-rows.nats / math.log(2))[possible])
    lengths = [len(document.replace("\r\n", "\n").encode()) for document in documents]
    assert [count for block in corpus for count in (block.ends - block.starts).tolist()] == lengths


@given(texts(), st.lists(paragraphs, min_size=1, max_size=6))
def test_lines_are_scored_one_by_one_as_ccnet_does(training: list[str], documents: list[str]) -> None:
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(training), order=3)
    columns = lmgauge.Scorer({"m": model}, lines=True).score_texts(documents).columns()
    for place, document in enumerate(documents):
        log10, length = 0.0, 0
        for line in document.split("\n"):
            events = [row for batch in model.score(lmgauge.Corpus.from_strings([line])) for row in batch.logprob.tolist()]
            log10 += sum(events) / math.log(10)
            length += len(line.encode().split()) + 1
        assert columns["m_tokens"][place] == length
        assert columns["m_perplexity"][place] == pytest.approx(10 ** (-log10 / length), rel=1e-12)
        assert columns["m_bits"][place] == pytest.approx(-log10 * math.log2(10), rel=1e-12)


@given(st.lists(paragraphs, min_size=1, max_size=6), st.booleans())
def test_texts_may_come_as_they_like(documents: list[str], by_lines: bool) -> None:
    scorer = lmgauge.Scorer({"m": small_model()}, lines=by_lines)
    expected = scorer.score_texts(documents).columns()
    column = pa.array([None, *documents, None])[1:-1]
    ways = [
        scorer.score_texts([document.encode() for document in documents]).columns(),
        {name: np.concatenate([scorer.score_texts([one]).columns()[name] for one in documents]) for name in expected},
        *({name: table[name].to_numpy() for name in expected} for table in tables_of(scorer, column)),
    ]
    for way in ways:
        for name, values in expected.items():
            assert np.array_equal(way[name], values, equal_nan=True), name


def tables_of(scorer: lmgauge.Scorer, column: pa.Array) -> Iterator[pa.Table]:
    """The column, scored as every type that it can have."""
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        yield scorer.score_batch(pa.table({"text": column.cast(kind)}))
    yield scorer.score_batch(pa.table({"text": pa.chunked_array([column[:1], column[1:], column[:0]])}))
    batches = scorer.map_arrow(pa.table({"text": column}).to_batches(max_chunksize=2))
    yield pa.Table.from_batches(list(batches))


# -- records ------------------------------------------------------------------------------------------------------------
@given(jsonl, rules)
@settings(max_examples=20)
def test_a_filter_is_a_score_and_a_loop_over_the_rules(content: bytes, chosen: dict[str, Any]) -> None:
    with written({"a.jsonl": content}) as folder:
        result = filtered(folder, ["a.jsonl"], rejects=folder / "rejects.jsonl", **chosen)
        scored = lmgauge.score_documents({"m": small_model()}, folder / "in/a.jsonl", folder / "scored.jsonl")
        rows = (folder / "scored.jsonl").read_bytes().splitlines(keepends=True)
        stays = [row for row in rows if slowly_stays(json.loads(row), chosen)]
        assert (folder / "out/a.jsonl").read_bytes() == b"".join(stays)
        rejects = (folder / "rejects.jsonl").read_bytes().splitlines()
        records = [line for line in content.splitlines() if line.strip()]
        assert len(records) == result.records == len(rejects) + len(rows)
        assert len(rows) == result.documents == scored.documents == result.stay_documents + sum(result.reasons.values())
        assert len(stays) == result.stay_documents
        sources = [json.loads(line)["raw"].encode() for line in rejects]
        kept_whole = [line for line in records if line not in sources]
        assert [json.loads(line) for line in kept_whole] == [
            {name: value for name, value in json.loads(row).items() if not name.startswith("m_")} for row in rows
        ]


def slowly_stays(record: Document, chosen: Mapping[str, Any]) -> bool:
    """What the rules say of a record that was scored, read from the numbers that stand in it."""
    perplexity, size = float(record["m_perplexity"]), len(record["text"].replace("\r\n", "\n").encode())
    return (
        chosen.get("min_perplexity", 0) <= perplexity <= chosen.get("max_perplexity", math.inf)
        and size >= chosen.get("min_bytes", 0)
        and record["m_tokens"] >= chosen.get("min_tokens", 0)
        and record["m_unseen"] <= chosen.get("max_unseen", 1)
    )


@given(jsonl, rules, st.integers(1, 300), st.integers(1, 3))
@settings(max_examples=20)
def test_blocks_and_threads_change_no_byte(content: bytes, chosen: dict[str, Any], size: int, threads: int) -> None:
    with written({"a.jsonl": content, "b.txt": content.replace(b"\r", b"")}) as folder:
        names = ["a.jsonl", "b.txt"]
        whole = filtered(folder, names, "out", rejects=folder / "r1.jsonl", **chosen)
        with mock.patch.object(filter_file, "BLOCK_BYTES", size):
            cut = filtered(
                folder,
                names,
                "cut",
                rejects=folder / "r2.jsonl",
                work=lmgauge.settings.FilterWork(threads=threads),
                **chosen,
            )
        assert digests(folder, "cut") == digests(folder, "out")
        assert (folder / "r1.jsonl").read_bytes() == (folder / "r2.jsonl").read_bytes()
        assert summary(cut) == summary(whole)


@given(st.lists(paragraphs, max_size=30), st.integers(1, 8), st.integers(1, 400), st.integers(1, 400), rules)
@settings(max_examples=30)
def test_parquet_and_jsonl_say_the_same(
    documents: list[str], group: int, block: int, together: int, chosen: dict[str, Any]
) -> None:
    table = pa.table({"text": pa.array(documents, pa.string()), "n": range(len(documents))})
    content = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    with written({"a.jsonl": content}) as folder:
        pq.write_table(table, folder / "in/b.parquet", row_group_size=group)
        with mock.patch.object(filter_file, "BLOCK_BYTES", block), mock.patch.object(parquet, "_TOGETHER", together):
            filtered(folder, ["a.jsonl", "b.parquet"], **chosen)
        rows = [json.loads(line) for line in (folder / "out/a.jsonl").read_bytes().splitlines()]
        assert pq.read_table(folder / "out/b.parquet").to_pylist() == rows


# -- files --------------------------------------------------------------------------------------------------------------
@given(trees, st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_files_changes_no_output(files: Files, random: Any) -> None:
    with written(files) as folder:
        names = list(files)
        first = filtered(folder, names)
        random.shuffle(names)
        second = filtered(folder, names, "again")
        assert digests(folder, "again") == digests(folder, "out")
        unordered = {name: value for name, value in summary(second).items() if name != "first_problems"}
        assert unordered == {name: value for name, value in summary(first).items() if name != "first_problems"}


@given(trees, rules, st.integers(1, 4))
@settings(max_examples=20)
def test_shards_together_are_one_run(files: Files, chosen: dict[str, Any], count: int) -> None:
    with written(files) as folder:
        whole = filtered(folder, list(files), **chosen)
        shards = [
            filtered(folder, list(files), "shards", work=lmgauge.settings.FilterWork(shard=(rank, count)), **chosen)
            for rank in range(count)
        ]
        assert digests(folder, "shards") == digests(folder, "out")
        assert sum(shard.records for shard in shards) == whole.records
        again = filtered(folder, list(files), "shards", **chosen)
        assert again.files_before == len(files)
        assert summary(again) == summary(whole)


@given(trees, st.integers(0, 4))
@settings(max_examples=20)
def test_a_run_that_was_ended_goes_on(files: Files, ended: int) -> None:
    with written(files) as folder:
        whole = filtered(folder, list(files), rejects=folder / "r1.jsonl")
        with mock.patch.object(filter_files, "filter_file", ends_at(ended, filter_files.filter_file)):
            try:
                filtered(folder, list(files), "again")
            except KeyboardInterrupt:
                assert len([name for name in digests(folder, "again") if not name.startswith("_")]) == ended
        result = filtered(folder, list(files), "again", rejects=folder / "r2.jsonl")
        assert result.files_before == min(ended, len(files))
        assert digests(folder, "again") == digests(folder, "out")
        assert (folder / "r1.jsonl").read_bytes() == (folder / "r2.jsonl").read_bytes()
        assert summary(result) == summary(whole)


def ends_at(file: int, work: Callable[..., Any]) -> Callable[..., Any]:
    """The work on a file, interrupted once some files are complete."""
    calls = iter(range(1000))

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if next(calls) == file:
            raise KeyboardInterrupt
        return work(*arguments, **options)

    return interrupted


def test_processes_change_no_byte(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    model = small_model()
    model.save(tmp_path / "model")  # type: ignore[attr-defined]
    (tmp_path / "in").mkdir()
    for number in range(5):
        rows = [{"text": " ".join(random.choice(list("abcxyz"), 6)), "lang": "en"} for _ in range(20 * number)]
        content = "".join(json.dumps(row) + "\n" for row in rows) + '{"text": 1}\n'
        (tmp_path / f"in/{number}.jsonl").write_text(content)
    results = [
        lmgauge.filter_documents(
            {"m": tmp_path / "model"},
            str(tmp_path / "in/*.jsonl"),
            f"{tmp_path / name}/",
            max_perplexity=8,
            rejects=tmp_path / f"{name}.rejects",
            work=lmgauge.settings.FilterWork(threads=1, workers=workers),
        )
        for name, workers in (("out", 1), ("two", 2))
    ]
    assert digests(tmp_path, "two") == digests(tmp_path, "out")
    assert (tmp_path / "two.rejects").read_bytes() == (tmp_path / "out.rejects").read_bytes()
    assert summary(results[0]) == summary(results[1])
