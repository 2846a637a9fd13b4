"""The overlap in shards: what runs on in a text file is never cut, records are."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError

WORDS = [f"word{i}" for i in range(40)]


def in_shards(train: lmgauge.Corpus, test: Path, count: int, folder: Path) -> tuple[lmgauge.results.Overlap, list[int]]:
    job = lmgauge.sharding.OverlapJob(train, test, lmgauge.settings.OverlapSettings(n=5))
    parts = [lmgauge.sharding.run_shard(job, rank, count, folder).parts for rank in range(count)]
    merged = lmgauge.merge(folder)
    assert isinstance(merged, lmgauge.results.Overlap)
    return merged, parts


def test_a_text_file_stays_whole_and_files_do_not(tmp_path: Path) -> None:
    test = tmp_path / "test.txt"
    test.write_text(" ".join(WORDS))
    train = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in train:
        path.write_text(
            "\n".join(WORDS if path.name == "b.txt" else WORDS[:30]) + "\n"
        )  # runs on over many lines and blocks
    corpus = lmgauge.Corpus.from_files(train, group=None, block_bytes=20)
    merged, parts = in_shards(corpus, test, 3, tmp_path / "shards")
    assert merged.longest_run == 40
    assert merged.passages[0].train.source.endswith("b.txt")
    assert len(set(parts)) == 2
    assert 0 not in parts
    assert merged.to_dict() == lmgauge.overlap(corpus, test, n=5).to_dict()


def test_records_are_shared_out(tmp_path: Path) -> None:
    test, train = tmp_path / "test.txt", tmp_path / "train.jsonl"
    test.write_text(" ".join(WORDS[:20]) + "\n" + " ".join(WORDS[20:]) + "\n")
    rows = [" ".join(WORDS[i : i + 15]) for i in range(30)] + [" ".join(WORDS[20:])]
    train.write_text("".join(f'{{"text": "{row}"}}\n' for row in rows))
    corpus = lmgauge.Corpus.from_files(train, group=None)
    merged, parts = in_shards(corpus, test, 4, tmp_path / "shards")
    assert min(parts) > 3
    assert merged.to_dict() == lmgauge.overlap(corpus, test, n=5).to_dict()
    assert merged.whole_duplicates == 1
    test.write_text("something else")
    with pytest.raises(InputError, match="the test text is not what the shards read"):
        lmgauge.merge(tmp_path / "shards")
    with pytest.raises(UsageError, match="is for evaluations, and this is a shard of kind overlap"):
        lmgauge.merge(tmp_path / "shards", tmp_path / "run")
