"""A base stored once, and candidates compared with what was stored, event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.distributions.blocks import Events, distributions_of
from lmgauge.distributions.pairs import Divergences
from lmgauge.distributions.reduce import joined, no_events
from lmgauge.distributions.reductions import Columns
from lmgauge.distributions.stored_rows import StoredDivergences, possible_tokens, stored_rows
from lmgauge.distributions.tile import Tile
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.divergence.base_columns import Kept, Rows, WholeRows, no_rows, whole_rows
from lmgauge.evaluation.divergence.base_file import MOST_RULED_OUT, BaseFile, BaseHeader, BaseWriter
from lmgauge.evaluation.options import StoringSettings
from lmgauge.scores import ScoreBatch
from lmgauge.threads import map_in_order, thread_count

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments


def kept_of(model: LanguageModel, settings: StoringSettings) -> Kept:
    """Return what the rows of a model's base file hold."""
    size = len(model.vocabulary)
    if settings.exact is not None:
        return Kept(settings.exact, size, 0, 0)
    return Kept("top", size, min(settings.base_top, size), settings.base_samples)


def write_base(
    writer: BaseWriter,
    model: LanguageModel,
    segments: Iterable[Segments],
    settings: StoringSettings,
    *,
    events: Events | None = None,
    threads: int | None = None,
    said: Callable[[int], None] = lambda done: None,
) -> tuple[int, tuple[int, ...]]:
    """Write the rows of a model; return how many, and the tokens that no event can have, as `BaseHeader.ruled_out`."""
    done, ruled_out = 0, np.ones(len(model.vocabulary), bool)

    def store(numbered: tuple[int, Tile]) -> Rows:
        first, tile = numbered
        ruled_out[possible_tokens(tile)] = False
        if settings.exact is not None:
            return whole_rows(tile)
        return stored_rows(tile, first, settings.base_top, settings.base_samples, settings.seed)

    for block in distributions_of(model, segments, events=events, spans=False, threads=threads):
        parallel = thread_count(threads) if block.parallel else 1
        parts = list(map_in_order(store, _numbered(block.tiles(), done), parallel))
        batch = block.finish(np.concatenate([part.logprob for part in parts]) if parts else None)
        if not parts:
            continue
        rows = type(parts[0]).joined(parts)
        if not np.isfinite(rows.mass).all():
            raise InputError(f"{model.label}: returned a value that is not a log-probability; see lmgauge audit")
        writer.write(replace(rows, kind=batch.kind, logprob=batch.logprob))
        done += len(rows)
        said(done)
    few = np.count_nonzero(ruled_out) <= MOST_RULED_OUT
    return done, tuple(np.flatnonzero(ruled_out).tolist()) if few else ()


def _numbered(tiles: Iterable[Tile], first: int) -> Iterator[tuple[int, Tile]]:
    for tile in tiles:
        yield first, tile
        first += len(tile)


def check_candidate(header: BaseHeader, model: LanguageModel, name: str) -> None:
    """Refuse a candidate whose events or tokens are not those of a stored base."""
    base = header.model
    if model.tokenizer.fingerprint != header.tokenizer_fingerprint:
        raise InputError(
            f"{name} cuts text by another tokenizer ({model.tokenizer.name!r}) than the stored base {base}: their "
            "tokens are not the same events; compare models of one tokenizer"
        )
    if model.vocabulary.ids_fingerprint != header.vocabulary_fingerprint:
        sizes = f"{len(model.vocabulary):,} tokens, the base {header.vocabulary_size:,}"
        raise InputError(
            f"{name} has another vocabulary than the stored base {base} ({sizes}), or numbers it otherwise; name both "
            "models in place of the stored base: where the tokens are the same, their order is made so"
        )
    ours, theirs = str(model.context_policy), header.context
    if ours != theirs:
        raise InputError(
            f"{name} scores with the context {ours}, the stored base {base} with {theirs}; give the same --context, "
            "--first-token and --end as for --save-base"
        )


def check_text(header: BaseHeader, sha256: str) -> None:
    """Refuse a text that is not that of a stored base."""
    if sha256 != header.text_sha256:
        raise InputError(
            f"the text is not that of the stored base {header.model}: its SHA-256 begins with {sha256[:12]}, that of the "
            f"base's text with {header.text_sha256[:12]}; name the same files, read with the same options"
        )


def reduce_stored(
    base: BaseFile,
    model: LanguageModel,
    segments: Iterable[Segments],
    top_k: tuple[int, ...],
    *,
    events: Events | None = None,
    threads: int | None = None,
) -> Iterator[tuple[ScoreBatch, ScoreBatch, Columns]]:
    """Yield for each block the rows of base and candidate, and the columns of their divergences; as `reduce_pair`."""
    # top_k: for which K to count the agreement; ascending.
    header = base.header
    if header.stored == "top" and top_k and min(top_k[-1], header.vocabulary_size) > header.top:
        raise UsageError(
            f"the stored base has the {header.top} most probable tokens of an event, so the agreement of {top_k[-1]} "
            "is not known; lower --top-k, or store it again with a larger --base-top"
        )
    rows = _Cursor(base)

    def look(pair: tuple[Rows, Tile]) -> Columns:
        stored, tile = pair
        own = {"logprob_a": stored.logprob, "logprob_b": tile.of_targets(), "kind": stored.kind}
        if isinstance(stored, WholeRows):
            return own | dict(Divergences(top_k)(stored.tile(), tile)) | {"mass_a": stored.mass}
        return own | StoredDivergences(top_k, header.ruled_out)(stored, tile)

    nothing = no_rows(header.kept)
    for block in distributions_of(model, segments, events=events, threads=threads):
        pairs = ((rows.take(tile), tile) for tile in block.tiles())
        at_a_time = thread_count(threads) if block.parallel else 1
        columns = joined(look, pairs, (nothing, no_events(block)), at_a_time)
        batch = block.finish(columns.pop("logprob_b"))
        if not np.array_equal(columns.pop("kind"), batch.kind):
            raise rows.other_events()
        yield replace(batch, logprob=columns.pop("logprob_a"), extra={}), batch, columns
    rows.finish()


class _Cursor:
    """The rows of a base file, taken as many at a time as a tile has events."""

    def __init__(self, base: BaseFile) -> None:
        self._base, self._rows, self._at = base, base.rows(), 0
        self._ready: Rows | None = None

    def take(self, tile: Tile) -> Rows:
        parts: list[Rows] = []
        while sum(map(len, parts)) < len(tile):
            if self._ready is None or self._at == len(self._ready):
                self._ready, self._at = next(self._rows, None), 0
            if self._ready is None:
                raise self.other_events()
            end = min(len(self._ready), self._at + len(tile) - sum(map(len, parts)))
            parts.append(self._ready.part(self._at, end))
            self._at = end
        rows = type(parts[0]).joined(parts)
        if not np.array_equal(rows.token_ids, tile.targets):
            raise self.other_events()
        return rows

    def finish(self) -> None:
        # Refuse a text that ends before the rows do.
        if (self._ready is not None and self._at < len(self._ready)) or next(self._rows, None) is not None:
            raise self.other_events()

    def other_events(self) -> InputError:
        return InputError(
            f"{self._base.path}: was stored of another text, or the text was read in another way: its tokens are not those "
            "of the file; name the same files, read with the same options"
        )
