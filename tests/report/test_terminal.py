"""What a table says of its numbers, and text that would drive a terminal."""

from __future__ import annotations

import json

import pytest

from lmgauge.base.escaping import readable, visible
from lmgauge.base.json_text import to_json
from lmgauge.report.blocks import (
    ChartData,
    Gallery,
    Heading,
    Lines,
    Quotes,
    Series,
    Signature,
    Text,
    Verdict,
    notes,
    signatures,
)
from lmgauge.report.terminal import as_text, brief, show

HOSTILE = "a\x1b[31m\x07\x9b1m\u202e\nb[/bold]"


def test_what_is_shown_drives_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show([Heading(f"{HOSTILE} \N{SNOWMAN}"), Lines((("name", HOSTILE),))])
    out = capsys.readouterr().out
    assert not set("\x1b\x07\x9b\u202e") & set(out)
    assert len(out.splitlines()) == 3
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


CURVE = ChartData("loss", "t", "epoch", "loss", "nats", (Series("kn", (1, 2, 3, 4), (4.0, 2.0, 1.0, None)),))


def test_charts_are_for_pages() -> None:
    assert as_text([CURVE]) == ""


def test_verdicts_are_bold(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show([Verdict("good", "real")])
    assert capsys.readouterr().out == "\x1b[1;32mreal\x1b[0m\n"


def test_a_command_prints_two_notes_an_example_and_no_signature() -> None:
    gallery = Gallery((Quotes("stays", (("f:1", "a"), ("f:2", "b"))),))
    document = [*notes(["1", "2", "1", "3", "4"]), gallery, Signature("ppl|v:1")]
    shown = list(brief(document, notes=2, signatures=False))
    assert [block.text for block in shown if isinstance(block, Text)] == ["1", "2", "2 more notes: -v"]
    assert [len(block.parts[0].items) for block in shown if isinstance(block, Gallery)] == [1]
    assert not any(isinstance(block, Signature) for block in shown)
    signed = list(brief(document, notes=2, signatures=True))
    assert [block for block in signed if block not in shown] == [Signature("ppl|v:1")]


def test_all_is_printed_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    gallery = Gallery((Quotes("stays", (("f:1", "a"), ("f:2", "b"))),))
    show([*notes(["1", "2", "3"]), gallery, Signature("ppl|v:1")])
    assert [line.strip("# ") for line in capsys.readouterr().out.split("\n") if line] == [
        *("1", "2", "3", "stays", "f:1", "a", "f:2", "b", "ppl|v:1")
    ]
    show(notes(["1", "2", "3"]), whole=False)
    assert capsys.readouterr().out == "# 1\n# 2\n# 1 more note: -v\n"


def test_signatures_of_several_results_are_one_and_what_differs() -> None:
    lines = ["ppl|n:3|model:a|v:1", "ppl|n:3|model:b|oov:unk|v:1", "ppl|n:3|model:a|v:1"]
    assert signatures(lines[:1]) == (Signature(lines[0]),)
    assert signatures([]) == ()
    assert [line.text for line in signatures(lines) if isinstance(line, Signature)] == [
        *("ppl|n:3|model:*|v:1", "model:a", "model:b|oov:unk")
    ]
