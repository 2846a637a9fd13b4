"""Percentiles of perplexity by group, learned on a sample and frozen.

The p-th percentile is a perplexity of the sample: the lowest that at least p per cent of its documents do not exceed (the
inverse of the empirical distribution function, Hyndman & Fan 1996, definition 1). A range p10..p70 has what is above the
10th percentile and not above the 70th: neighboring ranges share no document and leave none out, and of n different
perplexities this one has ceil(0.7 n) - ceil(0.1 n). Documents of one perplexity are never separated, so that with ties a
range has more or fewer.

The interval of a percentile is between two of the sample's perplexities, whose ranks are quantiles of a binomial count: it
holds the percentile of all documents that were sampled from with a probability of at least 95 %, whatever they are like
(David & Nagaraja, Order Statistics, 2003, section 7.1).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from lmgauge.base.decoding import Meta, Perplexity, Whole, decode
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.files import writing
from lmgauge.base.json_text import to_json
from lmgauge.base.paths import open_reading
from lmgauge.base.remote.addresses import shown_name
from lmgauge.base.result_list import Result
from lmgauge.base.version import __version__
from lmgauge.filtering.documents import MOST_GROUPS
from lmgauge.filtering.options import BY, PERCENTS, check_percent, percent_name
from lmgauge.filtering.percentile_sample import Floats, GroupSample, PercentileSample
from lmgauge.numerics.intervals import binomial_quantiles
from lmgauge.numerics.signature import Signature

NAMES = tuple(map(percent_name, PERCENTS))
_TENTHS = [round(10 * percent) for percent in PERCENTS]
Columns = dict[str, Whole | Annotated[list[Perplexity | None], Meta(min_length=3, max_length=3)]]
"""Documents of a sample that have a perplexity (`scored`), and by its name each percentile with the ends of its 95 %
interval, None where the sample does not bound it; no percentile where too few documents have a perplexity.
"""
LEAST_DOCUMENTS = 100
"""Scored documents in the sample from which on a group has percentiles of its own."""

LEVEL = 0.95

_AGAIN = "learn them again with 'lmgauge percentiles', or score as they were learned"
_LARGEST = 2**28
"""Bytes of the largest file that is read: a thousand groups and a dozen models take less."""
_INNER_LIST = re.compile(r"\[\n\s*([^][]*?)\n\s*\]")
"""A list of plain values in indented JSON: a line end outside of a string stands nowhere else."""
_LINE_END = re.compile(r"\n\s*")


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
            if not (len(columns) > 1) <= self.scored(name) <= self.sampled <= self.documents:
                raise ValueError("there are more documents in the sample, or with a perplexity, than documents")
            before = 0.0
            for value, low, high in [self.row(name, percent) for percent in NAMES[: len(columns) - 1]]:
                if value is None or not max(before, low or 0) <= value <= (math.inf if high is None else high):
                    raise ValueError(f"a percentile of model {name!r} is not inside its interval or below the one before")
                before = value

    def scored(self, model: str) -> int:
        """Return how many documents of the sample have a perplexity from a model."""
        count = self.models[model]["scored"]
        return count if isinstance(count, int) else -1

    def row(self, model: str, percent: str) -> list[float | None]:
        """Return the percentile of a name, and the ends of its interval."""
        row = self.models[model][percent]
        return row if isinstance(row, list) else [None] * 3


@dataclass(frozen=True, repr=False, kw_only=True)
class Percentiles(Result):
    """Percentiles of perplexity by group, with what must be alike where they are used.

    What it has, the file has, by the same names.

    Attributes:
        lmgauge: version of lmgauge that learned them.
        models: the signature of each model, by its name: the line that names what moves its scores.
        settings: of reading and scoring, such as the field and whether lines are sentences, by name.
        group: field whose values are the groups; None without groups.
        sample: documents of each group that were sampled at most; None for all of them.
        seed: of the sample.
        least: documents with a perplexity that a group needs for percentiles of its own; with fewer those of all
            documents count.
        bad_records: records that were left out, as they have no text or no valid one.
        overall: of all documents, also those without a group.
        groups: by name, in the order of names.
        source: the file they were read from; empty if they were not.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\na\\nx y z\\n")
        ...     path = lmgauge.learn_percentiles({"m": model}, f"{folder}/in.txt").save(f"{folder}/p.json")
        ...     percentiles = Percentiles.load(path)
        >>> percentiles.overall.documents, round(percentiles.value("m", None, 90), 3)
        (3, 4.427)
    """

    format: Literal["lmgauge percentiles"] = "lmgauge percentiles"
    format_version: Literal[1] = 1
    lmgauge: str = __version__
    models: dict[str, str]
    settings: dict[str, str]
    group: str | None
    sample: Annotated[int, Meta(ge=1)] | None
    seed: int
    least: Whole
    bad_records: Whole
    columns: list[str] = field(default_factory=lambda: ["perplexity", "low", "high"])
    overall: GroupPercentiles
    groups: Annotated[dict[str, GroupPercentiles], Meta(max_length=MOST_GROUPS)]
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed {self.seed} is out of range")
        if any(group.models.keys() != self.models.keys() for group in (self.overall, *self.groups.values())):
            raise ValueError("a group does not have the percentiles of each model")
        if not self.models or any(len(columns) == 1 for columns in self.overall.models.values()):
            raise ValueError("no model has percentiles of all documents")

    @classmethod
    def learn(
        cls,
        sample: PercentileSample,
        signatures: Mapping[str, str],
        settings: Mapping[str, str] | None = None,
        least: int = LEAST_DOCUMENTS,
    ) -> Percentiles:
        """Return the percentiles of a sample.

        Args:
            sample: of the documents.
            signatures: of each model, in the order of the sample's columns.
            settings: of reading and scoring.
            least: documents with a perplexity that a group needs for percentiles of its own.

        Raises:
            InputError: no document of the sample has a perplexity from one of the models.

        Example:
            >>> import numpy as np
            >>> from lmgauge.filtering.documents import Groups
            >>> from lmgauge.filtering.percentile_sample import PercentileSample, document_keys
            >>> sample, keys, groups = PercentileSample(1), document_keys("a", np.arange(100), 1), Groups.none(100)
            >>> mask = sample.wanted(keys, groups)
            >>> sample.add(keys, groups, np.arange(1.0, 101.0)[:, None])
            >>> Percentiles.learn(sample, {"en": "model:en"}).value("en", None, 10)
            10.0
        """
        overall = _percentiles(sample.overall(), signatures, 1)
        for name in signatures:
            if not overall.scored(name):
                raise InputError(f"model {name!r} gave no document a perplexity: there is nothing to learn percentiles from")
        return cls(
            models=dict(signatures),
            settings=dict(settings or {}),
            **vars(sample.settings),
            least=least,
            bad_records=sample.bad_records,
            overall=overall,
            groups={name: _percentiles(group, signatures, least) for name, group in sample.groups()},
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Percentiles:
        """Return the percentiles of a file that `save` wrote.

        Args:
            path: of the file.

        Raises:
            InputError: it cannot be read, or is not such a file; the message says where.
        """
        with open_reading(path) as file:
            return cls.from_json(file.read(_LARGEST + 1), shown_name(path))

    @classmethod
    def from_json(cls, raw: bytes, where: str) -> Percentiles:
        """Return the percentiles in the bytes of a file.

        Args:
            raw: the bytes.
            where: what they come from, for messages.

        Raises:
            InputError: they are not such a file.
        """
        if len(raw) > _LARGEST:
            raise InputError(f"{where!r}: larger than {_LARGEST >> 20} MiB: not a file of percentiles")
        own = decode(raw, cls, repr(where), "a file of percentiles", "make one with 'lmgauge percentiles'")
        return replace(own, source=where)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the percentiles as JSON that people can read; a file that is there is replaced at once or not at all.

        Args:
            path: of the file.

        Raises:
            OutputError: it cannot be written.
        """
        text = _INNER_LIST.sub(lambda match: f"[{_LINE_END.sub(' ', match[1])}]", to_json(self.to_dict()))
        with writing(path) as file:
            file.write(text.encode("utf-8") + b"\n")
        return Path(path)

    @property
    def has_stand_in(self) -> bool:
        """Whether the percentiles of all documents may stand in for those of a group: not where a field chose the model, as
        then each group has a perplexity of another model, and these share no scale.
        """
        return BY not in self.settings

    def has_own(self, model: str, group: str | None) -> bool:
        """Return True if a group has percentiles of its own, False if those of all documents stand in for them.

        Args:
            model: name.
            group: name; None for documents without a group.
        """
        return group is not None and group in self.groups and len(self.groups[group].models[model]) > 1

    def row(self, model: str, group: str | None, percent: float) -> tuple[float, float | None, float | None]:
        """Return a percentile that counts for a group, its own or that of all documents, and the ends of its 95 % interval.

        Args:
            model: name.
            group: name; None for documents without a group, and for all of them.
            percent: one of those that are learned, such as 10.

        Returns:
            The perplexity at the percentile, and both ends; None where the sample does not bound it.

        Raises:
            UsageError: there is no such model, or no such percentile.
        """
        self.check_model(model)
        own = self.groups[group] if group is not None and self.has_own(model, group) else self.overall
        value, low, high = own.row(model, percent_name(check_percent(percent)))
        assert value is not None  # each percentile has one
        return value, low, high

    def value(self, model: str, group: str | None, percent: float) -> float:
        """Return the perplexity at a percentile, the first of `row`.

        Args:
            model, group, percent: as of `row`.
        """
        return self.row(model, group, percent)[0]

    def check_model(self, model: str) -> None:
        """Refuse a model that there are no percentiles of.

        Args:
            model: name.

        Raises:
            UsageError: there is no such model.
        """
        if model not in self.models:
            known = first_few([*self.models])
            raise UsageError(f"{self._name} has percentiles of {known}, not of model {model!r}; {_AGAIN}")

    def check(
        self, signatures: Mapping[str, str], settings: Mapping[str, str] | None = None, group: str | None = None
    ) -> None:
        """Refuse to be used with other models, another way of reading, or another field of groups.

        Args:
            signatures: of the models that score now, by name.
            settings: of reading and scoring now.
            group: field of the groups now.

        Raises:
            UsageError: something differs; the message says what.
        """
        compared = []
        for name, line in signatures.items():
            self.check_model(name)
            differences = Signature.parse(self.models[name]).differences(Signature.parse(line))
            compared += [(f"another model {name!r}: {key} was", *both) for key, both in differences.items() if key != "v"]
        then, now = {**self.settings, "group": self.group}, {**(settings or {}), "group": group}
        compared += [(name, then.get(name), now.get(name)) for name in {**then, **now}]
        for what, before, after in compared:
            if before != after:
                said = f"{what} {_said(before)}, and here it is {_said(after)}"
                raise UsageError(f"{self._name} was learned with {said}; {_AGAIN}")

    @property
    def _name(self) -> str:
        return self.source or "the percentile file"

    def _in_brief(self) -> str:
        sample = f"{self.overall.sampled:,} of {self.overall.documents:,} documents"
        groups = f" in {len(self.groups):,} groups by {self.group}" if self.group else ""
        return f"percentiles of {', '.join(self.models)}: {sample}{groups}"


