"""How a binary file of KenLM is to be laid out: what `lmgauge convert` and `lmgauge train` ask."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lmgauge.choices import KENLM_ENDINGS
from lmgauge.errors import UsageError


@dataclass(frozen=True)
class KenlmForm:
    """How a binary file of KenLM is laid out; see `lmgauge convert`."""

    trie: bool = False  # a trie, which is smaller, instead of a probing table, which is faster
    quantize: tuple[int, int] | None = None  # of a trie: bits of a probability and of a back-off weight; None: both exact
    array: int | None = None  # of a trie: most bits of a pointer that go to a table; None: no such table

    def __post_init__(self) -> None:
        if self.quantize is not None:
            bits = tuple(self.quantize)
            fits = len(bits) == 2 and all(isinstance(b, int) for b in bits) and 1 <= bits[0] <= 25 and 2 <= bits[1] <= 25
            if not fits:
                raise UsageError(
                    "quantize takes the bits of a probability, 1 to 25, and of a back-off weight, 2 to 25, as in 8,8; got "
                    f"{','.join(map(str, bits))}"
                )
            object.__setattr__(self, "quantize", bits)
        if self.array is not None and not (isinstance(self.array, int) and 0 <= self.array <= 25):
            raise UsageError(f"array takes a number of bits from 0 to 25; got {self.array}")
        if not self.trie and (self.quantize, self.array) != (None, None):
            raise UsageError("quantize and array are for tries; a probing table has neither: add --trie (trie=True)")

    def check_name(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a model of this name is a binary file of KenLM; refuse a form that another file cannot have."""
        binary = os.fspath(path).endswith(KENLM_ENDINGS)
        if not binary and self != KenlmForm():
            endings = ", ".join(KENLM_ENDINGS)
            raise UsageError(f"{path}: trie, quantize and array are for binary files of KenLM, whose names end in {endings}")
        return binary
