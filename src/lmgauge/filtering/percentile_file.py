"""The percentiles of a group, and their file: JSON with a line for each, written by `write` and not trusted by `read`."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.errors import InputError, UsageError
from lmgauge.files import local_path, writing
from lmgauge.filtering.groups import MOST_GROUPS
from lmgauge.filtering.percentile_sample import SampleSettings
from lmgauge.json_text import from_json, to_json

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
    try:
        record = from_json(raw)
    except ValueError as error:
        raise InputError(f"{where!r}: not a file of percentiles: {error}; make one with 'lmgauge percentiles'") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{where!r}: not a file of percentiles; make one with 'lmgauge percentiles'")
    if record.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{where!r}: percentiles of a format other than {FORMAT_VERSION}; update lmgauge, or learn them anew"
        )
    try:
        return _percentiles(record)
    except (_Damage, UsageError) as error:
        raise InputError(f"{where!r}: damaged: {error}; learn the percentiles anew") from error


class _Damage(Exception):
    """What is wrong with a file, without its name."""


def _need(holds: bool, problem: str) -> None:
    if not holds:
        raise _Damage(problem)


def _group_as_dict(group: GroupPercentiles) -> dict[str, Any]:
    models = {name: _model_as_dict(model) for name, model in group.models.items()}
    return {"documents": group.documents, "sampled": group.sampled, "models": models}


def _model_as_dict(model: ModelPercentiles) -> dict[str, Any]:
    rows = zip(PERCENTS, model.values, model.low, model.high, strict=False)
    return {"scored": model.scored, **{percent_name(percent): list(row) for percent, *row in rows}}


def _percentiles(record: Mapping[str, Any]) -> dict[str, Any]:
    models = _strings(record, "models")
    _need(bool(models), "it names no model")
    size = record.get("sample")
    sample = SampleSettings(
        None if size is None else _whole(record, "sample", 1),
        _whole(record, "seed", 0, 2**64 - 1),
        None if record.get("group") is None else _string(record, "group"),
    )
    groups = _dict(record, "groups")
    _need(len(groups) <= MOST_GROUPS, f"{len(groups):,} groups are more than {MOST_GROUPS:,}")
    overall = _group(_dict(record, "overall"), models, "overall")
    _need(all(model.values for model in overall.models.values()), "overall has no percentiles")
    return {
        "signatures": models,
        "settings": _strings(record, "settings"),
        "sample": sample,
        "least": _whole(record, "least", 0),
        "overall": overall,
        "groups": {_text(name): _group(_dict(groups, name), models, f"group {name!r}") for name in groups},
        "bad_records": _whole(record, "bad_records", 0),
        "version": _string(record, "lmgauge"),
    }


def _group(record: Mapping[str, Any], models: Mapping[str, str], where: str) -> GroupPercentiles:
    columns = _dict(record, "models")
    _need(set(columns) == set(models), f"{where} does not have the percentiles of each model")
    documents = _whole(record, "documents", 0)
    sampled = _whole(record, "sampled", 0, documents)
    of_models = {name: _model(_dict(columns, name), sampled, f"{where}, model {name!r}") for name in models}
    return GroupPercentiles(documents, sampled, of_models)


def _model(record: Mapping[str, Any], sampled: int, where: str) -> ModelPercentiles:
    scored = _whole(record, "scored", 0, sampled)
    names = [percent_name(percent) for percent in PERCENTS]
    if set(record) == {"scored"}:
        return ModelPercentiles(scored, (), (), ())
    _need(set(record) == {"scored", *names}, f"{where} does not have each percentile once")
    _need(scored > 0, f"{where} has percentiles of no document")
    rows = [_row(record[name], f"{name} of {where}") for name in names]
    values, low, high = zip(*rows, strict=True)
    for column in (values, low, high):
        numbers = [number for number in column if number is not None]
        _need(numbers == sorted(numbers), f"the percentiles of {where} do not rise")
    return ModelPercentiles(scored, values, low, high)


def _row(row: Any, where: str) -> tuple[float, float | None, float | None]:
    _need(isinstance(row, list) and len(row) == 3, f"{where} is not a perplexity with the ends of its interval")
    value, low, high = (None if entry is None else _perplexity(entry, where) for entry in row)
    if value is None or (low is not None and low > value) or (high is not None and high < value):
        raise _Damage(f"{where} is not inside its interval")
    return value, low, high


def _perplexity(value: Any, where: str) -> float:
    if value == "inf":
        return math.inf
    _need(isinstance(value, (int, float)) and not isinstance(value, bool), f"{where} is not a perplexity")
    _need(0 <= value <= sys.float_info.max, f"{where} is out of range")
    return float(value)


def _dict(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name)
    _need(isinstance(value, dict), f"{name!r} is not an object")
    return value  # type: ignore[return-value]  # looked at


def _string(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    _need(isinstance(value, str), f"{name!r} is not text")
    return _text(value)  # type: ignore[arg-type]  # looked at


def _text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _Damage("a name is not valid Unicode") from error
    return value


def _strings(record: Mapping[str, Any], name: str) -> dict[str, str]:
    part = _dict(record, name)
    return {_text(key): _string(part, key) for key in part}


def _whole(record: Mapping[str, Any], name: str, least: int, most: int = 2**63 - 1) -> int:
    value = record.get(name)
    _need(type(value) is int and least <= value <= most, f"{name!r} is not a whole number from {least} to {most}")
    return value  # type: ignore[return-value]  # looked at
