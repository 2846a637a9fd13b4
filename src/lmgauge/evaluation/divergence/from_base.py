"""How far models are from a stored base, and the storing of one, over the contexts of a text."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.context_policy import policy_of
from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.base_file import BaseFile, BaseHeader, writing_base
from lmgauge.evaluation.divergence.base_results import SavedBase, storage_of, whole_bytes
from lmgauge.evaluation.divergence.candidates import CandidateSums
from lmgauge.evaluation.divergence.divergence import (
    Measured,
    ModelFacts,
    counted,
    ranks_of,
    with_tests,
)
from lmgauge.evaluation.divergence.events import PairRows
from lmgauge.evaluation.divergence.results import CandidateDivergences
from lmgauge.evaluation.divergence.sample import Sample, draw
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
    threads: int | None = None,
) -> SavedBase:
    """Store what a model predicts at the events of a text."""
    contents = kept_of(base, settings)
    sample = draw((base,), corpus, events, settings.seed)
    counter = _Counter(sample)
    with writing_base(path, contents) as writer:
        stored, ruled_out = write_base(
            writer,
            base,
            counter.blocks(),
            settings,
            events=sample.events,
            threads=threads,
            said=partial(sample.say, "stored"),
        )
        if not stored:
            raise InputError("there is nothing to store: the text has no event; name a text that is not empty")
        segments = sample.segments or counter.segments
        writer.header = header = BaseHeader(
            model=name or base.label,
            model_fingerprint=base.fingerprint,
            tokenizer_fingerprint=base.tokenizer.fingerprint,
            vocabulary_fingerprint=base.vocabulary.ids_fingerprint,
            vocabulary_size=len(base.vocabulary),
            context=str(policy_of(base)),
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
    return _saved(Path(path), header, tuple(corpus.report.notes()))


class _Counter:
    """Counts the segments of a sample while they are read."""

    def __init__(self, sample: Sample) -> None:
        self._sample, self.segments = sample, 0

    def blocks(self) -> Iterator[Segments]:
        for block in self._sample:
            self.segments += len(block)
            yield block


def _saved(path: Path, header: BaseHeader, notes: tuple[str, ...]) -> SavedBase:
    return SavedBase(
        path=path,
        model=header.model,
        events=header.events,
        total_events=header.total_events,
        segments=header.segments,
        total_segments=header.total_segments,
        stored=header.stored,
        top=header.top,
        samples=header.samples,
        file_bytes=os.path.getsize(path),
        whole_bytes=whole_bytes(header),
        seed=header.seed,
        fingerprints={
            "a": header.model_fingerprint, "vocabulary": header.vocabulary_fingerprint, "text": header.text_sha256
        },
        notes=notes,
    )  # fmt: skip


def divergence_from(
    base: BaseFile,
    candidates: Sequence[LanguageModel],
    corpus: Corpus,
    settings: DivergenceSettings,
    *,
    names: Sequence[str],
    training: Callable[[Iterable[Segments]], TrainingWords] | None = None,
    watch: Callable[[int, PairRows], None] = lambda candidate, rows: None,
) -> CandidateDivergences:
    """Compare the predictive distributions of models with those of a stored base; arguments as of `divergence`."""
    header = base.header
    for candidate, name in zip(candidates, names, strict=True):
        check_candidate(header, candidate, name)
    sample = draw(candidates, corpus, settings.events, settings.seed)
    if sample.total_events is not None:  # the whole text was read
        check_text(header, corpus.report.sha256)
    words = None if training is None else training(sample)
    how = header.stored if header.stored != "top" else f"top={header.top},samples={header.samples}"
    facts = ModelFacts(header.model, header.model, header.model_fingerprint, header.context, stored=how)
    items, sums = [], []
    for i, (candidate, name) in enumerate(zip(candidates, names, strict=True)):

        def seen(rows: PairRows, i: int = i) -> None:
            watch(i, rows)

        rows = counted(_rows(base, candidate, sample, settings), sample)
        measured = Measured(facts, candidate, name, sample, corpus)
        item, events = measured.summarize(rows, settings, training=words, watch=seen)
        check_text(header, corpus.report.sha256)
        items.append(replace(item, storage=storage_of(base.path, base.size_bytes, header, events.columns)))
        sums.append(CandidateSums.of(name, events))
    return with_tests(items, sums, settings)


def _rows(base: BaseFile, candidate: LanguageModel, sample: Sample, settings: DivergenceSettings) -> Iterator[PairRows]:
    text, own = itertools.tee(sample)
    compared = reduce_stored(base, candidate, text, ranks_of(settings), events=sample.events, threads=settings.threads)
    for block, (a, b, columns) in zip(own, compared, strict=True):
        yield PairRows(block, a, b, columns)
