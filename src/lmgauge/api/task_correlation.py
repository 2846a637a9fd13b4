"""`lmgauge.tasks.correlate_tables`: task scores of systems against perplexities, from tables or from a language model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmgauge.tasks.parallel import Path, paths_of
from lmgauge.tasks.settings import CorrelationSettings

if TYPE_CHECKING:
    from lmgauge.tasks.correlation import Correlation
    from lmgauge.tasks.tables import Row


def correlate_tables(
    scores: Path,
    perplexities: Path | None = None,
    *,
    model: Path | None = None,
    outputs: Sequence[Path] = (),
    settings: CorrelationSettings | None = None,
    threads: int | None = None,
) -> Correlation:
    """Correlate task scores of systems with perplexities: of their language models, or of their outputs under one.

    Args:
        scores: a table (TSV, CSV, JSON, JSONL) with a row for each system, such as `lmgauge bleu --json` prints.
        perplexities: another one, such as `lmgauge eval --json` prints; its models, or the groups of one, are the systems.
            None: the numbers are in `scores` too.
        model: a language model instead; the perplexity of each of `outputs` under it.
        outputs: with `model`: the file of each system, by whose name it is known.
        settings: names of columns, logarithm and seed; None: the defaults of `lmgauge.tasks.CorrelationSettings`.
        threads: how many to use, all cores if None; no number depends on it.

    Raises:
        InputError: a table cannot be read, lacks a column, or no system is in both.
        UsageError: the suffix of a table is unknown.

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path as File
        >>> rows = [{"system": name, "score": 30 - i, "perplexity": 80 + i * i} for i, name in enumerate("abcd")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "systems.json").write_text(json.dumps(rows))
        ...     correlate_tables(f"{folder}/systems.json").spearman
        -1.0
    """
    from lmgauge.tasks.correlation import correlate, paired_columns
    from lmgauge.tasks.tables import read_table

    columns = settings or CorrelationSettings()
    y_rows = read_table(os.fspath(scores))
    if model is not None:
        x_rows = _perplexities(model, paths_of(outputs), columns.system, threads)
    else:
        x_rows = y_rows if perplexities is None else _by_system(read_table(os.fspath(perplexities)), columns.system)
    tables = (os.fspath(perplexities or scores) if model is None else "", os.fspath(scores))
    names, xs, ys, notes = paired_columns(x_rows, y_rows, columns, tables)
    result = correlate(names, xs, ys, x_name=columns.x, y_name=columns.y, log_x=columns.log_x, seed=columns.seed)
    return replace(result, notes=(*notes, *result.notes))


def _by_system(rows: list[Row], system: str) -> list[Row]:
    """Return rows of `eval --json` with their groups or, without, their models as systems; other rows as they are."""
    if any(system in row or "model" not in row for row in rows):
        return rows
    grouped = [row | {system: row["group"]} for row in rows if row.get("group") is not None]
    return grouped or [row | {system: row["model"]} for row in rows]


def _perplexities(model: Path, outputs: list[str], system: str, threads: int | None) -> list[Row]:
    from lmgauge.api.evaluate import evaluate
    from lmgauge.models.mixture.agreement import with_reserved
    from lmgauge.models.registry import load_model
    from lmgauge.text.streams import find_sources

    # A system may print <unk>; to the model that judges it that is a word like any other.
    (judge,) = with_reserved([load_model(os.fspath(model))], "escape")
    sources = find_sources(outputs)
    return [{system: source.label} | evaluate(judge, source.path, threads=threads).to_dict() for source in sources]
