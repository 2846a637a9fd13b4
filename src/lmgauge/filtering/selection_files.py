"""The selected documents, written in the form in which they were read, with their figures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import Format
from lmgauge.errors import InputError, UsageError
from lmgauge.files import making_parents, refuse_replacing
from lmgauge.filtering.document_scores import DocumentColumns, name_taken
from lmgauge.filtering.layout import jobs_of
from lmgauge.filtering.plan import FileJob
from lmgauge.filtering.records.forms import reader_of, writer_of
from lmgauge.filtering.records.records import RawBlock, RecordFields, RecordReader, Records, ScoredRecords
from lmgauge.filtering.selection_scores import Floats, Ints, SelectionModels
from lmgauge.progress import say_progress
from lmgauge.remote.addresses import is_remote
from lmgauge.text.documents import Corpus
from lmgauge.text.streams import STDIN
from lmgauge.threads import map_in_order, thread_count

COLUMNS = ("in_domain_bits_per_token", "pool_bits_per_token", "cross_entropy_difference")


@dataclass(frozen=True)
class EntropyColumns(DocumentColumns):
    """The cross-entropies of records, in bits per token; NaN for those that are not selected.

    Attributes:
        in_domain, pool: float64 [records].
        problems: none; selected records have none.
    """

    in_domain: Floats
    pool: Floats
    problems: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    def columns(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        return dict(zip(COLUMNS, (self.in_domain, self.pool, self.in_domain - self.pool), strict=True))

    def missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.in_domain)


def plan_outputs(pool: Corpus, output: str, read: Sequence[str] = ()) -> list[FileJob]:
    """Return the file that is written for each file of a pool, once it is known that it can be."""
    if not pool.sources:
        raise UsageError("the selected documents can be written where the pool is files; this one is strings")
    if output == STDIN:
        raise UsageError("-o -: standard output is for the answer; name a file for the selected documents")
    if pool.settings.get("unit") == "document":
        raise UsageError("documents that are whole files are not written: leave out the output, or use unit line")
    if pool.settings.get("errors") == "replace":
        raise UsageError("records are written as they are, so nothing in them is replaced: use errors skip or fail")
    jobs, _ = jobs_of(pool.sources, output, columns=False)
    refuse_replacing(
        {f"-o ({job.source.name})": job.outputs[""] for job in jobs}, [*(job.source.path for job in jobs), *read]
    )
    for job in jobs:
        writer_of(job.outputs[""], job.form, job.source)
        _refuse_taken(reader_of(job.source, _fields(pool, job)))
    return jobs


def _fields(pool: Corpus, job: FileJob) -> RecordFields:
    # Which fields of the records of a file are read, and which they must not have: lines have no fields.
    return RecordFields(str(pool.settings["field"]), taken=frozenset(() if job.form == "text" else COLUMNS))


def _refuse_taken(reader: RecordReader) -> None:
    # Refuse a file whose first records have a field of the name of one of the columns, before much work is done for it.
    with closing(iter(reader.blocks())) as blocks:  # type: ignore[type-var]  # they are generators
        for block in islice(blocks, 1):
            taken = sorted(set(COLUMNS).intersection(getattr(block.content, "column_names", ())))
            if taken:
                raise name_taken(reader.source.name, taken[0])
            reader.parse(block)


@contextmanager
def making_folders(jobs: Sequence[FileJob]) -> Iterator[None]:
    """Make the folders of outputs; those made are removed again if the block fails and nothing is in them."""
    with ExitStack() as stack:
        for path in (job.outputs[""] for job in jobs):
            if not is_remote(path):
                stack.enter_context(making_parents(Path(path)))
        yield


@dataclass(frozen=True)
class _ChosenRecords:
    """The selected records of one file."""

    lines: Ints  # int64 [records], rising: the line or row of each
    numbers: Ints  # int64 [records], the number of each in the pool

    def rows(self, lines: Ints) -> tuple[NDArray[np.intp], Ints]:
        # Which of some lines are selected, intp [selected], and their numbers in the pool, int64 [selected].
        places = np.searchsorted(self.lines, lines)
        rows = (
            np.flatnonzero(self.lines[np.minimum(places, len(self.lines) - 1)] == lines) if len(self.lines) else places[:0]
        )
        return rows, self.numbers[places[rows]]


def write_selected(
    jobs: Sequence[FileJob],
    pool: Corpus,
    chosen: NDArray[np.bool_],
    models: SelectionModels,
    *,
    threads: int | None = None,
) -> list[str]:
    """Write the selected documents of each file, in their order; return the files."""
    # Records keep every field, and get `COLUMNS`; lines of text stay lines, as long as a file of lines is written.
    # chosen: bool [documents], those to write.
    first, written = 0, []
    for job in jobs:
        own = Corpus.from_files(**(pool.settings | {"paths": [job.source.path]}))
        records, first = _chosen_records(own, chosen, first)
        path = job.outputs[""]
        say_progress(f"writing {path}")
        count = _write_file(reader_of(job.source, _fields(pool, job)), path, job.form, records, models, threads)
        if count != len(records.lines):
            raise InputError(f"{job.source.name}: it changed while documents were selected from it: select again")
        written.append(path)
    return written


def _chosen_records(corpus: Corpus, chosen: NDArray[np.bool_], first: int) -> tuple[_ChosenRecords, int]:
    lines, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for block in corpus:
        rows = np.flatnonzero(chosen[first : first + len(block)])
        lines.append(block.lines()[rows])
        numbers.append(rows + first)
        first += len(block)
    return _ChosenRecords(np.concatenate(lines), np.concatenate(numbers)), first


def _refuse_bad(records: Records, rows: NDArray[np.intp]) -> None:
    for row in sorted(set(rows.tolist()).intersection(records.documents.problems)):
        raise InputError(f"{records.identifier(row)}: {records.documents.problems[row][1]}")


def _write_file(
    reader: RecordReader, path: str, form: Format, chosen: _ChosenRecords, models: SelectionModels, threads: int | None
) -> int:
    def scored(block: RawBlock) -> tuple[ScoredRecords, NDArray[np.intp]]:
        records = reader.parse(block)
        rows, numbers = chosen.rows(records.numbers)
        _refuse_bad(records, rows)
        in_domain, pool = np.full((2, len(records)), np.nan)
        usable = np.isin(records.documents.rows, rows)
        if usable.any():
            documents = records.documents.only(usable)
            of = numbers[np.searchsorted(rows, documents.rows)]
            entropies = models.score_block(documents.segments, of)
            in_domain[documents.rows], pool[documents.rows] = entropies.in_domain, entropies.pool
        return ScoredRecords(records, EntropyColumns(in_domain, pool)), rows

    count = 0
    with writer_of(path, form, reader.source) as writer:
        for records, rows in map_in_order(scored, reader.blocks(), thread_count(threads)):
            writer.write(records, rows)
            count += len(rows)
    return count
