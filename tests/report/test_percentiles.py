"""What is shown of percentiles."""

from __future__ import annotations

import numpy as np

import lmgauge
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.report import blocks as doc
from lmgauge.report.filtering import percentile_blocks as blocks


def learned(groups: int, size: int | None = None, models: int = 1) -> lmgauge.results.Percentiles:
    documents = 200 * groups
    values = np.arange(1.0, documents + 1)[:, None].repeat(models, axis=1)
    own = Groups.of([f"g{k % groups:02}" for k in range(documents)]) if groups > 1 else Groups.none(documents)
    sample, keys = (
        PercentileSample(models, SampleSettings(size, 1, "lang" if groups > 1 else None)),
        document_keys("x", np.arange(1, documents + 1), 1),
    )
    mask = sample.wanted(keys, own)
    sample.add(keys[mask], own.where(mask), values[mask])
    return lmgauge.results.Percentiles.learn(sample, {f"m{k}": f"doc|model:m{k}" for k in range(models)})


def notes(document: doc.Document) -> list[str]:
    return [block.text for block in document if isinstance(block, doc.Text)]


def test_a_table_and_a_chart_for_each_model() -> None:
    document = blocks(learned(2, 100, models=2))
    tables = [block for block in document if isinstance(block, doc.Table)]
    charts = [block for block in document if isinstance(block, doc.ChartData)]
    assert [table.title for table in tables] == ["perplexity by m0", "perplexity by m1"]
    assert [column.title for column in tables[0].columns[:5]] == ["lang", "documents", "scored", "p10", "95 % of p10"]
    assert [chart.name for chart in charts] == ["percentiles-1", "percentiles-2"]
    assert [line.name for line in charts[0].series] == ["g00", "g01", "all documents"]
    assert notes(document) == ["learned on up to 100 documents of each group; 400 documents were read (seed 1)"]


def test_of_all_documents_there_is_nothing_to_guess() -> None:
    document = blocks(learned(1))
    table = next(block for block in document if isinstance(block, doc.Table))
    assert [column.title for column in table.columns] == ["group", "documents", "scored", "p10", "p30", "p50", "p70", "p90"]
    assert notes(document) == ["learned on all documents; 200 documents were read (seed 1)"]


def test_the_largest_of_many_groups_are_shown() -> None:
    document = blocks(learned(45))
    table = next(block for block in document if isinstance(block, doc.Table))
    chart = next(block for block in document if isinstance(block, doc.ChartData))
    assert (len(table.rows), len(chart.series)) == (41, 7)
    assert "the 40 largest groups are shown; the file has 5 more" in notes(document)
