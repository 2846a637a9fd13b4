"""lmgauge measures how well a language model predicts a text, exactly.

>>> import lmgauge
>>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
>>> round(lmgauge.perplexity(model, ["the cat sat", "the dog ran"]), 4)
2.9453
>>> model.score_text("the cat sat")
<ScoredText: 4 events, -2.2379 nats, perplexity 1.7497>

Files are named by their paths: `lmgauge.train("modified-kneser-ney", "train.txt", order=5)`,
`print(lmgauge.evaluate(model, "test.txt"))`. The scores of tasks (BLEU, chrF, TER, WER, CER, F1) are in `lmgauge.tasks`.

The names are listed once, in `__init__.pyi`, which type checkers read as it is; each is imported on first use, so that
`import lmgauge` stays light.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from lmgauge.base.public_names import homes_of

if sys.byteorder != "little" or sys.maxsize < 2**32:
    raise ImportError(
        "lmgauge needs a 64-bit, little-endian machine (x86-64 or arm64) and a 64-bit Python; this Python is "
        f"{'64' if sys.maxsize >= 2**32 else '32'}-bit and {sys.byteorder}-endian"
    )

_HOMES = homes_of(__file__)
_SPACES = ("distributions", "errors", "information", "models", "results", "settings", "sharding", "tasks")
_NAMESPACES = {name: f"{_HOMES[name]}.{name}" for name in _SPACES}
"""Modules with names of their own, such as `lmgauge.tasks.bleu`, and where they are."""

_OF_ALL = ("results", "settings", "models", "sharding", "errors")
"""Those whose names stood in the package itself in version 0.2."""

__all__ = sorted(_HOMES)

RENDERERS = "lmgauge.report"
"""What shows results: read by `base.display`, which knows no room above it."""


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(_NAMESPACES[name])
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    spaces = () if name.startswith("_") else _SPACES
    space = next((space for space in spaces if name in import_module(_NAMESPACES[space]).__all__), None)
    if space not in _OF_ALL:
        hint = "" if space is None else f"; it is lmgauge.{space}.{name}"
        raise AttributeError(f"module 'lmgauge' has no attribute {name!r}{hint}")
    import warnings

    words = f"lmgauge.{name} is lmgauge.{space}.{name}; the short name ends with version 0.4"
    warnings.warn(words, DeprecationWarning, stacklevel=2)
    return getattr(__getattr__(space), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """The package, on which `report` and `explore` are functions, also when the folders of these names are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("report", "explore") or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
