"""Scores that other programs gave to the items of a task: made runs, and compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmgauge.api.import_scores import LoggedFiles, log_files
from lmgauge.api.inputs import PATHS, PathLike
from lmgauge.base.declaration import chosen, verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Natural
from lmgauge.settings import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.tasks.items.results import ItemComparisons
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

    It reads samples of lm-evaluation-harness, logs of Inspect (.eval, .json) and OpenAI evals, per_instance_stats.json of
    HELM, results of promptfoo, and tables with a row for each item; `compare` tests the difference of such runs.

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
    names = [run.origin.model for run in runs]
    for run, folder in zip(runs, run_targets(os.fspath(output), names), strict=True):
        run.write(folder)
    return runs[0] if len(runs) == 1 else ItemRuns(tuple(runs))


@verb
def compare_items(
    runs: Sequence[PathLike | ItemScores] = (), *, common: bool = False, examples: Natural = 5
) -> ItemComparisons:
    """Say which differences of scores of tasks are real: runs of items, each beside the first.

    Differences are paired item by item. Where items form clusters, clusters are what is independent; 0 and 1 without
    clusters are tested by McNemar's exact test, all else by Student's t; p-values are adjusted for the number of runs.

    Args:
        runs: run folders of scores of items (of `lmgauge import --score`); in Python also the scores themselves.
        common: of runs of scores of items, only the items that all have alike; without it other items are refused.
        examples: items to show of each kind.

    Raises:
        InputError: a run is damaged, or the runs have other items, prompts or scores.
        UsageError: fewer than two runs.

    Shell:
        lmgauge compare run-a/ run-b/
        lmgauge compare run-a/ run-b/ run-c/ --common

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from lmgauge.tasks import import_items
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = Path(folder, "two.csv")
        ...     _ = table.write_text("item,a,b\\n" + "".join(f"{i},{i % 2},1\\n" for i in range(16)), encoding="utf-8")
        ...     runs = import_items(table, f"{folder}/runs", score=["a", "b"])
        >>> compare_items(runs)
        <ItemComparisons: score on 16 items: a 0.5000, b 1.0000>
    """
    from lmgauge.tasks.items.compare import compare_items as of_runs
    from lmgauge.tasks.items.table import read_items

    if isinstance(runs, PATHS) or not isinstance(runs, Sequence):
        raise UsageError(f"a comparison needs a list of two runs or more, not {type(runs).__name__}")
    scores = [read_items(run) if isinstance(run, PATHS) else run for run in runs]
    models = [one.origin.model for one in scores]
    pairs = zip(runs, scores, strict=True)
    paths = [os.fspath(run).rstrip("/") if isinstance(run, PATHS) else one.origin.model for run, one in pairs]
    names = [name if models.count(name) == 1 else path for name, path in zip(models, paths, strict=True)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"two runs are called {repeated!r}: give each another name")
    return of_runs(scores, names, common=common, examples=examples)
