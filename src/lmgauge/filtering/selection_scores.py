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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.options import SelectionSettings
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.training import train_ngram
from lmgauge.models.segment_totals import SumsBlocks
from lmgauge.numerics.units import nats_to_bits
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.split import random_keys
from lmgauge.text.vocabulary import SPECIAL_TOKENS
from lmgauge.threads import map_in_order, thread_count

Floats = NDArray[np.float64]
Sizes = NDArray[np.uint32]
Chosen = NDArray[np.bool_]
Order = NDArray[np.integer[Any]]
"""Numbers of documents, in as few bytes as they fit into."""
COLUMNS = ("in_domain_bits_per_token", "pool_bits_per_token", "cross_entropy_difference")


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


def measure_entropies(models: SelectionModels, pool: Corpus, *, threads: int | None = None) -> CrossEntropies:
    """Return the cross-entropies of all documents of a pool."""
    parts = [CrossEntropies(np.zeros(0), np.zeros(0))]
    for scored in map_in_order(models.score_block, pool, thread_count(threads)):
        parts.append(scored)
        say_progress(f"scored {pool.report.bytes / 1e6:,.0f} MB of the pool")
    return CrossEntropies(*map(np.concatenate, zip(*parts, strict=True)))


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
