"""Rows of a run as data frames, against the files that `eval` writes and the numbers of the run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.settings import Outputs

pytest.importorskip("pandas")
LINES = [f"{a} {b} c {d}" for a in "ab" for b in "cde" for d in "fgh"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of records with ids and groups, and the rows that `eval` wrote of it."""
    path = tmp_path_factory.mktemp("rows")
    records = [{"line": line, "part": line[0], "id": f"r{i}"} for i, line in enumerate([*LINES, "a zebra c"])]
    (path / "text.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    corpus = Corpus.from_files(path / "text.jsonl", field="line", group="part", id="id")
    model = lmgauge.train("laplace", Corpus.from_strings(LINES), order=2)
    outputs = Outputs(path / "run", columns=("rank",), per_segment=path / "segments.jsonl", per_token=path / "tokens.jsonl")
    lmgauge.evaluate(model, corpus, by_group=True, output=outputs)
    return path


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_it_prints_as_a_line(folder: Path) -> None:
    rows = lmgauge.read_run(folder / "run")
    assert str(rows) == f"<RunRows: {rows.run.name}, {folder / 'run'}>"


def test_segments_are_those_of_the_file(folder: Path) -> None:
    frame = lmgauge.read_run(folder / "run").per_segment()
    assert frame.drop(columns="bits").to_dict("records") == written(folder / "segments.jsonl")
    assert frame["id"].tolist()[-1] == "r18"
    assert set(frame["group"]) == {"a", "b"}
    assert frame["oov"].sum() == 1
    np.testing.assert_allclose(frame["bits"], -frame["logprob"] / math.log(2), rtol=1e-15)
    evaluated = lmgauge.evaluate_scores(folder / "run")
    assert math.exp(-math.fsum(frame["logprob"]) / frame["events"].sum()) == pytest.approx(evaluated.perplexity, rel=1e-13)
    assert frame["bytes"].sum() == evaluated.bytes


def test_tokens_are_those_of_the_file(folder: Path) -> None:
    frame = lmgauge.read_run(folder / "run").per_token()
    rows = written(folder / "tokens.jsonl")
    for name in ("model", "segment", "start", "end", "token", "logprob", "kind", "rank"):
        assert frame[name].tolist() == [row[name] for row in rows]
    assert frame["id"].tolist() == [f"r{row['segment']}" for row in rows]
    assert frame.columns.tolist()[:2] == ["model", "id"]


def test_without_the_text_what_it_tells_is_missing(folder: Path) -> None:
    rows = lmgauge.read_run(folder / "run" / "scores.parquet")
    segments, tokens = rows.per_segment(), rows.to_arrow("token")
    known = lmgauge.read_run(folder / "run").per_segment()
    for name in ("segment", "events", "logprob", "bits", "perplexity", "tokens", "oov"):
        assert segments[name].tolist() == known[name].tolist()
    for name in ("id", "group", "bytes", "document"):
        assert segments[name].isna().all()
    assert tokens.column("id").null_count == len(tokens)
    corpus = Corpus.from_files(folder / "text.jsonl", field="line")
    named = lmgauge.read_run(folder / "run" / "scores.parquet", corpus).per_segment()
    assert len(named) == len(known)


def test_what_is_no_run_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="no such run"):
        lmgauge.read_run(folder / "nothing")
    with pytest.raises(UsageError, match="is the path of a folder"):
        lmgauge.read_run(7)  # type: ignore[arg-type]
