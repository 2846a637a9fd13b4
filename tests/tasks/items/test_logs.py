"""Scores of items from logs: what is read, and what is refused with its first three places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.tasks.items.table import ItemRuns, ItemScores, read_items

COLUMNS = ("item", "score", "sample", "subset", "cluster", "prompt", "content")


def imported(folder: Path, rows: list[dict[str, Any]], score: str = "acc", **options: Any) -> ItemScores:
    """Scores of a table as JSON lines."""
    table = folder / "table.jsonl"
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    result = lmgauge.tasks.import_items(table, folder / "run", score=score, **options)
    assert isinstance(result, ItemScores)
    return result


_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@settings(max_examples=15)
@given(
    rows=st.lists(
        st.tuples(_NAMES, st.floats(0, 1), st.integers(0, 3), _NAMES, _NAMES),
        min_size=1,
        max_size=9,
        unique_by=lambda row: (row[0], row[2], row[3]),
    )
)
def test_rows_read_are_rows_written(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    """From a table to a run, and from the run's own file, which is a table as well, to another run."""
    folder = tmp_path_factory.mktemp("items")
    columns = ("item", "acc", "sample", "subset", "cluster")
    run = imported(folder, [dict(zip(columns, row, strict=True)) for row in rows])
    assert list(zip(run.item, run.score.tolist(), run.subset, run.cluster, strict=True)) == [
        (a, b, d, e) for a, b, _, d, e in rows
    ]
    again = lmgauge.tasks.import_items(folder / "run" / "items.parquet", folder / "again", score="score")
    for other in (read_items(folder / "run"), read_items(folder / "again")):
        for name in COLUMNS:
            assert list(getattr(other, name)) == list(getattr(run, name)), name
    assert isinstance(again, ItemScores)
    items = {(row[0], row[3]): [one[1] for one in rows if (one[0], one[3]) == (row[0], row[3])] for row in rows}
    assert run.mean == pytest.approx(np.mean([np.mean(scores) for scores in items.values()]))


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([{"item": "a", "acc": 1}] * 2, {}, "line 2 (item 'a'): is scored twice; in a table, a column sample"),
        (
            [{"item": "a", "acc": 1}] * 5,
            {},
            "3 more like it: table.jsonl, line 3 (item 'a'), table.jsonl, line 4 (item 'a')",
        ),
        ([{"item": "a", "acc": 1}, {"item": None, "acc": 1}], {}, "line 2 (item ''): has no id: name its field with --id"),
        ([{"item": "a", "acc": 1}, {"item": "b"}], {}, "line 2 (item 'b'): has no score 'acc'"),
        ([{"item": "a", "acc": 1}, {"item": "b", "acc": 11}], {}, "(item 'b', acc '11'): is not from 0 to 1 (--scale)"),
        ([{"item": "a", "acc": 1}], {"scale": (2, 3)}, "is not from 2 to 3"),
        ([{"item": "a", "acc": float("nan")}], {}, "(item 'a', acc 'nan'): is not a number"),
        ([{"item": "a", "acc": [1]}], {}, "(item 'a', acc '[1]'): is not a number"),
        ([{"item": "a", "acc": None}], {}, "no item has a score 'acc'"),
        (
            [{"item": "a", "acc": 1, "prompt": "x"}, {"item": "a", "sample": 1, "acc": 1, "prompt": "y"}],
            {},
            "line 2 (item 'a'): has another prompt than the item that was scored under this id before",
        ),
        ([{"item": "a", "acc": 1}], {"document": "passage"}, "has no field 'passage'; it has 'item', 'acc'"),
        ([{"item": "a", "acc": 1}], {"score": "f1"}, "has no score 'f1'; it has 'item', 'acc'"),
        ([{"item": "a", "acc": 1}], {"field": "x"}, "field is about a text, and scores of items have none"),
        ([{"item": "a", "acc": 1}], {"scale": (1,)}, "scale must be the lowest and the highest score"),
    ],
)
def test_bad_rows_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], options: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LmgaugeError) as error:
        imported(Path(), rows, **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_log_that_is_cut_off_and_files_of_two_programs(tmp_path: Path) -> None:
    table, samples = tmp_path / "t.jsonl", tmp_path / "samples_x.jsonl"
    table.write_text('{"item": 1, "acc": 1}\n{"item": 2, "a', encoding="utf-8")
    with pytest.raises(InputError, match=r"t.jsonl:2: not valid JSON"):
        lmgauge.tasks.import_items(table, tmp_path / "run", score="acc")
    table.with_suffix(".csv").write_text("item,acc\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"t.csv: is neither .* nor a table of named columns with rows"):
        lmgauge.tasks.import_items(table.with_suffix(".csv"), tmp_path / "run", score="acc")
    samples.write_text('{"doc_id": 0, "resps": [], "acc": 1}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="the files are of columns and lm-evaluation-harness"):
        lmgauge.tasks.import_items([table, samples], tmp_path / "run", score="acc")
    with pytest.raises(InputError, match="is scored twice"):
        lmgauge.tasks.import_items([samples, samples], tmp_path / "run", score="acc")


def test_fields_by_name(tmp_path: Path) -> None:
    rows = [{"id": i, "n": f"q{i}", "acc": i % 2 == 0, "topic": "ab"[i % 2], "passage": {"page": i // 2}} for i in range(4)]
    run = imported(tmp_path, rows, id="n", group="topic", document="passage", lower_is_better=True, name="mine")
    assert (run.item, run.subset) == (["q0", "q1", "q2", "q3"], ["a", "b", "a", "b"])
    assert run.cluster == ['{"page": 0}', '{"page": 0}', '{"page": 1}', '{"page": 1}']
    assert (run.origin.model, run.origin.higher_is_better, run.mean) == ("mine", False, 0.5)


def test_attempts_without_a_score_are_counted(tmp_path: Path) -> None:
    run = imported(tmp_path, [{"item": "a", "acc": 1}, {"item": "b", "acc": ""}, {"item": "a", "sample": 1, "acc": "0"}])
    assert (run.item, run.score.tolist(), run.sample.tolist()) == (["a", "a"], [1.0, 0.0], [0, 1])
    assert any(
        "attempts without a score, left out: 1, such as " in note and "(item 'b')" in note for note in run.origin.notes
    )


def test_columns_of_models_and_models_of_rows(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,0\n0,0\n", encoding="utf-8")
    runs = lmgauge.tasks.import_items(table, tmp_path / "runs", score=["a", "b"])
    assert isinstance(runs, ItemRuns)
    assert [(run.origin.model, run.origin.score, run.mean) for run in runs] == [("a", "score", 0.5), ("b", "score", 0.0)]
    assert [row["items"] for row in runs.to_rows()] == [2, 2]
    assert "items are known by the numbers of their rows" in runs[0].origin.notes[0]
    assert read_items(tmp_path / "runs" / "b").origin.model == "b"
    with pytest.raises(UsageError, match="a name is of one model"):
        lmgauge.tasks.import_items(table, tmp_path / "runs", score=["a", "b"], name="c")
    table.write_text("model,item,s\na/b,1,1\nc,1,0.5\n", encoding="utf-8")
    lmgauge.tasks.import_items(table, tmp_path / "long", score="s")
    assert read_items(tmp_path / "long" / "a_b").origin.model == "a/b"
    with pytest.raises(UsageError, match="a name is of one model"):
        lmgauge.tasks.import_items(table, tmp_path / "runs", score="s", name="c")
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]  # of one model each, and so attempts of the one that is named
    for number, file in enumerate(files):
        file.write_text(f"model,item,s\nseed{number},1,{number}\n", encoding="utf-8")
    lmgauge.tasks.import_items(files, tmp_path / "one", score="s", name="both")
    one = read_items(tmp_path / "one")
    assert (one.origin.model, one.score.tolist(), one.sample.tolist()) == ("both", [0.0, 1.0], [0, 1])


def test_a_data_frame_and_a_json_array(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"item": [1, 2], "ok": [True, False]})
    assert lmgauge.tasks.import_items(frame, tmp_path / "run", score="ok").to_dict()["mean"] == 0.5
    array = tmp_path / "t.json"
    array.write_text('[{"item": 1, "ok": true}]', encoding="utf-8")
    assert lmgauge.tasks.import_items(array, tmp_path / "run", score="ok").to_dict()["mean"] == 1.0
    array.write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError, match=r"t.json: is not a log as columns writes it"):
        lmgauge.tasks.import_items(array, tmp_path / "run", score="ok")


def test_odd_values_are_text_or_refused(tmp_path: Path) -> None:
    run = imported(
        tmp_path, [{"item": "\ud800", "acc": 1, "model": 5, "subset": [1], "prompt": "\udfff", "cluster": {"a": 1}}]
    )
    assert (run.item, run.subset, run.cluster, run.origin.model) == (["\ufffd"], ["[1]"], ['{"a": 1}'], "5")
    with pytest.raises(InputError, match=r"is not a log as columns writes it \(TypeError: unhashable type: 'dict'\)"):
        imported(tmp_path, [{"item": "a", "acc": 1, "sample": {}}])
