"""Segments of a log as rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lmgauge.base.errors import InputError
from lmgauge.scores.imports import token_alignment as module
from lmgauge.scores.imports.log import Log, LoggedSegment
from lmgauge.scores.imports.token_alignment import rows, rows_on_text
from lmgauge.scores.table import EOS_KIND, TOKEN, ScoreBatch
from lmgauge.text.documents import Corpus


def segment(*pieces: str, logprob: Sequence[float | None] = (), **more: object) -> LoggedSegment:
    return LoggedSegment("log, line 1", list(pieces), list(logprob) or [-1.0] * len(pieces), **more)  # type: ignore[arg-type]


def on_text(segments: list[LoggedSegment], texts: list[str], **more: bool) -> tuple[list[ScoreBatch], str]:
    log = Log("nats")
    batches = [batch for batch, _ in rows_on_text(segments, Corpus.from_strings(texts, block_bytes=4), log, **more)]
    return batches, "\n".join(log.notes())


def test_rows_without_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_A_TIME", 3)
    log = Log("nats")
    batches = list(
        rows([segment("a", "b", logprob=[None, -2.0]), segment("a", "a"), segment("c", "!", generated=(1,))], log)
    )
    assert [batch.segments.tolist() for batch in batches] == [[0, 1], [2]]
    assert [batch.segment_events.tolist() for batch in batches] == [[1, 2], [1]]
    assert [[batch.strings.tokens[i] for i in batch.token_ids] for batch in batches] == [["b", "a", "a"], ["c"]]
    assert log.notes() == ["1 first tokens have no score in the log: BOS tokens, or the first of the text"]


def test_spans_and_blank_segments() -> None:
    batches, notes = on_text([segment("the", " cat"), segment("a", " b")], ["the cat", "", "  ", "a b"])
    assert [end for batch in batches for end in batch.ends.tolist()] == [3, 7, 1, 3]
    assert [n for batch in batches for n in batch.segment_events.tolist()] == [2, 0, 0, 2]
    assert notes == "2 blank segments of the text have no scores in the log"
    batches, notes = on_text([LoggedSegment("log", [b"</s>"], [-1.0], [EOS_KIND])], [" "], words=True)
    assert (batches[0].ends.tolist(), notes) == ([1], "")


def test_first_tokens_make_bits_a_lower_bound() -> None:
    batches, notes = on_text([segment("the", " cat", logprob=[None, -1.0])], ["the cat"])
    assert (batches[0].ends.tolist(), batches[0].lossy_segments) == ([7], 1)
    assert "1 first tokens have no score in the log: their bytes count, but their bits are missing" in notes
    batches, notes = on_text([segment("<s>", "the", logprob=[None, -1.0])], ["the"])
    assert (batches[0].ends.tolist(), batches[0].lossy_segments, notes) == ([3], 0, "")


def test_optional_columns() -> None:
    one = segment("a", document="x", contexts=[2], kinds=[TOKEN])
    [batch] = rows([one, one, segment("b", document="y", contexts=[1])], Log("nats"))
    assert (batch.extra["document"].tolist(), batch.extra["context"].tolist()) == ([0, 0, 1], [2, 2, 1])


@pytest.mark.parametrize(
    ("count", "texts", "words"),
    [
        (1, ["a", "b"], "log, line 1: is the last of 1 segments, and the text has more: <strings>, line 2 has no scores"),
        (2, ["a"], "log, line 1: the text ends before this segment of the log"),
    ],
)
def test_other_counts_of_segments(count: int, texts: list[str], words: str) -> None:
    with pytest.raises(InputError) as error:
        on_text([segment("a")] * count, texts)
    assert words in str(error.value)


def test_holes_are_refused() -> None:
    with pytest.raises(InputError, match="log, line 1: the token 'b' has no log-probability; only the first may have none"):
        list(rows([segment("a", "b", logprob=[-1.0, None])], Log("nats")))


def test_given_text_is_in_the_log_and_not_in_the_rows() -> None:
    log = Log("nats")
    text = Corpus.from_strings([" sat", "at"], given=["the cat", "the c"])
    segments = [segment("the", " cat", " sat", logprob=[None, -1.0, -2.0]), segment("the", " cat", logprob=[None, -3.0])]
    [(batch, _)] = rows_on_text(segments, text, log)
    assert (batch.segment_events.tolist(), batch.logprob.tolist(), batch.ends.tolist()) == ([1, 1], [-2.0, -3.0], [4, 2])
    assert batch.lossy_segments == 0, "the first token, which has no score, is given"
    assert log.notes() == ["1 tokens begin in the given text and end behind it: they are scored whole"]
