"""Reading for training in partitions: the text as chunks of ids, and what later stages know of it, as arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
    if not engine.is_finished("read"):
        reader, sketch = TextReader(settings), TypesSketch(settings.order)
        # Where rare words are left out, ids are known only at the end of the text: what is written first is renumbered by a
        # stage.
        fits = settings.min_count == 1 and settings.vocab_size is None
        chunks = ChunkWriter(engine, settings.order, chunk, "ids" if fits else "text")
        for ids in reader.blocks(corpus, threads=threads, progress=progress):
            sketch.add(ids)
            chunks.add(ids)
        _write(engine, reader.fit(), {
            "report": asdict(corpus.report), "types": sketch.estimates(), "chunks": chunks.finish(), "chunk": chunk,
        })  # fmt: skip
        engine.finish("read")
    known = read_json(engine, "known")
    if known["renumbered"]:
        engine.run(_renumbering(known["chunks"]))
    vocabulary = Vocabulary.from_strings(
        engine.read("vocabulary/offsets"), engine.read("vocabulary/bytes"), closed=known["closed"]
    )
    fitted = FittedVocabulary(vocabulary, engine.read("word_counts"), None)
    return ReadText(fitted, TextReport(**known["report"]), known["types"], known["chunks"], known["chunk"])


def _write(engine: Engine, fitted: FittedVocabulary, known: dict[str, Any]) -> None:
    vocabulary = fitted.vocabulary
    engine.write("vocabulary/offsets", vocabulary.offsets)
    engine.write("vocabulary/bytes", vocabulary.bytes)
    engine.write("word_counts", fitted.counts)
    if fitted.new_ids is not None:
        engine.write("new_ids", fitted.new_ids)
    write_json(engine, "known", known | {"closed": vocabulary.closed, "renumbered": fitted.new_ids is not None})


def _renumbering(chunks: int) -> Stage:
    # Stage that gives the words of the text their new ids, those that are left out that of `<unk>`.
    return Stage(
        "renumber",
        chunks,
        _renumber,
        None,
        needs=lambda c: [f"text/{c}", "new_ids"],
        makes=lambda c: [f"ids/{c}"],
        drops=[*(f"text/{c}" for c in range(chunks)), "new_ids"],
    )


def _renumber(read: Read, chunk: int, settings: None) -> Iterator[Array]:
    yield read("new_ids")[read(f"text/{chunk}")]


def write_json(engine: Engine, name: str, value: object) -> None:
    """Write what JSON can hold as an array of bytes, so that a run that is resumed knows it."""
    engine.write(name, np.frombuffer(json.dumps(value).encode(), np.uint8))


def read_json(engine: Engine, name: str) -> Any:
    """Return what `write_json` wrote."""
    return json.loads(engine.read(name).tobytes())
