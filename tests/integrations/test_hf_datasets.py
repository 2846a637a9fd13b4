"""datasets: `map` and `filter`, in memory, streaming, in Arrow's format, in two processes, and out of the cache."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError, LmgaugeError, ModelFileError, UsageError
from lmgauge.integrations import hf_datasets
from tests.integrations.documents import RULES, make_documents, make_table
from tests.integrations.tiny import run_python

pytestmark = pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="datasets is an optional library")


@pytest.fixture(scope="module")
def datasets() -> Iterator[Any]:
    import datasets

    datasets.disable_progress_bars()
    yield datasets
    datasets.enable_progress_bars()


@pytest.fixture
def dataset(datasets: Any) -> Any:
    return datasets.Dataset.from_list(make_documents())


@pytest.fixture(scope="module")
def scored(model_path: str) -> list[dict[str, Any]]:
    """What `Scorer.score_batch` makes of the documents."""
    return lmgauge.Scorer(model_path).score_batch(make_table()).to_pylist()  # type: ignore[no-any-return]


def without_null(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as dictionaries of lists have them; NaN is written as a word, as it equals nothing."""
    nothing = {"wb3_tokens": 0, "score_problem": ""}
    plain = []
    for row in rows:
        values = {
            name: nothing.get(name, math.nan) if value is None and name not in ("text", "lang") else value
            for name, value in row.items()
        }
        plain.append({name: "nan" if value != value else value for name, value in values.items()})
    return plain


def test_map_adds_the_columns(dataset: Any, model_path: str, scored: list[dict[str, Any]]) -> None:
    """Two documents at a time: the library types columns by the first rows it sees, here one without figures."""
    rows = dataset.map(hf_datasets.scorer(model_path), batched=True, batch_size=2)
    assert rows.column_names == [*scored[0]]
    assert without_null(rows.to_list()) == without_null(scored)
    assert str(rows.features["wb3_tokens"].dtype) == "int64"
    assert str(rows.features["score_problem"].dtype) == "string"


def test_map_of_tables_is_score_batch(dataset: Any, model_path: str, scored: list[dict[str, Any]]) -> None:
    rows = dataset.with_format("arrow").map(hf_datasets.scorer(model_path), batched=True, batch_size=2)
    assert rows.with_format(None).to_list() == scored


def test_streams(dataset: Any, model_path: str, percentiles_path: str, scored: list[dict[str, Any]]) -> None:
    stream = dataset.to_iterable_dataset(num_shards=2)
    step = hf_datasets.scorer(model_path)
    assert without_null(list(stream.map(step, batched=True))) == without_null(scored)
    tables = stream.with_format("arrow").map(step, batched=True, batch_size=16)
    assert [row for table in tables.iter(batch_size=50) for row in table.to_pylist()] == scored
    stays = hf_datasets.filter(model_path, percentiles_path, **RULES)
    expected = [row["id"] for row in dataset.filter(stays, batched=True)]
    assert [row["id"] for row in stream.filter(stays, batched=True)] == expected


@pytest.mark.parametrize("form", [None, "arrow"])
def test_filter_decides_as_the_command_does(
    form: str | None, dataset: Any, model_path: str, percentiles_path: str, decisions: dict[str, Any]
) -> None:
    stays = hf_datasets.filter(model_path, percentiles_path, **RULES)
    rows = dataset.with_format(form).filter(stays, batched=True, batch_size=17).with_format(None)
    assert rows["id"][:] == [*decisions]


TWO_PROCESSES = """
import json, sys
import datasets
from lmgauge.integrations import hf_datasets
place, model, percentiles = sys.argv[1:]
with open(place, encoding="utf-8") as file:
    documents, rules = json.load(file)
dataset = datasets.Dataset.from_list(documents)
rows = dataset.map(hf_datasets.scorer(model), batched=True, num_proc=2).to_list()
stays = hf_datasets.filter(model, percentiles, **rules)
print(json.dumps([rows, dataset.filter(stays, batched=True, num_proc=2)["id"][:]]))
"""


