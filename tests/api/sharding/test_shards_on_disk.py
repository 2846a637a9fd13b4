"""Folders of shards: whole, damaged, of other jobs."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

import lmgauge
from lmgauge.api.sharding.evaluation import find_records, read_record
from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.files import file_sha256
from lmgauge.work.manifest import content_fingerprint


def test_a_damaged_file_is_seen(shards: Path) -> None:
    folder = shards / "2-of-3"
    for name in ("shard.json", "parts.zst"):
        whole = (folder / name).read_bytes()
        draw = random.Random(3)
        for _ in range(60):
            damaged = bytearray(whole)
            at = draw.randrange(len(damaged))
            damaged[at] ^= 1 << draw.randrange(8)
            (folder / name).write_bytes(damaged if draw.random() < 0.7 else damaged[:at])
            with pytest.raises(InputError, match="remove it and run the work again"):
                read_record(folder)
        (folder / name).write_bytes(whole)
    assert read_record(folder).shard.number == 2


def resealed(folder: Path, content: object) -> None:
    """Write a record with the right fingerprint, as somebody who means harm would."""
    if isinstance(content, dict):
        content["files"] = {"parts.zst": file_sha256(folder / "parts.zst")}
        content["fingerprint"] = content_fingerprint(content)
    (folder / "shard.json").write_text(json.dumps(content))


def test_records_that_mean_harm(shards: Path, tmp_path: Path) -> None:
    """Every value of the record is replaced by others, with a valid seal: the same digits, or an error in words."""
    expected = lmgauge.merge(shards).to_dict()
    original = json.loads((shards / "1-of-3" / "shard.json").read_text())
    values = [None, -1, 0, 10**30, 1.5, "", "..", [], {}, [[]], {"a": 1}, True, "x" * 1000]
    refused = 0
    for path in paths_in(original):
        for value in values[::5]:
            content = json.loads(json.dumps(original))
            inner = content
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            for folder in shards.iterdir():  # in all of them, so that they agree
                own = json.loads(json.dumps(content))
                if path[:2] not in (["facts"], ["facts", "shard"]):
                    own["facts"]["shard"]["number"] = int(folder.name[0])
                resealed(folder, own)
            try:
                assert lmgauge.merge(shards).to_dict()["perplexity"] == expected["perplexity"]
            except LmgaugeError:
                refused += 1
    assert refused > 10


def paths_in(value: object) -> list[list[str]]:
    if not isinstance(value, dict):
        return []
    return [path for key, inner in value.items() for path in ([key], *([key, *rest] for rest in paths_in(inner)))]


def test_shards_that_do_not_belong_together(shards: Path, text: Path, model: Path, tmp_path: Path) -> None:
    one, two, three = (shards / f"{number}-of-3" for number in (1, 2, 3))
    assert [record.shard.number for record in find_records([three, one, two])] == [1, 2, 3]
    with pytest.raises(UsageError, match="1 of 3 shards are missing: 2/3"):
        find_records([one, three])
    copy = shutil.copytree(two, tmp_path / "copy")
    with pytest.raises(UsageError, match="copy are the same shard, 2"):
        find_records([shards, copy])
    other = lmgauge.sharding.run_shard(lmgauge.sharding.EvaluationJob(model, text, by_group=True), 1, 3, tmp_path / "other")
    with pytest.raises(UsageError, match="differ in settings: by"):
        find_records([one, Path(other.folder), three])
    lmgauge.sharding.run_shard(lmgauge.sharding.EvaluationJob(model, text), 0, 2, tmp_path / "halves")
    with pytest.raises(UsageError, match=r"1-of-3 and .*1-of-2 differ in shards, 3 and 2: merge the shards of one job"):
        find_records([one, tmp_path / "halves"])
    with pytest.raises(InputError, match="has no shard in it"):
        find_records([model])
    with pytest.raises(InputError, match="no such folder"):
        find_records([tmp_path / "nowhere"])
    with pytest.raises(UsageError, match="there is no shard to merge"):
        find_records([])
