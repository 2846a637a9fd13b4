"""`lmgauge.audit`: whether the number of a model, or of a stored run, is what it claims to be."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.api.run_text import refuse_without_model
from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.choices import OverlapUnit
from lmgauge.declaration import verb
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.options import AuditSettings
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.audit.results import Audit
    from lmgauge.text.documents import Corpus
    from lmgauge.text.overlap.results import Overlap


@verb
def audit(
    model: Model | None = None,
    text: Text | None = None,
    *,
    run: PathLike | None = None,
    train: Text | None = None,
    overlap_unit: OverlapUnit = "word",
    threads: Count | None = None,
    checks: AuditSettings = AuditSettings(),
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Audit:
    """Audit a model on a text: coverage, normalization, causality, contamination and compression.

    With a model and a text (files, globs or -, standard input, also if none is named) all levels are checked. Of a run
    alone, a folder that `lmgauge eval -o` wrote or a score table, what can be seen without the model; of a run and its
    model also whether the model made the run.

    Args:
        model: a folder, ARPA or KenLM file; without it a run is audited. In Python also any object with `vocabulary`,
            `tokenizer`, `score` and `log_distribution`.
        text: the text that a run scored, if it is not where the run remembers it; in Python also what a model is audited on.
        run: a stored run of this text (of `evaluate(..., output=...)`), or a score table of any origin.
        train: training text; for level 4, may be given several times.
        overlap_unit: runs of 13 words or more, or of 25 characters; level 4, characters for scripts that do not space words.
        threads: threads to use; all cores if not given. No verdict depends on it.
        checks: which levels, and how closely.
        reading: how files of text are read.
        scoring: how a model that is named by its path scores.
        fields: those of `checks`, `reading` and `scoring`, by name.

    Returns:
        The checks with their evidence; `Audit.require` raises `CheckFailedError` where one failed.

    Raises:
        InputError: the text is empty, or cannot be used; the table cannot be read.
        UsageError: a number out of range, an unknown level, no text, or an option that needs the model.

    Shell:
        lmgauge audit -m kn5/ test.txt --train train.txt
        lmgauge audit run-kn5/
        lmgauge audit run-kn5/ -m kn5/

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> audit(train("witten-bell", text), text, levels=["coverage", "causality"]).passed
        True
    """
    from lmgauge.api.inputs import corpus_of, loaded, opened, refuse_field, text_of
    from lmgauge.evaluation.audit import levels, runs

    stored = None if run is None else opened(run, check_seal=False)
    if stored is not None:
        corpus = stored.corpus() if text is None else text_of([stored], text)
    else:
        corpus = None if text is None else corpus_of(text, reading, alone=False)
    training = None if train is None else corpus_of(train, reading, alone=False)
    refuse_field(reading, training, None if stored is not None else corpus)
    overlap = None if corpus is None else _contamination(training, corpus, checks, overlap_unit, threads)
    if model is None:
        refuse_without_model(scoring, checks)
        if stored is None:
            raise UsageError("an audit needs a model and its text, or a run")
        return runs.audit_run(stored, corpus, checks, overlap=overlap)
    if corpus is None:
        raise UsageError("an audit of a model needs a text" if run is None else f"{run}: the text it scored is not there")
    subject, path = loaded(model, scoring), os.fspath(model) if isinstance(model, PATHS) else None
    name = None if path is None else Path(path).name or path
    again = None if path is None else partial(loaded, path, scoring)
    result = levels.audit(subject, corpus, checks, overlap=overlap, threads=threads, name=name, untouched=again)
    return result if stored is None else runs.with_run(result, stored, corpus, checks, subject, threads)


def audit_run(run: PathLike, **options: Any) -> Audit:
    """Audit what can be seen of a run, or a score table, without its model: seal, coverage, sums and contamination.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table of any origin.
        options: `text`, `train`, `levels`, `max_overlap`, `overlap_unit` and `threads`, as of `audit`.

    Raises:
        InputError: the table cannot be read.
        UsageError: a number out of range, an unknown level, or an option that needs the model.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/run")
        ...     audit_run(f"{folder}/run", text=text, levels=["coverage"]).verdict("coverage")
        'PASS'
    """
    result: Audit = audit(run=run, **options)
    return result


def _contamination(
    train: Corpus | None, test: Corpus, checks: AuditSettings, unit: OverlapUnit, threads: int | None
) -> Callable[[], Overlap] | None:
    """Return the function that compares a text with its training text: the audit calls it late."""
    if train is None or "contamination" not in checks.levels:
        return None
    if not test.rereadable:
        raise UsageError("--train reads the text a second time, which standard input cannot be: save it in a file")
    from lmgauge.evaluation.audit.contamination import NothingToCompareError
    from lmgauge.text.overlap.find import find_overlap
    from lmgauge.text.overlap.settings import OverlapSettings

    def compare() -> Overlap:
        try:
            return find_overlap(train, test, OverlapSettings(overlap_unit=unit, near=0, passages=0), threads=threads)
        except InputError as error:
            if not train.report.sha256:
                raise
            raise NothingToCompareError(str(error)) from error  # both were read to their end: nothing is wrong with them

    return compare
