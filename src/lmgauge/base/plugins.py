"""What other packages add by name: kinds of models, importers, exporters and task metrics, declared as ours are.

A package says in its pyproject.toml what it has, in a group of entry points for each kind:

    [project.entry-points."lmgauge.models"]
    my-model = "my_package:load"

They are looked for where a name or a file is not one of ours, so that nobody else waits for them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import isclass, isroutine
from typing import Any

from lmgauge.base.errors import LmgaugeError, UsageError

_LOADED: dict[str, str] = {}
"""Package -> what was loaded of it."""


class Plugins:
    """All things of one kind: ours, and those that other packages have."""

    # ours: lines "name = module:object", as entry points are written.

    def __init__(self, kind: str, ours: str) -> None:
        self.group = f"lmgauge.{kind}"
        self.ours = dict(line.strip().split(" = ") for line in ours.strip().split("\n"))

    def find(self, name: str) -> Any:
        """Return what has a name, imported now; None if there is no such thing."""
        if name in self.ours:
            module, _, member = self.ours[name].partition(":")
            return getattr(import_module(module), member)
        entry = self._others().get(name)
        if entry is None:
            return None
        try:
            loaded = entry.load()
        except Exception as error:  # it may break in any way
            raise UsageError(f"{breaks(f'{name} ({entry.value})', error)}; install it again, or another version") from error
        _LOADED[entry.value.partition(":")[0].partition(".")[0]] = f"{name} ({entry.value})"
        return loaded

    def names(self) -> list[str]:
        """Return all names there are, ours first."""
        return [*self.ours, *self._others()]

    def described(self) -> list[dict[str, str]]:
        """Return the group, the name, the description and the origin of each, a row each; of what breaks, how."""
        # A function or class is described by the first line of its docstring, another object by that of its module.
        homes = self.ours | {name: entry.value for name, entry in self._others().items()}
        sources = {name: f"{entry.dist.name} {entry.dist.version}" for name, entry in self._others().items() if entry.dist}
        rows = []
        for name, home in homes.items():
            try:
                plugin = self.find(name)
                documented = plugin if isroutine(plugin) or isclass(plugin) else sys.modules[home.partition(":")[0]]
                words = (documented.__doc__ or "").strip().partition("\n")[0]
            except (ImportError, LmgaugeError) as error:
                words = str(error)
            rows.append({"group": self.group, "name": name, "description": words, "from": sources.get(name, "lmgauge")})
        return rows

    def _others(self) -> dict[str, Any]:
        from importlib.metadata import entry_points  # slow to import, and for plugins only

        return {entry.name: entry for entry in entry_points(group=self.group) if entry.name not in self.ours}


def breaks(name: str, error: BaseException) -> str:
    """Return what is wrong with a plugin, in words."""
    return f"the plugin {name} breaks: {type(error).__name__}: {error}"


def broken_plugin(error: BaseException) -> str | None:
    """Return what is wrong with the plugin in whose code an error was raised; None if none of them was at work."""
    step = error.__traceback__
    while step is not None:
        package = str(step.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package in _LOADED:
            return breaks(_LOADED[package], error)
        step = step.tb_next
    return None
