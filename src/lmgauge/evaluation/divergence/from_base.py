"""How far models are from a stored base, and the storing of one, over the contexts of a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.divergence.base_file import BaseFile, BaseHeader, writing_base
from lmgauge.evaluation.divergence.base_results import SavedBase, Storage, storage_of, whole_bytes
from lmgauge.evaluation.divergence.divergence import Compared, Measured, ModelFacts, Watch, ranks_of
from lmgauge.evaluation.divergence.events import PairEvents
from lmgauge.evaluation.divergence.results import CandidateDivergences
from lmgauge.evaluation.divergence.sample import draw
from lmgauge.evaluation.divergence.stored_base import check_candidate, check_text, kept_of, reduce_stored, write_base
from lmgauge.evaluation.options import DivergenceSettings, StoringSettings
from lmgauge.evaluation.slicing.cuts import TrainingWords
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.version import __version__

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


def save_base(
    base: LanguageModel,
    corpus: Corpus,
    path: str | os.PathLike[str],
    settings: StoringSettings,
    *,
    events: int | None,
    name: str | None = None,
    notes: Sequence[str] = (),
    threads: int | None = None,
) -> SavedBase:
    """Store what a model predicts at the events of a text."""
    contents = kept_of(base, settings)
    sample = draw((base,), corpus, events, settings.seed)
    sizes: list[int] = []

    def blocks() -> Iterator[Segments]:
        for block in sample:
            sizes.append(len(block))
            yield block

    with writing_base(path, contents) as writer:
        said = partial(sample.say, "stored")
        stored, ruled_out = write_base(writer, base, blocks(), settings, events=sample.events, threads=threads, said=said)
        if not stored:
            raise InputError("there is nothing to store: the text has no event; name a text that is not empty")
        segments = sample.segments or sum(sizes)
        writer.header = header = BaseHeader(
            model=name or base.label,
            model_fingerprint=base.fingerprint,
            tokenizer_fingerprint=base.tokenizer.fingerprint,
            vocabulary_fingerprint=base.vocabulary.ids_fingerprint,
            vocabulary_size=len(base.vocabulary),
            context=str(base.context_policy),
            text_sha256=corpus.report.sha256,
            asked_events=events,
            events=stored,
            total_events=sample.total_events or stored,
            segments=segments,
            total_segments=sample.total_segments or segments,
            stored="top" if settings.exact is None else settings.exact,
            top=contents.top,
            samples=contents.samples,
            seed=settings.seed,
            ruled_out=ruled_out,
            lmgauge=__version__,
        )
    prints = {"a": header.model_fingerprint, "vocabulary": header.vocabulary_fingerprint, "text": header.text_sha256}
    same = {part.name: getattr(header, part.name) for part in fields(SavedBase) if hasattr(header, part.name)}
    own: dict[str, Any] = {"file_bytes": os.path.getsize(path), "whole_bytes": whole_bytes(header), "fingerprints": prints}
    return SavedBase(path=Path(path), **same, **own, notes=(*corpus.report.notes(), *notes))


def divergence_from(
    base: BaseFile,
    candidates: Sequence[LanguageModel],
    corpus: Corpus,
    settings: DivergenceSettings,
    *,
    names: Sequence[str],
    training: Callable[[Iterable[Segments]], TrainingWords] | None = None,
    notes: Sequence[str] = (),
    watch: Watch = lambda candidate, rows: None,
) -> CandidateDivergences:
    """Compare the predictive distributions of models with those of a stored base; arguments as of `divergence`."""
    header = base.header
    for candidate, name in zip(candidates, names, strict=True):
        check_candidate(header, candidate, name)
    sample = draw(candidates, corpus, settings.events, settings.seed)
    if sample.total_events is not None:  # the whole text was read
        check_text(header, corpus.report.sha256)
    how = header.stored if header.stored != "top" else f"top={header.top},samples={header.samples}"
    facts = ModelFacts(header.model, header.model, header.model_fingerprint, header.context, stored=how)

    def reduce(candidate: LanguageModel, text: Iterable[Segments]) -> Compared:
        return reduce_stored(base, candidate, text, ranks_of(settings), events=sample.events, threads=settings.threads)

    def storage(events: PairEvents) -> Storage:
        check_text(header, corpus.report.sha256)
        return storage_of(base.path, base.size_bytes, header, events.columns)

    measured = Measured(facts, reduce, sample, corpus, settings, tuple(notes), storage)
    return measured.compared(candidates, names, training, watch)


def settled(header: BaseHeader, settings: DivergenceSettings) -> DivergenceSettings:
    """Return the settings with the events and the seed of a stored base, which none may choose otherwise."""
    for name, own in (("events", header.asked_events), ("seed", header.seed)):
        if getattr(settings, name) not in (own, getattr(DivergenceSettings, name)):
            raise UsageError("events and seed are settled by the stored base; leave them out")
    return replace(settings, events=header.asked_events, seed=header.seed)
