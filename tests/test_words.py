"""Plain technical English (CONTRIBUTING, "Words"): American spelling, and none of the turns of phrase that slow readers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))
SOURCES = sorted((ROOT / "src" / "lmgauge").rglob("*.py")) + sorted((ROOT / "benchmarks").glob("*.py"))

BRITISH = re.compile(
    r"(?:normalis|tokenis|quantis|optimis|summaris|recognis|organis|randomis|initialis|serialis|generalis|minimis|maximis"
    r"|analyse\b|analysing|behaviour|neighbour|favour|colour|labell(?!imit)|centre\b|licence|learnt\b)",
    re.IGNORECASE,
)
TURNS = {
    r"(?<!there )\bis no (?!longer|more|less)\w": "say what it is not: 'is not a ...'",
    r"\b(that|which) (is|are) none\b": "name what is wrong with it",
    r"\bgone on from\b": "resumed",
    r"\bmend what\b": "fix the program that ...",
    r"\bso many\b": "name the number",
    r"\bset apart\b": "separated",
    r"\bforetold\b": "predicted",
    r"\bno lmgauge\b": "say what wrote the file",
}
NOUNS = re.compile(
    r"^(?!\s+given: [\w\[\]]+(?: \| None)? = (?:None|\"question\")(?:,|  #.*)?$)"
    r"\s*(?:self\.)?_?(told|found|kept|given|added|goes)(?::[^=]+)? = "
)
"""Names that say how a value came to be, not what it is; the option `given`, text before what is scored, is what it is."""


def lines(paths: list[Path]) -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{number}", line)
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


@cache
def everywhere() -> list[tuple[str, str]]:
    """All lines; read when the first test asks, as each worker of the suite imports this file."""
    return lines(PAGES + SOURCES)


@cache
def whole_text() -> str:
    return "\n".join(line for _, line in everywhere())


def test_spelling_is_american() -> None:
    assert [f"{where}: {line.strip()}" for where, line in everywhere() if BRITISH.search(line) and "http" not in line] == []


@pytest.mark.parametrize("turn", TURNS)
def test_turns_of_phrase_that_slow_readers(turn: str) -> None:
    if re.search(turn, whole_text(), re.IGNORECASE):  # some 20 times as fast as line by line
        found = [f"{where}: {line.strip()}" for where, line in everywhere() if re.search(turn, line, re.IGNORECASE)]
        assert found == [], f"instead: {TURNS[turn]}"


def test_variables_are_named_after_what_they_hold() -> None:
    assert [f"{where}: {line.strip()}" for where, line in lines(SOURCES) if NOUNS.search(line)] == []