def _percentiles(sample: GroupSample, models: Mapping[str, str], least: int) -> GroupPercentiles:
    whole = len(sample.values) == sample.documents
    columns = {name: _of_column(sample.values[:, place], least, whole) for place, name in enumerate(models)}
    return GroupPercentiles(sample.documents, len(sample.values), columns)


def _of_column(column: Floats, least: int, whole: bool) -> Columns:
    ordered = np.sort(column[~np.isnan(column)]).tolist()
    count = len(ordered)
    columns: Columns = {"scored": count}
    for name, tenths in zip(NAMES, _TENTHS, strict=True) if count >= max(1, least) else ():
        rank = max(1, -(-count * tenths // 1000))
        first, last = (rank, rank) if whole else _interval_ranks(count, tenths)
        low, high = ordered[first - 1] if first >= 1 else None, ordered[last - 1] if last <= count else None
        columns[name] = [ordered[rank - 1], low, high]
    return columns


@lru_cache(maxsize=4096)
def _interval_ranks(count: int, tenths: int) -> tuple[int, int]:
    # Ranks, from 1, of the ends of a percentile's interval; 0 and count + 1 where there is no end.
    if tenths in (0, 1000):
        return (0, 1) if tenths == 0 else (count, count + 1)
    first, last = binomial_quantiles(count, tenths / 1000, (1 - LEVEL) / 2)
    return first, last + 1


def _said(value: str | None) -> str:
    return "not set" if value is None else repr(value)
