"""The documents of a pool that are most like a text, by the difference of their cross-entropies under two models.

    difference(s) = H_I(s) - H_N(s)        in bits per token, `</s>` included; lower is more like the in-domain text

I is a model of the in-domain text, N one of a random sample of the pool of about the same size, both over one vocabulary:
the words that occur at least twice in the in-domain text (Moore & Lewis 2010, "Intelligent Selection of Language Model
Training Data", Proceedings of the ACL 2010 Conference Short Papers, pages 220-224).

A model gives text that it was trained on fewer bits than text like it, so a document of the sample would seem to be less
like the in-domain text than its neighbors. Hence there are two samples, and two models N: the documents of the first sample
are scored by the model of the second one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import making_parents, refuse_replacing
from lmgauge.base.progress import say_progress
from lmgauge.base.remote.addresses import is_remote
from lmgauge.base.result_list import Result
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.filtering.filter_file import FileJob
from lmgauge.filtering.filter_files import jobs_of
from lmgauge.filtering.options import SelectionSettings
from lmgauge.filtering.results import Bins, example_text
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.training import train_ngram
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits
from lmgauge.records.formats import reader_of, writer_of
from lmgauge.records.records import BLOCK_BYTES, Fields, ScoredRecords
from lmgauge.records.sources import STDIN
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.split import random_keys
from lmgauge.text.vocabulary import SPECIAL_TOKENS

Floats = NDArray[np.float64]
Sizes = NDArray[np.uint32]
Chosen = NDArray[np.bool_]
Order = NDArray[np.integer[Any]]
"""Numbers of documents, in as few bytes as they fit into."""
COLUMNS = ("in_domain_bits_per_token", "pool_bits_per_token", "cross_entropy_difference")
MOST, LAST, NEXT, LEAST = "most alike", "the last that are selected", "the first that are left out", "least alike"
_EACH = 3
_BINS, _OUTERMOST = 50, 0.5  # of the histogram; per cent outside its edges, at either end


# -- what is selected --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SelectedShare:
    """How much is selected."""

    share: float  # of the bytes of the pool, as it was asked for, or as it is; 0 to 1
    documents: int
    bytes: int
    threshold: float  # the highest difference among them, bits per token


@dataclass(frozen=True)
class SelectionExample:
    """A document of the pool."""

    place: str  # its file and line or record
    difference: float  # of its cross-entropies, bits per token
    text: str


@dataclass(frozen=True, repr=False)
class Selection(Result):
    """Documents selected from a pool for being like a target.

    Attributes:
        chosen: the `share` of the pool that is selected, its `documents` and `bytes`, and the `threshold`: their highest
            difference in bits per token.
        documents, bytes: of the pool, those without a word included.
        without_words: documents of the pool without any token, which are never selected.
        in_domain_bytes: of the target.
        vocabulary: words that all models know.
        outputs: the files written, empty if none.
        histogram: of the differences, in bits per token; the outermost bins also have what lies outside.
        examples: documents of the pool by where they stand in the order: the most and the least alike, and those on both
            sides of where the selection ends.
        notes: what a reader must know.
        signature: every choice that decides what is selected.

    Example:
        >>> import lmgauge
        >>> pool = lmgauge.Corpus.from_strings(["the cat sat", "buy now", "the dog sat", "buy cheap", "now buy"] * 9)
        >>> target = lmgauge.Corpus.from_strings(["the cat ran", "the dog ran home", "the cat sat", "the dog sat down"] * 9)
        >>> settings = lmgauge.settings.SelectionSettings(share=0.5, smoothing="laplace", order=2)
        >>> lmgauge.select_documents(pool, target, settings=settings)
        <Selection: 18 of 45 documents, 198 of 405 bytes, difference at most -0.1078 bits per token>
    """

    chosen: SelectedShare
    documents: int
    bytes: int
    without_words: int
    in_domain_bytes: int
    vocabulary: int
    outputs: tuple[str, ...] = ()
    histogram: Bins | None = field(default=None, repr=False)
    examples: Mapping[str, tuple[SelectionExample, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    signature: str = ""

    def _in_brief(self) -> str:
        chosen = self.chosen
        brief = f"{chosen.documents:,} of {self.documents:,} documents, {chosen.bytes:,} of {self.bytes:,} bytes"
        return f"{brief}, difference at most {chosen.threshold:.4g} bits per token"


def select(
    pool: Corpus, target: Corpus, output: str | None, settings: SelectionSettings, *, threads: int | None
) -> Selection:
    """Return what is selected of a pool, and write it; see `lmgauge.select_documents`."""
    jobs = [] if output is None else _plan_outputs(pool, output, [source.path for source in target.sources])
    with ExitStack() as folders:  # those that are made are removed again if there is an error and nothing is in them
        for path in (job.outputs[""] for job in jobs):
            if not is_remote(path):
                folders.enter_context(making_parents(Path(path)))
        return _select(pool, target, jobs, settings, threads)


def _select(
    pool: Corpus, target: Corpus, jobs: Sequence[FileJob], settings: SelectionSettings, threads: int | None
) -> Selection:
    sizes = document_sizes(pool)
    models = train_models(settings, target, pool, sizes, threads=threads)
    entropies = measure_entropies(models, pool, threads=threads)
    differences = entropies.in_domain - entropies.pool
    known = ~np.isnan(differences)
    if not known.any():
        raise InputError("no document of the pool has a word: there is nothing to select")
    chosen = _choose(settings, differences, sizes)
    size, of = (int(sizes[part].sum(dtype=np.int64)) for part in (chosen, known))
    share = size / of if settings.share is None else settings.share
    outputs = _write_selected(jobs, pool, chosen, entropies, threads=threads)
    return Selection(
        chosen=SelectedShare(share, int(chosen.sum()), size, float(differences[chosen].max())),
        documents=len(sizes),
        bytes=int(sizes.sum(dtype=np.int64)),
        without_words=int(np.count_nonzero(~known)),
        in_domain_bytes=target.report.bytes,
        vocabulary=len(models.words),
        outputs=tuple(outputs),
        histogram=_histogram(differences[known]),
        examples=draw_examples(pool, differences, chosen),
        notes=tuple(f"{name}: {note}" for name, one in (("pool", pool), ("target", target)) for note in one.report.notes()),
        signature=_signature(settings, models, target, pool),
    )


def most_alike_first(differences: Floats) -> Order:
    """Return the documents that have a score, lowest difference first, equal ones as they stand in the pool."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    order = np.argsort(differences, kind="stable")  # NaN last
    order = order[: len(order) - np.count_nonzero(np.isnan(differences))]
    return order.astype(np.uint32) if len(differences) < 1 << 32 else order


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


