"""`lmgauge import`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused
from tests.scores.imports.outputs import HARNESS, KENLM, LINES, MINICONS, OUTPUTS, written


def test_a_run_of_records(tmp_path: Path) -> None:
    """The text is read as any other: here JSON lines with a field of another name."""
    text = written(tmp_path, "".join(json.dumps({"line": line}) + "\n" for line in LINES), "text.jsonl")
    log = written(tmp_path, HARNESS, "samples.jsonl")
    result = json.loads(ok("import", log, "--text", text, "--field", "line", "-o", tmp_path / "run", "--json").stdout)
    assert result["bytes"] == sum(len(line.encode()) for line in LINES)
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text())["settings"]["text"]["field"] == "line"
    assert "bits per byte" in ok("audit", tmp_path / "run").stdout


def test_refusals_are_one_line(tmp_path: Path) -> None:
    log, run = written(tmp_path, KENLM), tmp_path / "run"
    assert "-o" in refused("import", log)
    assert "unit is about the text that was scored, and no text is named" in refused(
        "import", log, "-o", run, "--unit", "document"
    )
    assert "KenLM writes log10" in refused("import", log, "-o", run, "--log-unit", "bits")
    assert "--log-unit nats or --log-unit bits" in refused("import", written(tmp_path, MINICONS, "m"), "-o", run)
    assert "is not output that lmgauge knows" in refused("import", written(tmp_path, "the cat", "t"), "-o", run)
    assert not run.exists()


def test_a_score_table_that_is_to_be_a_run_is_sent_here(tmp_path: Path) -> None:
    table = written(tmp_path, OUTPUTS["score-table"][0], "table.jsonl")
    words = refused("eval", "--scores", table, "-o", tmp_path / "run")
    assert f"lmgauge import {table} -o RUN makes a run folder of a score table" in words.replace("\n", " ")
    ok("import", table, "-o", tmp_path / "run")
    assert "0.5" in ok("info", tmp_path / "run").stdout


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("options", [["--score", "a"], ["--logprob", "a"], ["--logprob", "a", "--logprob", "b"], []])
def test_a_pipe_is_refused_at_once(tmp_path: Path, options: list[str]) -> None:
    """A log is read more than once: nobody writes into this pipe, which would be waited for without end."""
    pipe, table, run = tmp_path / "pipe", written(tmp_path, "item,a\n1,1\n", "t.csv"), tmp_path / "run"
    os.mkfifo(pipe)
    for path in (pipe, "-"):
        assert "a log is read more than once: save the pipe in a file first" in refused("import", path, *options, "-o", run)
    if "--score" not in options:
        assert "reads the text more than once" in refused("import", table, *options, "--text", pipe, "-o", run)
    assert not run.exists()
