"""`lmgauge.audit`: whether the number of a model, or of a stored run, is what it claims to be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from lmgauge.api.inputs import Model, PathLike, Text, corpus_of, loaded, opened, text_of
from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError
from lmgauge.evaluation.audit import DEFAULT_COMPRESSION_BYTES, DEFAULT_CONTEXTS, DEFAULT_MAX_OVERLAP, LEVELS, Audit
from lmgauge.evaluation.audit import audit as _audit
from lmgauge.evaluation.audit import audit_run as _audit_run
from lmgauge.evaluation.audit.contamination import NothingToCompareError, OverlapSource
from lmgauge.evaluation.audit.rows import DEFAULT_SUM_TOLERANCE
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.find import find_overlap
from lmgauge.text.overlap.results import Overlap


def audit(
    model: Model,
    text: Text,
    *,
    train: Text | None = None,
    levels: Sequence[str] = LEVELS,
    exhaustive: bool = False,
    contexts: int = DEFAULT_CONTEXTS,
    compression_bytes: int = DEFAULT_COMPRESSION_BYTES,
    seed: int = DEFAULT_SEED,
    max_overlap: float = DEFAULT_MAX_OVERLAP,
    overlap_unit: Literal["word", "character"] = "word",
    sum_tolerance: float = DEFAULT_SUM_TOLERANCE,
    threads: int | None = None,
) -> Audit:
    """Audits a model on a text: coverage, normalization, causality, contamination and compression.

    Args:
        model: a model, the path of one, or any object with `vocabulary`, `tokenizer`, `score` and `log_distribution`.
        text: a path, several, or a `Corpus`.
        train: training text, for the level contamination.
        levels: which to look at.
        exhaustive: every context and all of the text instead of a sample.
        contexts: how many to sample.
        compression_bytes: how much of the text to code.
        seed: of the samples.
        max_overlap: largest share of the text's bytes that may be in the training text, in long runs or whole segments.
        overlap_unit: what those runs are made of; characters where words are not set apart by spaces.
        sum_tolerance: how far from 1 the probabilities after a context may sum.
        threads: how many; no verdict depends on it.

    Returns:
        The checks with their evidence; `.require()` raises `CheckFailedError` where one failed.

    Raises:
        InputError: the text is empty.
    """
    corpus = corpus_of(text)
    contamination = (
        None if train is None else contamination_source(corpus_of(train), corpus, unit=overlap_unit, threads=threads)
    )
    return _audit(
        loaded(model),
        corpus,
        levels=[levels] if isinstance(levels, str) else levels,
        exhaustive=exhaustive,
        contexts=contexts,
        compression_bytes=compression_bytes,
        seed=seed,
        overlap=contamination,
        max_overlap=max_overlap,
        sum_tolerance=sum_tolerance,
        untouched=(lambda: loaded(model)) if isinstance(model, (str, os.PathLike)) else None,
        threads=threads,
    )


def audit_run(
    run: PathLike,
    *,
    text: Text | None = None,
    train: Text | None = None,
    levels: Sequence[str] = LEVELS,
    max_overlap: float = DEFAULT_MAX_OVERLAP,
    overlap_unit: Literal["word", "character"] = "word",
    threads: int | None = None,
) -> Audit:
    """Audits a run, or a score table, for what can be seen without its model: seal, coverage, sums and contamination.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table of any origin.
        text: what it scored; if not given, where the run remembers it.
        train: training text, for the level contamination.
        levels: which to look at.
        max_overlap: as for `audit`.
        overlap_unit: as for `audit`.
        threads: how many; no verdict depends on it.

    Raises:
        InputError: the table cannot be read.
    """
    examined = opened(run, check_seal=False)
    corpus = examined.corpus() if text is None else text_of([examined], text)
    contamination = None
    if train is not None and corpus is not None:
        contamination = contamination_source(corpus_of(train), corpus, unit=overlap_unit, threads=threads)
    chosen = [levels] if isinstance(levels, str) else levels
    return _audit_run(examined, corpus, levels=chosen, overlap=contamination, max_overlap=max_overlap)


def contamination_source(
    train: Corpus, test: Corpus, *, unit: Literal["word", "character"] = "word", threads: int | None = None
) -> OverlapSource:
    """What compares a text with its training text once it is asked: the audit does so late.

    Raises (when called):
        NothingToCompareError: both could be read, but one of them has no words.
        InputError: one cannot be read.
    """

    def compare() -> Overlap:
        try:
            return find_overlap(train, test, unit=unit, near=0, passages=0, threads=threads)
        except InputError as error:
            if not train.report.sha256:
                raise
            raise NothingToCompareError(str(error)) from error  # both were read to their end: nothing is wrong with them

    return compare
