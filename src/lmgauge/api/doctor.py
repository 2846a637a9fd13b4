"""`lmgauge.doctor`: whether this install works, what it runs on, and what is missing for what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmgauge.declaration import verb
from lmgauge.installation import machine, requirements, trial
from lmgauge.installation.extras import FOR_CONTRIBUTORS
from lmgauge.installation.machine import TEMPORARY, Place
from lmgauge.installation.requirements import Extra, Library
from lmgauge.installation.trial import KERNELS, Trial
from lmgauge.models.ngram.verified_files import records_folder
from lmgauge.shown import Shown
from lmgauge.version import __version__

_NEEDED_SIZE = "64 bits, little-endian"


@dataclass(frozen=True, repr=False)
class Checkup(Shown):
    """What `lmgauge doctor` has seen.

    Attributes:
        versions: of lmgauge, of its numbers, of Python, and the platform.
        hardware: processor, instructions, cores, memory in bytes.
        kernels: "ok", or why the compiled kernels do not work.
        core: the libraries that are always needed.
        extras: the others, by extra.
        compilers: C++ compilers on the path; only an install from source needs one.
        devices: what torch can use, if it is installed, and the cards that the driver knows.
        places: the folders that are written to.
        terminal: encodings and width.
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
    hardware: Mapping[str, Any]
    kernels: str
    core: tuple[Library, ...]
    extras: tuple[Extra, ...]
    compilers: Mapping[str, str]
    devices: Mapping[str, Any]
    places: tuple[Place, ...]
    terminal: Mapping[str, Any]
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
        return {
            "passed": self.passed,
            "problems": list(self.problems),
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "hardware": dict(self.hardware),
            "kernels": self.kernels,
            "core": [library.to_dict() for library in self.core],
            "extras": [extra.to_dict() for extra in self.extras],
            "compilers": dict(self.compilers),
            "devices": dict(self.devices),
            "places": [place.to_dict() for place in self.places],
            "terminal": dict(self.terminal),
        }

    def _in_brief(self) -> str:
        count = len(self.problems)
        return f"lmgauge {self.versions['lmgauge']}, " + (f"{count} problems" if count else "no problem")


@verb
def doctor(*, quick: bool = False) -> Checkup:
    """Look whether this install works, what it runs on, and what is missing for what: `lmgauge doctor`.

    Shown are versions, machine, compiler, graphics cards, and each extra with its libraries and what it is for. Libraries
    are imported in a process of their own, so that one that is broken is reported, and breaks nothing here; with torch this
    takes seconds. The command exits with 1 where something that is installed is broken or too old.

    Args:
        quick: import what lmgauge always needs; of other libraries only read the versions.

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
    tried = (*core, *(() if quick else _libraries(extras)))
    trials = trial.try_modules([KERNELS, *(module for library in tried for module in library.modules), "lmgauge"])
    core = tuple(_judged(library, trials) for library in core)
    extras = tuple(replace(extra, libraries=tuple(_judged(one, trials) for one in extra.libraries)) for extra in extras)
    kernels, devices = _kernels(trials), _devices(trials)
    places = machine.places(records_folder().parent)
    return Checkup(
        versions=machine.versions(),
        hardware=machine.hardware(),
        kernels=kernels,
        core=core,
        extras=extras,
        compilers=machine.compilers(),
        devices=devices,
        places=places,
        terminal=machine.terminal(),
        problems=(*_core_problems(kernels, core), *_extra_problems(extras), *_place_problems(places)),
        notes=tuple(_notes(core, devices, places)),
    )


def _libraries(extras: Iterable[Extra]) -> list[Library]:
    """Return the libraries of extras but those that only contributors need, each once."""
    libraries = [library for extra in extras if extra.name not in FOR_CONTRIBUTORS for library in extra.libraries]
    return list({library.name: library for library in libraries}.values())


def _judged(library: Library, trials: Mapping[str, Trial]) -> Library:
    """Return a library, broken if it cannot be imported."""
    errors = [trials[module].error for module in library.modules if module in trials and trials[module].error]
    return replace(library, state="broken", error=errors[0]) if errors else library


def _kernels(trials: Mapping[str, Trial]) -> str:
    """Return "ok", or why the kernels cannot be used."""
    if KERNELS not in trials:
        return "not tried: this Python cannot start another one"
    return next((trials[name].error for name in (KERNELS, "lmgauge") if trials[name].error), "ok")


def _devices(trials: Mapping[str, Trial]) -> dict[str, Any]:
    facts = trials["torch"].facts if "torch" in trials else {}
    return {"torch": facts.get("build"), "usable": facts.get("devices", []), "cards": machine.graphics_cards()}


def _core_problems(kernels: str, core: Sequence[Library]) -> list[str]:
    """Return what is wrong with what every command needs."""
    problems = [] if machine.is_supported() else [f"this is not a machine or Python of {_NEEDED_SIZE}: numbers may be wrong"]
    problems += [_problem(library, "lmgauge needs") for library in core if library.state != "ok"]
    if kernels != "ok" and not problems and not kernels.startswith("not tried"):
        problems.append(f"the compiled kernels do not work: {kernels}; pip install --force-reinstall --no-deps lmgauge")
    return problems


def _extra_problems(extras: Iterable[Extra]) -> list[str]:
    """Return what is wrong with libraries of extras that are installed, each with the extras that need it."""
    users: dict[Library, list[str]] = {}
    for extra in extras:
        for library in extra.libraries if extra.name not in FOR_CONTRIBUTORS else ():
            if library.state not in ("ok", "missing"):
                users.setdefault(library, []).append(extra.name)
    words = {
        one: f"the extras {', '.join(names)} need" if names[1:] else f"the extra {names[0]} needs"
        for one, names in users.items()
    }
    return [_problem(library, users_in_words) for library, users_in_words in words.items()]


def _problem(library: Library, needed_by: str) -> str:
    """Return what is wrong with a library, who needs it, and the command that puts it right."""
    reason = f": {library.error}" if library.error else f"; {library.asked} is needed" * (library.state != "missing")
    return (
        f"{library.name} {library.installed}".rstrip() + f", which {needed_by}, is {library.state}{reason}; {library.remedy}"
    )


def _place_problems(places: Iterable[Place]) -> list[str]:
    return [
        f"{place.name}: {place.path or 'no folder'} cannot be written to ({place.error}); set TMPDIR to a folder that can"
        for place in places
        if place.error and place.name == TEMPORARY
    ]


def _notes(core: Sequence[Library], devices: Mapping[str, Any], places: Iterable[Place]) -> Iterator[str]:
    """Yield what is not wrong, and yet good to know."""
    if not core:
        yield "lmgauge is not installed as a package, so that its libraries and extras are not known: pip install ."
    installed = requirements.installed_version()
    if installed not in ("", __version__):
        yield f"this is lmgauge {__version__}, and the package that pip knows is {installed}: two of them are on the path"
    if devices["cards"] and devices["torch"] and not devices["usable"]:
        yield f"the driver knows a graphics card that this torch ({devices['torch']}) cannot use: see https://pytorch.org"
    for place in places:
        if place.error and place.name != TEMPORARY:
            yield f"{place.path} cannot be written to ({place.error}): models are checked whenever they are loaded"
