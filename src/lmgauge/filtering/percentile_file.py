"""The percentiles of a group, and what stands in a file of them: JSON with a line for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lmgauge.decoding import Meta, Perplexity, Whole
from lmgauge.errors import UsageError
from lmgauge.filtering.groups import MOST_GROUPS
from lmgauge.filtering.percentile_sample import SampleSettings

PERCENTS = (0.0, 0.1, 0.5, *(float(percent) for percent in range(1, 100)), 99.5, 99.9, 100.0)
"""The percentiles that are learned."""
FORMAT, FORMAT_VERSION = "lmgauge percentiles", 1
if TYPE_CHECKING:
    Columns = dict[str, Any]
else:
    Columns = dict[str, Whole | Annotated[list[Perplexity | None], Meta(min_length=3, max_length=3)]]
    """Documents of a sample that have a perplexity (`scored`), and by its name each percentile with the ends of its 95 %
    interval, None where the sample does not bound it; no percentile where too few documents have a perplexity.
    """


def percent_name(percent: float) -> str:
    """Return how a percentile is written."""
    return f"p{percent:g}"


NAMES = tuple(map(percent_name, PERCENTS))


def check_percent(percent: float) -> float:
    """Return a percentage if it is one of those that are learned."""
    if percent not in PERCENTS:
        raise UsageError(
            f"{percent_name(percent)}: percentiles are p0, p1 to p100, and p0.1, p0.5, p99.5 and p99.9; choose one of them"
        )
    return float(percent)


@dataclass(frozen=True)
class GroupPercentiles:
    """Percentiles of the documents of one group."""

    documents: Whole  # documents of the group that there were
    sampled: Whole
    models: dict[str, Columns]  # by the models' names

    def __post_init__(self) -> None:
        for name, columns in self.models.items():
            if not {"scored"} <= columns.keys() <= {"scored", *NAMES} or len(columns) not in (1, len(NAMES) + 1):
                raise ValueError(f"model {name!r} does not have each percentile once")
            if not (len(columns) > 1) <= columns["scored"] <= self.sampled <= self.documents:
                raise ValueError("there are more documents in the sample, or with a perplexity, than documents")
            before = 0.0
            for row in [columns[percent] for percent in NAMES[: len(columns) - 1]]:
                value, low, high = row if isinstance(row, list) else [None] * 3
                if value is None or not max(before, low or 0) <= value <= (math.inf if high is None else high):
                    raise ValueError(f"a percentile of model {name!r} is not inside its interval or below the one before")
                before = value


@dataclass
class StoredPercentiles:
    """What stands in a file of percentiles."""

    format: Literal["lmgauge percentiles"]
    format_version: Literal[1]
    lmgauge: str
    models: dict[str, str]
    settings: dict[str, str]
    sample: Annotated[int, Meta(ge=1)] | None
    seed: int
    group: str | None
    least: Whole
    bad_records: Whole
    overall: GroupPercentiles
    groups: Annotated[dict[str, GroupPercentiles], Meta(max_length=MOST_GROUPS)]

    def __post_init__(self) -> None:
        SampleSettings(self.sample, self.seed, self.group)
        if any(group.models.keys() != self.models.keys() for group in (self.overall, *self.groups.values())):
            raise ValueError("a group does not have the percentiles of each model")
        if not self.models or any(len(columns) == 1 for columns in self.overall.models.values()):
            raise ValueError("no model has percentiles of all documents")
        "".join([*self.models, *self.models.values(), *self.groups]).encode()  # which a lone surrogate has no bytes for
