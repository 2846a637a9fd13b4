"""`lmgauge.doctor`: whether this install works, and what is missing for what."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lmgauge.api.installation import requirements
from lmgauge.api.installation.requirements import FOR_CONTRIBUTORS, Extra, Library
from lmgauge.base.display import Displayable
from lmgauge.base.version import NUMBERS_VERSION, __version__

_SECONDS = 120.0
_LONGEST = 200
_PASSED = 42
_NOT_TRIED = "not tried: this Python cannot start another one"
_ERROR = re.compile(r"[\w.]+(?:Error|Exception|Exit|Interrupt)\b.*")
_KNOWN_ANSWER = 2.945285930442359
_KERNEL_CALL = f"""\
import lmgauge
model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"]), order=2)
answer = lmgauge.perplexity(model, ["the cat sat", "the dog ran"])
if abs(answer - {_KNOWN_ANSWER!r}) > 1e-12:
    raise ArithmeticError(f"a perplexity of {_KNOWN_ANSWER!r} came out as {{answer!r}}")
"""


@dataclass(frozen=True, repr=False)
class Checkup(Displayable):
    """What `lmgauge doctor` has seen.

    Attributes:
        versions: of lmgauge, of its numbers, of Python, and the platform.
        kernels: "ok", or why the compiled kernels do not work.
        core: the libraries that are always needed.
        extras: the others, by extra.
        problems: what is wrong, each with its remedy; empty if nothing is.
        notes: what is good to know.

    Example:
        >>> import lmgauge
        >>> checkup = lmgauge.doctor(quick=True)
        >>> checkup.kernels
        'ok'
        >>> checkup.versions["lmgauge"] == lmgauge.__version__
        True
    """

    versions: Mapping[str, str]
    kernels: str
    core: tuple[Library, ...]
    extras: tuple[Extra, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if nothing that is installed is broken or too old."""
        return not self.problems

    @property
    def unusable(self) -> frozenset[str]:
        """Names of the libraries that lmgauge always needs and that cannot be imported."""
        return frozenset(library.name for library in self.core if library.state in ("broken", "missing"))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        libraries = {"core": [one.to_dict() for one in self.core], "extras": [extra.to_dict() for extra in self.extras]}
        return {"passed": self.passed} | vars(self) | {"versions": dict(self.versions)} | libraries

    def _in_brief(self) -> str:
        return f"lmgauge {self.versions['lmgauge']}, {f'{len(self.problems)} problems' if self.problems else 'no problem'}"


def doctor(*, quick: bool = False) -> Checkup:
    """Look whether this install works, and what is missing for what: `lmgauge doctor`.

    Shows versions, whether the compiled kernels give a known answer, and each extra with its libraries and what it is for.
    Libraries are imported in a process of their own, so that one that is broken is reported, and breaks nothing here; with
    torch this takes seconds. Exits with 1 where something that is installed is broken or too old. Put what it prints into a
    report of a fault.

    Args:
        quick: import only what lmgauge always needs; of other libraries only the versions are read.

    Shell:
        lmgauge doctor
        lmgauge doctor --json | jq '.extras[] | select(.state == "missing")'

    Example:
        >>> import lmgauge
        >>> audit = next(extra for extra in lmgauge.doctor(quick=True).extras if extra.name == "audit")
        >>> audit.purpose, audit.to_dict()["install"]
        ('the compression check of an audit (level 5)', "pip install 'lmgauge[audit]'")
    """
    core, extras = requirements.core_and_extras()
    of_users = [extra.libraries for extra in extras if not quick and extra.name not in FOR_CONTRIBUTORS]
    broken = _broken({library.name: library for libraries in (core, *of_users) for library in libraries})

    def judged(libraries: Iterable[Library]) -> tuple[Library, ...]:
        return tuple(replace(one, **broken.get(one.name, {})) for one in libraries)

    core = judged(core)
    extras = tuple(replace(extra, libraries=judged(extra.libraries)) for extra in extras)
    kernels = _error_of(_KERNEL_CALL) or "ok"
    problems = [_problem(library, "lmgauge needs") for library in core if library.state != "ok"]
    if kernels not in ("ok", _NOT_TRIED) and not problems:
        problems.append(f"the compiled kernels do not work: {kernels}; pip install --force-reinstall --no-deps lmgauge")
    users: dict[Library, list[str]] = {}
    for extra in extras:
        for library in extra.libraries if extra.name not in FOR_CONTRIBUTORS else ():
            if library.state not in ("ok", "missing"):
                users.setdefault(library, []).append(extra.name)
    for library, names in users.items():
        which = f"the extras {', '.join(names)} need" if names[1:] else f"the extra {names[0]} needs"
        problems.append(_problem(library, which))
    installed = requirements.installed_version()
    notes = [] if core else ["lmgauge is not installed as a package, so that its extras are not known: pip install ."]
    if installed not in ("", __version__):
        notes.append(f"this is lmgauge {__version__}, and the package that pip knows is {installed}: two are on the path")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    versions = {"lmgauge": __version__, "numbers": NUMBERS_VERSION, "python": python, "platform": platform.platform()}
    return Checkup(versions, kernels, core, extras, tuple(problems), tuple(notes))


def _broken(libraries: Mapping[str, Library]) -> dict[str, dict[str, Any]]:
    """Return what changes of those libraries that cannot be imported, by name."""
    calls = {name: f"import {', '.join(one.modules)}" for name, one in libraries.items() if one.modules}
    if not calls or _error_of("\n".join(calls.values())) in ("", _NOT_TRIED):  # one process, unless something is wrong
        return {}
    errors = {name: _error_of(call) for name, call in calls.items()}
    return {name: {"state": "broken", "error": error} for name, error in errors.items() if error}


def _error_of(code: str) -> str:
    """Return why another Python cannot run code, in a line; empty if it can."""
    # The code is among our own words; a library may print, raise, hang or end Python: it does so over there.
    command = [sys.executable, "-P", "-c", f"{code}\nimport os\nos._exit({_PASSED})"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        done = subprocess.run(command, env=environment, **streams, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {_SECONDS:g} s"
    except (OSError, TypeError):  # an embedded Python has no program of its own
        return _NOT_TRIED
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if _ERROR.fullmatch(line)]
    said = lines[-1] if lines else f"it ended Python with exit code {done.returncode}"
    return "" if done.returncode == _PASSED else said[:_LONGEST]


def _problem(library: Library, needed_by: str) -> str:
    """Return what is wrong with a library, who needs it, and the command that puts it right."""
    reason = f": {library.error}" if library.error else f"; {library.asked} is needed" * (library.state != "missing")
    name = f"{library.name} {library.installed}".rstrip()
    return f"{name}, which {needed_by}, is {library.state}{reason}; {library.remedy}"
