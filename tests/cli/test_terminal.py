"""No name and no text drives a terminal: every report is shown in one, with names that try."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")

# Title of the window, bell, a colour by a C1 control, the direction turned, a line of its own, markup of rich.
HOSTILE = "a\x1b]0;owned\x07\x9b31m\u202eb\nc[bold][x]"
DRIVEN = ("\x1b]", "\x07", "\x9b", "\u202e")
_DRIVER = """
import json, sys
from lmgauge.cli.main import main
for arguments in json.load(open(sys.argv[1], encoding="utf-8")):
    try:
        main(arguments)
    except SystemExit as end:
        print("[exit", arguments[0], end.code, "]", flush=True)
"""


def in_a_terminal(tmp_path: Path, *commands: list[str]) -> str:
    """What commands write to a terminal, one after the other in one process."""
    (tmp_path / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
    master, slave = pty.openpty()
    found: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            found.append(data)

    environment = os.environ | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "COLUMNS": "160"}
    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(tmp_path / "commands.json")],
        stdin=slave, stdout=slave, stderr=slave, cwd=tmp_path, env=environment, check=False, timeout=300,
    )  # fmt: skip
    os.close(slave)
    reader.join()
    os.close(master)
    out = b"".join(found).decode("utf-8")
    assert done.returncode == 0, out
    return out


def test_rows_on_a_terminal_have_no_progress_between_them_and_a_text_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("the cat sat\nthe dog sat\n", encoding="utf-8")
    train = ["train", "kneser-ney", "--order", "2", "train.txt", "-o", "kn2"]
    evaluate = ["eval", "-m", "kn2"]
    out = in_a_terminal(tmp_path, train, [*evaluate, "train.txt", "--per-word", "-"], evaluate, ["divergence", "kn2", "kn2"])
    rows = out.partition("[exit train 0 ]")[2].partition("[exit eval 0 ]")[0]
    assert rows.strip().startswith("model\t")
    assert "loading" not in rows
    assert "error: no text was named; give a file, or - for standard input (see `lmgauge eval --help`)" in out
    assert "error: no text was named; give a file, or - for standard input (see `lmgauge divergence --help`)" in out


def test_names_and_texts_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    lines = ["the cat sat on the mat", "the dog sat on the log", "a bird sang in the tree"] * 8
    text, other, model = f"{HOSTILE}.txt", f"{HOSTILE}2.txt", f"{HOSTILE}-model"
    (tmp_path / text).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / other).write_text(
        "\n".join([*lines[:5], f"new words\u202e \x1b]0;y\x07 [/x] {'z' * 9}"]) + "\n", encoding="utf-8"
    )
    (tmp_path / f"{HOSTILE}3.txt").write_text("\n".join(["the c\u202e \x1b]0;z\x07", *lines[1:]]) + "\n", encoding="utf-8")
    records = [{"text": line, "g": f"{HOSTILE}{i % 3}[/x]"} for i, line in enumerate(lines)]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    (tmp_path / f"{HOSTILE}.tsv").write_text(
        "system\tx\ty\n" + "".join(f"s\u202e{i}\t{i}\t{i * i}\n" for i in range(5)), "utf-8"
    )
    out = in_a_terminal(
        tmp_path,
        ["train", "laplace", text, "--order", "2", "-o", model],
        ["train", "witten-bell", text, "-o", "wb"],
        ["eval", "-m", model, "-m", "wb", text, other, "--by-group", "-o", "runs"],
        ["eval", "-m", model, "r.jsonl", "--group", "g", "--by-group"],
        ["eval", "-m", model, "r.jsonl", "--group", "g", "--by-group", "--json"],
        ["eval", "-m", model, f"{HOSTILE}-missing.txt"],
        ["eval", "-m", f"{HOSTILE}/-missing", text],
        ["compare", f"runs/{model}", "runs/wb"],
        ["diagnose", f"runs/{model}", "--train", text, "-m", model],
        ["overlap", text, "--test", other, "--test", text, "--ngram", "3"],
        ["audit", "-m", model, other, "--train", text],
        ["mix", "-m", model, "-m", "wb", other, "-o", f"{HOSTILE}-mix"],
        ["divergence", model, "wb", other],
        ["info", model],
        ["sample", "-m", model, "-n", "2"],
        ["split", text, other, "-o", f"{HOSTILE}-parts"],
        ["wer", text, text, f"{HOSTILE}3.txt", "--align"],
        ["bleu", text, text, f"{HOSTILE}3.txt"],
        ["cer", text, f"{HOSTILE}3.txt", "--top", "2"],
        ["wer", text, f"{HOSTILE}3.txt", "--sentence"],
        ["wer", text, f"{HOSTILE}3.txt", "--sentence", "--json"],
        ["wer", text, f"{HOSTILE}3.txt", "--align", "--json"],
        ["wer", "r.jsonl", "r.jsonl", "--group", "g"],
        ["eval", "-m", model, other, "--per-token", "-"],
        ["eval", "-m", model, text, other, "--per-segment", "-"],
        ["correlate", f"{HOSTILE}.tsv", "-x", "x", "-y", "y"],
    )
    for sequence in DRIVEN:
        assert sequence not in out, out[max(0, out.index(sequence) - 300) : out.index(sequence) + 100]
    assert "Traceback" not in out
    ends = re.findall(r"\[exit (\w+) (\w+) \]", out)
    assert [f"{command} {code}" for command, code in ends if code not in ("0", "None")] == ["eval 2", "eval 2", "audit 1"]
    assert len(ends) == 26
