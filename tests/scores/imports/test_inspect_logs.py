"""Logs of Inspect."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from tests.scores.imports.outputs import inspect_archive, inspect_log
from tests.scores.imports.parsing import noted, parsed

from lmgauge.errors import InputError
from lmgauge.scores.imports import inspect_logs


@pytest.mark.parametrize("content", [json.dumps(inspect_log()).encode(), inspect_archive()], ids=["json", "eval"])
def test_prompts(tmp_path: Path, content: bytes) -> None:
    segments, notes = noted(tmp_path, content)
    assert [segment.pieces for segment in segments] == [[b" cat", b" sat"], [b" dog", b" ran"]]
    assert [segment.logprob for segment in segments] == [[-1.0, -2.0], [-1.5, -0.5]]
    assert [(segment.headless, segment.document) for segment in segments] == [(True, "1"), (True, "2")]
    assert "2 prompts are without their first token" in notes


def test_what_the_model_wrote(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, json.dumps(inspect_log("logprobs")))
    assert [segment.headless for segment in segments] == [False, False]
    assert "2 segments are what the model wrote itself" in notes


def test_outputs_without_scores_are_left_out_and_counted(tmp_path: Path) -> None:
    log = inspect_log()
    log["samples"][0]["output"]["choices"][0]["prompt_logprobs"] = None
    segments, notes = noted(tmp_path, json.dumps(log))
    assert len(segments) == 1
    assert "1 outputs have no log-probabilities, and are left out" in notes
    with pytest.raises(InputError, match="no sample has log-probabilities: evaluate with --logprobs"):
        parsed(tmp_path, json.dumps(log | {"samples": log["samples"][:1]}))


def test_damage_is_one_line(tmp_path: Path) -> None:
    content = inspect_archive()
    for damaged in (content[:200], content.replace(b"samples/1_epoch", b"samples/9_epoch", 1)):
        with pytest.raises(InputError, match="cannot be read as a log of Inspect") as error:
            parsed(tmp_path, damaged)
        assert len(str(error.value)) < 400


def test_a_sample_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_logs, "LARGEST_VALUE", 1000)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1_epoch_1.json", " " * 1_000_000)
    with pytest.raises(InputError, match="is larger than 1,000 bytes"):
        parsed(tmp_path, file.getvalue())
