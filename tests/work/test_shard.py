"""Which share of a job: what people write, what SLURM says."""

from __future__ import annotations

import random

import pytest

from lmgauge import train
from lmgauge.api.sharding import EvaluationJob
from lmgauge.base.errors import UsageError
from lmgauge.text import work_units
from lmgauge.text.documents import Corpus
from lmgauge.work.shard import Shard


def array(task: int, first: int, last: int, count: int, **more: str) -> dict[str, str]:
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
    return dict(zip(names, map(str, (task, first, last, count)), strict=True)) | more


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (array(0, 0, 7, 8), Shard(1, 8)),
        (array(8, 1, 8, 8), Shard(8, 8)),
        (array(12, 10, 13, 4), Shard(3, 4)),
        (array(8, 0, 12, 4, SLURM_ARRAY_TASK_STEP="4"), Shard(3, 4)),
        (array(2, 1, 4, 4, SLURM_PROCID="0", SLURM_NTASKS="1"), Shard(2, 4)),  # a task of an array is a step of one, too
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, Shard(4, 4)),
    ],
)
def test_tasks_of_slurm(environment: dict[str, str], expected: Shard) -> None:
    assert Shard.parse("slurm", environment) == expected


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "neither SLURM_ARRAY_TASK_ID .* nor SLURM_NTASKS .* is set: is this a job of SLURM"),
        (array(3, 3, 9, 3), "the array has 3 tasks numbered 3 to 9 with gaps"),
        (array(7, 1, 4, 4), "7 is not the number of a task"),
        ({"SLURM_ARRAY_TASK_ID": "1"}, "SLURM_ARRAY_TASK_MIN is not set"),
        ({"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}, "SLURM_PROCID is 'x', not a whole number"),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "2"}, "shard 3/2: give a number from 1"),
        ({"SLURM_NTASKS": "2"}, "SLURM_PROCID is not set"),
    ],
)
def test_variables_that_make_no_sense(environment: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Shard.parse("slurm", environment)


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/", " 1/4", "1 /4", "१/४", "1/10000", "Slurm", "1/2\n"]
)
def test_what_is_not_a_shard(text: str) -> None:
    with pytest.raises(UsageError, match="shard"):
        Shard.parse(text, {})


def test_any_text_is_a_shard_or_refused() -> None:
    draw = random.Random(1)
    shards = 0
    for _ in range(2_000):
        text = "".join(draw.choices("0123///sl +\0²", k=draw.randrange(7)))
        try:
            shard = Shard.parse(text, {})
        except UsageError:
            continue
        shards += 1
        assert 1 <= shard.number <= shard.of
        assert [int(part) for part in text.split("/")] == [shard.number, shard.of]
    assert shards > 5


def test_each_unit_has_one_shard() -> None:
    for count in range(1, 9):
        owners = [[Shard(number, count).has(unit) for number in range(1, count + 1)] for unit in range(40)]
        assert all(sum(owner) == 1 for owner in owners)
    assert [Shard(number, 10).folder for number in (2, 10)] == ["02-of-10", "10-of-10"]


def test_pieces_tile_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "UNIT_BYTES", 10)
    lines = [f"line {i}" * (i % 4) for i in range(30)]
    text = Corpus.from_strings(lines, block_bytes=37)
    cut = list(EvaluationJob(train("laplace", text, order=1), text).prepare().pieces())
    assert [piece.text(i).decode() for _, piece in cut for i in range(len(piece))] == lines
    assert [piece.first for _, piece in cut][1:] == [piece.first + len(piece) for _, piece in cut][:-1]
    numbers = [unit for unit, _ in cut]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(max(numbers) + 1))
