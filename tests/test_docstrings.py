"""Docstrings: their examples run, public names have the full form, and all others are short."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import lmgauge
from tests.public_names import public_members, public_names

PACKAGE = Path(lmgauge.__file__).parent
WITH_EXAMPLES = [
    ".".join(("lmgauge", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


NEEDS = {
    "lmgauge.api.context_curve": "transformers",
    "lmgauge.report.documents": "jinja2",
    "lmgauge.api.train": "transformers",
    "lmgauge.explore.launch": "starlette",
    "lmgauge.tasks.public_sets": "sacrebleu",
}
"""Libraries of extras that examples need and their modules do not import."""


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of lightning
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    try:
        module = import_module(name)
    except ImportError as error:  # an extra is missing
        pytest.skip(str(error))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


WITHOUT_ARGS = {
    *(f"lmgauge.tasks.{name}" for name in ("cer", "chrf", "ter", "wer")),  # they say "as of `bleu`"
    "lmgauge.settings.Outputs.refuse_replacing",
    "lmgauge.integrations.PerplexityMetric.forward",  # as `update`
}


def documented() -> Iterator[tuple[str, str, object]]:
    """Yield public names and members, with their docstrings and those of what they override."""
    for space, name in public_names():
        try:
            value = getattr(import_module(space), name)
        except ImportError:  # an extra is missing
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{space}.{name}", inspect.getdoc(value) or "", value
        for member, kinds in public_members(value).items() if inspect.isclass(value) else ():
            inherited = "\n".join(inspect.getdoc(kind) or "" for kind in kinds)
            if isinstance(kinds[0], property) and f" {member}:" in (inspect.getdoc(value) or ""):
                inherited += "an attribute"
            yield f"{space}.{name}.{member}", inherited, getattr(value, member)


def test_public_names_have_the_full_form() -> None:
    """A purpose, and where there are two parameters or more, what each is."""
    rows = list(documented())
    assert len(rows) > 500
    assert [name for name, text, _ in rows if not text.strip()] == []
    functions = [
        (name, text, set(inspect.signature(value).parameters)) for name, text, value in rows if inspect.isfunction(value)
    ]
    untold = {name for name, text, parameters in functions if len(parameters - {"self"}) > 1 and "Args:" not in text}
    assert untold <= WITHOUT_ARGS


MADE_BY_FUNCTIONS = {f"lmgauge.models.{name}Model" for name in ("Mixture", "Neural", "Spelled")}
MADE_BY_FUNCTIONS |= {"lmgauge.Corpus", "lmgauge.NgramModel", "lmgauge.Vocabulary"}


def test_constructors_say_what_they_take() -> None:
    classes = {name: value for name, _, value in documented() if inspect.isclass(value) and "__init__" in vars(value)}
    untold = {
        name
        for name, value in classes.items()
        if not hasattr(value, "__dataclass_fields__") and not getattr(value, "_is_protocol", False)
        if len(inspect.signature(vars(value)["__init__"]).parameters) > 2
        if "Args:" not in f"{value.__doc__} {vars(value)['__init__'].__doc__}"
    }
    assert untold == MADE_BY_FUNCTIONS
