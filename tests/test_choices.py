"""Lists of options: each is typed once, and is what the code behind it knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import pytest

import lmgauge
from lmgauge.base import choices
from lmgauge.cli.main import cli
from lmgauge.numerics.figures import COMPARED
from lmgauge.records.formats import FORMATS_OF_RECORDS
from lmgauge.tasks.tokenizers import TOKENIZERS
from tests.reference.ngram import KINDS as REFERENCE_KINDS

SOURCE = Path(choices.__file__).parent.parent
LISTS = {
    name: tuple(get_args(values) or values)
    for name, values in vars(choices).items()
    if get_origin(values) is Literal or (name.isupper() and isinstance(values, tuple | dict))
}


def typed(path: Path) -> Iterator[tuple[int, set[str]]]:
    """Line and words of each list, tuple or set of nothing but strings, and of each Literal, in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            words = [part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if len(words) == len(node.elts):
                yield node.lineno, set(words)


def keyed(path: Path) -> Iterator[tuple[int, set[str]]]:
    """Line and keys of each dictionary with nothing but strings as keys, in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            words = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            if len(words) == len(node.keys):
                yield node.lineno, set(words)


def choice_arguments(path: Path) -> Iterator[ast.expr]:
    """What is given to each `click.Choice` in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "Choice":
            yield node.args[0]


def test_no_list_is_typed_again() -> None:
    """Pairs of words occur by chance; longer lists do not."""
    lists = [set(values) for values in LISTS.values() if len(values) > 2]
    places = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, words in typed(path)
        if path.name != "choices.py" and words in lists
    ]
    assert places == []


def test_a_table_of_choices_has_all_of_them() -> None:
    """What is done for each choice, by its name: a table that knows three of them and not the fourth is refused here."""
    in_parts = {"scores/distributions/reduce.py", "tasks/tokenizers.py"}  # topN is a pattern; two tables, compared below
    lists = [set(values) for values in LISTS.values()]
    places = [
        f"{path.relative_to(SOURCE)}:{line}: {sorted(words)}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, words in keyed(path)
        if path.relative_to(SOURCE).as_posix() not in in_parts
        if len(words) > 2 and any(words < values for values in lists) and words not in lists
    ]
    assert places == []


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").glob("*.py")), ids=lambda path: path.name)
def test_commands_type_no_list_of_their_own(path: Path) -> None:
    for argument in choice_arguments(path):
        words = argument.elts if isinstance(argument, ast.List | ast.Tuple) else []
        assert sum(isinstance(word, ast.Constant) for word in words) <= 1, f"{path.name}:{argument.lineno}"


def options_of(command: str) -> dict[str, Any]:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    return {str(parameter.name): parameter.type for parameter in found.params}


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        ("eval", "format", choices.FORMATS),
        ("eval", "reserved", choices.RESERVED_POLICIES),
        ("split", "errors", get_args(choices.ErrorPolicy)),
        ("compare", "metric", get_args(choices.ComparedMetric)),
        ("diagnose", "only", choices.DIAGNOSIS_SECTIONS),
        ("bleu", "tokenizer", get_args(choices.BleuTokenizer)),
        ("wer", "errors", get_args(choices.TaskErrorPolicy)),
        ("wer", "significance", get_args(choices.SignificanceTest)),
    ],
)
def test_commands_offer_what_is_there(command: str, option: str, values: tuple[str, ...]) -> None:
    assert tuple(options_of(command)[option].choices) == values


def test_the_code_knows_all_of_a_list() -> None:
    assert sorted(get_args(choices.BleuTokenizer)) == sorted(TOKENIZERS)
    assert set(REFERENCE_KINDS) == set(choices.SMOOTHING_KINDS)
    assert set(options_of("train")["kind"].choices) > set(choices.SMOOTHING_KINDS)
    assert tuple(FORMATS_OF_RECORDS) == choices.FORMATS
    assert tuple(figure.name for figure in COMPARED) == get_args(choices.ComparedMetric)
    assert set(get_args(choices.TaskErrorPolicy)) < set(get_args(choices.ErrorPolicy))


def test_people_are_told_of_every_smoothing() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "train-an-n-gram-model.md").read_text(encoding="utf-8")
    assert [kind for kind in choices.SMOOTHING_KINDS if f"`{kind}`" not in page] == []
    assert [kind for kind in choices.SMOOTHING_KINDS if kind not in str(lmgauge.train.__doc__)] == []
    assert set(choices.SMOOTHINGS) == set(choices.SMOOTHING_KINDS)
