"""Run folders and bare tables looked at again: what was sealed, what was changed, and tables read side by side."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus, ScoreBatch
from lmgauge.api.verdicts import compare
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import file_sha256
from lmgauge.evaluation import runs
from lmgauge.evaluation.runs import (
    about,
    lockstep,
    open_run,
    remembered,
    with_distinct_names,
)
from lmgauge.scores import TOKEN, Strings
from lmgauge.work.manifest import content_fingerprint

TEXT = "a b\nb a\n\na c a\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def folder(text: Path, tmp_path: Path) -> Path:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["a b", "b a b"]), order=2)
    lmgauge.evaluate(model, text, output=tmp_path / "run")
    return tmp_path / "run"


def content(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    return found


def write(folder: Path, value: Any) -> None:
    (folder / "evaluation.json").write_text(json.dumps(value), encoding="utf-8")


def test_two_models_of_one_name_are_no_two_folders(text: Path, tmp_path: Path) -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    with pytest.raises(UsageError, match="would be one folder"):
        lmgauge.evaluate([model, model], text, output=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_no_name_of_a_model_leads_out_of_the_folder(text: Path, tmp_path: Path) -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1)
    lmgauge.evaluate({"..": model, "a/../../b": model}, text, output=tmp_path / "inner" / "runs")
    assert [path.name for path in tmp_path.iterdir() if path != text] == ["inner"]
    assert sorted(path.name for path in (tmp_path / "inner" / "runs").iterdir()) == ["_", "a_.._.._b"]


# -- a run folder -------------------------------------------------------------------------------------------------------


def test_a_run_tells_what_was_evaluated(folder: Path, text: Path) -> None:
    run = open_run(folder)
    assert run.evaluation is not None
    seen = lmgauge.evaluate_scores(folder / "scores.parquet", text)
    assert run.name == run.evaluation["model"] == seen.model
    assert run.text_sha256 == seen.fingerprints["text"]
    assert run.evaluation["log_probability"] == seen.log_probability
    assert run.origin.context == "sentence"
    assert run.origin.unit == "word"
    assert run.settings["text"]["paths"] == [str(text)]
    assert sum(len(batch) for batch in run.batches()) == seen.events
    corpus = run.corpus()
    assert corpus is not None
    assert [block.byte_count() for block in corpus] == [len(TEXT)]


def test_the_seal_is_over_content_not_layout(folder: Path) -> None:
    kept = content(folder)
    write(folder, dict(reversed(kept.items())))
    assert open_run(folder).name
    assert kept["scores_sha256"] == file_sha256(folder / "scores.parquet")
    assert kept["fingerprint"] == content_fingerprint(kept)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("evaluation", "fingerprints", "text"),
            {"a": 1},
            "is not the origin of a score table .*got `object` - at",
        ),
        (("evaluation", "perplexity"), float("nan"), "is not an evaluation .*NaN is not JSON"),
    ],
)
def test_values_of_other_kinds_are_refused_under_a_seal_that_holds(
    folder: Path, path: tuple[str, ...], value: object, said: str
) -> None:
    changed = content(folder)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    write(folder, changed | {"fingerprint": content_fingerprint(changed)})
    with pytest.raises(InputError, match=said):
        open_run(folder)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every number, string and empty list of a JSON value."""
    if isinstance(value, (dict, list)) and value:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def test_any_value_edited_by_hand_is_noticed(folder: Path) -> None:
    whole = content(folder)
    count = 0
    for *way, last in leaves(whole):
        edited = json.loads(json.dumps(whole))
        place = edited
        for key in way:
            place = place[key]
        old = place[last]
        place[last] = old + 1e-9 if isinstance(old, float) else old + 1 if isinstance(old, int) else f"{old} "
        write(folder, edited)
        # The digest of the table is sealed too, but a wrong one is told of as such only if the seal was made anew.
        with pytest.raises(InputError, match="was changed after it was written") as raised:
            open_run(folder)
        assert "\n" not in str(raised.value)
        count += 1
    assert count > 60


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.pop("fingerprint"),
        lambda c: c.pop("scores_sha256"),
        lambda c: c.pop("evaluation"),
        lambda c: c.pop("settings"),
        lambda c: c["evaluation"].pop("fingerprints"),
        lambda c: c.update(evaluation=[1]),
        lambda c: c.update(settings="all"),
        lambda c: c.update(fingerprint=None),
        lambda c: c.update(note="\ud800"),
    ],
)
def test_a_damaged_folder_is_an_error(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    damaged = content(folder)
    change(damaged)
    write(folder, damaged)
    with pytest.raises(InputError, match=r"evaluation\.json") as raised:
        open_run(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bytes_", [b"", b"{", b"[]", b"5", b'"x"', b"\xff\xfe", b"[" * 100_000, b"null"])
def test_what_is_no_json_object_is_an_error(folder: Path, bytes_: bytes) -> None:
    (folder / "evaluation.json").write_bytes(bytes_)
    with pytest.raises(InputError, match="is not an evaluation as lmgauge writes it: ") as raised:
        open_run(folder)
    assert "\n" not in str(raised.value)


def sealed(folder: Path, **settings: Any) -> None:
    changed = content(folder)
    changed["settings"].update(settings)
    changed["fingerprint"] = content_fingerprint(changed)
    write(folder, changed)


@pytest.mark.parametrize(
    "how",
    [{"paths": ["x"], "colour": 1}, "text.txt", {"paths": ["text.txt"], "unit": "x"}, {"paths": [1.0]}, {"paths": "x"}],
)
def test_settings_this_version_does_not_know(folder: Path, how: Any) -> None:
    sealed(folder, text=how)
    run = open_run(folder)
    with pytest.raises(lmgauge.LmgaugeError):
        run.corpus(["none.txt"])
    with suppress(lmgauge.LmgaugeError):
        assert run.corpus() is None


def test_another_table_in_the_folder_is_an_error(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    lmgauge.evaluate(lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=1), tmp_path / "text.txt", output=other)
    shutil.copy(other / "scores.parquet", folder / "scores.parquet")
    with pytest.raises(InputError, match=r"scores\.parquet: was changed after it was written"):
        open_run(folder)


def test_an_audit_opens_what_was_changed_and_is_told_so(folder: Path) -> None:
    assert not open_run(folder, check_seal=False).broken_seal
    edited = content(folder)
    edited["evaluation"]["perplexity"] += 1
    write(folder, edited)
    run = open_run(folder, check_seal=False)
    assert "was changed after it was written" in run.broken_seal
    assert run.evaluation is not None
    assert run.evaluation["perplexity"] == edited["evaluation"]["perplexity"]


@pytest.mark.parametrize("name", ["evaluation.json", "scores.parquet"])
def test_a_missing_file_is_an_error(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"is not a run folder: {name} is missing"):
        open_run(folder)


def test_a_folder_of_runs_names_them(folder: Path) -> None:
    with pytest.raises(InputError, match=f"is not a run: name the runs in it: .*{re.escape(str(folder))}"):
        open_run(folder.parent)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such run; `lmgauge eval"):
        open_run(tmp_path / "none")


def test_a_folder_may_be_renamed_and_moved(folder: Path, tmp_path: Path) -> None:
    before = open_run(folder)
    folder.rename(tmp_path / "ラン 2")
    after = open_run(tmp_path / "ラン 2")
    assert (after.name, after.text_sha256, after.evaluation) == (before.name, before.text_sha256, before.evaluation)


def test_infinite_results_are_sealed_like_others(text: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(lmgauge.train("mle", Corpus.from_strings(["a b"]), order=2), text, output=tmp_path / "mle")
    run = open_run(tmp_path / "mle")
    assert run.evaluation is not None
    assert run.evaluation["perplexity"] == "inf"


@pytest.mark.skipif(os.name == "nt", reason="file names are Unicode on Windows")
def test_a_text_whose_name_is_no_text(tmp_path: Path) -> None:
    """Names of files are bytes elsewhere; Python shows those that are no UTF-8 as lone surrogates."""
    path = tmp_path / os.fsdecode(b"t\xff.txt")
    try:
        path.write_bytes(TEXT.encode())
    except OSError:
        pytest.skip("the file system takes Unicode names only")
    model = lmgauge.train("laplace", path, order=1)
    lmgauge.evaluate(model, path, output=tmp_path / "run")
    assert remembered(open_run(tmp_path / "run")) is not None


# -- a bare table -------------------------------------------------------------------------------------------------------


def test_a_stored_table_knows_its_origin_by_itself(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "scores.parquet", tmp_path / "alone.parquet")
    run, whole = open_run(tmp_path / "alone.parquet"), open_run(folder)
    assert (run.name, run.text_sha256, run.origin) == (whole.name, whole.text_sha256, whole.origin)
    assert run.evaluation is None
    assert run.corpus() is None


def test_a_foreign_table_is_called_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "theirs.jsonl").write_text('{"segment": 0, "logprob": -1}\n', encoding="utf-8")
    run = open_run(tmp_path / "theirs.jsonl")
    assert (run.name, run.text_sha256, run.evaluation, run.settings) == ("theirs.jsonl", "", None, {})
    assert (run.origin.unit, run.origin.context) == ("token", "unknown")


@pytest.mark.parametrize(
    "metadata", [{"fingerprints": 5}, {"fingerprints": "abc"}, {"vocabulary_size": "many"}, {"lossy_segments": "x"}, [1]]
)
def test_metadata_that_means_nothing(folder: Path, tmp_path: Path, metadata: Any) -> None:
    """A table whose metadata was made up is an error of one line, or a table of unknown origin; no crash."""
    table = pq.read_table(folder / "scores.parquet").replace_schema_metadata({b"lmgauge": json.dumps(metadata).encode()})
    pq.write_table(table, tmp_path / "made-up.parquet")
    found: Any = None
    with suppress(InputError):
        (found,) = compare([tmp_path / "made-up.parquet", folder])
    assert (found is None) == isinstance(metadata, dict)
    assert found is None or not found.verdict("perplexity").comparable


# -- names, texts -------------------------------------------------------------------------------------------------------


def test_runs_called_alike_go_by_their_folders(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "two")
    shutil.copy(folder / "scores.parquet", tmp_path / "t.parquet")
    (tmp_path / "x.jsonl").write_text('{"segment": 0, "logprob": -1}\n', encoding="utf-8")
    paths = [folder, tmp_path / "two", tmp_path / "x.jsonl"]
    names = [run.name for run in with_distinct_names([open_run(path) for path in paths])]
    assert names == [str(folder), str(tmp_path / "two"), "x.jsonl"]


def test_the_text_it_was_is_asked_for(folder: Path, text: Path) -> None:
    run = open_run(folder)
    corpus = run.corpus([str(text)])
    assert corpus is not None
    assert about(run, corpus).text_sha256 == run.text_sha256
    with pytest.raises(InputError, match="scored another text"):
        about(run, Corpus.from_strings(TEXT.split("\n")))
    with pytest.raises(InputError, match=r"none\.txt"):
        run.corpus(["none.txt"])


def test_the_text_is_read_again_with_its_documents(text: Path, tmp_path: Path) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["a b", "b a b"]), order=2)
    lmgauge.evaluate(model, Corpus.from_files(text, document="blank-line"), output=tmp_path / "run")
    assert content(tmp_path / "run")["settings"]["text"]["document"] == "blank-line"
    found = remembered(open_run(tmp_path / "run"))
    assert found is not None
    assert (found.report.documents_by, found.report.documents) == ("blank lines", 2)
    how = content(tmp_path / "run")["settings"]["text"]
    sealed(tmp_path / "run", text={name: how[name] for name in how.keys() - {"document", "id"}})  # as lmgauge 0.1.0 wrote it
    found = remembered(open_run(tmp_path / "run"))
    assert found is not None
    assert found.report.documents_by == "unknown"


def test_remembered_texts(folder: Path, text: Path, tmp_path: Path) -> None:
    run = open_run(folder)
    found = remembered(run)
    assert found is not None
    assert found.report.sha256 == run.text_sha256
    for changed in (b"other\n", b"\xff\xfe\n", TEXT.encode() + b"more\n"):
        text.write_bytes(changed)
        assert remembered(run) is None
    text.unlink()
    assert remembered(run) is None
    text.mkdir()
    assert remembered(run) is None


def test_relative_names_are_found_from_anywhere_beside_the_run(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lmgauge.evaluate(lmgauge.train("laplace", Path(text.name), order=1), text.name, output="run")
    assert remembered(open_run("run")) is not None
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert remembered(open_run("../run")) is not None
    (tmp_path / "run").rename(tmp_path / "elsewhere" / "run")
    assert remembered(open_run("run")) is not None
    (tmp_path / text.name).rename(tmp_path / "elsewhere" / "other.txt")
    assert remembered(open_run("run")) is None


# -- side by side -------------------------------------------------------------------------------------------------------


def batches(rows: list[tuple[int, float]], sizes: Iterable[int]) -> Iterator[ScoreBatch]:
    """A table of (segment, log-probability), cut into batches anywhere, also within a segment."""
    bounds = np.unique([0, *np.minimum(np.cumsum(list(sizes)), len(rows)).tolist(), len(rows)]).tolist()
    for begin, end in pairwise(bounds):
        part = rows[begin:end]
        segments, events = np.unique([s for s, _ in part], return_counts=True)
        yield ScoreBatch(
            segments.astype(np.int64),
            events.astype(np.int64),
            np.arange(len(part), dtype=np.uint32),
            Strings([f"{begin + i}" for i in range(len(part))]),
            np.array([p for _, p in part]),
            np.full(len(part), TOKEN, np.uint8),
            np.zeros(0, np.int64),
        )


tables = st.lists(st.integers(0, 30), min_size=1, max_size=25).map(
    lambda s: [(i, -float(n)) for n, i in enumerate(sorted(s))]
)


@given(st.lists(st.tuples(tables, st.lists(st.integers(1, 5), max_size=6)), min_size=1, max_size=3), st.integers(1, 9))
def test_lockstep_gives_every_row_once_and_aligned(
    given: list[tuple[list[tuple[int, float]], list[int]]], at_a_time: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_SEGMENTS_AT_A_TIME", at_a_time)
        blocks = list(lockstep([batches(rows, sizes) for rows, sizes in given], None))
    for k, (rows, _) in enumerate(given):
        found = [
            (int(segment), float(p), batch.strings.tokens[token])
            for _, tables in blocks
            for batch in [tables[k]]
            for segment, p, token in zip(batch.row_segments(), batch.logprob, batch.token_ids, strict=True)
        ]
        assert found == [(s, p, str(i)) for i, (s, p) in enumerate(rows)]
    last = -1
    for text, taken in blocks:
        assert text is None
        listed = taken[0].segments.tolist()
        assert listed == list(range(listed[0], listed[-1] + 1))
        assert len(listed) <= at_a_time
        assert listed[0] > last
        last = listed[-1]
        assert all(batch.segments.tolist() == listed for batch in taken)


@given(
    st.lists(st.text(alphabet="ab ", max_size=5), min_size=1, max_size=12), st.integers(1, 20), st.lists(st.integers(1, 4))
)
def test_lockstep_with_the_text(texts: list[str], block_bytes: int, sizes: list[int]) -> None:
    """Every block of the text comes with the rows of its segments, also where empty segments have none."""
    rows = [(i, -1.0 - n) for i, text in enumerate(texts) for n in range(len(text))]
    corpus = Corpus.from_strings(texts, block_bytes=block_bytes)
    if not rows:
        with pytest.raises(InputError, match="no rows"):
            list(lockstep([batches(rows, sizes)], corpus))
        return
    for block, taken in lockstep([batches(rows, sizes), batches(rows, [])], corpus):
        assert block is not None
        for batch in taken:
            assert batch.segments.tolist() == list(range(block.first, block.first + len(block)))
            assert batch.segment_events.tolist() == (block.ends - block.starts).tolist()
            assert batch.logprob.tolist() == [p for s, p in rows if block.first <= s < block.first + len(block)]


def test_numbers_of_segments_far_apart_take_no_time() -> None:
    rows = [(0, -1.0), (10**12, -1.0), (10**18, -2.0)]
    blocks = list(lockstep([batches(rows, [])], None))
    assert [int(taken[0].segments[0]) for _, taken in blocks] == [0, 10**12, 10**18]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "b: the score table has no rows"),
        ([(0, -1.0), (2, -1.0)], "b: has no rows for segment 1"),
        ([(0, -1.0), (1, -1.0), (2, -1.0), (3, -1.0)], "b: has a segment 3, but the text has only 3"),
    ],
)
def test_tables_that_are_not_of_the_text(rows: list[tuple[int, float]], message: str) -> None:
    good = [(0, -1.0), (1, -1.0), (2, -1.0)]
    with pytest.raises(InputError, match=message):
        list(lockstep([batches(good, []), batches(rows, [])], Corpus.from_strings(["x", "y", "z"]), ["a", "b"]))
