"""`lmgauge overlap` as users and pipes meet it."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli import commands

SENTENCE = "it was a bright cold day in April and the clocks were striking thirteen"


run, ok = partial(commands.run, "overlap"), partial(commands.ok, "overlap")


def found(*arguments: object, stdin: bytes | None = None) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(ok("--json", *arguments, stdin=stdin).stdout)
    return plain


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overlap")
    texts = {
        "train-a.txt": ["some other text", f"so {SENTENCE}", "short line", ""],
        "train-b.txt": ["two fat geese walked home through the evening rain", "more"],
        "test.txt": ["nothing of this is there", SENTENCE, "", "new", "short line"],
        "other.txt": ["two fat geese walked home through the evening snow"],
    }
    for name, lines in texts.items():
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    return folder


def test_the_last_argument_is_the_test(folder: Path) -> None:
    result = found(folder / "train-a.txt", folder / "train-b.txt", folder / "test.txt")
    assert (result["segments"], result["contaminated_segments"], result["whole_duplicates"]) == (5, 2, 1)
    assert (result["ngram_bytes"], result["contaminated_bytes"]) == (len(SENTENCE), len(SENTENCE) + len("short line\n"))
    assert (result["bytes"], result["notes"]) == ((folder / "test.txt").stat().st_size, [])
    (passage,) = result["passages"]
    assert passage["text"] == SENTENCE
    assert passage["train"] == {"source": str(folder / "train-a.txt"), "line": 2, "byte": 3}
    assert passage["test"] == {"source": str(folder / "test.txt"), "line": 2, "byte": 0}
    assert result["contaminated_segment_indices"] == [1, 4]
    again = found(folder / "train-*.txt", "--test", folder / "test.txt")
    assert again == result


def test_several_tests_have_a_row_each(folder: Path) -> None:
    arguments = (folder / "train-*.txt", "--test", folder / "test.txt", "--test", folder / "other.txt", "--ngram", 9)
    result = found(*arguments)
    assert [(group["name"], group["contaminated_segments"]) for group in result["groups"]] == [("test", 2), ("other", 0)]
    assert "By test text" in ok(*arguments).stdout


def test_people_see_the_passages_with_both_places(folder: Path) -> None:
    result = ok(folder / "train-a.txt", folder / "test.txt")
    assert "contaminated segments\t2 of 5 (40.00 %); 1 blank" in result.stdout
    assert "Passages, 1 of 1" in result.stdout
    assert f"14 words  {folder / 'test.txt'}:2\n# = {folder / 'train-a.txt'}:2\n# {SENTENCE}" in result.stdout
    assert SENTENCE in result.stdout
    assert result.stderr == ""
    assert "assages" not in ok(folder / "train-a.txt", folder / "test.txt", "--passages", 0).stdout.replace("passages", "")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{SENTENCE} \x1b[31mred\n", encoding="utf-8")
    shown = ok(tmp_path / "a.txt", tmp_path / "a.txt").stdout
    assert "[31mred" in shown
    assert "\x1b" not in shown


def test_characters_and_folding(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shout.txt").write_text(f"“{SENTENCE.upper()}!”\n", encoding="utf-8")
    assert found(folder / "train-a.txt", tmp_path / "shout.txt")["longest_run"] == 0
    result = found(folder / "train-a.txt", tmp_path / "shout.txt", "--fold")
    assert (result["longest_run"], result["fold"]) == (14, True)
    result = found(folder / "train-a.txt", folder / "test.txt", "--overlap-unit", "character")
    assert (result["n"], result["unit"], result["longest_run"]) == (25, "character", len(SENTENCE.replace(" ", "")))
    assert "characters" in ok(folder / "train-a.txt", folder / "test.txt", "--overlap-unit", "character").stdout


def test_standard_input_can_be_either(folder: Path) -> None:
    test, train = folder / "test.txt", folder / "train-a.txt"
    expected = found(train, test)
    piped = found(train, "-", stdin=test.read_bytes())
    assert (piped["contaminated_bytes"], piped["passages"][0]["test"]["source"]) == (
        expected["contaminated_bytes"],
        "<stdin>",
    )
    piped = found("-", test, stdin=train.read_bytes())
    assert (piped["contaminated_bytes"], piped["passages"][0]["train"]["source"]) == (
        expected["contaminated_bytes"],
        "<stdin>",
    )


def test_the_gate(folder: Path) -> None:
    arguments = (folder / "train-a.txt", folder / "test.txt", "--max-overlap")
    ok(*arguments, 0.9)
    result = run(*arguments, 0.5)
    assert result.exit_code == 1
    assert "contaminated bytes" in result.stdout
    assert "lmgauge: error: 72.6 %" in result.stderr
    assert "--max-overlap allows" in result.stderr
    assert run("--json", *arguments, 0.5).exit_code == 1


def test_a_shuffled_copy_of_short_lines_does_not_pass_the_gate(tmp_path: Path) -> None:
    lines = [f"a line of its own, {i}\n" for i in range(300)]
    (tmp_path / "test.txt").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "train.txt").write_text("".join(sorted(lines, key=lambda line: line[::-1])), encoding="utf-8")
    result = run(tmp_path / "train.txt", tmp_path / "test.txt", "--max-overlap", 0.01)
    assert result.exit_code == 1
    assert "(100.00 %)" in next(line for line in result.stdout.splitlines() if line.startswith("contaminated bytes"))
    assert "(0.00 %)" in next(line for line in result.stdout.splitlines() if line.startswith("bytes in 13-grams"))


def test_units_that_do_not_fit_the_text_are_noted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("你好嗎我很好你呢\n", encoding="utf-8")
    shown = ok(folder / "train-a.txt", tmp_path / "test.txt").stdout
    assert "most of the text has no spaces between words: --overlap-unit character compares it" in shown
    assert "no run of 13 words fits in the test" in shown
    assert "no spaces" not in ok(folder / "train-a.txt", tmp_path / "test.txt", "--overlap-unit", "character").stdout


def test_write_clean(folder: Path, tmp_path: Path) -> None:
    result = ok(folder / "train-a.txt", folder / "test.txt", "--write-clean", tmp_path / "clean.txt")
    assert (tmp_path / "clean.txt").read_bytes() == b"nothing of this is there\n\nnew\n"
    assert "3 of 5 segments" in result.stdout
    result = run(folder / "train-a.txt", folder / "test.txt", "--write-clean", folder / "test.txt")
    assert result.exit_code == 2
    assert "would replace what this command reads" in result.stderr
    result = run(folder / "train-a.txt", folder / "test.txt", "--write-clean", tmp_path / "no" / "such" / "folder.txt")
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_a_run_is_split_into_clean_and_touched(folder: Path, tmp_path: Path) -> None:
    for arguments in (
        ["train", "kneser-ney", "--order", "2", folder / "train-a.txt", "-o", tmp_path / "kn2"],
        ["eval", "-m", tmp_path / "kn2", folder / "test.txt", "-o", tmp_path / "run"],
    ):
        commands.ok(*arguments)
    result = found(folder / "train-a.txt", folder / "test.txt", "--run", tmp_path / "run")["run"]
    assert result["clean"]["segments"] + result["contaminated"]["segments"] == result["whole"]["segments"] == 5
    assert result["contaminated"]["perplexity"] < result["whole"]["perplexity"] < result["clean"]["perplexity"]
    assert found(folder / "train-a.txt", "--run", tmp_path / "run")["run"] == result  # the run remembers its text
    table = ok(folder / "train-a.txt", "--run", tmp_path / "run").stdout
    assert all(name in table for name in ("(all)", "clean", "contaminated"))
    table = ok(folder / "train-b.txt", "--run", tmp_path / "run").stdout
    assert "No segment is contaminated" in table
    for arguments, message in (
        ([folder / "train-a.txt", folder / "other.txt"], "scored another text"),
        ([folder / "train-a.txt", "-"], "can be read only once"),
        ([folder / "train-a.txt", "--test", folder / "none.txt"], "no such file"),
    ):
        failed = run(*arguments, "--run", tmp_path / "run", stdin=b"x\n")
        assert failed.exit_code == 2
        assert message in failed.stderr


def test_what_cannot_be_is_said_in_a_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "invalid.txt").write_bytes(b"ok\n\xff\n")
    train, test = folder / "train-a.txt", folder / "test.txt"
    for arguments, message in (
        ([], "Missing argument 'TRAIN"),
        ([train], "needs a test text beside the training text"),
        (["-", "-"], "named twice"),
        ([train, "--test", "-", "--test", "-"], "named twice"),
        ([tmp_path / "none.txt", test], "no such file"),
        ([train, tmp_path / "empty.txt"], "the test text is empty"),
        ([tmp_path / "empty.txt", test], "the training text has no words"),
        (["-", test], "the training text has no words"),
        ([tmp_path / "invalid.txt", test], "invalid.txt, line 2"),
        ([train, tmp_path / "invalid.txt"], "invalid.txt, line 2"),
        ([train, test, "--run", tmp_path / "none"], "no such run"),
        ([train, test, "--ngram", "0"], "--ngram"),
        ([train, test, "--max-overlap", "5"], "max-overlap must be a number from 0 to 1"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stdout == ""
    assert found(tmp_path / "invalid.txt", test, "--errors", "skip")["notes"] == [
        "training text: 1 segment left out: not valid text"
    ]


def test_records_are_read_by_field_and_group(folder: Path, tmp_path: Path) -> None:
    lines = [{"body": SENTENCE, "kind": "old"}, {"body": "new\nwords", "kind": "new"}]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    arguments = (folder / "train-a.txt", tmp_path / "test.jsonl", "--field", "body", "--group", "kind")
    result = found(*arguments, "--write-clean", tmp_path / "clean.jsonl")
    assert [(group["name"], group["contaminated_segments"]) for group in result["groups"]] == [("old", 1), ("new", 0)]
    assert json.loads((tmp_path / "clean.jsonl").read_text(encoding="utf-8")) == {"text": "new\nwords"}


@pytest.mark.skipif(os.name == "nt", reason="the width of the terminal is set by COLUMNS")
def test_output_does_not_depend_on_threads(folder: Path) -> None:
    outputs = {ok(folder / "train-a.txt", folder / "test.txt", "--threads", n).stdout for n in (1, 2, 3)}
    assert len(outputs) == 1
