"""A stored base: what it holds, and what storing can have done to the figures from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmgauge.evaluation.divergence.divergence_result import Divergence, SavedBase, Storage
from lmgauge.memory import size_in_words
from lmgauge.report import blocks as doc
from lmgauge.report.formats import number, percent
from lmgauge.result_columns import columns_of


def blocks(saved: SavedBase) -> doc.Document:
    """Return what was stored and how long the file is."""
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
    """Yield what storing can have done to figures; nothing where no stored base was used."""
    if storage is None:
        return
    yield _of_file(storage)
    if storage.errors:
        errors, figures = storage.errors, columns_of(Divergence)
        columns = (
            doc.labels("what storing can have changed", [figures[name].title for name in errors]),
            *doc.columns(list(errors.values())),
        )
        confidence = percent(next(iter(errors.values())).confidence, 1)
        yield doc.Table(
            columns, f"the figure of whole distributions: proven bounds, {confidence}; what is not here is exact"
        )
    yield from doc.notes(_notes(storage))


def storage_of_several(items: Sequence[Divergence]) -> Iterator[doc.Block]:
    """Yield what storing can have done to the KL divergence of each candidate; nothing where no stored base was used."""
    first = items[0].storage
    if first is None:
        return
    yield _of_file(first)
    bounds = [None if item.storage is None else item.storage.errors.get("kl_ab_nats") for item in items]
    if any(bound is not None for bound in bounds):
        columns = (
            doc.labels("KL, nats, of whole distributions", [item.b for item in items]),
            *doc.columns(bounds),
        )
        confidence = next(bound.confidence for bound in bounds if bound is not None)
        yield doc.Table(columns, f"what storing can have changed: proven bounds, {percent(confidence, 1)}")


def _of_file(storage: Storage) -> doc.Text:
    what = _what(storage.stored, storage.top, storage.samples)
    return doc.Text(f"stored base {storage.file}: {what}; {_size(storage.file_bytes, storage.whole_bytes)}")


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
    ratio = whole / max(1, file_bytes)
    shown = f"1/{ratio:,.0f} of" if ratio >= 1.5 else f"{1 / ratio:,.2g} times"
    return f"{size_in_words(file_bytes)}, {shown} 16 bits a token of the vocabulary ({size_in_words(whole)})"
