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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.selection_cuts import Sizes
from lmgauge.filtering.selection_settings import SelectionSettings
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.training import train_ngram
from lmgauge.models.segment_totals import SegmentTotals, SumsBlocks, totals_of
from lmgauge.numerics.units import nats_to_bits
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.split import random_keys
from lmgauge.text.vocabulary import SPECIAL_TOKENS
from lmgauge.threads import map_in_order, thread_count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MORE = 1.5  # as many documents as are needed for two samples, and half as many more
_HIGHEST = float(2**64 - 2**11)  # of keys, as float64 has it below 2^64


@dataclass(frozen=True)
class DocumentEntropies:
    """The cross-entropies of the documents of a block."""

    block: Segments
    in_domain: Floats  # float64 [documents], bits per token under I; NaN for a document without tokens
    pool: Floats  # float64 [documents], bits per token under N

    @property
    def difference(self) -> Floats:
        """Return float64 [documents], bits per token; below 0 is more like the in-domain text."""
        return self.in_domain - self.pool


@dataclass(frozen=True)
class SelectionModels:
    """The models that score documents."""

    in_domain: NgramModel
    pool: tuple[NgramModel, NgramModel]  # N of the first and of the second sample
    samples: NDArray[np.uint8]  # uint8 [documents of the pool], 1 and 2 for those in the samples, 0 for all others

    @property
    def words(self) -> tuple[str, ...]:
        """Return the vocabulary of all models, without special tokens."""
        return vocabulary_words(self.in_domain)

    def score(self, pool: Corpus, *, threads: int | None = None) -> Iterator[DocumentEntropies]:
        """Yield the cross-entropies of the documents of each block, in bits per token, block by block in order."""
        return map_in_order(self.score_block, pool, thread_count(threads))

    def score_block(self, block: Segments, numbers: Ints | None = None) -> DocumentEntropies:
        """Return the cross-entropies of documents, in bits per token."""
        # numbers: int64 [documents], of each in the pool; None where they are consecutive from `block.first`.
        samples = self.samples[block.first : block.first + len(block)] if numbers is None else self.samples[numbers]
        in_domain, first = _per_token(self.in_domain, block), _per_token(self.pool[0], block)
        own = samples == 1
        if own.any():
            first[own] = _per_token(self.pool[1], block.where(own))
        return DocumentEntropies(block, in_domain, first)


def vocabulary_words(model: NgramModel) -> tuple[str, ...]:
    """Return the words of a model without special tokens.

    >>> import lmgauge
    >>> vocabulary_words(lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]), order=1))
    ('a', 'b')
    """
    return tuple(model.vocabulary.tokens[len(SPECIAL_TOKENS) :])


def document_bytes(pool: Corpus) -> Sizes:
    """Return the bytes of each document without its terminator, uint32 [documents]; the pool is read once."""
    sizes = [np.zeros(0, np.uint32)]
    for block in pool:
        sizes.append((block.ends - block.starts).astype(np.uint32))  # a line or record has at most 1 GB
        say_progress(f"reading {pool.report.bytes / 1e6:,.0f} MB of the pool")
    sizes_of_all = np.concatenate(sizes)
    if np.count_nonzero(sizes_of_all) < 2:
        raise InputError("the pool has fewer than two documents with text: there is nothing to select from")
    return sizes_of_all


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
    words = vocabulary_words(inside)
    if not words:
        raise InputError(
            f"no word occurs {settings.min_count} times in the in-domain text, so there is no vocabulary; give more text or "
            "a lower --min-count"
        )
    samples = draw_samples(sizes, settings.seed, in_domain.report.bytes)
    say_progress("training on a sample of the pool")
    training = settings.training(words)
    first, second = (train_ngram(training, pool.chosen(samples == part), threads=threads) for part in (1, 2))
    return SelectionModels(inside, (first, second), samples)


def measure_differences(models: SelectionModels, pool: Corpus, *, threads: int | None = None) -> Floats:
    """Return the cross-entropy difference of each document, float64 [documents], bits per token; NaN without tokens."""
    parts = [np.zeros(0)]
    for scored in models.score(pool, threads=threads):
        parts.append(scored.difference)
        say_progress(f"scored {pool.report.bytes / 1e6:,.0f} MB of the pool")
    return np.concatenate(parts)


def _per_token(model: NgramModel, block: Segments) -> Floats:
    # Bits per token of each segment, `</s>` included; NaN for one that has no other token.
    totals = _totals(model, block)
    bits: Floats = nats_to_bits(-totals.nats) / totals.events
    bits[totals.events == totals.ends] = np.nan
    return bits


def _totals(model: NgramModel, block: Segments) -> SegmentTotals:
    if isinstance(model, SumsBlocks):
        return model.sum_block(block)
    return totals_of(model.score_block(block, spans=False))
