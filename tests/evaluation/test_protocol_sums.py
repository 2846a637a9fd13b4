"""What a protocol adds to an evaluation, and runs of protocols: read again, compared, audited."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.denominators import Denominators
from lmgauge.evaluation.protocol_sums import ProtocolSums
from lmgauge.scores import ScoreBatch, Strings
from lmgauge.text.documents import Corpus

CHUNKS = ContextPolicy(length=3, stride=4, first="unscored", end="none", protocol="gptq")


def test_nothing_changes_without_a_protocol() -> None:
    part = ProtocolSums(ContextPolicy()).of_text(Denominators(2, 3, 9, 9, 2), whole=True)
    assert (part.denominators, part.share, part.notes) == (Denominators(2, 3, 9, 9, 2), 1.0, ())


def test_figures_by_bytes_are_of_what_is_scored_and_the_share_is_said() -> None:
    sums = ProtocolSums(CHUNKS)
    one, starts, ends = np.ones(1, np.int64), np.array([2, 5]), np.array([3, 7])
    rows = ScoreBatch(0 * one, 2 * one, np.zeros(2, np.uint32), Strings(["x"]), np.zeros(2), np.zeros(2, np.uint8), ends)
    sums.watch(replace(rows, begins=starts))
    for block in Corpus.from_strings(["a b c def"]):
        sums.read(block)
    part = sums.of_text(Denominators(1, 4, 9, 9), whole=True)
    assert part.denominators == Denominators(1, 2, 3, 3)
    assert part.share == 3 / 9
    assert "33.3 % of the text (3 of 9 bytes)" in part.notes[-1]
    assert sums.of_text(Denominators(1, 4, 9, 9), whole=False).denominators is None


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
