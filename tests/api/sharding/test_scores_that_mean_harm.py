"""Scores that mean harm: other numbers, types or lengths under a valid seal are refused in words, or do no harm."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.api.sharding.evaluation import NO_STRINGS, PARTS_FILE, ScoredPiece, read_record
from lmgauge.base.errors import LmgaugeError
from lmgauge.scores import ScoreBatch, TokenStrings
from lmgauge.work.manifest import write_manifest
from lmgauge.work.parts import read_parts, writing_parts

NUMBERS = [0, 1, -1, 2**31 - 1, 2**32 - 1, -(2**63), 2**63 - 1, float("nan"), float("inf"), -1e308, 0.5]


def harmed(array: Any, draw: random.Random) -> Any:
    """An array with another number, more or fewer of them, another type, or another shape."""
    array = np.array(array)
    kind = draw.randrange(5)
    if kind == 0:
        return array[:-1]
    if kind == 1:
        return np.concatenate((array, array[-1:]))
    if kind == 2:
        return array.astype(draw.choice(["u1", "i8", "f8", "?", "u4"]))
    if kind == 3:
        return array.reshape(-1, 1)
    if array.size:
        with np.errstate(all="ignore"):
            array.reshape(-1)[draw.randrange(array.size)] = np.array(draw.choice(NUMBERS)).astype(array.dtype)
    return array


def changed(piece: ScoredPiece, draw: random.Random) -> ScoredPiece:
    """A piece with one column harmed, or the strings of its tokens."""
    name = draw.choice(
        [*(field.name for field in fields(ScoreBatch) if field.name not in ("spans_apart", "gaps")), "tokens"]
    )
    batch = piece.batch
    if name == "tokens":
        return replace(piece, tokens=(piece.tokens or [])[: draw.randrange(len(piece.tokens or []) + 1)])
    if name == "strings":
        return replace(piece, tokens=None)
    if name in ("extra", "before"):
        return replace(piece, batch=replace(batch, extra={k: harmed(v, draw) for k, v in batch.extra.items()}))
    return replace(piece, batch=replace(batch, **{name: harmed(getattr(batch, name), draw)}))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pieces_that_mean_harm(text: Path, model: Path, tmp_path: Path) -> None:
    job = lmgauge.sharding.EvaluationJob(model, text, columns=("entropy", "rank", "top2"))
    lmgauge.sharding.run_shard(job, 0, 1, tmp_path)
    folder = tmp_path / "1-of-1"
    record, draw = read_record(folder), random.Random(2)
    manifest, file = record.manifest, folder / PARTS_FILE
    pieces = list(read_parts(file, ScoredPiece, {TokenStrings: NO_STRINGS}))
    made_of = {name: value for name, value in manifest.made_of.items() if name != "lmgauge"}
    refused = 0
    for _ in range(250):
        at = draw.randrange(len(pieces))
        with writing_parts(file) as write:
            for number, piece in enumerate(pieces):
                write(changed(piece, draw) if number == at else piece)
        write_manifest(folder / "shard.json", manifest.job, made_of, manifest.facts, [PARTS_FILE])
        try:
            assert isinstance(lmgauge.merge(tmp_path).to_dict(), dict)
        except LmgaugeError as error:
            refused += "\n" not in str(error)
    assert 60 < refused < 250
