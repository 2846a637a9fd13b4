"""How a binary file of KenLM is to be laid out: what `lmgauge convert` and `lmgauge train` ask."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from lmgauge.base.choices import KENLM_ENDINGS
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError


@settings
class KenlmForm:
    """How a binary file of KenLM is laid out.

    Attributes:
        trie: a trie instead of a probing table; smaller, and slower.
        quantize: bits of a probability, of a back-off; in a trie, such as 8,8; exact if not given.

    Example:
        >>> KenlmForm(trie=True, quantize=(8, 8)).quantize
        (8, 8)
    """

    heading: ClassVar[str] = "KenLM files"
    trie: bool = False
    quantize: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if self.quantize is not None:
            bits = tuple(self.quantize)
            fits = len(bits) == 2 and all(isinstance(b, int) for b in bits) and 1 <= bits[0] <= 25 and 2 <= bits[1] <= 25
            if not fits:
                got = ",".join(map(str, bits))
                raise UsageError(
                    f"quantize takes bits of a probability (1 to 25), of a back-off (2 to 25), as in 8,8; got {got}"
                )
            object.__setattr__(self, "quantize", bits)
        if not self.trie and self.quantize is not None:
            raise UsageError("quantize is for tries; a probing table has exact values: add --trie (trie=True)")

    def check_name(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a model of this name is a binary file of KenLM; refuse a form that another file cannot have."""
        binary = os.fspath(path).endswith(KENLM_ENDINGS)
        if not binary and self != KenlmForm():
            ends = ", ".join(KENLM_ENDINGS)
            raise UsageError(f"{path}: trie and quantize are for binary files of KenLM, whose names end in {ends}")
        return binary
