"""Public names, each imported on first use: the stub beside a module (`.pyi`) is their one list."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def homes_of(file: str) -> dict[str, str]:
    """Return the module of each name that the stub of a module lists as `from home import name as name`."""
    with open(f"{file}i", encoding="utf-8") as stub:  # pathlib would be loaded for this alone
        return {line.split()[3]: line.split()[1] for line in stub if line.startswith("from ")}


def lazy(module: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a module with a stub."""
    homes = homes_of(file)
    names = sorted(homes, key=lambda name: (not name.isupper(), name))

    def __getattr__(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = homes[name]
        value = import_module(f"{home}.{name}") if home == module else getattr(import_module(home), name)
        setattr(sys.modules[module], name, value)
        return value

    return __getattr__, lambda: names, names
