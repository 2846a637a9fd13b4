"""The groups of the documents of a batch: the values of one of their fields, such as their language."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_GROUPS = 1_000
"""Groups that are counted: a field with more values does not name groups of documents."""
OTHERS = "(other values)"
"""The group of documents whose value comes after the most that are told apart."""
LONGEST_NAME = 200
"""Characters of the longest name of a group: a longer value is not a group."""


@dataclass(frozen=True)
class Groups:
    """The group of each document of a batch."""

    names: tuple[str, ...]  # of the groups of this batch, each once
    codes: NDArray[np.int64]  # int64 [documents], the index of a document's group in `names`; -1 for a document without one

    @classmethod
    def none(cls, documents: int) -> Groups:
        """Return what stands for documents that are not grouped: no names, and codes [documents] of -1."""
        return cls((), np.full(documents, -1, np.int64))

    @classmethod
    def of(cls, labels: Sequence[str | None]) -> Groups:
        """Return the groups that the labels of documents name, as `documents.label_of` makes them of a field."""
        # Text of more than 200 characters names no group.
        try:
            names = pa.array(labels, pa.string())
        except UnicodeEncodeError:  # JSON may hold half a character (a lone surrogate)
            names = pa.array([label and label.encode("utf-8", "replace").decode() for label in labels], pa.string())
        encoded = pc.if_else(pc.greater(pc.utf8_length(names), LONGEST_NAME), None, names).dictionary_encode()
        codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        return cls(tuple(encoded.dictionary.to_pylist()), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def limited(self, known: Collection[str]) -> Groups:
        """Return the same groups, but for those that would be more than `MOST_GROUPS` in all: they become one."""
        room = MOST_GROUPS - len(known) + (OTHERS in known)
        if len(self.names) <= room:
            return self
        codes, first = np.unique(self.codes, return_index=True)
        fresh = [code for code in codes[np.argsort(first)].tolist() if code >= 0 and self.names[code] not in known]
        return self.renamed(dict.fromkeys((self.names[code] for code in fresh[room:]), OTHERS))

    def renamed(self, names: Mapping[str, str]) -> Groups:
        """Return the same documents in groups of other names; several may get one."""
        codes: dict[str, int] = {}
        places = [codes.setdefault(names.get(name, name), len(codes)) for name in self.names]
        return Groups(tuple(codes), np.array([*places, -1], np.int64)[self.codes])

    def where(self, mask: NDArray[np.bool_]) -> Groups:
        """Return the groups of some of the documents."""
        # mask: bool [documents].
        return Groups(self.names, self.codes[mask])
