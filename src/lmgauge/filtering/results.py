"""What filtering documents gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lmgauge.filtering.histogram import PerplexityHistogram
from lmgauge.filtering.plan import PlanSummary
from lmgauge.filtering.rules import BUCKETS, REASONS, PerplexityLimits
from lmgauge.filtering.tally import STAYS, CorpusTotals, Example, GroupCounts, Tally
from lmgauge.result_list import data_frame
from lmgauge.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

_NESTED = ("limits", "groups", "examples", "scored", "stays", "totals", "stay_totals")


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
        total = Tally.of_nothing(summary.models)
        for tally in tallies:
            total.merge(tally)
        as_counted = ("records", "bytes", "first_problems", "stand_in", "scored", "stays", "totals", "stay_totals")
        groups = tuple(total.groups[name] for name in sorted(total.groups))
        return cls(
            output=output,
            files=len(tallies),
            files_before=before,
            documents=sum(total.reasons.values()),
            stay_documents=total.reasons.get(STAYS, 0),
            stay_bytes=sum(group.stay_bytes for group in groups),
            reasons={reason: total.reasons[reason] for reason in REASONS[1:] if reason in total.reasons},
            problems=dict(sorted(total.problems.items(), key=lambda one: -one[1])),
            groups=groups,
            buckets={bucket: total.buckets.get(bucket, 0) for bucket in BUCKETS if total.buckets},
            examples={reason: total.examples[reason] for reason in REASONS if total.examples.get(reason)},
            **{name: getattr(total, name) for name in as_counted},
            **vars(summary),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values; examples with their texts, histograms as pairs of bin and count."""
        own = asdict(self) | {name: getattr(self, name).to_dict() for name in ("scored", "stays")}
        for sums in ("totals", "stay_totals"):
            own[sums] = {name: one.to_dict() for name, one in getattr(self, sums).items()}
        return own | {name: own.pop(name) for name in _NESTED}

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per group.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(asdict(group) for group in self.groups)

    def _in_brief(self) -> str:
        counts = f"{self.documents:,} documents scored, {self.bytes:,} bytes"
        if self.rules:
            stay = f"{self.stay_documents:,} of {self.documents:,} documents stay"
            counts = f"{stay}, {self.stay_bytes:,} of {self.bytes:,} bytes"
        bad = sum(self.problems.values())
        return counts + (f"; {bad:,} records could not be used" if bad else "")
