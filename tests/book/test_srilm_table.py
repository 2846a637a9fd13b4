"""The table of the page for SRILM's users holds what the golden rows hold, which the golden test trains and measures."""

from __future__ import annotations

import re

import pytest
from docs.examples import BOOK
from tests.golden.ngram_rows import ROWS

_ROW = re.compile(r"\| (?P<theirs>[^|]*) \| (?P<srilm>\d+\.\d+) \| `(?P<options>[^`]*)` \| (?P<ours>\d+\.\d+) \|")
LINES = _ROW.findall((BOOK / "coming-from" / "srilm.md").read_text(encoding="utf-8"))


def options_of(words: list[str]) -> dict[str, object]:
    found: dict[str, object] = {"vocabulary": "closed"}
    if "--back-off" in words:
        found["interpolate"] = False
    if "--discount" in words:
        found["discount"] = float(words[words.index("--discount") + 1])
    if "--cutoffs" in words:
        found["cutoffs"] = tuple(int(count) for count in words[words.index("--cutoffs") + 1].split(","))
    return found


def test_the_table_is_found() -> None:
    assert len(LINES) == 10


@pytest.mark.parametrize(("theirs", "srilm", "options", "ours"), LINES)
def test_figures_are_those_of_the_golden_rows(theirs: str, srilm: str, options: str, ours: str) -> None:
    kind, *words = options.split()
    rows = [row for row in ROWS if (row.text, row.kind, row.order) == ("ptb", kind, 3) and row.options == options_of(words)]
    (row,) = [row for row in rows if row.source.startswith("SRILM")]
    assert f"{row.perplexity:.6f}" == srilm
    assert float(ours) == pytest.approx(row.reference, rel=2e-7)
    for written in re.findall("`([^`]*)`", theirs):
        assert written in row.source
