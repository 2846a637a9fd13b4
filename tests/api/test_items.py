"""Runs of scores of items where other runs are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.base.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of two items."""
    path = tmp_path_factory.mktemp("items")
    (path / "small.csv").write_text("item,correct\na,1\nb,0\n", encoding="utf-8")
    ok("import", str(path / "small.csv"), "--score", "correct", "-o", str(path / "run"))
    return str(path / "run")


VERBS: list[Callable[[str], Any]] = [
    lmgauge.diagnose,
    lambda run: lmgauge.audit(run=run),
    lambda run: lmgauge.report([run]),
    lambda run: lmgauge.agree(run, run),
    lambda run: lmgauge.compare([run, run]),
]


@pytest.mark.parametrize("verb", VERBS)
def test_what_needs_a_text_says_what_the_run_is(folder: str, verb: Callable[[str], Any]) -> None:
    with pytest.raises(InputError, match="holds scores of the items of a task, without a text: `lmgauge compare`"):
        verb(folder)


def test_info_says_what_is_in_it(folder: str) -> None:
    content = lmgauge.info(folder)
    stated = {"model": "small", "score": "correct", "program": "columns", "items": 2, "mean": 0.5}
    assert {name: content[name] for name in stated} == stated
    assert "is a run" in refused("info", folder, "--context", "5")


def test_options_of_the_one_kind_are_refused_of_the_other(folder: str) -> None:
    table = str(Path(folder).with_name("small.csv"))
    words = refused("import", table, "--score", "correct", "--log-unit", "nats", "-o", "x")
    assert "--log-unit is of log-probabilities: leave it or --score out" in words
    assert "--scale is about scores of items" in refused("import", table, "--scale", "0,2", "-o", "x")
    assert "or one with scores of items: --score COLUMN" in refused("import", table, "-o", "x")
