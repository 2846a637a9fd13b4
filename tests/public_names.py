"""What users import: the public names, and the members of public classes."""

from __future__ import annotations

import inspect
from functools import cached_property
from importlib import import_module

NAMESPACES = (
    *("lmgauge", "lmgauge.results", "lmgauge.settings", "lmgauge.models", "lmgauge.api.sharding", "lmgauge.errors"),
    *("lmgauge.tasks", "lmgauge.numerics.information", "lmgauge.scores.distributions", "lmgauge.integrations"),
    *(f"lmgauge.integrations.{name}" for name in ("datatrove", "hf_datasets")),
)


def public_names() -> list[tuple[str, str]]:
    """Return each name with its namespace."""
    names = [(space, name) for space in NAMESPACES for name in import_module(space).__all__]
    return [(space, name) for space, name in names if not inspect.ismodule(getattr(import_module(space), name))]


def public_members(value: type) -> dict[str, list[object]]:
    """Return the methods and properties that a class has of ours, each with those that it overrides behind it."""
    found: dict[str, list[object]] = {}
    for owner in inspect.getmro(value):
        for name, member in vars(owner).items() if owner.__module__.startswith("lmgauge") else ():
            kinds = (property, cached_property, classmethod, staticmethod)
            if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, kinds)):
                found.setdefault(name, []).append(member)
    return found
