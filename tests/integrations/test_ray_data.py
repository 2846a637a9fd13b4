"""Ray Data: the same columns and decisions as without it, by several actors, and messages that say what is wrong.

One cluster of processes on this machine for all tests of this module, as it takes seconds to start.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lmgauge
from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.integrations import ray_data
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


def actors(data: Any, count: int, *arguments: Any, **options: Any) -> dict[str, Any]:
    """How a step is made by several actors."""
    return {
        "fn_constructor_args": arguments,
        "fn_constructor_kwargs": options,
        "batch_format": "pyarrow",
        "compute": data.ActorPoolStrategy(size=count),
    }


@patient
def test_columns_are_those_of_the_scorer(data: Any, model_path: str) -> None:
    expected = lmgauge.Scorer(model_path).score_batch(make_table()).to_pylist()
    scored = many(data).map_batches(ray_data.Scorer, batch_size=64, **actors(data, 2, model_path))
    assert scored.take_all() == expected


@patient
def test_rows_that_stay_are_those_of_the_command(
    data: Any, model_path: str, percentiles_path: str, decisions: dict[str, Any]
) -> None:
    """Of the batches of two rows, some have nothing that stays."""
    step = actors(data, 1, model_path, percentiles_path, **RULES)
    rows = many(data).map_batches(ray_data.Filter, batch_size=2, **step).take_all()
    assert [{name: value for name, value in row.items() if name != "score_problem"} for row in rows] == [*decisions.values()]
    assert {row["score_problem"] for row in rows} == {None}


@patient
def test_empty_blocks(data: Any, model_path: str) -> None:
    nothing = many(data).map_batches(lambda table: table.slice(0, 0), batch_format="pyarrow", batch_size=None)
    assert nothing.map_batches(ray_data.Scorer, batch_size=None, **actors(data, 1, model_path)).count() == 0


@patient
def test_errors_arrive_in_words(data: Any, model_path: str) -> None:
    with pytest.raises(Exception, match="give map_batches the argument batch_format='pyarrow'"):
        many(data).map_batches(ray_data.Scorer, **actors(data, 1, model_path) | {"batch_format": "numpy"}).take_all()


@patient
def test_wrong_models_are_refused_where_they_are(model_path: str) -> None:
    with pytest.raises(UsageError, match="give its path"):
        ray_data.Scorer(lmgauge.load_model(model_path))
    for step in (ray_data.Scorer, ray_data.Filter):
        with pytest.raises(ModelFileError, match=r"no such model.* This is on the machine .*, in the folder "):
            step(f"{model_path}/missing")
    with pytest.raises(UsageError, match="the step takes Arrow tables, not dict"):
        ray_data.Filter(model_path)({"text": ["a"]})


@patient
def test_all_that_can_be_scored_stays_without_rules(model_path: str) -> None:
    table = pa.table({"text": ["a", None, "", "a\0"]})
    assert ray_data.Filter(model_path)(table)["text"].to_pylist() == ["a", ""]
    assert ray_data.Filter(model_path)(table.slice(0, 0)).column_names[-1] == "score_problem"
