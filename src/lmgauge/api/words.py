"""`lmgauge.word_surprisal`, and the file of words that an evaluation writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, followed, named_models, one_text
from lmgauge.choices import WORD_UNITS
from lmgauge.context_policy import policy_of
from lmgauge.declaration import verb
from lmgauge.distributions.blocks import computes_many, why_not_whole
from lmgauge.distributions.columns import WithColumns
from lmgauge.distributions.word_boundaries import BOUNDARY
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.row_files import TableWriter
from lmgauge.evaluation.words.frequency import WordFrequencies
from lmgauge.evaluation.words.regions import Regions
from lmgauge.evaluation.words.results import WordRows, WordSettings, WordSurprisals
from lmgauge.evaluation.words.units import Units
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.progress import say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.signature import Signature
from lmgauge.text.reading_options import ReadingOptions
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.version import NUMBERS_VERSION

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmgauge.text.documents import Corpus

RegionRows = PathLike | Iterable[Mapping[str, Any]]


def word_settings(
    words: str, regions: RegionRows | DataFrame | None, train: Text | None, carried: tuple[str, ...] = ()
) -> WordSettings:
    """Return what is to be measured.

    Args:
        words: what words are: "whitespace", "treebank", "icu", or "icu:ja" (any locale).
        regions: a file, rows or a data frame, in place of words.
        train: text to count words in.
        carried: names of the fields of the text that are carried along.

    Raises:
        InputError: the regions or the training text cannot be used.
        MissingExtraError: icu4py is not installed.
        UsageError: words of another kind, or both regions and words or their frequencies are asked for.
    """
    kind = words.partition(":")[0]
    if kind not in WORD_UNITS or (words != kind and kind != "icu"):
        raise UsageError(f"words {words!r}: choose {', '.join(WORD_UNITS)}, or icu:<locale> (such as icu:ja)")
    tokenizer = make_tokenizer(words)
    if regions is None:
        frequencies = None if train is None else WordFrequencies(corpus_of(train), tokenizer)
        return WordSettings(tokenizer, frequencies=frequencies, carried=carried)
    if words != WORD_UNITS[0] or train is not None:
        what = "words" if train is None else "train"
        raise UsageError(f"{what} is for words; regions are what their file says: leave one of them out")
    if isinstance(regions, PATHS):
        return WordSettings(tokenizer, Regions.read(regions), carried=carried)
    rows = regions.to_dict("records") if hasattr(regions, "to_dict") else regions
    return WordSettings(tokenizer, Regions.of_rows(rows), carried=carried)


def with_word_columns(model: LanguageModel, columns: Sequence[str] = ()) -> tuple[LanguageModel, str]:
    """Return a model that fills the columns which words need, and why it does not if it cannot.

    Args:
        model: any.
        columns: names of further columns.

    Raises:
        UsageError: its protocol leaves tokens unscored.
    """
    if policy_of(model).leaves_out:
        raise UsageError(
            f"{model.label}: protocol {policy_of(model).protocol} leaves tokens unscored, so words have no surprisal; leave "
            "--protocol out"
        )
    why = "" if computes_many(model) else why_not_whole(model)
    if why:
        return (WithColumns(model, columns) if columns else model), why
    return WithColumns(model, columns, word_boundaries=True), ""


def word_rows(model: LanguageModel, name: str, settings: WordSettings, why: str) -> WordRows:
    """Return what makes the rows of a model.

    Args:
        model: as `with_word_columns` returned it.
        name: of the model.
        settings: what is measured.
        why: as `with_word_columns` returned it.
    """
    return WordRows(settings, name, policy_of(model), getattr(model, "word_marking", None), why)


class WordFile:
    """The file of words of an evaluation, open while its text is scored.

    Args:
        path: of the file; "-" is standard output.
        settings: what is measured.
        rows: what makes the rows of each model.
    """

    def __init__(self, path: PathLike, settings: WordSettings, rows: Sequence[WordRows]) -> None:
        self._settings, self._rows = settings, rows
        self._writer = TableWriter(os.fspath(path), settings.columns)
        self._stack = ExitStack()
        self._units: Units | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(self._writer)
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def write(self, index: int, block: Segments, batch: ScoreBatch) -> None:
        """Write the words of a block; each model's after those of the one before it.

        Args:
            index: number of the model.
            block: the text.
            batch: its rows of the score table.

        Raises:
            InputError: a region is not in its text, or cuts a token.
        """
        if index == 0 or self._units is None:
            self._units = self._settings.units(block)
        self._writer.write(self._rows[index].table(block, batch, self._units))

    def notes(self, index: int) -> list[str]:
        """Return what a reader must know of the rows of a model.

        Args:
            index: number of the model.

        Raises:
            InputError: a region names a text that was not there.
        """
        return self._rows[index].notes()


@verb
def word_surprisal(
    model: Model,
    text: Text | None = None,
    *,
    texts: Iterable[str] | str | None = None,
    words: str = "whitespace",
    regions: RegionRows | DataFrame | None = None,
    train: Text | None = None,
    threads: int | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> WordSurprisals:
    """Return the surprisal of each word, or region, of texts: `lmgauge eval --per-word`.

    The corrected figure is that of Pimentel & Meister (2024) and Oh & Schuler (2024).

    Args:
        model: a model, or the path of one.
        text: files: a path, several, or a `Corpus`; each segment (line, record) is a text.
        texts: strings in place of files, each a text.
        words: what words are: "whitespace" (ASCII), "treebank" ("do n't"), "icu" (Unicode's word boundaries), or "icu:ja"
            (any locale).
        regions: measure these in place of words: a .tsv, .csv or .jsonl file, rows, or a data frame, with `text_id`, and
            `start` and `end` (bytes) or `text`, and a name in `region`.
        train: a text to count words in, for the columns `log_frequency` and `unseen`.
        threads: how many; no number depends on it but for rounding.
        reading: how files are read.
        scoring: how the model scores; a network in memory takes what needs no loading.
        fields: those of both by name, as in `field="sentence", keep="condition", end="eos"`.

    Returns:
        A row a word: `surprisal`, `surprisal_corrected` and `entropy_before` in bits, and where the word is; `segment` is
        the number of its text, also where several have one id.

    Raises:
        InputError: a text or a region cannot be used, or a region cuts a token.
        MissingExtraError: icu4py is not installed.
        ModelFileError: the model cannot be loaded.
        UsageError: neither or both of `text` and `texts`; words of an unknown kind; regions with `words` or `train`.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["the cat sat", "the dog sat"]), order=2, tokenizer="character")
        >>> for row in word_surprisal(model, texts="the dog sat").to_rows():
        ...     print(row["word"], round(row["surprisal"], 3), round(row["surprisal_corrected"], 3))
        the 2.824 3.187
        dog 4.921 5.198
        sat 3.29 3.705
    """
    corpus = one_text(text, texts, reading)
    settings = word_settings(words, regions, train, corpus.kept)
    (loaded,), (name,) = named_models(model, scoring)
    corpus = followed([loaded], corpus, scoring, by_group=False)
    measured, why = with_word_columns(loaded)
    rows = word_rows(measured, name, settings, why)
    say_progress("scoring")
    blocks, scored = tee(corpus)
    batches = measured.score(scored, spans=True, threads=threads)
    tables = [rows.table(block, batch) for block, batch in zip(blocks, batches, strict=True)]
    notes = [*corpus.report.notes(), *getattr(loaded, "notes", ()), *rows.notes()]
    return _result(rows, tables, notes, Origin.of_model(loaded, name), corpus.report.sha256)


def words_of_table(
    parts: Iterable[tuple[Segments, ScoreBatch]], settings: WordSettings, origin: Origin, corpus: Corpus
) -> WordSurprisals:
    """Return the words of a stored score table.

    Args:
        parts: blocks of the text, with their rows.
        settings: what is measured.
        origin: of the table.
        corpus: the text.

    Raises:
        InputError: the table has no byte spans, a region is not in its text, or cuts a token.
    """
    whole = origin.unit == "word"
    why = f"{origin.model} has no column {BOUNDARY}; lmgauge eval --per-word -o writes one"
    rows = WordRows(settings, origin.model, origin.policy, "whole" if whole else None, why)
    tables = []
    for block, batch in parts:
        if len(batch.ends) < len(batch):
            raise InputError(f"{origin.model}: the score table has no byte spans, so it does not say where words are")
        if whole:
            batch = replace(batch, extra={**batch.extra, BOUNDARY: np.ones(len(batch))})
        if BOUNDARY in batch.extra and rows.marking is None:
            rows.marking = "stored"
        tables.append(rows.table(block, batch))
    return _result(rows, tables, [*corpus.report.notes(), *rows.notes()], origin, corpus.report.sha256)


def _result(rows: WordRows, tables: Sequence[Any], notes: Sequence[str], origin: Origin, text_sha256: str) -> WordSurprisals:
    import pyarrow as pa

    counts, settings = rows.counts, rows.settings
    parts = {
        "words": settings.signature,
        "n": str(counts.units),
        "marking": rows.marking or "unknown",
        **origin.text_parts,
        "context": origin.context,
        "text": text_sha256[:6],
        "vocab": origin.fingerprints.get("vocabulary", "unknown")[:6],
        "model": origin.fingerprints.get("label", origin.model),
        "v": NUMBERS_VERSION,
    }
    return WordSurprisals(
        model=rows.model,
        unit=settings.unit,
        marking=rows.marking,
        texts=counts.texts,
        units=counts.units,
        bits=counts.bits,
        rest_bits=counts.rest_bits,
        signature=str(Signature(parts, head="words")),
        notes=tuple(dict.fromkeys(notes)),
        rows=pa.concat_tables(tables) if tables else pa.table({name: [] for name in settings.columns}),
    )
