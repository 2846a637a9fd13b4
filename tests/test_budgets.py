"""The three rules that keep the house small: a budget for every room, one of each by name, two users of what is new."""

from __future__ import annotations

import ast

import pytest

from tests.budgets import BUDGETS, PACKAGE, ROOM_OF, SOURCES, full_names, row_of, single_users, table, users_of_each, weigh

HOW = "`python -m tests.budgets --lower` brings tests/budgets.toml down to what there is"


def test_no_room_is_above_its_budget() -> None:
    rooms, whole = weigh()
    over = [row for row, now in rooms.items() if now > BUDGETS["rooms"][row[0]][row[1]]]
    over += [("whole", name) for name, now in whole.items() if now > BUDGETS["whole"][name]]
    assert over == [], f"above the budget of tests/budgets.toml: lower another, or say why in the changelog\n{table()}"


def test_every_module_has_a_room() -> None:
    new = sorted({path.relative_to(PACKAGE).parts[0] for path in SOURCES if row_of(path) is None})
    assert new == [], "new at the top of the package: give it a row in tests/budgets.toml, its lines from another row"
    assert [path for path in ROOM_OF if not (PACKAGE / path).exists()] == [], HOW


def test_there_is_one_of_each() -> None:
    """What a module may use is what it uses today, or less."""
    uses = users_of_each()
    more = [
        f"{name} in {module}: {count}, allowed {BUDGETS['one_of_each'][name].get(module, 0)}"
        for name, modules in uses.items()
        for module, count in modules.items()
        if count > BUDGETS["one_of_each"][name].get(module, 0)
    ]
    assert more == [], "there is a module that does this for all: use it"
    gone = {name: sorted(set(modules) - set(uses[name])) for name, modules in BUDGETS["one_of_each"].items()}
    assert {name: modules for name, modules in gone.items() if modules} == {}, HOW


def test_what_is_new_has_two_users() -> None:
    """Protocols, engines and settings: with one user it is a function, or an argument."""
    single = single_users()
    assert [name for name in single if name not in BUDGETS["one_user"]] == []
    assert [name for name in BUDGETS["one_user"] if name not in single] == [], HOW


def test_an_annotation_is_no_use() -> None:
    code = "import pyarrow.parquet as pq\ndef f(x: pq.ParquetFile | None) -> list[pq.ParquetFile]: y: pq.ParquetFile = x"
    assert "pyarrow.parquet.ParquetFile" not in full_names(ast.parse(code))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import json as j; j.loads(x)", "json.loads"),
        ("from json import loads; loads(x)", "json.loads"),
        ("import pyarrow.parquet as pq\ndef f(): return pq.ParquetFile(x)", "pyarrow.parquet.ParquetFile"),
        ("class A(TypedDict): pass\nfrom typing import TypedDict", "typing.TypedDict"),
        ("from urllib.request import urlopen", "urllib.request"),
        ("getattr(self._model, 'notes', ())", "getattr(model, ...)"),
        ("hasattr(loaded, 'score')", "hasattr(model, ...)"),
    ],
)
def test_names_are_seen_through_what_they_were_imported_as(code: str, name: str) -> None:
    assert name in full_names(ast.parse(code))
