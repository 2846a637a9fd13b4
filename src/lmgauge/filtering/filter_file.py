"""What is to be done to files of records, decided once, and one file: read, scored, judged, and what stays written."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError
from lmgauge.base.files import naming
from lmgauge.base.json_text import to_json
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.filtering.documents import Documents, DocumentScores, Groups, label_of
from lmgauge.filtering.options import FilterRules, RecordOptions
from lmgauge.filtering.percentile_sample import document_keys
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.results import EXAMPLES, Drawn, Example, PlanSummary, Problem, Tally, example_text
from lmgauge.filtering.rules import BUCKETS, REASONS, Judgement, Reason, judge, rule_lines
from lmgauge.filtering.scorer import CHOSEN, Model, Scorer
from lmgauge.models.network.options import ScoringOptions
from lmgauge.numerics.signature import Signature
from lmgauge.records.compression import writing_packed
from lmgauge.records.formats import reader_of, writer_of
from lmgauge.records.records import BLOCK_BYTES, Column, Fields, RawBlock, RecordReader, ScoredRecords
from lmgauge.records.sources import Source

Progress = Callable[[int], None]
_SEED = 1  # of the examples that are drawn


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
    def signatures(self) -> dict[str, str]:
        """Return the signatures of models by the names of their columns; where a field chooses, of all together."""
        own = self.scorer.signatures
        return own if self.options.by is None else {CHOSEN: str(Signature({"by": self.options.by, **own}, head="doc"))}

    @property
    def bucket_column(self) -> str | None:
        """Return the name of the column that says in which bucket a document is; None without buckets."""
        return None if self.rules.buckets is None else f"{self.rules.counting(self.scorer.names)[0]}_bucket"

    def fields(self, *, scores_added: bool = False) -> Fields:
        """Return which fields of a record are read."""
        # scores_added: True if records get the members of scores, whose names they must not have then.
        others = (self.options.by, self.options.group_field, self.options.id)
        taken = frozenset(name for name in (*self.scorer.column_names, self.bucket_column) if name is not None)
        named = tuple(dict.fromkeys(name for name in others if name is not None))
        return Fields(self.options.field, named, taken if scores_added else frozenset())

    def score(self, documents: Documents) -> DocumentScores:
        """Return the nats, tokens and unseen words of each record under each model."""
        by = self.options.by
        return self.scorer.score_documents(documents, None if by is None else documents.labels(by))

    def groups_of(self, documents: Documents) -> Groups:
        """Return the group of each record, as codes int64 [records]."""
        field = self.options.group_field
        return Groups.none(documents.count) if field is None else Groups.of(documents.labels(field))

    def check(self) -> None:
        """Refuse what does not fit together, before anything is read."""
        self.rules.check(self.scorer.names, self.percentiles)
        if self.rules.needs_percentiles:
            self.options.check_groups()
        if self.percentiles is not None:
            self.percentiles.check(self.signatures, self.options.scored_by(), self.options.group_field)

    def summary(self) -> PlanSummary:
        """Return what a result says of the decisions."""
        rules = tuple(rule_lines(self.rules, self.scorer.names, self.percentiles))
        return PlanSummary(tuple(self.scorer.names), self.signatures, rules, self.options.group_field, self.options.by)

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


class _Judged(NamedTuple):
    # A block of records on its way.
    records: ScoredRecords  # with the columns of their scores
    documents: Documents
    scores: DocumentScores
    groups: Groups
    judgement: Judgement
    size: int  # bytes read


def filter_file(
    plan: FilterPlan, job: FileJob, *, threads: int | None = None, progress: Progress = lambda size: None
) -> Tally:
    """Filter a file: its outputs appear when it is complete, and not before."""
    reader = reader_of(job.source, plan.fields(scores_added=True))
    tally = Tally.of_nothing(plan.scorer.names)

    def judged(block: RawBlock) -> _Judged:
        records = reader.parse(block)
        documents = Documents.of_records(records)
        scores, groups = plan.score(documents), plan.groups_of(documents)
        judgement = judge(plan.rules, scores, groups, plan.percentiles)
        columns: dict[str, Column] = {**scores.columns()}
        if plan.bucket_column is not None:
            columns[plan.bucket_column] = judgement.bucket_names()
        scored = ScoredRecords(records, columns, scores.missing())
        return _Judged(scored, documents, scores, groups, judgement, block.size)

    with ExitStack() as stack:
        writers = {
            bucket: stack.enter_context(writer_of(path, job.form, job.source)) for bucket, path in job.outputs.items()
        }
        rejects = None if job.rejects is None else stack.enter_context(writing_packed(job.rejects))
        for batch in map_in_order(judged, reader.blocks(BLOCK_BYTES), thread_count(threads)):
            with naming(job.rejects or ""):
                problems = _put_aside(plan, reader, batch, rejects)
            usable, judgement = ~batch.records.missing, batch.judgement
            tally += Tally.of(
                batch.scores, judgement, batch.groups, problems, _draw_examples(job.source.label, batch, usable)
            )
            stay = usable & (judgement.reasons == 0)
            for bucket, writer in writers.items():
                own = stay & (judgement.buckets == BUCKETS.index(bucket)) if bucket else stay
                writer.write(batch.records, np.flatnonzero(own))
            progress(batch.size)
        if job.record is None:
            refuse_nothing(tally)
    return tally


def refuse_nothing(tally: Tally) -> None:
    """Refuse records of which none could be used: then their fields are others, not some of them bad."""
    if tally.problems and not tally.reasons:
        first = next(iter(tally.problems.values())).first
        raise InputError(f"none of {tally.records:,} records can be used; the first: {first}")


def _put_aside(plan: FilterPlan, reader: RecordReader, batch: _Judged, rejects: IO[bytes] | None) -> dict[str, Problem]:
    # Write the bad records of a batch; return them by reason.
    records, problems, counted = batch.records.records, batch.scores.problems, dict[str, Problem]()
    for row in sorted(problems):
        reason, detail = problems[row]
        place = f"{records.identifier(row)}: {detail}"
        if plan.options.errors == "fail":
            raise InputError(place)
        one = Problem(1, place)
        counted[reason] = counted[reason] + one if reason in counted else one
        if rejects is not None:
            named = {} if plan.options.id is None else {"id": label_of(records.values[plan.options.id][row])}
            where = {"file": records.source, "record": int(records.numbers[row]), **named}
            rejected = {**where, "reason": reason, "detail": detail, **_raw(reader.raw_record(records, row))}
            rejects.write(to_json(rejected, indent=None).encode() + b"\n")
    return counted


def _raw(record: bytes | None) -> dict[str, str | None]:
    # Record as it was read: as text, or as base64 where it is not UTF-8.
    try:
        return {"raw": None if record is None else record.decode()}
    except UnicodeDecodeError:
        return {"raw": None, "raw_base64": base64.b64encode(record or b"").decode()}


def _draw_examples(label: str, batch: _Judged, usable: NDArray[np.bool_]) -> dict[Reason, Drawn]:
    records, documents, reasons = batch.records.records, batch.documents, batch.judgement.reasons
    keys, drawn = document_keys(label, records.numbers, _SEED), dict[Reason, Drawn]()
    for code in np.unique(reasons[usable]).tolist():
        rows = np.flatnonzero(usable & (reasons == code))
        examples = []
        for row in rows[np.argsort(keys[rows], kind="stable")[:EXAMPLES]].tolist():
            text = documents.segments.text(int(np.searchsorted(documents.rows, row)))
            figures = zip(batch.scores.sums, batch.scores.perplexity[row].tolist(), strict=True)
            perplexity = {name: None if math.isnan(one) else one for name, one in figures}
            examples.append(Example(int(keys[row]), records.identifier(row), example_text(text), perplexity))
        drawn[REASONS[code]] = Drawn(examples)
    return drawn
