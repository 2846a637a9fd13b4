"""Reading for training in partitions: the text as chunks of ids, and what later stages know of it, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lmgauge.models.ngram.counting import TypesSketch
from lmgauge.models.ngram.partitioned.chunks import ChunkWriter
from lmgauge.models.ngram.reading import FittedVocabulary, Progress, TextReader
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import TextReport
from lmgauge.text.vocabulary import Vocabulary
from lmgauge.work.stage import Array, Engine, Read, Stage


@dataclass(frozen=True)
class ReadText:
    """What is known of a text whose ids an engine holds."""

    fitted: FittedVocabulary
    report: TextReport  # counts and fingerprint of the text
    types: list[int]  # n-grams of order 2, 3, ..., about
    chunks: int
    chunk: int  # tokens in each but the last


def read_text(
    engine: Engine,
    settings: NgramTrainingSettings,
    corpus: Corpus,
    chunk: int,
    *,
    threads: int,
    progress: Progress = lambda stage: None,
) -> ReadText:
    """Write a text as `ids/{c}`, unless an earlier run did, and return what is known of it."""

    def read() -> _Known:
        reader, sketch = TextReader(settings), TypesSketch(settings.order)
        # Where rare words are left out, ids are known only at the end of the text: what is written first is renumbered by a
        # stage.
        fits = settings.min_count == 1 and settings.vocab_size is None
        chunks = ChunkWriter(engine, settings.order, chunk, "ids" if fits else "text")
        for ids in reader.blocks(corpus, threads=threads, progress=progress):
            sketch.add(ids)
            chunks.add(ids)
        fitted = reader.fit()
        engine.write("vocabulary/offsets", fitted.vocabulary.offsets)
        engine.write("vocabulary/bytes", fitted.vocabulary.bytes)
        engine.write("word_counts", fitted.counts)
        if fitted.new_ids is not None:
            engine.write("new_ids", fitted.new_ids)
        renumbered, closed = fitted.new_ids is not None, fitted.vocabulary.closed
        return _Known(corpus.report, sketch.estimates(), chunks.finish(), chunk, renumbered, closed)

    known = engine.once("read", _Known, read)
    if known.renumbered:
        engine.run(_renumbering(known.chunks))
    words = engine.read("vocabulary/offsets"), engine.read("vocabulary/bytes")
    fitted = FittedVocabulary(Vocabulary.from_strings(*words, closed=known.closed), engine.read("word_counts"), None)
    return ReadText(fitted, known.report, known.types, known.chunks, known.chunk)


@dataclass(frozen=True)
class _Known:
    report: TextReport
    types: list[int]
    chunks: int
    chunk: int
    renumbered: bool
    closed: bool


def _renumbering(chunks: int) -> Stage:
    # Stage that gives the words of the text their new ids, those that are left out that of `<unk>`.
    return Stage(
        "renumber",
        chunks,
        _renumber,
        None,
        needs=lambda c: [f"text/{c}", "new_ids"],
        makes=lambda c: [f"ids/{c}"],
        drops=["text", "new_ids"],
    )


def _renumber(read: Read, chunk: int, settings: None) -> Iterator[Array]:
    yield read("new_ids")[read(f"text/{chunk}")]
