"""What is to be done to files of records, and where they go, decided once and sent to whoever does it."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmgauge.choices import Format
from lmgauge.errors import UsageError
from lmgauge.filtering.options import FilterRules, RecordOptions
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.rules import BUCKETS, PerplexityLimits, limits_of
from lmgauge.filtering.scorer import CHOSEN, Model, Scorer
from lmgauge.models.network.options import ScoringOptions
from lmgauge.places import exists, is_remote
from lmgauge.records.formats import format_of, split_compression
from lmgauge.records.records import Fields
from lmgauge.records.sources import STDIN, Source
from lmgauge.remote.addresses import joined
from lmgauge.signature import Signature

RECORDS = "_lmgauge"
"""Folder within the outputs for what is remembered of them; other programs skip names that begin with an underscore."""
_LONGEST_NAME = 200
"""Bytes: most systems allow 255, and what is added takes some."""


@dataclass(frozen=True)
class PlanSummary:
    """The decisions, as a result states them."""

    models: tuple[str, ...]  # the names of the models, as columns begin
    signatures: Mapping[str, str]
    rules: tuple[str, ...]  # what stays, in words
    limits: tuple[PerplexityLimits, ...]  # of the perplexities of what stays
    group_field: str | None  # the field of the groups; None without groups
    by: str | None  # the field that chooses the model; None where every model scores all documents


@dataclass(frozen=True)
class FilterPlan:
    """What becomes of the records of files."""

    scorer: Scorer
    options: RecordOptions = field(default_factory=RecordOptions)
    rules: FilterRules = field(default_factory=FilterRules)
    percentiles: Percentiles | None = None  # those that the rules refer to

    @classmethod
    def of(
        cls,
        model: Model | Mapping[str, Model],
        options: RecordOptions,
        scoring: ScoringOptions,
        rules: FilterRules | None = None,
        percentiles: Percentiles | None = None,
    ) -> FilterPlan:
        """Return the plan for models as people name them; each block is scored by one thread."""
        scorer = Scorer(model, field=options.field, lines=options.lines, by=options.by, scoring=scoring, threads=1)
        return cls(scorer, options, rules or FilterRules(), percentiles)

    @property
    def names(self) -> list[str]:
        """Return the names of the models, as the rules know them."""
        return self.scorer.names

    @property
    def buckets(self) -> tuple[str, ...]:
        """Return the buckets that files are split into; none where they are not."""
        return () if self.rules.buckets is None else BUCKETS

    @property
    def bucket_column(self) -> str | None:
        """Return the name of the column that says in which bucket a document is; None without buckets."""
        return None if self.rules.buckets is None else f"{self.rules.counting(self.names)[0]}_bucket"

    def fields(self, *, scores_added: bool = False) -> Fields:
        """Return which fields of a record are read."""
        # scores_added: True if records get the members of scores, whose names they must not have then.
        others = (self.options.by, self.options.group_field, self.options.id)
        taken = frozenset(name for name in (*self.scorer.column_names, self.bucket_column) if name is not None)
        named = tuple(dict.fromkeys(name for name in others if name is not None))
        return Fields(self.options.field, named, taken if scores_added else frozenset())

    def check(self) -> None:
        """Refuse what does not fit together, before anything is read."""
        self.rules.check(self.names, self.percentiles)
        if self.rules.needs_percentiles:
            self.options.check_groups()
        if self.percentiles is not None:
            self.percentiles.check(column_signatures(self.scorer), self.options.scored_by(), self.options.group_field)

    def summary(self) -> PlanSummary:
        """Return what a result says of the decisions."""
        rules = tuple(self.rules.describe(self.names, self.percentiles))
        limits = limits_of(self.rules, self.names, self.percentiles)
        fields = self.options.group_field, self.options.by
        return PlanSummary(tuple(self.names), column_signatures(self.scorer), rules, limits, *fields)

    def described(self) -> dict[str, Any]:
        """Return all that the output depends on, as plain values."""
        return {
            "models": self.scorer.signatures,
            "fingerprints": {name: model.fingerprint for name, model in self.scorer.models.items()},
            "options": dict(vars(self.options)),
            "rules": dict(vars(self.rules)),
            "percentiles": self.percentiles and self.percentiles.to_dict(),
        }


@dataclass(frozen=True)
class FileJob:
    """A file to filter."""

    source: Source
    name: str  # of its output, within the folder of all outputs; empty where there is one output
    outputs: Mapping[str, str]  # path of what stays, by bucket; "" without buckets
    form: Format
    rejects: str | None = None
    record: str | None = None  # path of what is remembered of the file when it is complete; None to remember nothing


def column_signatures(scorer: Scorer) -> dict[str, str]:
    """Return the signatures of models by the names of their columns; where a field chooses, of all together."""
    if scorer.settings.by is None:
        return scorer.signatures
    parts = {"by": scorer.settings.by, **scorer.signatures}
    return {CHOSEN: str(Signature(parts, head="doc"))}


# -- where the records of files go: one file, or a folder with a file for each that is read -----------------------------
def jobs_of(
    sources: Sequence[Source], output: str, *, buckets: Sequence[str] = (), columns: bool, rejects: str | None = None
) -> tuple[list[FileJob], bool]:
    """Return what is to be done to each file, and True if the output is a folder."""
    # A file that is alone goes into the file that the output names; everything else goes into a folder, a file each.
    # columns: True if the scores of a document must be in what is written: lines of text then become JSONL.
    is_folder = output.endswith(("/", os.sep)) or os.path.isdir(output) or len(sources) > 1 or bool(buckets)
    if not is_folder:
        form: Format = format_of(output, _form(sources[0], columns))
        if columns and form == "text":
            raise UsageError(f"-o {output}: lines of text have no place for scores; give it a name that ends in .jsonl")
        return [FileJob(sources[0], "", {"": output}, form, rejects)], False
    if output == STDIN or (exists(output) and not os.path.isdir(output)):
        raise UsageError(f"-o {output}: several files are written, into a folder; name one, with a slash at its end")
    if any(source.path == STDIN for source in sources):
        raise UsageError("standard input has no name for its file in a folder: give -o a file")
    return [
        _job(source, name, output, buckets, columns) for source, name in zip(sources, _names(sources), strict=True)
    ], True


def _job(source: Source, name: str, output: str, buckets: Sequence[str], columns: bool) -> FileJob:
    form = _form(source, columns)
    if form != source.format:
        bare, packed = split_compression(name)
        name = os.path.splitext(bare)[0] + f".{form}" + packed
    outputs = {bucket: joined(output, *([bucket] * bool(bucket)), name) for bucket in buckets or [""]}
    flat = _flat(name)
    # Not a name of JSONL: nobody who reads all JSONL files of a folder is to read these.
    rejects, record = joined(output, RECORDS, "rejects", f"{flat}.rejects"), joined(output, RECORDS, "files", f"{flat}.json")
    return FileJob(source, name, outputs, form, rejects, record)


def _flat(name: str) -> str:
    flat = name.replace("%", "%25").replace("/", "%2F")
    if len(os.fsencode(flat)) <= _LONGEST_NAME:
        return flat
    return f"{flat[-_LONGEST_NAME // 8 :]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}"


def _form(source: Source, columns: bool) -> Format:
    return "jsonl" if columns and source.format == "text" else source.format


def _names(sources: Sequence[Source]) -> list[str]:
    # Name of the output of each file: its path below the folder that all of them are in.
    paths = [_absolute(source.name) for source in sources]
    if len(set(paths)) < len(paths):
        raise UsageError(f"{sources[next(i for i, path in enumerate(paths) if paths.count(path) > 1)].name}: is named twice")
    roots = {source.name.partition("://")[0] if is_remote(source.name) else "" for source in sources}
    folder = posixpath.commonpath([posixpath.dirname(path) for path in paths]) if len(roots) == 1 else ""
    return [path[len(folder) :].lstrip("/") for path in paths]


def _absolute(path: str) -> str:
    if is_remote(path):
        return posixpath.normpath("/" + path.partition("://")[2])
    return os.path.abspath(path).replace(os.sep, "/")
