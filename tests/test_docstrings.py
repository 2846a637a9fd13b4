"""The examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import lmgauge

PACKAGE = Path(lmgauge.__file__).parent
WITH_EXAMPLES = [
    ".".join(("lmgauge", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


NEEDS = {
    "lmgauge.api.context_curve": "transformers",
    "lmgauge.api.report": "jinja2",
    "lmgauge.api.task_labels": "sklearn",
    "lmgauge.api.train": "transformers",
    "lmgauge.explore.door": "starlette",
    "lmgauge.tasks.metrics.labels": "sklearn",
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
