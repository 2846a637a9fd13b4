"""Both doors: the command and the function give and say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.base.errors import UsageError


def test_the_command_is_the_function(shards: Path, text: Path, model: Path, tmp_path: Path) -> None:
    plain = ok("merge", shards, "-o", tmp_path / "run", "--json", "--html", tmp_path / "page.html").stdout
    merged = lmgauge.merge(shards, tmp_path / "run2")
    assert json.loads(plain) == json.loads(json.dumps(merged.to_dict()))
    assert (tmp_path / "run" / "evaluation.json").read_bytes() == (tmp_path / "run2" / "evaluation.json").read_bytes()
    assert "perplexity" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<table" in merged._repr_html_()
    assert ok("merge", shards).stdout == ok("eval", "-m", model, text).stdout


def test_shards_are_inputs(shards: Path, tmp_path: Path) -> None:
    for output in (shards, shards / "1-of-3"):
        with pytest.raises(UsageError, match="would replace what this command reads"):
            lmgauge.merge(shards, output)
    assert len(list(shards.iterdir())) == 3


def test_shards_by_the_command(text: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = tmp_path / "shards"
    assert json.loads(ok("eval", "-m", model, text, "-o", shards, "--shard", "1/2", "--json").stdout)["computed"]
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    assert "2 of 2" in ok("eval", "-m", model, text, "-o", shards, "--shard", "slurm").stdout
    assert ok("merge", shards / "2-of-2", shards / "1-of-2").stdout == ok("eval", "-m", model, text).stdout
    for arguments, message in (
        (("eval", "-m", model, text, "--shard", "1/2"), "--shard needs a folder for the shards"),
        (("eval", "-m", model, text, "-o", shards, "--shard", "2"), "write its number and how many there are"),
        (("eval", "-m", model, "-m", text, text, "-o", shards, "--shard", "1/2"), "takes one model"),
        (("eval", "-m", model, text, "-o", shards, "--shard", "1/2", "--per-token", "-"), "does not go with --shard"),
        (("merge", tmp_path / "nothing"), "no such folder"),
    ):
        assert message in refused(*arguments)