def _choose(settings: SelectionSettings, differences: Floats, sizes: NDArray[np.uint32]) -> Chosen:
    if settings.max_difference is None:
        assert settings.share is not None  # one of the two is given
        return first_share(most_alike_first(differences), sizes, settings.share)
    chosen: Chosen = differences <= settings.max_difference  # never where it is NaN
    if not chosen.any():
        raise InputError(
            f"no document of the pool differs by at most {settings.max_difference:g} bits per token; the lowest difference "
            f"is {np.nanmin(differences):.4g}: give a higher --max-difference"
        )
    return chosen


def _histogram(known: Floats) -> Bins:
    low, high = np.percentile(known, (_OUTERMOST, 100 - _OUTERMOST)).tolist()
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1], out=known), edges)
    return Bins(tuple(edges.tolist()), tuple(counts.tolist()))


def _signature(settings: SelectionSettings, models: SelectionModels, target: Corpus, pool: Corpus) -> str:
    parts = {
        "score": "cross-entropy-difference",
        "model": f"{models.in_domain.label}@{models.in_domain.fingerprint[:6]}",
        "pool-model": f"{models.pool[0].fingerprint[:6]}+{models.pool[1].fingerprint[:6]}",
        "vocab": f"{models.in_domain.vocabulary.fingerprint[:6]}",
        "min-count": str(settings.min_count),
        "rule": f"difference {settings.max_difference:g}" if settings.share is None else f"share {settings.share:g}",
        "in-domain": target.report.sha256[:6],
        "pool": pool.report.sha256[:6],
        "seed": str(settings.seed),
        "v": NUMBERS_VERSION,
    }
    return str(Signature(parts, head="select"))


