"""Scores of items of tasks, from logs of harnesses: `lmgauge.tasks.compare_items`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmgauge.api.inputs import PATHS, PathLike
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Natural

if TYPE_CHECKING:
    from lmgauge.tasks.items.results import ItemComparisons
    from lmgauge.tasks.items.table import ItemScores


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
        >>> import numpy as np
        >>> from lmgauge.tasks.items.table import ItemScores, ItemsOrigin
        >>> def scored(model, scores):
        ...     names, none = [str(i) for i in range(len(scores))], [""] * len(scores)
        ...     zeros = np.zeros(len(scores), np.int64)
        ...     origin = ItemsOrigin(model, "acc", "columns")
        ...     return ItemScores(origin, names, np.array(scores, float), zeros, none, none, none)
        >>> compare_items([scored("a", [0, 1] * 8), scored("b", [1] * 16)])
        <ItemComparisons: acc on 16 items: a 0.5000, b 1.0000>
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
