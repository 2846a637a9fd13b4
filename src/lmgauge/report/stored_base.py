"""A stored base: what it holds, and what storing can have done to the figures from it."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.evaluation.divergence.base_results import SavedBase, Storage
from lmgauge.report import blocks as doc
from lmgauge.report.formats import number, percent

_NAMES = {
    "kl_ab_nats": "KL(A || B), nats",
    "kl_ba_nats": "KL(B || A), nats",
    "jensen_shannon_bits": "Jensen-Shannon, bits",
    "total_variation": "total variation",
}


def blocks(saved: SavedBase) -> doc.Document:
    """Return what was stored and how long the file is.

    Args:
        saved: a base.
    """
    rows = {
        "file": str(saved.path),
        "base": saved.model,
        "events": f"{saved.events:,} of {saved.total_events:,}",
        "segments": f"{saved.segments:,} of {saved.total_segments:,}",
        "stored of each event": _what(saved.stored, saved.top, saved.samples),
        "size": _size(saved.file_bytes, saved.whole_bytes),
    }
    return (doc.Lines(tuple(rows.items())), *doc.notes(saved.notes))


def storage_blocks(storage: Storage | None) -> Iterator[doc.Block]:
    """Yield what storing can have done to figures; nothing where no stored base was used.

    Args:
        storage: of a divergence.
    """
    if storage is None:
        return
    yield doc.Text(
        f"stored base {storage.file}: {_what(storage.stored, storage.top, storage.samples)}; "
        f"{_size(storage.file_bytes, storage.whole_bytes)}"
    )
    if storage.errors:
        errors = storage.errors
        columns = (
            doc.labels("what storing can have changed", [_NAMES[name] for name in errors]),
            doc.numbers("standard error", [error.standard_error for error in errors.values()], 2, drop=1),
            doc.numbers("at least", [error.low for error in errors.values()], 6),
            doc.numbers("at most", [error.high for error in errors.values()], 6),
        )
        confidence = percent(next(iter(errors.values())).confidence, 1)
        yield doc.Table(
            columns, f"the figure of whole distributions: proven bounds, {confidence}; what is not here is exact"
        )
    yield from doc.notes(_notes(storage))


def _notes(storage: Storage) -> Iterator[str]:
    if storage.stored == "bfloat16":
        yield "bfloat16 keeps three digits of a log-probability: small divergences are those of its rounding"
    if storage.stored == "top" and storage.tail_mass > 0:
        yield (
            f"{percent(storage.tail_mass)} of the base's probability was stored as draws; KL at a single event has a "
            f"standard error of {number(storage.event_error_nats, 2)} nats from it, which widens the quantiles"
        )


def _what(stored: str, top: int, samples: int) -> str:
    if stored != "top":
        return f"all log-probabilities, {stored}"
    return f"the {top:,} most probable tokens, and draws from the rest, {samples:,} for a probability of 1"


def _size(file_bytes: int, whole: int) -> str:
    """Return a size, and what it is of whole distributions in 16 bits."""
    ratio = whole / max(1, file_bytes)
    shown = f"1/{ratio:,.0f} of" if ratio >= 1.5 else f"{1 / ratio:,.2g} times"
    return f"{_bytes(file_bytes)}, {shown} 16 bits a token of the vocabulary ({_bytes(whole)})"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
