"""The package is light, and says what is missing. Its pages run in tests/book."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

import lmgauge.integrations
from lmgauge.base.errors import MissingExtraError
from tests.integrations.tiny import run_python


def output_of(program: str) -> str:
    with run_python(program) as worker:
        output, errors = worker.communicate(timeout=300)
    assert worker.returncode == 0, errors
    return output


def test_the_package_alone_loads_nothing() -> None:
    program = """
import sys
import lmgauge.integrations
heavy = {"torch", "transformers", "lightning", "torchmetrics", "datatrove", "ray", "datasets", "pyarrow"}
print(sorted((heavy | {"lmgauge.integrations.metric"}) & set(sys.modules)))
print(dir(lmgauge.integrations), hasattr(lmgauge.integrations, "nothing"))
"""
    assert output_of(program).splitlines() == ["[]", f"{lmgauge.integrations.__all__} False"]


def test_what_is_missing_is_told() -> None:
    """As if none of the libraries were installed: an entry None in sys.modules makes an import fail."""
    program = """
import sys
for library in ("torch", "transformers", "lightning", "torchmetrics", "datatrove", "ray", "datasets"):
    sys.modules[library] = None
import lmgauge.integrations
from lmgauge.base.errors import MissingExtraError
for name in lmgauge.integrations.__all__:
    try:
        getattr(lmgauge.integrations, name)
    except MissingExtraError as error:
        print(name)
"""
    need_no_library = {"hf_datasets", "DocumentFilter"}  # they are handed what they work on
    assert output_of(program).splitlines() == [name for name in lmgauge.integrations.__all__ if name not in need_no_library]


@pytest.mark.parametrize(
    ("library", "extra", "module"),
    [
        ("torchmetrics", "torchmetrics", "metric"),
        ("transformers", "neural", "transformers_callback"),
        ("lightning.pytorch", "lightning", "lightning_callback"),
        ("datatrove.data", "datatrove", "datatrove"),
    ],
)
def test_the_missing_library_is_named(library: str, extra: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for ours in ("in_memory", module):
        monkeypatch.delitem(sys.modules, f"lmgauge.integrations.{ours}", raising=False)
    expected = rf"this needs {library.partition('.')[0]}, which is not installed: pip install 'lmgauge\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=expected):
        import_module(f"lmgauge.integrations.{module}")
