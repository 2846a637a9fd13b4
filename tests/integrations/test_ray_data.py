"""Ray Data: the same columns and decisions as without it, by several actors.

One cluster of processes on this machine for all tests of this module, as it takes seconds to start.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import lmgauge
from lmgauge.filtering.options import FilterRules
from lmgauge.integrations.steps import DocumentFilter
from tests.integrations.documents import RULES, make_table
from tests.programs import skipped_after_minutes

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an optional library"),
    pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="a limit on time is an alarm"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # what Ray leaves open, it closes late
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),  # of its own settings
    pytest.mark.filterwarnings("ignore:The minimum number of concurrent actors"),
]
patient = skipped_after_minutes(3, "Ray")
"""Where the machine does not serve Ray's own processes in time, nothing is learned of the steps."""


@pytest.fixture(scope="module")
def data() -> Iterator[Any]:
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_raylet_start_wait_time_s", "300")):
        os.environ.setdefault(name, value)  # read when it is imported
    import ray

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    ray.init("local", num_cpus=2, object_store_memory=100_000_000, **options)
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    yield ray.data
    ray.shutdown()


def many(data: Any) -> Any:
    """The documents in six blocks, as Ray Data has them."""
    table = make_table()
    return data.from_arrow([table.slice(row, 100) for row in range(0, len(table), 100)])


def actors(data: Any, count: int, *arguments: Any) -> dict[str, Any]:
    """How a step is made by several actors."""
    return {
        "fn_constructor_args": arguments,
        "batch_format": "pyarrow",
        "compute": data.ActorPoolStrategy(size=count),
    }


@patient
def test_columns_are_those_of_the_scorer(data: Any, model_path: str) -> None:
    expected = lmgauge.Scorer(model_path).score_batch(make_table()).to_pylist()
    scored = many(data).map_batches(lmgauge.Scorer, batch_size=64, **actors(data, 2, model_path))
    assert scored.take_all() == expected


@patient
def test_rows_that_stay_are_those_of_the_command(
    data: Any, model_path: str, percentiles_path: str, decisions: dict[str, Any]
) -> None:
    """Of the batches of two rows, some have nothing that stays."""
    step = actors(data, 1, model_path, FilterRules(**RULES), percentiles_path)
    rows = many(data).map_batches(DocumentFilter, batch_size=2, **step).take_all()
    assert [{name: value for name, value in row.items() if name != "score_problem"} for row in rows] == [*decisions.values()]
    assert {row["score_problem"] for row in rows} == {None}
