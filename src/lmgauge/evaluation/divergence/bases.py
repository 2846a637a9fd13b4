"""What candidates are compared with: a base that is asked as they are, or what was stored of one; and the storing of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.base.version import __version__
from lmgauge.evaluation.divergence.base_file import (
    MOST_RULED_OUT,
    BaseFile,
    BaseHeader,
    BaseWriter,
    Rows,
    StateRows,
    StatesHeader,
    WholeRows,
    from_table,
    state_rows,
    to_table,
    whole_rows,
    writing_base,
)
from lmgauge.evaluation.divergence.divergence_result import SavedBase, Storage
from lmgauge.evaluation.divergence.sample import Sample, draw
from lmgauge.evaluation.divergence.storage_bounds import storage_of
from lmgauge.evaluation.options import DivergenceSettings, StoringSettings
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import Events, distributions_of
from lmgauge.scores.distributions.reduce import joined, no_events, reduce_pair
from lmgauge.scores.distributions.reductions import Columns, Divergences
from lmgauge.scores.distributions.stored_rows import LastLayer, StoredDivergences, StoredRows, possible_tokens, stored_rows
from lmgauge.scores.distributions.tile import Tile
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

_STATE_TILES = 256  # whose states are written together

Compared = Iterator[tuple[ScoreBatch, ScoreBatch, Columns]]
"""Of each block the rows of base and candidate, and the columns of their divergences; as `reduce_pair` gives them."""


@dataclass(frozen=True)
class ModelFacts:
    """What is said of a model."""

    name: str
    label: str
    fingerprint: str
    context: str  # its policy, as signatures show it
    alignment: str = ""  # how its tokens became those of the base, where that has to be said
    stored: str = ""  # how it was stored; empty where the model itself was asked

    @classmethod
    def of(cls, model: LanguageModel, name: str) -> ModelFacts:
        """Return the facts of a model."""
        return cls(name, model.label, model.fingerprint, str(model.context_policy), model.alignment)


class AskedBase:
    """A base that is asked for its distributions."""

    # itself: the model as it was loaded; None where its noise floor is not wanted.

    def __init__(self, model: LanguageModel, name: str, itself: LanguageModel | None = None) -> None:
        self.models, self.facts = (model,), ModelFacts.of(model, name)
        self.rounding = [one for one in (itself,) if one and one.tokens is not None and not one.context_policy.runs_on]

    def check(self, candidate: LanguageModel, name: str) -> None:
        """Refuse a candidate whose events or tokens are not those of the base."""
        (base,) = self.models
        same_ids = base.vocabulary.ids_fingerprint == candidate.vocabulary.ids_fingerprint
        if not same_ids or base.tokenizer.fingerprint != candidate.tokenizer.fingerprint:
            raise InputError(
                "the models number or divide their tokens differently; where the tokens are the same, "
                "over_common_tokens([a, b]) of lmgauge.models.combined.mixture.compatibility gives them the same ids"
            )

    def check_text(self, corpus: Corpus) -> None:
        """Refuse a text that is not that of the base: any is."""

    def compared(
        self, candidate: LanguageModel, text: Iterable[Segments], sample: Sample, settings: DivergenceSettings
    ) -> Compared:
        """Yield what base and candidate say of each block of a text."""
        columns, (base,) = Divergences(ranks_of(settings)), self.models
        return reduce_pair(base, candidate, text, columns, events=sample.events, spans=True, threads=settings.threads)

    def storage(self, columns: Columns) -> Storage | None:
        """Return what storing can have done to figures."""
        return None


class StoredBase:
    """A base of which there is a file."""

    models: Sequence[LanguageModel] = ()
    rounding: Sequence[LanguageModel] = ()

    def __init__(self, file: BaseFile, layer: LastLayer | None = None) -> None:
        # layer: what makes distributions of hidden states, where these are stored.
        self._file, self.header, self._layer = file, file.header, layer
        own = self.header
        how = own.stored if own.stored != "top" else f"top={own.top},samples={own.samples}"
        self.facts = ModelFacts(own.model, own.model, own.model_fingerprint, own.context, stored=how)

    def check(self, candidate: LanguageModel, name: str) -> None:
        """Refuse a candidate whose events or tokens are not those of the base."""
        header, base = self.header, self.header.model
        if candidate.tokenizer.fingerprint != header.tokenizer_fingerprint:
            raise InputError(
                f"{name} cuts text by another tokenizer ({candidate.tokenizer.name!r}) than the stored base {base}: their "
                "tokens are not the same events; compare models of one tokenizer"
            )
        if candidate.vocabulary.ids_fingerprint != header.vocabulary_fingerprint:
            sizes = f"{len(candidate.vocabulary):,} tokens, the base {header.vocabulary_size:,}"
            raise InputError(
                f"{name} has another vocabulary than the stored base {base} ({sizes}), or numbers it otherwise; name both "
                "models in place of the stored base: where the tokens are the same, their order is made so"
            )
        ours, theirs = str(candidate.context_policy), header.context
        if ours != theirs:
            raise InputError(
                f"{name} scores with the context {ours}, the stored base {base} with {theirs}; give the same --context, "
                "--first-token and --end as for --save-base"
            )

    def check_text(self, corpus: Corpus) -> None:
        """Refuse a text that is not that of the base."""
        ours, theirs = corpus.report.sha256, self.header.text_sha256
        if ours != theirs:
            raise InputError(
                f"the text is not that of the stored base {self.header.model}: its SHA-256 begins with {ours[:12]}, that of "
                f"the base's text with {theirs[:12]}; name the same files, read with the same options"
            )

    def compared(
        self, candidate: LanguageModel, text: Iterable[Segments], sample: Sample, settings: DivergenceSettings
    ) -> Compared:
        """Yield what base and candidate say of each block of a text."""
        header, top_k, threads = self.header, ranks_of(settings), settings.threads
        if header.stored == "top" and min(top_k[-1], header.vocabulary_size) > header.top:
            raise UsageError(
                f"the stored base has the {header.top} most probable tokens of an event, so the agreement of {top_k[-1]} "
                "is not known; lower --top-k, or store it again with a larger --base-top"
            )

        def look(pair: tuple[Rows, Tile]) -> Columns:
            stored, tile = pair
            own: dict[str, Any] = {"logprob_a": stored.logprob, "logprob_b": tile.of_targets(), "kind": stored.kind}
            if isinstance(stored, WholeRows):
                return own | dict(Divergences(top_k)(stored.tile(), tile)) | {"mass_a": stored.mass}
            assert isinstance(stored, StoredRows)
            return own | StoredDivergences(top_k, header.ruled_out)(stored, tile)

        cursor = _Cursor(self._file, self._layer)
        for block in distributions_of(candidate, text, events=sample.events, threads=threads):
            at_a_time = thread_count(threads) if block.parallel else 1
            nothing = no_events(block)
            no_rows = from_table(header.schema.empty_table(), header) if header.stored == "top" else whole_rows(nothing)
            columns = joined(look, cursor.beside(block.tiles()), (no_rows, nothing), at_a_time)
            batch = block.finish(columns.pop("logprob_b"))
            if not np.array_equal(columns.pop("kind"), batch.kind):
                raise cursor.other_events()
            yield replace(batch, logprob=columns.pop("logprob_a"), extra={}), batch, columns
        cursor.finish()

    def storage(self, columns: Columns) -> Storage | None:
        """Return what storing can have done to figures."""
        return storage_of(self._file, columns)


Base = AskedBase | StoredBase


class _Cursor:
    """The rows of a base file, some at a time."""

    def __init__(self, base: BaseFile, layer: LastLayer | None) -> None:
        self._base, self._groups = base, _computed(base.rows(), layer)
        self._rows: Rows | None = None  # that were read and not taken yet

    def beside(self, tiles: Iterable[Tile]) -> Iterator[tuple[Rows, Tile]]:
        # Tiles, cut where groups of rows end, each with the rows of its events.
        for tile in tiles:
            begin = 0
            while begin < len(tile):
                rows = self._next()
                if rows is None:
                    raise self.other_events()
                end = min(len(tile), begin + len(rows))
                here = rows.part(0, end - begin), tile if end - begin == len(tile) else tile.part(begin, end)
                self._rows, begin = rows.part(end - begin, len(rows)), end
                if not np.array_equal(here[0].token, here[1].targets):
                    raise self.other_events()
                yield here

    def _next(self) -> Rows | None:
        return self._rows if self._rows is not None and len(self._rows) else next(self._groups, None)

    def finish(self) -> None:
        # Refuse a text that ends before the rows do.
        if self._next() is not None:
            raise self.other_events()

    def other_events(self) -> InputError:
        return InputError(
            f"{self._base.path}: was stored for another text, or the text was read in another way: its tokens are not those "
            "of the file; name the same files, read with the same options"
        )


def _computed(groups: Iterable[Rows], layer: LastLayer | None) -> Iterator[Rows]:
    # Rows as they are stored, hidden states as the distributions that they stand for.
    for rows in groups:
        if isinstance(rows, StateRows) and layer is not None:
            yield from rows.computed(layer)
        else:
            yield rows


def ranks_of(settings: DivergenceSettings) -> tuple[int, ...]:
    """Return for which k the k most probable tokens are compared: 1, and those that were chosen."""
    return tuple(sorted({1, *settings.ranks}))


def settled(header: BaseHeader, settings: DivergenceSettings) -> DivergenceSettings:
    """Return the settings with the events and the seed of a stored base, which none may choose otherwise."""
    for name, own in (("events", header.asked_events), ("seed", header.seed)):
        if getattr(settings, name) not in (own, getattr(DivergenceSettings, name)):
            raise UsageError("events and seed are set by the stored base; leave them out")
    return replace(settings, events=header.asked_events, seed=header.seed)


# --- the storing of a base --------------------------------------------------------------------------------------------


def save_base(
    base: LanguageModel,
    corpus: Corpus,
    path: str | os.PathLike[str],
    settings: StoringSettings,
    *,
    events: int | None,
    name: str | None = None,
    folder: str = "",
    notes: Sequence[str] = (),
    threads: int | None = None,
) -> SavedBase:
    """Store what a model predicts at the events of a text."""
    # folder: of the model, where it has one.
    sample = draw((base,), corpus, events, settings.seed)
    header = header_of(base, settings, name=name or base.label, asked_events=events, folder=folder)
    with writing_base(path, header) as writer:
        said = partial(sample.say, "stored")
        write_base(writer, base, sample, events=sample.events, threads=threads, said=said)
        stored = writer.header
        if not stored.events:
            raise InputError("there is nothing to store: the text has no event; name a text that is not empty")
        sizes = sample.sizes(stored.events, stored.segments)
        writer.header = header = replace(stored, text_sha256=corpus.report.sha256, **sizes)
    prints = {"a": header.model_fingerprint, "vocabulary": header.vocabulary_fingerprint, "text": header.text_sha256}
    same = {part.name: getattr(header, part.name) for part in fields(SavedBase) if hasattr(header, part.name)}
    notes = (*corpus.report.notes(), *notes)
    return SavedBase(path=Path(path), file_bytes=os.path.getsize(path), fingerprints=prints, notes=notes, **same)


def header_of(
    base: LanguageModel, settings: StoringSettings, *, name: str, asked_events: int | None, folder: str = ""
) -> BaseHeader:
    """Return the header of a base file of which nothing is written yet."""
    size, exact = len(base.vocabulary), settings.exact
    layer = base.last_layer if exact == "states" else None
    if exact == "states" and layer is None:
        raise UsageError(
            f"exact states: {name} has no hidden states that one known product makes its distributions of; store "
            "float32 or bfloat16, or leave out exact"
        )
    return BaseHeader(
        model=name,
        model_fingerprint=base.fingerprint,
        tokenizer_fingerprint=base.tokenizer.fingerprint,
        vocabulary_fingerprint=base.vocabulary.ids_fingerprint,
        vocabulary_size=size,
        context=str(base.context_policy),
        text_sha256="",
        asked_events=asked_events,
        events=0,
        total_events=0,
        segments=0,
        total_segments=0,
        stored=exact or "top",
        top=0 if exact else min(settings.base_top, size),
        samples=0 if exact else settings.base_samples,
        seed=settings.seed,
        ruled_out=(),
        lmgauge=__version__,
        states=None if layer is None else StatesHeader(layer.width, layer.dtype, layer.digest, folder),
    )


def write_base(
    writer: BaseWriter,
    model: LanguageModel,
    segments: Iterable[Segments],
    *,
    events: Events | None = None,
    threads: int | None = None,
    said: Callable[[int], None] = lambda done: None,
) -> None:
    """Write the rows of a model, and in the header how many, and the tokens that no event can have."""
    done = of_segments = 0
    ruled_out = np.ones(len(model.vocabulary), bool)
    header = writer.header

    def store(numbered: tuple[int, Tile]) -> Rows:
        first, tile = numbered
        ruled_out[possible_tokens(tile)] = False
        if header.states is not None:
            return state_rows(tile, header.states.width)
        if header.stored != "top":
            return whole_rows(tile)
        return stored_rows(tile, first, header.top, header.samples, header.seed)

    for block in distributions_of(model, segments, events=events, spans=False, threads=threads):
        parallel = thread_count(threads) if block.parallel else 1
        parts = map_in_order(store, _numbered(block.tiles(), done), parallel)
        if header.states is None:
            whole = list(parts)
            batch = block.finish(np.concatenate([part.logprob for part in whole]) if whole else None)
            groups = iter([whole] if whole else [])
        else:  # a network tells kinds before it computes, so that no more than a few states are in memory
            batch, groups = block.finish(None), iter(partial(_next_few, parts), [])
        of_segments += len(batch.segments)
        begin = done
        for some in groups:
            rows = type(some[0]).joined(some)  # type: ignore[arg-type]
            if not np.isfinite(rows.mass).all():
                raise InputError(f"{model.label}: returned a value that is not a log-probability; see lmgauge audit")
            own = slice(done - begin, done - begin + len(rows))
            logprob = batch.logprob[own] if header.states is None else rows.logprob
            writer.write(to_table(replace(rows, kind=batch.kind[own], logprob=logprob), header))
            done += len(rows)
            said(done)
    few = np.count_nonzero(ruled_out) <= MOST_RULED_OUT
    never = tuple(np.flatnonzero(ruled_out).tolist()) if few else ()
    writer.header = replace(header, events=done, segments=of_segments, ruled_out=never)


def _next_few(parts: Iterator[Rows]) -> list[Rows]:
    return list(islice(parts, _STATE_TILES))


def _numbered(tiles: Iterable[Tile], first: int) -> Iterator[tuple[int, Tile]]:
    for tile in tiles:
        yield first, tile
        first += len(tile)