def test_two_processes(
    model_path: str, percentiles_path: str, scored: list[dict[str, Any]], decisions: dict[str, Any], tmp_path: Path
) -> None:
    """In a program without threads: the library's processes are forked, and with threads they may wait forever."""
    (tmp_path / "documents.json").write_text(json.dumps([make_documents(), RULES]), encoding="utf-8")
    with run_python(TWO_PROCESSES, str(tmp_path / "documents.json"), model_path, percentiles_path) as program:
        output, errors = program.communicate(timeout=300)
    assert program.returncode == 0, errors
    rows, stay = json.loads(output.splitlines()[-1])
    assert without_null(rows) == without_null(scored)
    assert stay == [*decisions]


HASHES = """
import sys
from datasets.fingerprint import Hasher
from lmgauge.integrations import hf_datasets
model, percentiles = sys.argv[1:]
scorer, filter = hf_datasets.scorer(model), hf_datasets.filter(model, percentiles, keep="p10..p70")
scorer({"text": ["a"]}), filter({"text": ["a"], "lang": ["en"]})
print(Hasher.hash(scorer), Hasher.hash(filter))
"""


def test_the_cache_knows_a_step_in_another_process(datasets: Any, model_path: str, percentiles_path: str) -> None:
    steps = hf_datasets.scorer(model_path), hf_datasets.filter(model_path, percentiles_path, keep="p10..p70")
    with run_python(HASHES, model_path, percentiles_path) as worker:
        output, errors = worker.communicate(timeout=300)
    assert worker.returncode == 0, errors
    assert output.split() == [datasets.fingerprint.Hasher.hash(step) for step in steps]


def test_the_cache_knows_what_decides_the_figures(datasets: Any, model_path: str, percentiles_path: str) -> None:
    steps = [
        hf_datasets.scorer(model_path),
        hf_datasets.scorer(lmgauge.Scorer(model_path, lines=True)),
        hf_datasets.scorer(lmgauge.Scorer(model_path, field="body")),
        hf_datasets.scorer({"m": model_path}),
        hf_datasets.filter(model_path, max_perplexity=100),
        hf_datasets.filter(model_path, max_perplexity=200),
        hf_datasets.filter(model_path, percentiles_path, max_perplexity=200),
    ]
    hashes = [datasets.fingerprint.Hasher.hash(step) for step in steps]
    assert len({*hashes}) == len(steps)


def test_another_model_at_the_path_is_another_step(datasets: Any, dataset: Any, model_path: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    shutil.copytree(model_path, path)
    first = hf_datasets.scorer(str(path))
    before = dataset.map(first, batched=True)
    lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).save(path)
    second = hf_datasets.scorer(str(path))
    assert datasets.fingerprint.Hasher.hash(first) != datasets.fingerprint.Hasher.hash(second)
    after = dataset.map(second, batched=True)
    assert before["model_bits"][:] != after["model_bits"][:]


def test_a_worker_that_finds_another_model_says_so(model_path: str, tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "model"
    shutil.copytree(model_path, path)
    sent = pickle.dumps(hf_datasets.scorer(str(path)))
    lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).save(path)
    with pytest.raises(ModelFileError, match="the model 'model' has changed since this step was made"):
        pickle.loads(sent)({"text": ["a"]})


def test_calls_of_other_kinds_are_explained(dataset: Any, model_path: str) -> None:
    step = hf_datasets.scorer(model_path)
    wrong: list[tuple[type[LmgaugeError], str, Any]] = [
        (UsageError, "batched=True", lambda: dataset.map(step)),
        (UsageError, "not DataFrame: ask for batches", lambda: dataset.with_format("pandas").map(step, batched=True)),
        (UsageError, "not list", lambda: dataset.map(step, batched=True, input_columns=["text"])),
        (InputError, "no column 'text'; the columns are 'id'", lambda: dataset.select_columns("id").map(step, batched=True)),
        (InputError, "holds int, not strings", lambda: step({"text": [1]})),
        (InputError, "there is already a field 'wb3_bits'", lambda: step({"text": ["a"], "wb3_bits": [1]})),
    ]
    for kind, message, call in wrong:
        with pytest.raises(kind, match=message):
            call()
