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

if sys.byteorder != "little" or sys.maxsize < 2**32:
    raise ImportError(
        "lmgauge needs a 64-bit, little-endian machine (x86-64 or arm64) and a 64-bit Python; this Python is "
        f"{'64' if sys.maxsize >= 2**32 else '32'}-bit and {sys.byteorder}-endian"
    )

with open(f"{__file__}i", encoding="utf-8") as _stub:  # pathlib would be loaded for this alone
    _HOMES = {line.split()[3]: line.split()[1] for line in _stub if line.startswith("from ")}
_NAMESPACES = [name for name, home in _HOMES.items() if home == "lmgauge"]
"""Folders with names of their own, such as `lmgauge.tasks.bleu`."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"lmgauge.{name}")
    if name not in _HOMES:
        homes = (import_module(f"lmgauge.{space}") for space in _NAMESPACES if not name.startswith("_"))
        moved = next((f"; it is {home.__name__}.{name}" for home in homes if name in home.__all__), "")
        raise AttributeError(f"module 'lmgauge' has no attribute {name!r}{moved}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """The package, on which `report` and `explore` are functions, also when the folders of these names are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in ("report", "explore") or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
