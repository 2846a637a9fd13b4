"""What is to be done to files of records, decided once and sent to whoever does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmgauge.choices import Format
from lmgauge.filtering.limits import PerplexityLimits, limits_of
from lmgauge.filtering.options import FilterRules, RecordOptions
from lmgauge.filtering.percentile_sample import document_keys
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.rules import BUCKETS
from lmgauge.filtering.scorer import CHOSEN, Scorer
from lmgauge.records.records import Fields, Records
from lmgauge.records.sources import Source
from lmgauge.signature import Signature


@dataclass(frozen=True)
class PlanSummary:
    """The decisions, as a result states them."""

    models: tuple[str, ...]  # the names of the models, as columns begin
    signatures: Mapping[str, str]
    rules: tuple[str, ...]  # what stays, in words
    limits: tuple[PerplexityLimits, ...] = ()  # of the perplexities of what stays
    group_field: str | None = None  # the field of the groups; None without groups
    by: str | None = None  # the field that chooses the model; None where every model scores all documents

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> PlanSummary:
        """Return the summary with these plain values."""
        signatures = {str(name): str(line) for name, line in stored["signatures"].items()}
        models, rules = (tuple(map(str, stored[name])) for name in ("models", "rules"))
        limits = tuple(map(PerplexityLimits.from_dict, stored["limits"]))
        group, by = (None if stored[name] is None else str(stored[name]) for name in ("group_field", "by"))
        return cls(models, signatures, rules, limits, group, by)


@dataclass(frozen=True)
class FilterPlan:
    """What becomes of the records of files."""

    scorer: Scorer
    options: RecordOptions = field(default_factory=RecordOptions)
    rules: FilterRules = field(default_factory=FilterRules)
    percentiles: Percentiles | None = None  # those that the rules refer to
    seed: int = 1

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
        percentiles = None if self.percentiles is None else self.percentiles.to_dict()
        return {
            "models": self.scorer.signatures,
            "fingerprints": {name: model.fingerprint for name, model in self.scorer.models.items()},
            "options": dict(vars(self.options)),
            "rules": dict(vars(self.rules)),
            "percentiles": percentiles,
            "seed": self.seed,
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


def keys_of(records: Records, label: str, seed: int) -> Any:
    """Return the keys by which records are sampled, uint64 [records], whatever batch they come in."""
    # records: of a file, in order.
    if not len(records):
        return document_keys(label, 0, 0, seed)
    first, last = int(records.numbers[0]), int(records.numbers[-1])
    return document_keys(label, first - 1, last - first + 1, seed)[records.numbers - first]
