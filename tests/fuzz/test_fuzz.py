"""A short budget of damaged inputs for each parser. Long runs: `python -m tests.fuzz --minutes N`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz import mutations, runner
from tests.fuzz.table import PARSERS, Parser


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_no_input_ends_in_a_fault(parser: Parser, tmp_path: Path) -> None:
    if parser.missing():
        pytest.skip(f"needs {', '.join(parser.missing())}")
    outcome = runner.try_many(parser, seed=0, indices=range(parser.budget), folder=tmp_path)
    assert not outcome.faults, "\n".join(
        f"python -m tests.fuzz {parser.name} --index {one['index']}\n{one['fault']}" for one in outcome.faults[:3]
    )
    # A fuzzer whose inputs are all refused, or all read, tries less than it seems to.
    assert 0 < outcome.ends["refused"] < outcome.inputs


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_an_input_is_drawn_from_its_number_alone(parser: Parser) -> None:
    assert runner.chance_of(parser, 0, 7).random() == runner.chance_of(parser, 0, 7).random()
    assert runner.chance_of(parser, 0, 7).random() != runner.chance_of(parser, 0, 8).random()


@pytest.mark.parametrize("change", [mutations.changed, mutations.changed_lines])
def test_a_change_is_the_same_for_the_same_chance(change: object) -> None:
    content = b"one two\nthree\tfour\n" * 5
    results = [[change(content, random.Random(seed)) for seed in range(200)] for _ in range(2)]  # type: ignore[operator]
    assert results[0] == results[1]
    assert sum(result != content for result in results[0]) > 150


def test_a_changed_value_is_the_same_for_the_same_chance_whatever_was_changed_before() -> None:
    value = {"a": [1, {"b": None}], "c": {}, "d": [[]]}
    results = [[repr(mutations.changed_value(value, random.Random(seed), 6)) for seed in range(500)] for _ in range(2)]
    assert results[0] == results[1]
    assert value == {"a": [1, {"b": None}], "c": {}, "d": [[]]}
