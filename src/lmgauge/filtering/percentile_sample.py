"""A uniform random sample of documents by group, in bounded memory, the same in whatever order and parts they come.

Each document has a key: a 64-bit hash of the seed, its file's name and its number in the file. The sample of a group is its
documents with the `size` smallest keys (bottom-k sampling), so that it does not depend on batches, files, shards or workers,
and samples of parts merge into the sample of the whole. A document with a key above the largest of its group's sample cannot
enter: of n documents about k ln(n/k) need a score at all.

The sample of all documents is the `size` smallest keys of all groups' samples: one of the smallest of all is also one of the
smallest of its group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_SEED, SAMPLE_SIZE
from lmgauge.base.errors import UsageError
from lmgauge.filtering.documents import MOST_GROUPS, Groups
from lmgauge.numerics.resampling import GOLDEN, mixed

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

_LAST_KEY = np.uint64(2**64 - 1)
_PENDING = 1_024  # documents that may wait until those are left out that have no place any more


def document_keys(label: str, numbers: Ints, seed: int) -> Keys:
    """Return the keys, 64-bit hashes, of documents of a file, whatever batch they come in."""
    # numbers: int64 [documents], of each in the file, from 1.
    # -> uint64 [documents].
    digest = hashlib.blake2b(label.encode("utf-8", "surrogateescape"), digest_size=16, key=seed.to_bytes(8, "little"))
    start, pattern = np.frombuffer(digest.digest(), "<u8").astype(np.uint64)
    return mixed(mixed(numbers.astype(np.uint64) * GOLDEN + start) ^ pattern)


@dataclass(frozen=True)
class SampleSettings:
    """How documents are sampled."""

    sample: int | None = SAMPLE_SIZE  # documents of each group in the sample at most; None for all of them
    seed: int = DEFAULT_SEED  # of the keys, 0 to 2**64 - 1
    group: str | None = None  # name of the field whose values are the groups; None without groups


@dataclass(frozen=True)
class GroupSample:
    """The sampled documents of a group."""

    documents: int  # how many documents of the group there were
    values: Floats  # float64 [sampled, models], their perplexities; inf where an event is impossible, NaN without a score


class PercentileSample:
    """Collects the sample, batch by batch."""

    # 24 bytes a sampled document, and 8 for each model besides the first.

    def __init__(self, models: int = 1, settings: SampleSettings | None = None) -> None:
        self.models, self.settings = models, settings or SampleSettings()
        self.bad_records = 0
        self._codes_of: dict[str, int] = {}  # 0 is for documents without a group
        self._documents: Ints = np.zeros(MOST_GROUPS + 1, np.int64)
        self._thresholds: Keys = np.full(MOST_GROUPS + 1, _LAST_KEY)
        # Those in the sample, and behind them what may be; of each the keys, the codes of their groups, and the values.
        nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros((0, models))
        self._parts: list[tuple[Keys, Ints, Floats]] = [nothing]

    def wanted(self, keys: Keys, groups: Groups) -> NDArray[np.bool_]:
        """Count the documents of a batch, and say which of them may be in the sample: only these need a score."""
        # keys: uint64 [documents], from `document_keys`.
        # -> bool [documents].
        codes = self._own_codes(groups)
        self._documents += np.bincount(codes, minlength=len(self._documents))
        return np.asarray(keys <= self._thresholds[codes])

    def add(self, keys: Keys, groups: Groups, values: Floats) -> None:
        """Add wanted documents with their perplexities."""
        # One without a score (NaN) has its place in the sample too, or the sample would not be one of all documents.
        # keys: uint64 [wanted]; values: float64 [wanted, models], perplexities, 2 to the power of bits per token; NaN
        # without a score.
        self._parts.append((keys, self._own_codes(groups), np.where(np.isnan(values), np.nan, values)))
        if sum(len(waiting) for waiting, *_ in self._parts[1:]) > max(_PENDING, len(self._parts[0][0]) // 4):
            self._settled()

    def merge(self, other: PercentileSample) -> None:
        """Add the sample of other documents."""
        keys, codes, values = other._settled()
        names = tuple(other._codes_of)
        new_codes = self._own_codes(Groups(names, np.arange(-1, len(names))))
        np.add.at(self._documents, new_codes, other._documents[: len(new_codes)])
        self.bad_records += other.bad_records
        self._parts.append((keys, new_codes[codes], values))
        self._settled()

    def groups(self) -> Iterator[tuple[str, GroupSample]]:
        """Yield the groups by name, in the order of their names, each with its sample; documents without one are in none."""
        _, codes, values = self._settled()
        for name, code in sorted(self._codes_of.items()):
            first, last = np.searchsorted(codes, [code, code + 1])
            yield name, GroupSample(int(self._documents[code]), values[first:last])

    def overall(self) -> GroupSample:
        """Return the sample of all documents, also those without a group."""
        keys, _, values = self._settled()
        order = np.lexsort((*values.T, keys))[: self.settings.sample]
        return GroupSample(int(self._documents.sum()), values[order])

    def _own_codes(self, groups: Groups) -> Ints:
        # Codes that a batch's groups have here, 0 for none; a new group gets the next one.
        for name in groups.names:
            self._codes_of.setdefault(name, len(self._codes_of) + 1)
        if len(self._codes_of) > MOST_GROUPS:
            raise UsageError(
                f"field {self.settings.group!r} has more than {MOST_GROUPS:,} values: it does not name groups of documents; "
                "choose a field such as the language or the source"
            )
        own = np.array([*(self._codes_of[name] for name in groups.names), 0], np.int64)
        return own[groups.codes]

    def _settled(self) -> tuple[Keys, Ints, Floats]:
        # The sample of each group, group by group, by rising keys.
        if len(self._parts) > 1:
            keys, codes, values = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            # Equal keys of different documents: the values decide, so that the order of coming never does.
            order = np.lexsort((*values.T, keys, codes))
            keys, codes = keys[order], codes[order]
            ranks, size = np.arange(len(keys)) - np.searchsorted(codes, codes), self.settings.sample or len(keys) + 1
            self._thresholds[codes[ranks == size - 1]] = keys[ranks == size - 1]
            stay = ranks < size
            self._parts = [(keys[stay], codes[stay], values[order[stay]])]
        return self._parts[0]
