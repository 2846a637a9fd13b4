"""`lmgauge select` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli import commands

TEXTS = Path(__file__).parent.parent / "data"


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A pool of two novels' lines and plays, and a target of plays."""
    novels = (TEXTS / "classic-books.train.txt").read_text(encoding="utf-8").splitlines()[:200]
    plays = [line for line in (TEXTS / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines() if line]
    (tmp_path / "pool.txt").write_text("\n".join([*novels, *plays[:1200]]) + "\n", encoding="utf-8")
    (tmp_path / "target.txt").write_text("\n".join(plays[1200:]) + "\n", encoding="utf-8")
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return commands.run("select", *arguments)


def test_a_share_is_written(pool: Path) -> None:
    options = ("--share", "1/8", "--order", "2")
    result = run(pool / "pool.txt", "--target", pool / "target.txt", "-o", pool / "out.txt", *options)
    assert result.exit_code == 0, result.output
    assert "12.50 % of the pool's text" in result.stdout
    written = (pool / "out.txt").read_text(encoding="utf-8").splitlines()
    lines = iter((pool / "pool.txt").read_text(encoding="utf-8").splitlines())
    assert all(line in lines for line in written)  # in their order
    assert 0 < len(written) < 1400


def test_how_much_is_said_by_a_share_or_a_difference(pool: Path) -> None:
    by_share = run(pool / "pool.txt", "--target", pool / "target.txt", "--share", "10%", "--json")
    value = json.loads(by_share.stdout)
    assert value["chosen"]["share"] == 0.1
    assert value["outputs"] == []
    assert value["signature"].startswith("select|score:cross-entropy-difference|model:mkn3@")
    threshold = value["chosen"]["threshold"]
    by_difference = run(pool / "pool.txt", "--target", pool / "target.txt", f"--max-difference={threshold!r}", "--json")
    assert json.loads(by_difference.stdout)["chosen"]["documents"] >= value["chosen"]["documents"]


def test_bad_records_stop_nothing_unless_that_is_asked_for(pool: Path) -> None:
    lines = [json.dumps({"text": line}) for line in (pool / "pool.txt").read_text(encoding="utf-8").splitlines()]
    (pool / "pool.jsonl").write_text("\n".join([*lines, "{"]) + "\n", encoding="utf-8")
    arguments = (pool / "pool.jsonl", "--target", pool / "target.txt", "--share", "0.1")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "pool: 1 record left out" in result.stdout or "1 records left out" in result.stdout
    assert run(*arguments, "--errors", "fail").exit_code != 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--share", "most"), "'most' is not a number such as 0.25, 1/4 or 25%"),
        (("--share", "1/0"), "is not a number"),
        ((), "say how much is selected"),
        (("--smoothing", "mle"), "mle"),
        (("--field", "body", "--share", "10%"), "names a field of records, and the text is plain"),
    ],
)
def test_mistakes_are_refused(pool: Path, options: tuple[str, ...], message: str) -> None:
    result = run(pool / "pool.txt", "--target", pool / "target.txt", *options)
    assert result.exit_code == 2
    assert message in result.output


def test_a_target_is_needed(pool: Path) -> None:
    assert "--target" in run(pool / "pool.txt").output
