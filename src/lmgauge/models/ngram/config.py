"""The config.json of an n-gram model, as it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from lmgauge.decoding import Meta
from lmgauge.models.ngram.settings import MAX_ORDER, NgramSettings, TrainingRecord


@dataclass(frozen=True, kw_only=True)
class NgramConfig(TrainingRecord, NgramSettings):
    """What config.json says of a model, settings and record among it."""

    order: Annotated[int, Meta(ge=1, le=MAX_ORDER)]
    vocabulary: Literal["open", "closed"]
    vocabulary_size: int
    vocabulary_fingerprint: str
    words_fingerprint: str | None = None  # since 0.3.0
    types: list[int]
    tokenizer: dict[str, Any]
    full_context: bool
    unseen: Annotated[float, Meta(ge=0, le=1)]
    checksums: list[Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]]  # of each table of order 2, 3, ...
    training: dict[str, str | int | float] = field(default_factory=dict)
    fingerprint: str
    sha256: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.checksums) != self.order - 1:
            raise ValueError(f"there are {len(self.checksums)} checksums for order {self.order}")
