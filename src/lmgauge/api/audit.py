"""`lmgauge.audit`: whether the number of a model, or of a stored run, is what it claims to be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, opened, text_of
from lmgauge.choices import AUDIT_LEVELS, OverlapUnit
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.audit.contamination import NothingToCompareError, OverlapSource
from lmgauge.evaluation.audit.levels import audit as _audit
from lmgauge.evaluation.audit.results import Audit, AuditSettings, Check
from lmgauge.evaluation.audit.runs import audit_run as _audit_run
from lmgauge.evaluation.audit.runs import check_model_of_run
from lmgauge.evaluation.runs import Run
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.find import find_overlap
from lmgauge.text.overlap.results import Overlap
from lmgauge.text.overlap.settings import OverlapSettings

_CHECKS_OF_RUN = ("seal", "text", "table", "claims")


def audit(
    model: Model,
    text: Text | None = None,
    *,
    run: PathLike | None = None,
    train: Text | None = None,
    levels: Sequence[str] = AUDIT_LEVELS,
    exhaustive: bool = AuditSettings.exhaustive,
    contexts: int = AuditSettings.contexts,
    compression_bytes: int = AuditSettings.compression_bytes,
    seed: int = AuditSettings.seed,
    max_overlap: float = AuditSettings.max_overlap,
    overlap_unit: OverlapUnit = "word",
    sum_tolerance: float = AuditSettings.sum_tolerance,
    scoring: ScoringOptions | None = None,
    threads: int | None = None,
) -> Audit:
    """Audit a model on a text: coverage, normalization, causality, contamination and compression.

    Args:
        model: a model, the path of one, or any object with `vocabulary`, `tokenizer`, `score` and `log_distribution`.
        text: a path, several, or a `Corpus`; with `run` None for the text that the run remembers.
        run: a stored run of this text: also check whether this model made it, row by row.
        train: training text, for the level contamination.
        levels: which levels to check, of coverage, normalization, causality, contamination, compression; one or several.
        exhaustive: take every context and all of the text instead of samples.
        contexts: number of distributions to sum.
        compression_bytes: bytes of the text to compress and decode.
        seed: of the samples.
        max_overlap: largest share (0 to 1) of the text's bytes that may be in the training text, in long runs or whole
            segments.
        overlap_unit: unit of those runs, 13 words or 25 characters; characters for scripts without spaces between words.
        sum_tolerance: how far from 1 the probabilities after a context may sum; at most 0.001.
        scoring: how a model that is named by its path scores (context, device, reserved tokens ...).
        threads: number of threads; no verdict depends on it.

    Returns:
        The checks with their evidence; `Audit.require` raises `CheckFailedError` where one failed.

    Raises:
        InputError: the text is empty, or cannot be used.
        UsageError: a number out of range, an unknown level, or no text.

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> audit(train("witten-bell", text), text, levels=["coverage", "causality"]).passed
        True
    """
    settings = AuditSettings(
        levels=_listed(levels),
        exhaustive=exhaustive,
        contexts=contexts,
        compression_bytes=compression_bytes,
        seed=seed,
        max_overlap=max_overlap,
        sum_tolerance=sum_tolerance,
    )
    stored = None if run is None else opened(run, check_seal=False)
    subject = loaded(model, scoring)
    if stored is not None:
        corpus = stored.corpus() if text is None else text_of([stored], text)
    else:
        corpus = None if text is None else corpus_of(text)
    if corpus is None:
        raise UsageError("an audit of a model needs a text" if run is None else f"{run}: the text it scored is not there")
    overlap = _contamination(train, corpus, settings, overlap_unit, threads)
    path = os.fspath(model) if isinstance(model, PATHS) else None
    result = _audit(
        subject,
        corpus,
        settings,
        overlap=overlap,
        threads=threads,
        name=None if path is None else Path(path).name or path,
        untouched=None if path is None else lambda: loaded(path, scoring),
    )
    if stored is None or "coverage" not in settings.levels:
        return result
    return replace(result, checks=(*_checks_of_run(stored, corpus, subject, threads), *result.checks))


def _checks_of_run(run: Run, corpus: Corpus, model: LanguageModel, threads: int | None) -> list[Check]:
    """Return what can be seen of a run, and whether this model made it."""
    say_progress("comparing with the run")
    of_run = _audit_run(run, corpus, AuditSettings(levels=["coverage"])).checks
    checks = [check for check in of_run if check.name in _CHECKS_OF_RUN]
    return checks + check_model_of_run(run, corpus, model, threads)


def audit_run(
    run: PathLike,
    *,
    text: Text | None = None,
    train: Text | None = None,
    levels: Sequence[str] = AUDIT_LEVELS,
    max_overlap: float = AuditSettings.max_overlap,
    overlap_unit: OverlapUnit = "word",
    threads: int | None = None,
) -> Audit:
    """Audit what can be seen of a run, or a score table, without its model: seal, coverage, sums and contamination.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table of any origin.
        text: the text it scored; if not given, where the run remembers it.
        train: training text, for the level contamination.
        levels: as for `audit`.
        max_overlap: as for `audit`, a share from 0 to 1.
        overlap_unit: as for `audit`.
        threads: number of threads; no verdict depends on it.

    Raises:
        InputError: the table cannot be read.
        UsageError: a number out of range, or an unknown level.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     audit_run(f"{folder}/run", text=text, levels=["coverage"]).verdict("coverage")
        'PASS'
    """
    settings = AuditSettings(levels=_listed(levels), max_overlap=max_overlap)
    stored = opened(run, check_seal=False)
    corpus = stored.corpus() if text is None else text_of([stored], text)
    overlap = None if corpus is None else _contamination(train, corpus, settings, overlap_unit, threads)
    return _audit_run(stored, corpus, settings, overlap=overlap)


def _listed(levels: Sequence[str]) -> Sequence[str]:
    return [levels] if isinstance(levels, str) else levels


def _contamination(
    train: Text | None, test: Corpus, settings: AuditSettings, unit: OverlapUnit, threads: int | None
) -> OverlapSource | None:
    """Return the function that compares a text with its training text: the audit calls it late.

    Raises:
        InputError: a file of the training text is missing.
        UsageError: the text cannot be read a second time.
    """
    if train is None or "contamination" not in settings.levels:
        return None
    if not test.rereadable:
        raise UsageError("--train reads the text a second time, which standard input cannot be: save it in a file")
    corpus = corpus_of(train)

    def compare() -> Overlap:
        try:
            return find_overlap(corpus, test, OverlapSettings(overlap_unit=unit, near=0, passages=0), threads=threads)
        except InputError as error:
            if not corpus.report.sha256:
                raise
            raise NothingToCompareError(str(error)) from error  # both were read to their end: nothing is wrong with them

    return compare
