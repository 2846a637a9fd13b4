"""Which share of a job: shard 2 of 8, as people write it or as SLURM says it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError

MOST_SHARDS = 9999
SLURM = "slurm"
_WRITTEN = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")
_ARRAY, _TASKS = "SLURM_ARRAY_TASK_", "SLURM_NTASKS"


@dataclass(frozen=True)
class Shard:
    """A share of a job."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.of <= MOST_SHARDS or not 1 <= self.number <= self.of:
            raise UsageError(
                f"shard {self.number}/{self.of}: give a number from 1 to the number of shards, of which there are at most "
                f"{MOST_SHARDS:,}, as in 2/8"
            )

    @classmethod
    def parse(cls, text: str, environment: Mapping[str, str] | None = None) -> Self:
        """Return the shard that is written as `2/8`, or the one of this task of SLURM for `slurm`."""
        if text == SLURM:
            return cls.of_slurm(os.environ if environment is None else environment)
        written = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
        if written is None:
            raise UsageError(f"shard {text!r}: write its number and how many there are, as in 2/8, or {SLURM}")
        return cls(int(written[1]), int(written[2]))

    @classmethod
    def of_slurm(cls, environment: Mapping[str, str]) -> Self:
        """Return the shard of a task of an array, or of a step of several tasks (`srun`), that SLURM has started."""
        # An array may begin at any number and go in steps, but not leave numbers out: they say nothing of a task's place
        # then.
        if f"{_ARRAY}ID" in environment:
            stepping = {f"{_ARRAY}STEP": "1", **environment}
            task, first, last, count, step = (_number(stepping, _ARRAY + n) for n in ("ID", "MIN", "MAX", "COUNT", "STEP"))
            numbers = range(first, last + 1, max(1, step))
            if last - first != (count - 1) * step:
                raise UsageError(
                    f"--shard slurm: the array has {count} tasks numbered {first} to {last} with gaps; number them without, "
                    f"as in sbatch --array=1-{count}, or give --shard i/n"
                )
            if task not in numbers:
                raise UsageError(f"--shard slurm: {task} is not the number of a task of the array; give --shard i/n")
            return cls(numbers.index(task) + 1, count)
        if _TASKS in environment:
            return cls(_number(environment, "SLURM_PROCID") + 1, _number(environment, _TASKS))
        raise UsageError(
            f"--shard slurm: neither {_ARRAY}ID (sbatch --array=1-8) nor {_TASKS} (srun -n 8) is set: is this a job of "
            "SLURM? Otherwise give --shard i/n"
        )

    @property
    def folder(self) -> str:
        """Return the name of its folder among those of the other shards."""
        return f"{self.number:0{len(str(self.of))}}-of-{self.of}"

    def has(self, unit: int) -> bool:
        """Return True if a unit of the work belongs to this shard."""
        # [unit for unit in range(8) if Shard(2, 3).has(unit)] -> [1, 4, 7]
        return unit % self.of == self.number - 1


@settings
class Sharing:
    """Which share of the work is done.

    Attributes:
        shard: compute only share I of N, as 2/8; slurm: by SLURM's variables. All shares write into one folder, and
            `lmgauge merge` puts them together.

    Example:
        >>> Sharing(shard="2/8").shard
        Shard(number=2, of=8)
    """

    heading: ClassVar[str] = "Resources"
    # By name only, so that the fields of a class of its kind come first.
    shard: str | Shard | tuple[int, int] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.shard, str):
            object.__setattr__(self, "shard", Shard.parse(self.shard))
        elif isinstance(self.shard, tuple):  # number from 0, and how many
            object.__setattr__(self, "shard", Shard(self.shard[0] + 1, self.shard[1]))


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name)
    if text is None or re.fullmatch(r"[0-9]{1,9}", text) is None:
        what = "is not set" if text is None else f"is {text!r}, not a whole number"
        raise UsageError(f"--shard slurm: {name} {what}; give --shard i/n")
    return int(text)
