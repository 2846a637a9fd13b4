"""The version of the package, and that of its numbers: docs/reference/number-policy.md."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import lmgauge
from lmgauge.api.doctor import compared
from lmgauge.base.version import NUMBERS_VERSION, __version__
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.runs import open_run
from lmgauge.numerics.signature import Signature

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "lmgauge"


def test_the_numbers_are_those_of_this_version_or_of_one_before() -> None:
    assert compared(__version__, f">={NUMBERS_VERSION}") == "ok"


def test_signatures_name_the_version_of_the_numbers() -> None:
    """Whatever sets the part `v` or `lmgauge` of a signature sets it to that version."""
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
            wrong += [
                f"{path.relative_to(PACKAGE)}:{value.lineno}"
                for key, value in pairs
                if isinstance(key, ast.Constant) and key.value == "v" and ast.unparse(value) != "NUMBERS_VERSION"
            ]
    assert wrong == []


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    texts = ["the cat sat", "the dog ran", "a cat ran"]
    for order in (1, 2):
        model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(texts), order=order)
        lmgauge.evaluate(model, texts=texts, output=tmp_path / str(order))
    return [tmp_path / "1", tmp_path / "2"]


def test_runs_of_two_versions_of_the_numbers_are_compared_with_a_note(runs: list[Path]) -> None:
    first, second = (open_run(path) for path in runs)
    assert first.evaluation is not None
    assert first.numbers_version == NUMBERS_VERSION
    signature = Signature.parse(first.evaluation["signature"])
    older = str(replace(signature, parts={**signature.parts, "v": "0.1.0"}))
    note = f"number versions differ (0.1.0 / {NUMBERS_VERSION}), so some digits do: evaluate both with one version"
    for evaluation, notes in (({"signature": older}, {note}), ({"signature": 7}, set()), ({}, set()), (None, set())):
        (comparison,) = compare([replace(first, evaluation=evaluation), second])
        assert {text for text in comparison.notes if "version" in text} == notes
