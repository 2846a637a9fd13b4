"""The selected documents, written in the form in which they were read, with their figures beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.files import making_parents, refuse_replacing
from lmgauge.filtering.plan import FileJob, jobs_of
from lmgauge.filtering.selection_scores import COLUMNS, EntropyColumns, SelectionModels
from lmgauge.progress import say_progress
from lmgauge.records.formats import reader_of, writer_of
from lmgauge.records.records import BLOCK_BYTES, Fields, ScoredRecords, name_taken
from lmgauge.records.sources import STDIN
from lmgauge.remote.addresses import is_remote
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
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
        with closing(iter(reader.blocks(BLOCK_BYTES))) as blocks:  # type: ignore[type-var]  # they are generators
            for block in islice(blocks, 1):
                taken = sorted(set(COLUMNS).intersection(getattr(block.content, "column_names", ())))
                if taken:
                    raise name_taken(job.source.name, taken[0])
                reader.parse(block)
    return jobs


def _fields(pool: Corpus, job: FileJob) -> Fields:
    # Which fields of the records of a file are read, and which they must not have: lines have no fields.
    return Fields(str(pool.settings["field"]), taken=frozenset(() if job.form == "text" else COLUMNS))


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
        own = Corpus.from_files(**(pool.settings | {"paths": [job.source.path]})).with_records(_fields(pool, job).taken)
        path = job.outputs[""]
        say_progress(f"writing {path}")
        scored = partial(_scored, models, first, chosen[first:])
        with writer_of(path, job.form, job.source) as writer:
            for records, rows in map_in_order(scored, own, thread_count(threads)):
                writer.write(records, rows)
            first += own.report.segments
            if job is jobs[-1] and first < len(chosen):
                raise _changed(job.source.name)
        written.append(path)
    return written


def _scored(
    models: SelectionModels, first: int, chosen: NDArray[np.bool_], block: Segments
) -> tuple[ScoredRecords, NDArray[np.intp]]:
    # The records of a block with the cross-entropies of those that are chosen, and which these are.
    # first: number in the pool of the first document of the file; chosen: bool [documents from there on].
    own = chosen[block.first : block.first + len(block)]
    if block.records is None or len(own) < len(block):
        raise _changed(block.source)
    records, rows = block.records
    in_domain, pool = np.full((2, len(records)), np.nan)
    if own.any():
        entropies = models.score_block(block.where(own), np.flatnonzero(own) + block.first + first)
        in_domain[rows[own]], pool[rows[own]] = entropies.in_domain, entropies.pool
    return ScoredRecords(records, EntropyColumns(in_domain, pool)), rows[own]


def _changed(name: str) -> InputError:
    return InputError(f"{name}: it changed while documents were selected from it: select again")
