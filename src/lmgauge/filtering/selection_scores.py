"""How much a document is like a text: the difference of its cross-entropies under two models.

    difference(s) = H_I(s) - H_N(s)        in bits per token, `</s>` included; lower is more like the in-domain text

I is a model of the in-domain text, N one of a random sample of the pool of about the same size, both over one vocabulary:
the words that occur at least twice in the in-domain text (Moore & Lewis 2010, "Intelligent Selection of Language Model
Training Data", Proceedings of the ACL 2010 Conference Short Papers, pages 220-224).

A model gives text that it was trained on fewer bits than text like it, so a document of the sample would seem to be less
like the in-domain text than its neighbors. Hence there are two samples, and two models N: the documents of the first sample
are scored by the model of the second one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.files import making_parents, refuse_replacing
from lmgauge.filtering.document_scores import DocumentColumns
from lmgauge.filtering.filter_file import FileJob
from lmgauge.filtering.filter_files import jobs_of
from lmgauge.filtering.options import SelectionSettings
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.training import train_ngram
from lmgauge.models.segment_totals import SumsBlocks
from lmgauge.numerics.units import nats_to_bits
from lmgauge.progress import say_progress
from lmgauge.records.formats import reader_of, writer_of
from lmgauge.records.records import BLOCK_BYTES, Fields, ScoredRecords
from lmgauge.records.sources import STDIN
from lmgauge.remote.addresses import is_remote
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.split import random_keys
from lmgauge.text.vocabulary import SPECIAL_TOKENS
from lmgauge.threads import map_in_order, thread_count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sizes = NDArray[np.uint32]
Chosen = NDArray[np.bool_]
Order = NDArray[np.integer[Any]]
"""Numbers of documents, in as few bytes as they fit into."""
_MORE = 1.5  # as many documents as are needed for two samples, and half as many more
_HIGHEST = float(2**64 - 2**11)  # of keys, as float64 has it below 2^64


COLUMNS = ("in_domain_bits_per_token", "pool_bits_per_token", "cross_entropy_difference")


@dataclass(frozen=True)
class EntropyColumns(DocumentColumns):
    """The cross-entropies of documents, in bits per token; NaN for one without tokens, and for one that is not scored."""

    in_domain: Floats  # float64 [documents], under I
    pool: Floats  # float64 [documents], under N

    @property
    def difference(self) -> Floats:
        """Return float64 [documents], bits per token; below 0 is more like the in-domain text."""
        return self.in_domain - self.pool

    def columns(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        return dict(zip(COLUMNS, (self.in_domain, self.pool, self.difference), strict=True))

    def missing(self) -> NDArray[np.bool_]:
        return np.isnan(self.in_domain)


@dataclass(frozen=True)
class SelectionModels:
    """The models that score documents."""

    in_domain: NgramModel
    pool: tuple[NgramModel, NgramModel]  # N of the first and of the second sample
    samples: NDArray[np.uint8]  # uint8 [documents of the pool], 1 and 2 for those in the samples, 0 for all others
    words: tuple[str, ...]  # the vocabulary of all models, without special tokens

    def score_block(self, block: Segments, numbers: Ints | None = None) -> EntropyColumns:
        """Return the cross-entropies of documents, in bits per token."""
        # numbers: int64 [documents], of each in the pool; None where they are consecutive from `block.first`.
        samples = self.samples[block.first : block.first + len(block)] if numbers is None else self.samples[numbers]
        in_domain, first = _per_token(self.in_domain, block), _per_token(self.pool[0], block)
        own = samples == 1
        if own.any():
            first[own] = _per_token(self.pool[1], block.where(own))
        return EntropyColumns(in_domain, first)


def read_pool(pool: Corpus, texts: Collection[bytes] = ()) -> tuple[Sizes, Chosen]:
    """Return the bytes of each document without its terminator, and which are one of some texts; the pool is read once."""
    # -> uint32 [documents]; bool [documents].
    lengths = np.array(sorted({len(text) for text in texts}), np.uint32)
    parts = [(np.zeros(0, np.uint32), np.zeros(0, bool))]
    for block in pool:
        sizes = (block.ends - block.starts).astype(np.uint32)  # a line or record has at most 1 GB
        copies = np.isin(sizes, lengths)
        for i in np.flatnonzero(copies).tolist():
            copies[i] = block.text(i) in texts
        parts.append((sizes, copies))
        say_progress(f"reading {pool.report.bytes / 1e6:,.0f} MB of the pool")
    all_sizes, all_copies = map(np.concatenate, zip(*parts, strict=True))
    if np.count_nonzero(all_sizes) < 2:
        raise InputError("the pool has fewer than two documents with text: there is nothing to select from")
    return all_sizes, all_copies


def draw_samples(sizes: Sizes, seed: int, wanted: int) -> NDArray[np.uint8]:
    """Return which documents are in the two samples of the pool, uint8 [documents]: 1 and 2, and 0 for the others."""
    # Each sample has about `wanted` bytes, or half of a pool with less.
    # sizes: uint32 [documents], bytes of each.
    whole = int(sizes.sum(dtype=np.int64))
    wanted = min(wanted, whole // 2)
    keys = random_keys(len(sizes), seed)
    # Those with the lowest keys are taken, which are surely among these: others need not be sorted.
    some = np.flatnonzero((sizes > 0) & (keys <= np.uint64(min(1.0, _MORE * 2 * wanted / whole) * _HIGHEST)))
    if sizes[some].sum(dtype=np.int64) < 2 * wanted + int(sizes.max()):
        some = np.flatnonzero(sizes)
    order = some[np.argsort(keys[some], kind="stable")]
    ends = np.cumsum(sizes[order], dtype=np.int64)
    first = max(1, int(np.searchsorted(ends, wanted, "right")))
    second = max(first + 1, int(np.searchsorted(ends, ends[first - 1] + wanted, "right")))
    samples = np.zeros(len(sizes), np.uint8)
    samples[order[:first]], samples[order[first:second]] = 1, 2
    return samples


def train_models(
    settings: SelectionSettings,
    in_domain: Corpus,
    pool: Corpus,
    sizes: Sizes,
    *,
    threads: int | None = None,
) -> SelectionModels:
    """Return the models that score documents."""
    # sizes: uint32 [documents], bytes of each.
    say_progress("training on the in-domain text")
    inside = train_ngram(settings.training(), in_domain, threads=threads)
    words = tuple(inside.vocabulary.tokens[len(SPECIAL_TOKENS) :])
    if not words:
        raise InputError(
            f"no word occurs {settings.min_count} times in the in-domain text, so there is no vocabulary; give more text or "
            "a lower --min-count"
        )
    samples = draw_samples(sizes, settings.seed, in_domain.report.bytes)
    say_progress("training on a sample of the pool")
    training = settings.training(words)
    first, second = (train_ngram(training, pool.chosen(samples == part), threads=threads) for part in (1, 2))
    return SelectionModels(inside, (first, second), samples, words)


def measure_differences(models: SelectionModels, pool: Corpus, *, threads: int | None = None) -> Floats:
    """Return the cross-entropy difference of each document, float64 [documents], bits per token; NaN without tokens."""
    parts = [np.zeros(0)]
    for scored in map_in_order(models.score_block, pool, thread_count(threads)):
        parts.append(scored.difference)
        say_progress(f"scored {pool.report.bytes / 1e6:,.0f} MB of the pool")
    return np.concatenate(parts)


def _per_token(model: SumsBlocks, block: Segments) -> Floats:
    # Bits per token of each segment, `</s>` included; NaN for one that has no other token.
    totals = model.sum_block(block)
    bits: Floats = nats_to_bits(-totals.nats) / totals.events
    bits[totals.events == totals.ends] = np.nan
    return bits


# -- how much of the pool is selected -----------------------------------------------------------------------------------
def most_alike_first(differences: Floats) -> Order:
    """Return the documents that have a score, lowest difference first, equal ones as they stand in the pool."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    order = np.argsort(differences, kind="stable")  # NaN last
    return _small(order[: len(order) - np.count_nonzero(np.isnan(differences))])


def random_order(differences: Floats, seed: int) -> Order:
    """Return the documents that have a score in a random order."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    order = _small(np.argsort(random_keys(len(differences), seed), kind="stable"))
    return order[~np.isnan(differences)[order]]


def _small(order: Order) -> Order:
    return order.astype(np.uint32) if len(order) < 1 << 32 else order


def first_share(order: Order, sizes: Sizes, share: float) -> Chosen:
    """Return which documents are selected: the first in an order, as many as fit into a share of the bytes; one at least."""
    # order: [documents in it], their numbers, one at least; sizes: uint32 [documents], bytes of each; share: of the bytes
    # of the documents in the order, above 0 and at most 1.
    # -> bool [documents].
    ends = np.cumsum(sizes[order], dtype=np.int64)
    number = max(1, int(np.searchsorted(ends, share * float(ends[-1]), "right")))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[: len(order) if share == 1 else number]] = True
    return chosen


def below(differences: Floats, most: float) -> Chosen:
    """Return which documents differ by at most so much, bool [documents]."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    with np.errstate(invalid="ignore"):
        chosen: Chosen = differences <= most
    return chosen


# -- the selected documents, written ----------------------------------------------------------------------------------------
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
