"""What is printed of a stored base."""

from pathlib import Path

from lmgauge.evaluation.divergence.divergence_result import SavedBase, Storage, StorageError
from lmgauge.report import blocks as doc
from lmgauge.report.divergence import base_blocks as blocks
from lmgauge.report.divergence import storage_blocks


def saved(**changes):
    values = {
        "path": Path("a.base"),
        "model": "m",
        "events": 10,
        "total_events": 20,
        "segments": 1,
        "total_segments": 2,
        "stored": "top",
        "top": 64,
        "samples": 256,
        "file_bytes": 1_000_000,
        "whole_bytes": 120_000_000,
        "seed": 1,
        "fingerprints": {},
    }
    return SavedBase(**(values | changes))


def line(document, name):
    return next(dict(block.pairs)[name] for block in document if isinstance(block, doc.Lines))


def test_sizes_are_beside_those_of_whole_distributions():
    assert line(blocks(saved()), "size") == "1 MB, 1/120 of 16 bits a token of the vocabulary (120 MB)"
    assert line(blocks(saved(file_bytes=240_000_000)), "size").startswith("240 MB, 2 times 16 bits")
    assert line(blocks(saved(stored="float32")), "stored for each event") == "all log-probabilities, float32"


def test_bounds_are_a_table_and_none_is_said_so():
    errors = {"kl_ab_nats": StorageError(0.001, 0.09, 0.11), "kl_ba_nats": StorageError(0.001, 0.08, None)}
    storage = Storage("a.base", "top", 64, 256, 1, 100, 0.25, 0.01, errors)
    (table,) = [block for block in storage_blocks(storage) if isinstance(block, doc.Table)]
    assert [column.title for column in table.columns][1:] == ["standard error", "at least", "at most"]
    assert len(table.columns[0].cells) == 2
    assert list(storage_blocks(None)) == []
    whole = Storage("a.base", "bfloat16", 0, 0, 1, 100, 0.0, 0.0, {})
    assert not any(isinstance(block, doc.Table) for block in storage_blocks(whole))
