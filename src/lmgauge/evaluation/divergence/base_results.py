"""What is said of a stored base: what it holds, how long its file is, and how far figures from it can be off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.divergence.base_file import BaseHeader
from lmgauge.evaluation.divergence.storage_bounds import StorageError, storage_error
from lmgauge.numerics.units import LN_2
from lmgauge.result_list import Tabled

WHOLE_BYTES = 2  # of a log-probability where whole distributions are stored, as llama.cpp does
_FIGURES = {
    "kl_ab_nats": ("kl_ab", 1.0),
    "kl_ba_nats": ("kl_ba", 1.0),
    "jensen_shannon_bits": ("js", 1 / LN_2),
    "total_variation": ("tv", 1.0),
}


@dataclass(frozen=True, repr=False)
class SavedBase(Tabled):
    """A base that was stored, to compare candidates with.

    Attributes:
        path: the file.
        model: the base.
        events, total_events, segments, total_segments: stored, and in the text.
        stored: "top", "float32" or "bfloat16": the most probable tokens and draws from the rest, or whole distributions.
        top: how many most probable tokens of each event.
        samples: tokens drawn from the rest for each unit of its probability.
        file_bytes: length of the file.
        whole_bytes: what whole distributions in 16 bits a token take.
        seed: of the sample of segments, and of the draws.
        fingerprints: of the base, the vocabulary and the text.
        notes: what a reader must know.

    Example:
        >>> import lmgauge, tempfile
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = lmgauge.save_base(lmgauge.train("witten-bell", text, order=2), text, f"{folder}/wb2.base")
        >>> saved.events, saved.stored, saved.whole_bytes  # 8 events, 7 tokens
        (8, 'top', 112)
    """

    path: Path
    model: str
    events: int
    total_events: int
    segments: int
    total_segments: int
    stored: str
    top: int
    samples: int
    file_bytes: int
    whole_bytes: int
    seed: int
    fingerprints: dict[str, str]
    notes: tuple[str, ...] = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one row, a column a field."""
        return [self.to_dict()]

    def _in_brief(self) -> str:
        return f"{self.model}, {self.events:,} events in {self.file_bytes:,} bytes: {self.path}"


@dataclass(frozen=True)
class Storage:
    """From what stored base a divergence was measured, and what storing can have done to its figures."""

    file: str
    stored: str
    top: int
    samples: int
    file_bytes: int
    whole_bytes: int
    tail_mass: float  # mean probability that is not stored token by token, 0 to 1
    event_error_nats: float  # root mean square of the standard error of KL(A || B) at one event, from the draws
    # of mean figures, by the names of their attributes and in their units; a figure that is not there is exact
    errors: dict[str, StorageError]


def whole_bytes(header: BaseHeader) -> int:
    """Return how many bytes whole distributions in 16 bits a token take."""
    return WHOLE_BYTES * header.vocabulary_size * header.events


def storage_of(file: Path, size: int, header: BaseHeader, columns: Mapping[str, NDArray[Any]]) -> Storage:
    """Return what storing can have done to the figures of a divergence."""
    tail_mass = event_error = 0.0
    errors: dict[str, StorageError] = {}
    if header.stored == "top":
        tail_mass = float(np.mean(columns["tail_mass"]))
        variance = columns["kl_ab_variance"]
        variance = variance[np.isfinite(variance)]
        event_error = float(np.sqrt(np.mean(variance))) if len(variance) else 0.0
        for name, (column, scale) in _FIGURES.items():
            error = storage_error(columns, column)
            if error is not None:
                errors[name] = _scaled(error, scale)
    return Storage(
        file=str(file),
        stored=header.stored,
        top=header.top,
        samples=header.samples,
        file_bytes=size,
        whole_bytes=whole_bytes(header),
        tail_mass=tail_mass,
        event_error_nats=event_error,
        errors=errors,
    )


def _scaled(error: StorageError, scale: float) -> StorageError:
    deviation = None if error.standard_error is None else scale * error.standard_error
    high = None if error.high is None else scale * error.high
    return replace(error, standard_error=deviation, low=scale * error.low, high=high)
