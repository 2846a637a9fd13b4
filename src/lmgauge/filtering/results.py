"""What filtering documents gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmgauge.filtering.histogram import PerplexityHistogram
from lmgauge.filtering.plan import PlanSummary
from lmgauge.filtering.rules import BUCKETS, REASONS, PerplexityLimits
from lmgauge.filtering.tally import STAYS, CorpusTotals, Example, Tally
from lmgauge.result_list import data_frame
from lmgauge.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

_NESTED = ("limits", "groups", "examples", "scored", "stays", "totals", "stay_totals")


@dataclass(frozen=True)
class GroupCounts:
    """Documents of a group, and those of them that stay."""

    name: str  # of the group; empty for documents without one
    documents: int
    bytes: int
    stay_documents: int
    stay_bytes: int


@dataclass(frozen=True, repr=False)
class FilteredDocuments(Shown):
    """What became of the documents of some files.

    Attributes:
        output: the file or folder that they were written to.
        files: how many were read; `files_before` of them were complete before.
        records: how many there were; those with `problems` could not be used.
        documents, bytes: that were scored, and the bytes of their texts.
        stay_documents, stay_bytes: of them, those that stay.
        reasons: documents that were dropped, by reason, in the order of the rules.
        problems: records that could not be used, by reason; `first_problems` has the first of each with its place.
        groups: by name.
        buckets: documents that stay, by bucket; empty without buckets.
        stand_in: documents judged by the percentiles of all, as those of their group were not known.
        rules: what stays, in words.
        limits: between which perplexities documents stay, by model and group.
        group_field: the field of the groups; None without groups.
        by: the field that chooses the model; None where every model scores all documents.
        signatures: of the models, by the name of their columns.
        models: the names of the models.
        examples: documents drawn at random, by what became of them ("stays", or the reason).
        scored, stays: how perplexities are distributed, before and after.
        totals, stay_totals: by the name of the model, sums over all documents, and over those that stay: `tokens`, `bits`,
            `bits_per_byte`, `perplexity`, `unseen_share`.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "in.txt").write_text("a b\\nx y z\\n")
        ...     lmgauge.filter_documents({"lap2": model}, f"{folder}/in.txt", f"{folder}/out.txt", max_perplexity=3)
        <FilteredDocuments: 1 of 2 documents stay, 3 of 8 bytes>
    """

    output: str
    files: int
    files_before: int
    records: int
    documents: int
    bytes: int
    stay_documents: int
    stay_bytes: int
    reasons: Mapping[str, int]
    problems: Mapping[str, int]
    first_problems: Mapping[str, str]
    groups: tuple[GroupCounts, ...]
    buckets: Mapping[str, int]
    stand_in: int
    rules: tuple[str, ...]
    limits: tuple[PerplexityLimits, ...]
    group_field: str | None
    by: str | None
    signatures: Mapping[str, str]
    models: tuple[str, ...]
    examples: Mapping[str, Sequence[Example]]
    scored: PerplexityHistogram
    stays: PerplexityHistogram
    totals: Mapping[str, CorpusTotals]
    stay_totals: Mapping[str, CorpusTotals]

    @classmethod
    def of(cls, summary: PlanSummary, tallies: Sequence[Tally], output: str, *, before: int = 0) -> FilteredDocuments:
        """Return the counts, bytes and perplexities of all files together.

        Args:
            summary: what was decided.
            tallies: what became of the records of each file.
            output: where the documents are.
            before: how many files were complete before.
        """
        total = Tally(list(summary.models))
        for tally in tallies:
            total.merge(tally)
        documents = sum(total.reasons.values())
        groups = [GroupCounts(name, **counts) for name, counts in sorted(total.groups.items())]
        return cls(
            output=output,
            files=len(tallies),
            files_before=before,
            records=total.records,
            documents=documents,
            bytes=total.bytes,
            stay_documents=total.reasons[STAYS],
            stay_bytes=sum(group.stay_bytes for group in groups),
            reasons={reason: total.reasons[reason] for reason in REASONS if total.reasons[reason] and reason != STAYS},
            problems=dict(total.problems.most_common()),
            first_problems=total.first_problems,
            groups=tuple(groups),
            buckets={bucket: total.buckets[bucket] for bucket in BUCKETS if total.buckets},
            stand_in=total.stand_in,
            examples={reason: total.examples[reason] for reason in REASONS if total.examples.get(reason)},
            scored=total.scored,
            stays=total.stays,
            totals=total.totals,
            stay_totals=total.stay_totals,
            **vars(summary),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values; examples with their texts, histograms as pairs of bin and count."""
        plain = {name: value for name, value in vars(self).items() if name not in _NESTED}
        return plain | {
            "limits": [dict(vars(limits)) for limits in self.limits],
            "groups": [dict(vars(group)) for group in self.groups],
            "examples": {reason: [dict(vars(one)) for one in examples] for reason, examples in self.examples.items()},
            "scored": self.scored.to_dict(),
            "stays": self.stays.to_dict(),
            **{
                what: {name: own.to_dict() for name, own in getattr(self, what).items()}
                for what in ("totals", "stay_totals")
            },
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per group.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(dict(vars(group)) for group in self.groups)

    def _in_brief(self) -> str:
        counts = f"{self.documents:,} documents scored, {self.bytes:,} bytes"
        if self.rules:
            stay = f"{self.stay_documents:,} of {self.documents:,} documents stay"
            counts = f"{stay}, {self.stay_bytes:,} of {self.bytes:,} bytes"
        bad = sum(self.problems.values())
        return counts + (f"; {bad:,} records could not be used" if bad else "")
