"""Runs of what other programs scored: their own totals come out again, and what they leave out is said."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.scores.imports.outputs import (
    ANSWERS,
    FRAME,
    HARNESS,
    KENLM,
    LINES,
    LLAMA_CPP,
    OUTPUTS,
    SRILM,
    SRILM_LINES,
    VLLM,
    written,
)

from lmgauge.base.choices import PROGRAMS, Program
from lmgauge.base.errors import UsageError
from lmgauge.evaluation.imported_run import import_runs
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import open_run
from lmgauge.numerics.units import log10_to_nats
from lmgauge.report import blocks as doc
from lmgauge.report.evaluations import blocks
from lmgauge.scores.imports.programs import open_logs
from lmgauge.text.documents import Corpus

DATA = Path(__file__).resolve().parents[2] / "docs" / "data"


def imported(folder: Path, content: str | bytes, texts: list[str] | None = None, unit: str | None = None) -> Evaluation:
    logs = open_logs([written(folder, content)], None, unit)
    return import_runs([logs], folder / "run", None if texts is None else Corpus.from_strings(texts))[0]


def printed(pattern: str, content: str) -> list[str]:
    return re.findall(pattern, content)


def test_kenlms_perplexities(tmp_path: Path) -> None:
    result = imported(tmp_path, KENLM, LINES)
    including, excluding = printed(r"ing OOVs:\t(\S+)", KENLM)
    assert result.perplexity == pytest.approx(float(including), rel=1e-7)
    assert result.perplexity_without_oov == pytest.approx(float(excluding), rel=1e-7)
    assert (result.events, result.oov, result.context, result.oov_policy) == (20, 2, "sentence", "unk")
    assert sum(result.events_by_matched_order) == 20


def test_srilms_ppl_is_without_its_zeros(tmp_path: Path) -> None:
    result = imported(tmp_path, SRILM, SRILM_LINES)
    assert f"{result.perplexity_without_zeros:.7g}" == printed(r"ppl= (\S+)", SRILM)[-1]
    assert result.perplexity == math.inf
    assert (result.oov_policy, result.context, result.zero_probability_events) == ("closed", "sentence", 1)
    [zero] = result.first_zero_probability_events
    assert zero.token == "zebra"
    assert any("1 blank segments of the text have no scores in the log" in note for note in result.notes)


def test_the_final_perplexity_of_llama_cpp(tmp_path: Path) -> None:
    result = imported(tmp_path, LLAMA_CPP)
    assert f"{result.perplexity:.4f}" == printed(r"PPL = (\S+)", LLAMA_CPP)[0]
    assert (result.bits_per_byte, result.context, result.events, result.unit) == (None, "unknown,end=none", 8, "chunk")
    with pytest.raises(UsageError, match=r"llama\.cpp does not say which part of the text a score is of: leave out --text"):
        imported(tmp_path, LLAMA_CPP, LINES)


def test_the_harness_figures(tmp_path: Path) -> None:
    """Of `docs/data/samples_house.jsonl`, lm-evaluation-harness 0.4.13 printed these, in results_*.json."""
    result = imported(tmp_path, (DATA / "samples_house.jsonl").read_bytes())
    assert result.bits_per_byte == 4.206988279801002
    assert result.word_perplexity == 159003.81591805286
    assert result.bits_per_byte_is_bound is False


def test_the_text_of_a_log_is_its_text(tmp_path: Path) -> None:
    own, named = imported(tmp_path, HARNESS), imported(tmp_path, HARNESS, LINES)
    assert own.fingerprints["text"] == named.fingerprints["text"] != ""
    assert own.bits_per_byte == named.bits_per_byte
    assert own.bytes == sum(len(line.encode()) for line in LINES), "ends of lines are not scored"
    answers = imported(tmp_path, ANSWERS)
    assert (answers.documents_by, answers.events) == ("column document", 2)
    assert (answers.bytes, answers.given_bytes) == (len(" sat on") + len(" ran"), 2 * len("the cat"))
    assert answers.bits_per_byte == pytest.approx((12.25 + 25.5) / math.log(2) / 11)


@pytest.mark.parametrize("name", ["log-minicons.json", "log-vllm.jsonl"])
def test_half_characters_are_found_in_the_text(tmp_path: Path, name: str) -> None:
    """The tokens of é are half a character each, and every program shows that in its own way."""
    lines = (DATA / "house.txt").read_text(encoding="utf-8").splitlines()
    result = imported(tmp_path, (DATA / name).read_bytes(), lines, "nats")
    assert result.bits_per_byte == pytest.approx(4.206988, abs=1e-5), "the harness, with the same network"
    assert (result.events, result.lossy_segments, result.bits_per_byte_is_bound) == (55, 0, False)
    ends = np.concatenate([batch.ends for batch in open_run(tmp_path / "run").batches()])
    assert len(ends) == 55
    assert {18, 19, 20} <= set(ends.tolist()), "they t h e y _ s a t ... c a f | C3 | A9"


def test_missing_first_tokens_are_said(tmp_path: Path) -> None:
    result = imported(tmp_path, OUTPUTS["openai"][0], ["the cat sat"])
    assert result.context == "unknown,first=unscored,end=none"
    assert result.bound_reasons == ["the first token of a context is not scored"]
    whole = imported(tmp_path, VLLM, ["the cat"])
    assert (whole.context, whole.bound_reasons) == ("unknown,end=none", [])
    assert whole.oov_rate is None, "which tokens are unseen words, the log does not say"
    assert imported(tmp_path, KENLM, LINES).oov_rate is not None


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_output_is_a_run_with_a_whole_seal(tmp_path: Path, program: Program) -> None:
    for content in OUTPUTS[program]:
        log = written(tmp_path, content, "log.csv" if content == FRAME.encode() else "log.jsonl")  # tables go by their names
        unit = "nats" if content.startswith(b"[[[") else None
        [result] = import_runs([open_logs([log], None, unit)], tmp_path / "run")
        run = open_run(tmp_path / "run")
        assert run.broken_seal == ""
        assert run.evaluation is not None
        assert run.evaluation["log_probability"] == (
            result.log_probability if math.isfinite(result.log_probability) else "-inf"
        )
        settings = json.loads((tmp_path / "run" / "evaluation.json").read_text(encoding="utf-8"))["settings"]
        assert settings["import"]["program"] == program
        assert result.notes[0].startswith(f"imported from {program}, logarithms in ")


def test_a_score_table_of_lmgauge_keeps_its_origin(tmp_path: Path) -> None:
    first = imported(tmp_path, KENLM, LINES)
    (tmp_path / "run").rename(tmp_path / "first")
    logs = open_logs([tmp_path / "first" / "scores.parquet"])
    [again] = import_runs([logs], tmp_path / "again", Corpus.from_strings(LINES))
    assert (again.log_probability, again.model, again.context, again.oov_policy) == (
        first.log_probability,
        first.model,
        first.context,
        first.oov_policy,
    )
    assert open_run(tmp_path / "again").evaluation is not None


def test_logs_are_read_in_natural_logarithms(tmp_path: Path) -> None:
    imported(tmp_path, KENLM)
    [batch] = open_run(tmp_path / "run").batches()
    assert batch.logprob[0] == log10_to_nats(-0.24773183)


def test_scores_without_tokens_have_no_place_in_a_text(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("model_a\n-2\n-1\n", encoding="utf-8")
    logs = open_logs([path], None, "nats", "model_a")
    with pytest.raises(UsageError, match="no column has its tokens, so they have no place in a text: leave out --text"):
        import_runs([logs], tmp_path / "run", Corpus.from_strings(["a b"]))


def test_unseen_words_that_nobody_marked_are_not_zero(tmp_path: Path) -> None:
    def shown(content: str, unit: str | None = None) -> list[doc.Cell]:
        table = blocks([imported(tmp_path, content, unit=unit)])[0]
        assert isinstance(table, doc.Table)
        return [column.cells[0] for column in table.columns if column.title == "OOV"]

    assert shown("the=3 2 -0.5\tcat=4 2 -1.5\t</s>=2 1 -1\t") == [doc.Number(0.0, 2, "percent")]  # KenLM marks them
    shutil.rmtree(tmp_path / "run")
    assert shown("token,surprisal\nthe,-2\ncat,-1\n", "nats") == [doc.Number(None, 2, "percent")]
