"""What a protocol adds to an evaluation, and runs of protocols: read again, compared, audited."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge.evaluation.denominators import Denominators
from lmgauge.evaluation.reference_protocols import ProtocolSums, ScoredPart
from lmgauge.scores import ScoreBatch, Strings, example_batch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.documents import Corpus

HARNESS = ContextPolicy(protocol="harness")
GUIDE = ContextPolicy(length=4, stride=2, first="unscored", end="none", protocol="hf-guide")
CHUNKS = ContextPolicy(length=3, stride=4, first="unscored", end="none", protocol="gptq")


def test_nothing_changes_without_a_protocol() -> None:
    assert ProtocolSums.of(ContextPolicy()) is None
    part = ScoredPart.whole(Denominators(2, 3, 9, 9, 2), ContextPolicy())
    assert (part.denominators, part.share, part.notes) == (Denominators(2, 3, 9, 9, 2), 1.0, ())


def test_figures_by_bytes_are_of_what_is_scored_and_the_share_is_said() -> None:
    sums = ProtocolSums.of(CHUNKS)
    assert sums is not None
    one, starts, ends = np.ones(1, np.int64), np.array([2, 5]), np.array([3, 7])
    rows = ScoreBatch(0 * one, 2 * one, np.zeros(2, np.uint32), Strings(["x"]), np.zeros(2), np.zeros(2, np.uint8), ends)
    for block in Corpus.from_strings(["a b c def"]):
        sums.add(replace(rows, begins=starts), block)
    part = sums.of_text(Denominators(1, 4, 9, 9), whole=True)
    assert part.denominators == Denominators(1, 2, 3, 3)
    assert part.share == 3 / 9
    assert "33.3 % of the text (3 of 9 bytes)" in part.notes[-1]
    assert sums.of_text(Denominators(1, 4, 9, 9), whole=False).denominators is None


def of_rows(policy: ContextPolicy, *parts: list[float]) -> dict[str, float]:
    sums = ProtocolSums.of(policy)
    assert sums is not None
    for part in parts:
        sums.add(replace(example_batch(), logprob=np.array(part)), None)
    rows = [value for part in parts for value in part]
    return sums.figures(sum(rows), len(rows))


def test_the_guide_takes_a_token_off_every_window_but_the_first() -> None:
    """Windows of 5 tokens, 2 apart: positions 1 to 4, 5 and 6, 7 and 8, then 9 alone, whose window counts for nothing."""
    rows = [-1.0, -2.0, -3.0, -2.0, -4.0, -6.0, -1.0, -1.0, -50.0]
    mean = (2.0 * 4 + 5.0 * 1 + 1.0 * 1 + 50.0 * 0) / (4 + 1 + 1 + 0)
    assert of_rows(GUIDE, rows) == {"ppl": pytest.approx(math.exp(mean))}


@given(st.lists(st.floats(-9, 0), min_size=1, max_size=30), st.integers(0, 30))
def test_batches_change_nothing(rows: list[float], cut: int) -> None:
    assert of_rows(GUIDE, rows[:cut], rows[cut:]) == {"ppl": pytest.approx(of_rows(GUIDE, rows)["ppl"])}


def test_an_impossible_token_makes_figures_infinite() -> None:
    assert of_rows(GUIDE, [-1.0, -math.inf, -1.0]) == {"ppl": math.inf}
    assert of_rows(ContextPolicy(protocol="gptq"), [-math.inf]) == {"ppl": math.inf}


def test_the_harness_counts_empty_words() -> None:
    sums = ProtocolSums.of(HARNESS)
    assert sums is not None
    assert sums.figures(-10.0, 4) == {}  # no text is at hand
    for block in Corpus.from_strings([" a b\n", ""]):  # "", a, b, "" and ""
        sums.add(example_batch(), block)
    assert sums.figures(-10.0, 4) == {
        "word_perplexity": pytest.approx(math.exp(10 / 5)),
        "byte_perplexity": pytest.approx(math.exp(10 / 5)),
        "bits_per_byte": pytest.approx(10 / 5 / math.log(2)),
    }


class Scripted:
    """A model of your own that leaves out tokens as a protocol does: it scores every second letter."""

    context_policy = CHUNKS

    def __init__(self, nats: float) -> None:
        inner = lmgauge.train("laplace", Corpus.from_strings(["ab"]), tokenizer="character", order=1)
        self.vocabulary, self.tokenizer, self.nats = inner.vocabulary, inner.tokenizer, nats
        self.label, self.fingerprint, self.blocks_are_independent = f"every{nats}", f"{nats}" * 8, False

    def score(self, segments, *, spans=True, threads=None):  # type: ignore[no-untyped-def]
        for block in segments:
            places = np.arange(1, len(block.text(0)), 2)
            yield ScoreBatch(
                np.array([block.first]),
                np.array([len(places)]),
                np.full(len(places), 3, np.uint32),
                self.vocabulary,
                np.full(len(places), -self.nats),
                np.zeros(len(places), np.uint8),
                places + 1,
                begins=places,
            )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("aba bab\nab ab\nb\n", encoding="utf-8")
    for nats in (1.0, 2.0):
        lmgauge.evaluate(Scripted(nats), tmp_path / "text.txt", output=tmp_path / f"run{nats:.0f}")  # type: ignore[arg-type]
    return tmp_path


def test_a_run_remembers_what_was_joined_and_comes_out_the_same_again(run: Path) -> None:
    content = json.loads((run / "run1" / "evaluation.json").read_text())
    assert content["settings"]["text"]["join"] == "\n\n"
    again = lmgauge.evaluate_scores(run / "run1").to_dict()
    stored = content["evaluation"]
    for name in ("bytes", "words", "characters", "bits_per_byte", "scored_share", "source_figures", "events"):
        assert again[name] == stored[name], name
    assert stored["bytes"] == stored["events"] == len("aba bab\n\nab ab\n\nb") // 2
    assert again["source_figures"] == {"ppl": pytest.approx(np.e)}
    assert not any("do not begin" in note or "not scored to their end" in note for note in again["notes"])


def test_an_audit_says_what_is_left_out_and_finds_nothing_wrong(run: Path) -> None:
    audit = lmgauge.audit_run(run / "run1")
    assert audit.passed
    (spans,) = [check for check in audit.checks if check.name == "spans"]
    assert "8 bytes of 17, none twice: protocol gptq leaves out the rest" in spans.evidence
    assert [check.verdict for check in audit.checks if check.name == "claims"] == ["PASS"]


def test_runs_of_one_protocol_are_compared_byte_by_byte(run: Path) -> None:
    (pair,) = lmgauge.compare([run / "run1", run / "run2"])
    assert all(verdict.comparable for verdict in pair.verdicts)
    by_class = next(slices for slices in pair.slices if slices.name == "class")
    assert sum(row.size for row in by_class.rows) == 8
    bits = [sum(row.bits[k] for row in by_class.rows) for k in (0, 1)]
    assert bits == pytest.approx([8 / np.log(2), 16 / np.log(2)])


def test_a_protocol_and_none_are_not_compared(run: Path) -> None:
    model = lmgauge.train("laplace", Corpus.from_strings(["ab"]), tokenizer="character", order=1)
    lmgauge.evaluate(model, Corpus.from_files(run / "text.txt").joined("\n\n"), output=run / "whole")
    (pair,) = lmgauge.compare([run / "run1", run / "whole"])
    assert not any(verdict.comparable for verdict in pair.verdicts)
    assert "a protocol leaves out tokens, and so not the same bytes" in pair.verdicts[1].reasons