def draw_examples(pool: Corpus, differences: Floats, chosen: Chosen) -> dict[str, tuple[SelectionExample, ...]]:
    """Return documents by where they stand in the order, lowest difference first; none twice."""
    # pool: the documents; read once; differences: float64 [documents], bits per token; NaN where there is no score; chosen:
    # bool [documents], those selected: the first in the order.
    order, number = most_alike_first(differences), int(np.count_nonzero(chosen))
    ranges = {
        MOST: range(min(_EACH, number)),
        LAST: range(max(_EACH, number - _EACH), number),
        NEXT: range(number, min(number + _EACH, len(order))),
        LEAST: range(max(number + _EACH, len(order) - _EACH), len(order)),
    }
    places = {where: order[places.start : places.stop].tolist() for where, places in ranges.items() if places}
    wanted = np.array(sorted(number for numbers in places.values() for number in numbers), np.int64)
    texts: dict[int, SelectionExample] = {}
    for block in pool:
        for number in wanted[(wanted >= block.first) & (wanted < block.first + len(block))].tolist():
            i = number - block.first
            texts[number] = SelectionExample(block.identifiers()[i], float(differences[number]), example_text(block.text(i)))
    return {where: tuple(texts[document] for document in documents) for where, documents in places.items()}


# -- how much documents are like the text -------------------------------------------------------------------------------
class CrossEntropies(NamedTuple):
    """The cross-entropies of documents, in bits per token; NaN for one without tokens."""

    in_domain: Floats  # float64 [documents], under I
    pool: Floats  # float64 [documents], under N


@dataclass(frozen=True)
class SelectionModels:
    """The models that score documents."""

    in_domain: NgramModel
    pool: tuple[NgramModel, NgramModel]  # N of the first and of the second sample
    samples: NDArray[np.uint8]  # uint8 [documents of the pool], 1 and 2 for those in the samples, 0 for all others
    words: tuple[str, ...]  # the vocabulary of all models, without special tokens

    def score_block(self, block: Segments) -> CrossEntropies:
        """Return the cross-entropies of documents."""
        in_domain, first = _per_token(self.in_domain, block), _per_token(self.pool[0], block)
        own = self.samples[block.first : block.first + len(block)] == 1
        if own.any():
            first[own] = _per_token(self.pool[1], block.where(own))
        return CrossEntropies(in_domain, first)


def document_sizes(pool: Corpus) -> Sizes:
    """Return the bytes of each document without its terminator, uint32 [documents]."""
    parts = [np.zeros(0, np.uint32)]
    for block in pool:
        parts.append((block.ends - block.starts).astype(np.uint32))  # a line or record has at most 1 GB
        say_progress(f"reading {pool.report.bytes / 1e6:,.0f} MB of the pool")
    sizes = np.concatenate(parts)
    if np.count_nonzero(sizes) < 2:
        raise InputError("the pool has fewer than two documents with text: there is nothing to select from")
    return sizes


