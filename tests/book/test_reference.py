"""The reference is whole: each public name and each command has its place, and only one."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from docs.examples import BOOK
from tests.public_names import NAMESPACES, public_names

import lmgauge
from lmgauge.cli.commands import COMMANDS

API = BOOK / "reference" / "api"
WITHOUT_EXAMPLE = {"__version__", "Correction", "InformationUnit"}
"""A string, and types that are lists of words."""


def test_each_public_name_stands_in_one_page() -> None:
    described: Counter[str] = Counter()
    for page in API.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        described.update(re.findall(r"^\.\. auto(?:function|class|exception):: (\S+)$", text, re.MULTILINE))
        (space,) = re.findall(r"^\.\. py:module:: (\S+)$", text, re.MULTILINE) or ["lmgauge"]
        of_page = re.findall(r"^\.\. py:(?:type|data):: (\S+)$", text, re.MULTILINE)
        described.update(f"{space}.{name.removeprefix('lmgauge.')}" for name in of_page)
    assert described == Counter(f"{space}.{name}" for space, name in public_names())


def test_each_command_stands_in_one_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (BOOK / "reference" / "command-line").glob("*.md")]
    described = [
        command for text in pages for command in re.findall(r"^\.\. click:: (\S+)\n   :prog: lmgauge (\S+)$", text, re.M)
    ]
    places = [(f"lmgauge.cli.derive:{name.replace('-', '_')}", name) for name in COMMANDS]
    assert sorted(described) == sorted(places)


@pytest.mark.parametrize(("space", "name"), [pair for pair in public_names() if pair[1] not in WITHOUT_EXAMPLE])
def test_each_public_name_has_an_example_that_can_be_copied(space: str, name: str) -> None:
    """It imports what it uses, but for the name itself; tests/test_docstrings.py runs it."""
    try:
        documented = inspect.getdoc(getattr(import_module(space), name)) or ""
    except ImportError as error:  # an extra is missing
        pytest.skip(str(error))
    examples = doctest.DocTestParser().get_examples(documented)
    assert examples, f"{space}.{name} has no example"
    code = ast.parse("".join(example.source for example in examples))
    used = {node.id for node in ast.walk(code) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    made = {node.id for node in ast.walk(code) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made |= {node.name for node in ast.walk(code) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    made |= {node.name for node in ast.walk(code) if isinstance(node, ast.ExceptHandler) and node.name}
    made |= {node.arg for node in ast.walk(code) if isinstance(node, ast.arg)}
    imports = [alias for node in ast.walk(code) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    made |= {(alias.asname or alias.name).partition(".")[0] for alias in imports}
    assert used - made - {name} - set(vars(builtins)) == set()


def test_each_part_of_a_signature_is_explained() -> None:
    page = (BOOK / "reference" / "signature.md").read_text(encoding="utf-8")
    text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
    models = [lmgauge.train("witten-bell", text, order=order) for order in (1, 2)]
    lines = [lmgauge.evaluate(models[0], text).signature, lmgauge.divergence(*models, text).signature]
    lines.append(lmgauge.word_surprisal(models[0], texts="the cat").signature)
    words = {"hypotheses": ["the cat sat"] * 2, "references": ["the dog sat", "the cat sat"], "documents": ["a", "b"]}
    options = {"order": 3, "reference_length": "shortest"}
    error_rates = lmgauge.tasks.WER(unicode_form="NFC"), lmgauge.tasks.CER()
    metrics = (lmgauge.tasks.BLEU(**options), lmgauge.tasks.ChrF(), lmgauge.tasks.TER(), *error_rates)  # type: ignore[arg-type]
    lines += [lmgauge.tasks.score_systems(metric, **words).signature for metric in metrics]  # type: ignore[arg-type]
    keys = {part.split(":")[0] for line in lines for part in line.split("|") if ":" in part}
    assert len(keys) > 30
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


@pytest.mark.parametrize("page", sorted(BOOK.joinpath("reference").rglob("*.md")), ids=lambda page: page.stem)
def test_pages_name_public_paths_only(page: Path) -> None:
    named = re.findall(r"^\.\. auto\w+:: (\S+)\.\w+$", page.read_text(encoding="utf-8"), re.MULTILINE)
    decoding = {"lmgauge.NgramModel", "lmgauge.models.ngram.decoder_state.NgramStates", "lmgauge.integrations"}
    assert set(named) <= {*NAMESPACES, "lmgauge.results.Evaluation", *decoding}
