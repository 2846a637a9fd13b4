"""`lmgauge.tasks.import_items`: runs of the scores that other programs gave to the items of a task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmgauge.api.import_scores import LoggedFiles, log_files
from lmgauge.api.inputs import PathLike
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.settings import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.tasks.items.table import ItemRuns, ItemScores


@verb
def import_items(
    files: LoggedFiles,
    output: PathLike,
    *,
    score: str | Sequence[str],
    scale: Sequence[float] = (0.0, 1.0),
    lower_is_better: bool = False,
    name: str = "",
    reading: ReadingOptions = ReadingOptions(),
    **fields: object,
) -> ItemScores | ItemRuns:
    """Make a run folder of the scores of a task's items, from the log of another program: `lmgauge import --score`.

    It reads samples of lm-evaluation-harness, and tables with a row for each item; `compare` tests the difference of such
    runs.

    Args:
        files: what the program wrote: a path, or several; in Python also a data frame. An item that is in several files was
            tried several times.
        output: run folder to write; one of runs, where there are several scores or models.
        score: name of the score, such as exact_match, or exact_match,strict-match where lm-evaluation-harness has several
            filters; in a table the column, several of which are one model each.
        scale: lowest and highest score there can be; others are refused.
        lower_is_better: a lower score is the better one, as of errors; taken from the log where it says so.
        name: name of the model; taken from the log or its file name if empty.
        reading: fields of the log that say more of an item: `id`, in place of the program's own; `group`, the subset that
            it is of, in place of the task; `document`, what makes items depend on each other, such as a passage.
        fields: those of `reading`, by name.

    Returns:
        The scores of the run, `ItemRuns` of several; their notes say what a reader must know of the log.

    Raises:
        InputError: a file cannot be read, an item is scored twice, has no id, no score, or one outside the scale; the
            message names the first three.
        UsageError: there is no such score (the message has those there are), or files of several programs.

    Shell:
        lmgauge import samples_gsm8k.jsonl --score exact_match,strict-match -o run/

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = Path(folder, "small.csv")
        ...     _ = table.write_text("item,correct\\n1,1\\n2,0\\n3,1\\n4,1\\n", encoding="utf-8")
        ...     import_items(table, f"{folder}/run", score="correct")
        <ItemScores: small: correct 0.7500, 4 scores>
    """
    from dataclasses import replace

    from lmgauge.evaluation.runs import run_targets
    from lmgauge.tasks.items.logs import read_log_items
    from lmgauge.tasks.items.table import ItemRuns

    if unused := [field for field in chosen(reading) if field not in ("id", "group", "document")]:
        raise UsageError(f"{unused[0].replace('_', '-')} is about a text, and scores of items have none: leave it out")
    if len(scale) != 2 or not scale[0] < scale[1]:
        raise UsageError(f"scale must be the lowest and the highest score there can be, as in 0,100; got {scale}")
    scores = [score] if isinstance(score, str) else list(dict.fromkeys(score))
    runs = read_log_items(log_files(files, output), scores, reading, scale, name)
    if lower_is_better:
        runs = [replace(run, origin=replace(run.origin, higher_is_better=False)) for run in runs]
    models = [run.origin.model for run in runs]
    names = [
        name if models.count(name) == 1 else f"{name}-{run.origin.score}" for name, run in zip(models, runs, strict=True)
    ]
    for run, folder in zip(runs, run_targets(os.fspath(output), names), strict=True):
        run.write(folder)
    return runs[0] if len(runs) == 1 else ItemRuns(tuple(runs))
