"""`lmgauge.tasks.correlate_tables`: task scores of systems against perplexities, from tables or from a language model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.types import PathLike
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count
from lmgauge.tasks.settings import CorrelationSettings

if TYPE_CHECKING:
    from lmgauge.tasks.correlation import Correlation


@verb
def correlate_tables(
    scores: PathLike,
    perplexities: PathLike | None = None,
    *,
    model: PathLike | None = None,
    outputs: Sequence[PathLike] = (),
    rows: PathLike | None = None,
    threads: Count | None = None,
    settings: CorrelationSettings = CorrelationSettings(),
    **fields: Any,
) -> Correlation:
    """Correlate task scores of systems with perplexities: of their language models, or of their outputs under one.

    Tables of systems are TSV or CSV with a header, JSONL, or what `bleu --json`, `wer --json` and `eval --json` print. A
    system has the same name in both.

    Args:
        scores: a table with a row for each system, such as `lmgauge bleu --json` prints.
        perplexities: another one, such as `lmgauge eval --json` prints; its models, or the groups of one, are the systems.
            Without it the numbers are in `scores`, too.
        model: a language model instead of perplexities; that of each of `outputs` under it.
        outputs: with a model, the output of a system, as it was scored; may be given several times, a glob stands for
            several. A system is known by the name of its file.
        rows: also write the points; .tsv, .jsonl, or -.
        threads: threads to use; all cores if not given. No number depends on it.
        settings: names of columns, logarithm and seed.
        fields: those of `settings`, by name.

    Raises:
        InputError: a table cannot be read, lacks a column, or no system is in both.
        UsageError: the suffix of a table is unknown, a model has no outputs, or a table beside it, or the rows would replace
            what is read.

    Shell:
        lmgauge correlate bleu.json perplexity.json
        lmgauge correlate bleu.json -m kn5/ --outputs '?.txt'
        lmgauge correlate systems.tsv -x perplexity -y bleu

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path as File
        >>> rows = [{"system": name, "score": 30 - i, "perplexity": 80 + i * i} for i, name in enumerate("abcd")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = File(folder, "systems.json").write_text(json.dumps(rows))
        ...     correlate_tables(f"{folder}/systems.json").spearman
        -1.0
    """
    from lmgauge.api.evaluate import evaluate
    from lmgauge.evaluation.row_files import writing_rows
    from lmgauge.files import refuse_replacing
    from lmgauge.models.mixture.agreement import with_reserved
    from lmgauge.models.registry import load_model
    from lmgauge.records.sources import find_sources
    from lmgauge.report.correlation import CORRELATION_COLUMNS
    from lmgauge.tasks.correlation import by_system, correlate_rows
    from lmgauge.tasks.parallel import paths_of
    from lmgauge.tasks.tables import read_table

    if (model is None) != (not outputs):
        raise UsageError("a model (-m) and its outputs (--outputs) belong together: what is measured under the model")
    if model is not None and perplexities is not None:
        raise UsageError("perplexities come from a table or from a model (-m), not from both")
    sources = find_sources(paths_of(outputs)) if outputs else []
    read = [os.fspath(path) for path in (scores, perplexities, model) if path is not None]
    refuse_replacing({"--rows": rows}, [*read, *(source.path for source in sources)])
    x_rows = y_rows = read_table(read[0])
    x_table, name = read[-1], settings.system
    if model is not None:
        # A system may print <unk>; to the model that judges it that is a word like any other.
        (judge,) = with_reserved([load_model(read[-1])], "escape")
        x_rows = [{name: source.label} | evaluate(judge, source.path, threads=threads).to_dict() for source in sources]
        x_table = ""
    elif perplexities is not None:
        x_rows = by_system(read_table(read[-1]), name)
    result = correlate_rows(x_rows, y_rows, settings, (x_table, read[0]))
    if rows is not None:
        points = result.rows()
        with writing_rows(os.fspath(rows), CORRELATION_COLUMNS) as write:
            write({name: [point[name] for point in points] for name in CORRELATION_COLUMNS})
    return result
