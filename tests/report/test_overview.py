"""Pages of several runs: what they say of one difference is the same everywhere."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lmgauge.report.blocks import ChartData, Number, Table, Text, Verdict


@pytest.fixture
def ranking(results: dict[str, Any]) -> dict[str, Number]:
    """The differences from the best model in the table of models, by name."""
    table = next(block for block in results["overview"] if isinstance(block, Table) and block.columns[0].title == "rank")
    cells = {column.title: column.cells for column in table.columns}
    return {
        str(name): cell
        for name, cell in zip(cells["model"], cells["difference"], strict=True)
        if isinstance(cell, Number) and cell.value is not None
    }


def test_a_difference_has_one_direction_on_a_page(results: dict[str, Any], ranking: dict[str, Number]) -> None:
    pairs = [block for block in results["overview"] if isinstance(block, Table) and block.title.startswith("difference of ")]
    shown = {
        block.title.split()[2]: dict(zip(block.columns[0].cells, block.columns[3].cells, strict=True)) for block in pairs
    }
    assert ranking
    for name, cell in ranking.items():
        assert shown[name]["perplexity"] == cell
    chart = next(block for block in results["overview"] if isinstance(block, ChartData) and block.name == "difference")
    drawn = dict(zip(chart.series[0].x, chart.series[0].y, strict=True))
    assert {name: drawn[name] for name in ranking} == {
        name: pytest.approx(100 * (cell.value - 1)) for name, cell in ranking.items() if cell.value is not None
    }


def test_a_page_counts_its_tests_alike(results: dict[str, Any]) -> None:
    texts = [block.text for block in results["overview"] if isinstance(block, Verdict | Text)]
    texts += [note for block in results["overview"] if isinstance(block, Table) for note in block.footnotes]
    counts = re.findall(r"adjusted for (?:all )?(\d+) (\w+)", "\n".join(texts))
    assert len(counts) > 2
    assert set(counts) == {("3", "comparisons")}
