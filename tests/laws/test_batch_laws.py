"""Law: a score table gives the figures of the whole, in whatever batches and blocks it and its text are read."""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.diagnosis.diagnose import diagnose
from lmgauge.evaluation.evaluate import evaluate_scores
from lmgauge.evaluation.options import DiagnosisSettings
from lmgauge.evaluation.passages import choose_passages
from lmgauge.evaluation.runs import Run, open_run
from lmgauge.evaluation.slicing.cuts import Cuts
from lmgauge.scores import files
from lmgauge.text.documents import Corpus

Rows = list[dict[str, Any]]
POLICIES = (
    "",
    "sentence",
    "sentence,end=newline",
    "sentence,end=none",
    "sentence,511/512,first=unscored,end=none,protocol=gptq",
)
DIAGNOSIS = DiagnosisSettings(only=("slices", "tokens", "segments", "unseen"), examples=3, threads=1)


@st.composite
def texts(draw: st.DrawFn) -> list[list[str]]:
    """The lines of one to three files, some of them empty."""
    line = st.text(alphabet="ab1 .é東", max_size=8)
    files = draw(st.lists(st.lists(line, min_size=1, max_size=5), min_size=1, max_size=3))
    assume(any(line for lines in files for line in lines))
    return files


def written(folder: Path, texts: list[list[str]], form: str, block: int) -> Corpus:
    """Files of these lines, each with an end of this form, or as records with given text."""
    paths = [folder / f"{i}.{'jsonl' if form == 'given' else 'txt'}" for i in range(len(texts))]
    for path, lines in zip(paths, texts, strict=True):
        record = [json.dumps({"text": line, "g": "a b "}) if form == "given" else line for line in lines]
        path.write_bytes("".join(line + (form if form != "given" else "\n") for line in record).encode())
    return Corpus.from_files(paths, block_bytes=block, **({"field": "text", "given": "g"} if form == "given" else {}))


@st.composite
def tables(draw: st.DrawFn, lines: list[str], policy: str, eos: bool, spelled: bool) -> Rows:
    """Rows that tile the lines, cut at any bytes; where a protocol leaves tokens out, with gaps."""
    rows: Rows = []
    for segment, line in enumerate(lines):
        size = len(line.encode())
        cuts = sorted({*draw(st.lists(st.integers(1, size), max_size=4)), size}) if size else []
        kinds = ("token", "token", "spelled") if spelled else ("token", "token", "oov")
        ends = [(end, draw(st.sampled_from(kinds))) for end in cuts] + [(size, "eos")] * eos
        start = 0
        for place, (end, kind) in enumerate(ends):
            if "protocol" in policy and place < len(ends) - 1 and draw(st.booleans()):
                start = end
                continue
            logprob = draw(st.sampled_from([-0.25, -1.5, -2.75, -30.0, -math.inf] if not spelled else [-1.5, -2.75, -30.0]))
            row = {"segment": segment, "start": start, "end": end, "token": f"t{end}", "logprob": logprob, "kind": kind}
            rows.append(row | ({"spelling": -0.5 if kind == "spelled" else 0.0, "separator": -0.25} if spelled else {}))
            start = end
    return rows


def opened(path: Path, rows: Rows, policy: str) -> Run:
    """A table of these rows, whose metadata name a policy, if any."""
    metadata = {files.METADATA_KEY: json.dumps({"model": path.stem, "context": policy} if policy else {})}
    pq.write_table(pa.Table.from_pylist(rows).replace_schema_metadata(metadata), path)
    return open_run(path)


def figures(folder: Path, tables: list[Rows], policy: str, corpus: Corpus, batch: int) -> list[Any]:
    """What `evaluate`, `compare`, `diagnose` and a report say, with so many rows read at a time."""
    runs = [opened(folder / f"{i}.parquet", rows, policy) for i, rows in enumerate(tables)]
    with patch.object(files, "PARQUET_ROWS", batch):
        evaluation = evaluate_scores(runs[0].batches(), origin=runs[0].origin, corpus=corpus)
        compared = compare(runs, examples=3, corpus=corpus)
        diagnosis = diagnose(runs[0], DIAGNOSIS, corpus=corpus)
        cuts = Cuts(corpus)
        passages = choose_passages(runs[:1], corpus, segments=2, cuts=cuts, averages=[1.0])
    shown = [(p.segment, p.text, p.size, p.bits) for p in passages.items]
    return [evaluation, list(compared), replace(diagnosis, evaluation=evaluation), passages.scores, shown]


@settings(max_examples=40)
@given(texts(), st.sampled_from(POLICIES), st.sampled_from(["\n", "\r\n", "given"]), st.data())
def test_batches_and_blocks_change_no_figure(texts: list[list[str]], policy: str, form: str, data: st.DataObject) -> None:
    eos, spelled = policy in ("", "sentence") and data.draw(st.booleans()), data.draw(st.booleans())
    rows = [data.draw(tables([line for lines in texts for line in lines], policy, eos, spelled)) for _ in range(2)]
    assume(all(rows) and (form != "given" or all(map(all, texts))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = figures(folder, rows, policy, written(folder, texts, form, 1 << 20), 1 << 18)
        batch, block = data.draw(st.integers(1, 6)), data.draw(st.integers(4, 40))
        parts = figures(folder, rows, policy, written(folder, texts, form, block), batch)
    for one, other in zip(whole, parts, strict=True):
        assert str(one) == str(other)


@settings(max_examples=40)
@given(texts(), st.sampled_from([policy for policy in POLICIES if "protocol" not in policy]), st.data())
def test_groups_add_up_to_the_text(texts: list[list[str]], policy: str, data: st.DataObject) -> None:
    """Law 5 for tables of any origin: bytes and bits of the groups are those of the evaluation, empty lines included."""
    eos = policy in ("", "sentence") and data.draw(st.booleans())
    rows = data.draw(tables([line for lines in texts for line in lines], policy, eos, spelled=True))
    assume(all(any(lines) or eos for lines in texts))  # a group without an event is left out
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = written(folder, texts, "\n", 16)
        found = diagnose(opened(folder / "m.parquet", rows, policy), DIAGNOSIS, corpus=corpus)
    (groups,) = (slices for slices in found.slices if slices.name == "group")
    assert sum(row.size for row in groups.rows) == found.evaluation.bytes
    assert sum(row.ranges for row in groups.rows) == found.evaluation.events
