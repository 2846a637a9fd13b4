"""What small functions of `tasks` give for an example each."""

from __future__ import annotations

from lmgauge.tasks import parallel, scoring, transcripts
from lmgauge.tasks.nbest import reading, rescoring


def test_references() -> None:
    assert reading.by_id([(1, "u1", "a dog")], "ref.txt") == {"u1": (1, "a dog")}


def test_results() -> None:
    assert (rescoring.is_jsonl("best.jsonl"), rescoring.is_jsonl("best.txt")) == (True, False)


def test_parallel() -> None:
    assert parallel.paths_of("ref.txt") == ["ref.txt"]


def test_scoring() -> None:
    assert scoring.document_codes(["talk 1", "talk 2", "talk 1"], 3).tolist() == [0, 1, 0]


def test_transcripts() -> None:
    assert transcripts.is_ctm("hyp.ctm") is True
    assert transcripts.is_ctm("hyp.stm.gz") is False
    assert transcripts.is_ctm("hyp.txt") is True
