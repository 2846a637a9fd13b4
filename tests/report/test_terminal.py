"""What long commands say in a pipe, what a table says of its numbers, and text that would drive a terminal."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

import lmgauge
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.json_text import to_json
from lmgauge.readable import readable, visible
from lmgauge.report import terminal
from lmgauge.report.terminal import console, footnotes, print_pairs, progress
from lmgauge.text.documents import Corpus

HOSTILE = "a\x1b[31m\x07\x9b1m\u202e\nb[/bold]"


def test_short_work_is_quiet_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as status:
        status.update("working hard")
    assert capsys.readouterr().err == ""


def test_long_work_says_now_and_then_what_it_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_FIRST_LINE_SECONDS", 0.05)
    monkeypatch.setattr(terminal, "_NEXT_LINE_SECONDS", 0.1)
    with progress() as status:
        status.update(f"proof: coding event 1 of 2 (50 %) {HOSTILE}")
        time.sleep(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 6
    assert set(lines) == {f"lmgauge: proof: coding event 1 of 2 (50 %) {visible(HOSTILE)} (0 s)"}
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_errors_end_the_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_FIRST_LINE_SECONDS", 0.05)
    with pytest.raises(KeyError), progress():
        raise KeyError
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_the_console_shows_controls_and_keeps_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(HOSTILE, "\N{SNOWMAN}")
    print_pairs([("name", HOSTILE)], title=HOSTILE)
    out = capsys.readouterr().out
    assert not set("\x1b\x07\x9b\u202e") & set(out)
    assert "[/bold] \N{SNOWMAN}\n" in out


def test_readable_text_is_one_line() -> None:
    assert len(readable(HOSTILE).splitlines()) == 1
    assert visible("plain text, 東京") == "plain text, 東京"
    assert visible("a\nb\t", keep="\n").splitlines()[0] == "a"


def test_json_says_the_same_and_drives_nothing() -> None:
    text = to_json({HOSTILE: [HOSTILE, "\u2028\u200d\ufeff", "é東"]})
    assert not set("\x1b\x07\x9b\u202e\u2028") & set(text)
    assert json.loads(text) == {HOSTILE: [HOSTILE, "\u2028\u200d\ufeff", "é東"]}
    assert "é東" in text


def test_the_progress_line_of_a_terminal_takes_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Status:
        def update(self, text: Any) -> None:
            shown.append(text)

    terminal._Live(Status()).update(HOSTILE)
    assert shown[0].plain == f"{visible(HOSTILE)} …"


def bound(**changes: Any) -> list[str]:
    """What is said below the table of a result that is a bound."""
    corpus = Corpus.from_strings(["the cat", "the dog"])
    result = evaluate([lmgauge.train("witten-bell", corpus, order=2)], corpus)[0]
    return list(footnotes([result, replace(result, bits_per_byte_is_bound=True, **changes)]))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lossy_segments": 1}, "the tokens do not give back all white space"),
        ({"lossy_segments": 1, "unit": "subword"}, "the tokenizer alters some of the text, or reads it as special tokens"),
        (
            {"lossy_segments": 1, "unit": "subword", "context": "sentence,first=unscored"},
            "what comes first in a context is not scored",
        ),
        (
            {"oov": 1, "context": "sentence,first=unscored"},
            "unseen words are one event <unk>, cheaper to predict than they are",
        ),
        ({"oov": 1, "oov_policy": "closed"}, "unseen words are impossible"),
    ],
)
def test_the_reason_of_a_bound_is_the_true_one(changes: dict[str, Any], reason: str) -> None:
    assert bound(**changes)[0] == f"≥: lower bound, as {reason}."
