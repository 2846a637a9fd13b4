"""`lmgauge agree` as users meet it: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused, run

ROWS = [(segment, f"t{place}", -1.0 - place / 7) for segment in range(8) for place in range(5)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables a, again (the same), b (a little apart), far, other (of other tokens) and short, in the working folder."""
    changes = {"a": 0.0, "b": 1e-6, "far": 0.5, "other": 0.0, "short": 0.0, "again": 0.0}
    for name, change in changes.items():
        rows = [
            {"segment": s, "token": f"{t}{'x' if (name, s, t) == ('other', 2, 't3') else ''}", "logprob": p - change}
            for s, t, p in ROWS
            if name != "short" or (s, t) != (7, "t4")
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "above.jsonl").write_text('{"segment": 0, "token": "t0", "logprob": 0.5}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_pair_is_printed_and_ends_as_asked(folder: Path) -> None:
    result = ok("agree", "a.jsonl", "b.jsonl", "--strict")
    assert "agree up to the rounding of float32" in result.output
    result = ok("agree", "a.jsonl", "far.jsonl", "--html", "page.html")
    assert "Nothing tells how far a.jsonl is from itself" in result.output
    assert "Mean |Δ log p| by position" in (folder / "page.html").read_text(encoding="utf-8")
    assert "lacks 1 token" in ok("agree", "a.jsonl", "short.jsonl").output
    made = json.loads(ok("agree", "a.jsonl", "far.jsonl", "--floor", "again.jsonl", "--band", "0.5..2", "--json").stdout)
    assert (made["beyond"], made["band"], made["figures"]["share_outside"]["value"]) == (True, [0.5, 2.0], 0.0)
    strict = run("agree", "a.jsonl", "far.jsonl", "--floor", "again.jsonl", "--strict")
    assert "further apart than the noise floor" in strict.stderr


def test_a_series_of_pairs_is_printed(folder: Path) -> None:
    result = run("agree", "--pair", "1=a.jsonl,b.jsonl", "--pair", "2=a.jsonl,far.jsonl,again.jsonl", "--strict")
    assert "Beyond their noise floor: 2." in result.stdout
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.jsonl"], "name two engines"),
        ([], "name two engines"),
        (["a.jsonl", "none.jsonl"], "none.jsonl: no such run"),
        (["a.jsonl", "other.jsonl"], "other.jsonl: token 4 of segment 3 is 't3x', and in a.jsonl it is 't3'"),
        (["a.jsonl", "above.jsonl"], "0.5"),
        (["a.jsonl", "b.jsonl", "--band", "0.9"], "LOW..HIGH"),
        (["a.jsonl", "b.jsonl", "--band", "1.1..0.9"], "band must be two ratios around 1"),
        (["a.jsonl", "b.jsonl", "--examples", "-1"], "examples"),
        (["a.jsonl", "b.jsonl", "--document", "segment"], "--text"),
        (["a.jsonl", "b.jsonl", "--text", "none.txt"], "none.txt"),
        (["a.jsonl", "--pair", "1=a.jsonl,b.jsonl"], "does not go with --pair"),
        (["--pair", "a.jsonl,b.jsonl"], "write a name"),
        (["--pair", "1=a.jsonl"], "give two runs, or three"),
        (["--pair", "1=a.jsonl,b.jsonl", "--pair", "1=a.jsonl,b.jsonl"], "named twice"),
        (["--pair", "1=a.jsonl,b.jsonl", "--floor", "again.jsonl"], "--floor does not go with --pair"),
    ],
)
def test_mistakes_are_answered_in_a_line(folder: Path, arguments: list[str], words: str) -> None:
    assert words in refused("agree", *arguments)
