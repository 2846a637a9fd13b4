"""The percentiles of a group, and their file: JSON with a line for each, written by `write` and not trusted by `read`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lmgauge.decoding import Meta, Perplexity, Whole, decode
from lmgauge.errors import InputError, UsageError
from lmgauge.files import local_path, writing
from lmgauge.filtering.groups import MOST_GROUPS
from lmgauge.filtering.percentile_sample import SampleSettings
from lmgauge.json_text import to_json

if TYPE_CHECKING:
    from lmgauge.filtering.percentiles import Percentiles

PERCENTS = (0.0, 0.1, 0.5, *(float(percent) for percent in range(1, 100)), 99.5, 99.9, 100.0)
"""The percentiles that are learned."""

PLACES = {percent: place for place, percent in enumerate(PERCENTS)}
"""Percentile -> its place in `PERCENTS`."""
FORMAT = "lmgauge percentiles"
FORMAT_VERSION = 1

_LARGEST = 2**28
"""Bytes of the largest file that is read: a thousand groups and a dozen models take less."""
_INNER_LIST = re.compile(r"\[\n\s*([^][]*?)\n\s*\]")
"""A list of plain values in indented JSON: a line end outside of a string stands nowhere else."""
_LINE_END = re.compile(r"\n\s*")


def percent_name(percent: float) -> str:
    """Return how a percentile is written."""
    return f"p{percent:g}"


def check_percent(percent: float) -> float:
    """Return a percentage if it is one of those that are learned."""
    if percent not in PLACES:
        raise UsageError(
            f"{percent_name(percent)}: percentiles are p0, p1 to p100, and p0.1, p0.5, p99.5 and p99.9; choose one of them"
        )
    return float(percent)


@dataclass(frozen=True)
class ModelPercentiles:
    """Percentiles of one model's perplexity in one group."""

    scored: int  # documents of the sample that have a perplexity
    values: tuple[float, ...]  # perplexity at each of `PERCENTS`, rising; empty where too few documents have one
    # low, high: ends of the 95 % interval of each; None where the sample does not bound it. Where the sample is all
    # documents, both are the value.
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class GroupPercentiles:
    """Percentiles of the documents of one group."""

    documents: int  # documents of the group that there were
    sampled: int
    models: Mapping[str, ModelPercentiles]  # by the models' names, in the order of the models


def as_dict(percentiles: Percentiles) -> dict[str, Any]:
    """Return percentiles as plain values, as they stand in the file."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "lmgauge": percentiles.version,
        "models": dict(percentiles.signatures),
        "settings": dict(percentiles.settings),
        "group": percentiles.sample.group,
        "sample": percentiles.sample.size,
        "seed": percentiles.sample.seed,
        "least": percentiles.least,
        "bad_records": percentiles.bad_records,
        "columns": ["perplexity", "low", "high"],
        "overall": _group_as_dict(percentiles.overall),
        "groups": {name: _group_as_dict(group) for name, group in percentiles.groups.items()},
    }


def write(record: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write percentiles to a file, whole or not at all."""
    text = _INNER_LIST.sub(lambda match: f"[{_LINE_END.sub(' ', match[1])}]", to_json(record))
    with writing(path) as file:
        file.write(text.encode("utf-8") + b"\n")
    return Path(path)


def read(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file; of one too large to have percentiles, only as many as show that it is."""
    try:
        with local_path(path).open("rb") as file:
            return file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{os.fspath(path)!r}: cannot be read: {error.strerror or error}") from error


def parse(raw: bytes, where: str) -> dict[str, Any]:
    """Return the attributes of `Percentiles`, by name, from the bytes of a file."""
    if len(raw) > _LARGEST:
        raise InputError(f"{where!r}: larger than {_LARGEST >> 20} MiB: not a file of percentiles")
    stored = decode(raw, _Stored, repr(where), "a file of percentiles", "make one with 'lmgauge percentiles'")
    return {
        "signatures": stored.models,
        "settings": stored.settings,
        "sample": SampleSettings(stored.sample, stored.seed, stored.group),
        "least": stored.least,
        "overall": stored.overall.percentiles(),
        "groups": {name: group.percentiles() for name, group in stored.groups.items()},
        "bad_records": stored.bad_records,
        "version": stored.lmgauge,
    }


_NAMES = [percent_name(percent) for percent in PERCENTS]
_Row = Annotated[list[Perplexity | None], Meta(min_length=3, max_length=3)]
"""A percentile and the ends of its interval."""


@dataclass
class _StoredGroup:
    documents: Whole
    sampled: Whole
    models: dict[str, dict[str, Whole | _Row]]  # how many are `scored`, and percentiles by name: all of them, or none

    def __post_init__(self) -> None:
        for name, columns in self.models.items():
            if not {"scored"} <= columns.keys() <= {"scored", *_NAMES} or len(columns) not in (1, len(_NAMES) + 1):
                raise ValueError(f"model {name!r} does not have each percentile once")
            scored: Any = columns["scored"]
            if not (len(columns) > 1) <= scored <= self.sampled <= self.documents:
                raise ValueError("there are more documents in the sample, or with a perplexity, than documents")
            rows = [columns[percent] for percent in _NAMES[: len(columns) - 1]]
            before = 0.0
            for row in rows:
                value, low, high = row if isinstance(row, list) else [None] * 3
                if value is None or not max(before, low or 0) <= value <= (math.inf if high is None else high):
                    raise ValueError(f"a percentile of model {name!r} is not inside its interval or below the one before")
                before = value

    def percentiles(self) -> GroupPercentiles:
        """Return the percentiles of each model."""
        return GroupPercentiles(self.documents, self.sampled, {name: _model(own) for name, own in self.models.items()})


def _model(columns: Mapping[str, Any]) -> ModelPercentiles:
    rows = [columns[name] for name in _NAMES[: len(columns) - 1]]
    values, low, high = zip(*rows, strict=True) if rows else ((), (), ())
    return ModelPercentiles(columns["scored"], values, low, high)


@dataclass
class _Stored:
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
    overall: _StoredGroup
    groups: Annotated[dict[str, _StoredGroup], Meta(max_length=MOST_GROUPS)]

    def __post_init__(self) -> None:
        SampleSettings(self.sample, self.seed, self.group)
        if any(group.models.keys() != self.models.keys() for group in (self.overall, *self.groups.values())):
            raise ValueError("a group does not have the percentiles of each model")
        if not self.models or any(len(columns) == 1 for columns in self.overall.models.values()):
            raise ValueError("no model has percentiles of all documents")
        "".join([*self.models, *self.models.values(), *self.groups]).encode()  # which a lone surrogate has no bytes for


def _group_as_dict(group: GroupPercentiles) -> dict[str, Any]:
    models = {name: _model_as_dict(model) for name, model in group.models.items()}
    return {"documents": group.documents, "sampled": group.sampled, "models": models}


def _model_as_dict(model: ModelPercentiles) -> dict[str, Any]:
    rows = zip(PERCENTS, model.values, model.low, model.high, strict=False)
    return {"scored": model.scored, **{percent_name(percent): list(row) for percent, *row in rows}}
