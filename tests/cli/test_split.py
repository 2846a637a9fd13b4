"""`lmgauge split` as it is typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lmgauge.base.errors import UsageError
from lmgauge.cli.derive import split

NOVEL = Path(__file__).parent.parent / "data" / "classic-books.train.txt"


def test_split_into_parts(tmp_path: Path) -> None:
    arguments = [str(NOVEL), "--fractions", "0.8,0.1,0.1", "--seed", "1", "-o", str(tmp_path / "parts")]
    result = CliRunner().invoke(split, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "train" in result.stdout
    assert re.search(r"^train\t824\t80\.00 %\t", result.stdout, re.MULTILINE)
    assert "seed 1, text " in result.stdout
    assert result.stderr == ""
    first = {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}
    assert CliRunner().invoke(split, arguments, catch_exceptions=False).exit_code == 0  # the same files may be replaced
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "parts").iterdir()}


def test_json_and_notes(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_bytes(b"a\r\nb\r\nc\r\nd")
    result = CliRunner().invoke(split, [str(text), "--json", "--fractions", "0.5,0,0.5", "-o", str(tmp_path / "p")])
    value = json.loads(result.stdout)
    assert [(part["name"], part["segments"]) for part in value["parts"]] == [("train", 2), ("test", 2)]
    assert value["segments"] == 4
    assert value["notes"] == ["3 CRLF line ends read as LF", "final newline supplied for 1 of 1 files"]


def test_groups_of_a_field(tmp_path: Path) -> None:
    records = tmp_path / "a.jsonl"
    rows = [{"text": f"{name} {i}", "book": name} for name in "abcdef" for i in range(5)]
    records.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / "parts"
    result = CliRunner().invoke(
        split,
        [str(records), "--group", "book", "--fractions", "0.5,0.25,0.25", "-o", str(output)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    books = [{json.loads(line)["text"][0] for line in path.read_text().splitlines()} for path in sorted(output.iterdir())]
    assert len(books) == 3
    assert sum(map(len, books)) == 6


def test_mistakes() -> None:
    result = CliRunner().invoke(split, [str(NOVEL), "--fractions", "most,some,few", "-o", "parts"])
    assert result.exit_code == 2
    assert "not a list of numbers like 0.5,0.5" in result.stderr
    with pytest.raises(UsageError, match="their sum 1"):
        CliRunner().invoke(split, [str(NOVEL), "--fractions", "0.8,0.1,0.2", "-o", "p"], catch_exceptions=False)


def test_help_imports_nothing_heavy() -> None:
    program = "import sys; from lmgauge.cli.derive import split; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