def draw_samples(sizes: Sizes, seed: int, wanted: int) -> NDArray[np.uint8]:
    """Return which documents are in the two samples of the pool, uint8 [documents]: 1 and 2, and 0 for the others."""
    # Each sample has about `wanted` bytes, or half of a pool with less.
    # sizes: uint32 [documents], bytes of each.
    wanted = min(wanted, int(sizes.sum(dtype=np.int64)) // 2)
    keys = random_keys(len(sizes), seed)
    some = np.flatnonzero(sizes)
    order = some[np.argsort(keys[some], kind="stable")]
    ends = np.cumsum(sizes[order], dtype=np.int64)
    first = max(1, int(np.searchsorted(ends, wanted, "right")))
    second = max(first + 1, int(np.searchsorted(ends, ends[first - 1] + wanted, "right")))
    samples = np.zeros(len(sizes), np.uint8)
    samples[order[:first]], samples[order[first:second]] = 1, 2
    return samples


def train_models(
    settings: SelectionSettings, in_domain: Corpus, pool: Corpus, sizes: Sizes, *, threads: int | None = None
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


def measure_entropies(models: SelectionModels, pool: Corpus, *, threads: int | None = None) -> CrossEntropies:
    """Return the cross-entropies of all documents of a pool."""
    parts = [CrossEntropies(np.zeros(0), np.zeros(0))]
    for scored in map_in_order(models.score_block, pool, thread_count(threads)):
        parts.append(scored)
        say_progress(f"scored {pool.report.bytes / 1e6:,.0f} MB of the pool")
    return CrossEntropies(*map(np.concatenate, zip(*parts, strict=True)))


def _per_token(model: NgramModel, block: Segments) -> Floats:
    # Bits per token of each segment, `</s>` included; NaN for one that has no other token.
    totals = model.sum_block(block)
    bits: Floats = nats_to_bits(-totals.nats) / totals.events
    bits[totals.events == totals.ends] = np.nan
    return bits


# -- the selected documents, written ------------------------------------------------------------------------------------
def _plan_outputs(pool: Corpus, output: str, read: Sequence[str]) -> list[FileJob]:
    """Return the file that is written for each file of a pool, once it is known that it can be."""
    if not pool.sources:
        raise UsageError("the selected documents can be written where the pool is files; this one is strings")
    if output == STDIN:
        raise UsageError("-o -: standard output is for the answer; name a file for the selected documents")
    if pool.settings.get("unit") == "document":
        raise UsageError("documents that are whole files are not written: leave out the output, or use unit line")
    if pool.settings.get("errors") == "replace":
        raise UsageError("records are written as they are, so nothing in them is replaced: use errors skip or fail")
    jobs = jobs_of(pool.sources, output, columns=False)
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


def _write_selected(
    jobs: Sequence[FileJob], pool: Corpus, chosen: Chosen, entropies: CrossEntropies, *, threads: int | None
) -> Iterator[str]:
    # Write the selected documents of each file, in their order; yield the files. Records keep every field, and get
    # `COLUMNS`; lines of text stay lines, as long as a file of lines is written.
    first = 0
    for job in jobs:
        own = Corpus.from_files(**(pool.settings | {"paths": [job.source.path]})).with_records(_fields(pool, job).taken)
        path = job.outputs[""]
        say_progress(f"writing {path}")
        scored = partial(_scored, chosen, entropies, first)
        with writer_of(path, job.form, job.source) as writer:
            for records, rows in map_in_order(scored, own, thread_count(threads)):
                writer.write(records, rows)
            first += own.report.segments
            if job is jobs[-1] and first < len(chosen):
                raise _changed(job.source.name)
        yield path


def _scored(
    chosen: Chosen, entropies: CrossEntropies, first: int, block: Segments
) -> tuple[ScoredRecords, NDArray[np.intp]]:
    # The records of a block with the cross-entropies of its documents, and which are chosen.
    # first: number in the pool of the first document of the file.
    here = slice(first + block.first, first + block.first + len(block))
    if block.records is None or here.stop > len(chosen):
        raise _changed(block.source)
    records, rows = block.records
    in_domain, pool = np.full((2, len(records)), np.nan)
    in_domain[rows], pool[rows] = entropies.in_domain[here], entropies.pool[here]
    columns = dict(zip(COLUMNS, (in_domain, pool, in_domain - pool), strict=True))
    return ScoredRecords(records, columns, np.isnan(in_domain)), rows[chosen[here]]


def _changed(name: str) -> InputError:
    return InputError(f"{name}: it changed while documents were selected from it: select again")
