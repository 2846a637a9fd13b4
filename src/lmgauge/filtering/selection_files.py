"""The selected documents, written in the form in which they were read, with their figures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.files import making_parents, refuse_replacing
from lmgauge.filtering.document_scores import name_taken
from lmgauge.filtering.plan import FileJob, jobs_of
from lmgauge.filtering.records.forms import reader_of, writer_of
from lmgauge.filtering.records.records import RawBlock, RecordFields, ScoredRecords
from lmgauge.filtering.selection_scores import COLUMNS, EntropyColumns, Ints, SelectionModels
from lmgauge.progress import say_progress
from lmgauge.remote.addresses import is_remote
from lmgauge.text.documents import Corpus
from lmgauge.text.streams import STDIN
from lmgauge.threads import map_in_order, thread_count


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
        # Its first records have no field of the name of one of the columns, or much work would be done for nothing.
        reader = reader_of(job.source, _fields(pool, job))
        with closing(iter(reader.blocks())) as blocks:  # type: ignore[type-var]  # they are generators
            for block in islice(blocks, 1):
                taken = sorted(set(COLUMNS).intersection(getattr(block.content, "column_names", ())))
                if taken:
                    raise name_taken(job.source.name, taken[0])
                reader.parse(block)
    return jobs


def _fields(pool: Corpus, job: FileJob) -> RecordFields:
    # Which fields of the records of a file are read, and which they must not have: lines have no fields.
    return RecordFields(str(pool.settings["field"]), taken=frozenset(() if job.form == "text" else COLUMNS))


@contextmanager
def making_folders(jobs: Sequence[FileJob]) -> Iterator[None]:
    """Make the folders of outputs; those made are removed again if the block fails and nothing is in them."""
    with ExitStack() as stack:
        for path in (job.outputs[""] for job in jobs):
            if not is_remote(path):
                stack.enter_context(making_parents(Path(path)))
        yield


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
        # lines: int64 [records], rising, the line or row of each that is selected; numbers: int64 [records], in the pool.
        lines, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for block in own:
            rows = np.flatnonzero(chosen[first : first + len(block)])
            lines.append(block.lines()[rows])
            numbers.append(rows + first)
            first += len(block)
        say_progress(f"writing {job.outputs['']}")
        _write_file(job, _fields(pool, job), np.concatenate(lines), np.concatenate(numbers), models, threads)
        written.append(job.outputs[""])
    return written


def _write_file(
    job: FileJob, fields: RecordFields, lines: Ints, numbers: Ints, models: SelectionModels, threads: int | None
) -> None:
    reader, padded = reader_of(job.source, fields), np.append(lines, np.iinfo(np.int64).max)

    def scored(block: RawBlock) -> tuple[ScoredRecords, NDArray[np.intp]]:
        records = reader.parse(block)
        places = np.searchsorted(padded, records.numbers)
        rows = np.flatnonzero(padded[places] == records.numbers)
        for row in sorted(set(rows.tolist()).intersection(records.documents.problems)):
            raise InputError(f"{records.identifier(row)}: {records.documents.problems[row][1]}")
        in_domain, pool = np.full((2, len(records)), np.nan)
        usable = np.isin(records.documents.rows, rows)
        if usable.any():
            documents = records.documents.only(usable)
            entropies = models.score_block(documents.segments, numbers[places[documents.rows]])
            in_domain[documents.rows], pool[documents.rows] = entropies.in_domain, entropies.pool
        return ScoredRecords(records, EntropyColumns(in_domain, pool)), rows

    count = 0
    with writer_of(job.outputs[""], job.form, job.source) as writer:
        for records, rows in map_in_order(scored, reader.blocks(), thread_count(threads)):
            writer.write(records, rows)
            count += len(rows)
    if count != len(lines):
        raise InputError(f"{job.source.name}: it changed while documents were selected from it: select again")
