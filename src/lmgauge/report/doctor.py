"""What `lmgauge doctor` has seen: the verdict, what is wrong, then versions, machine, and extras that are there or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lmgauge.errors import install_command
from lmgauge.memory import size_in_words
from lmgauge.report.blocks import Column, Document, Lines, Mark, Table, Text, Verdict, labels, notes

if TYPE_CHECKING:
    from lmgauge.api.doctor import Checkup
    from lmgauge.installation.requirements import Extra, Library

_Pair = tuple[str, str | tuple[str, ...]]
_MOST_NAMES = 6


def blocks(checkup: Checkup) -> Document:
    """Return the verdict, the problems with their remedies, what this runs on, and the extras."""
    count = len(checkup.problems)
    verdict = Verdict("good", f"lmgauge {checkup.versions['lmgauge']} works; nothing that is installed is broken or too old")
    if count:
        verdict = Verdict("bad", f"lmgauge {checkup.versions['lmgauge']}: {count} problem{'s' * (count > 1)}")
    missing = [extra for extra in checkup.extras if extra.state == "missing"]
    return (
        verdict,
        *(Text(problem, indent=2) for problem in checkup.problems),
        *notes(checkup.notes),
        Lines((*_software(checkup), *_machine(checkup), *_surroundings(checkup))),
        _installed([extra for extra in checkup.extras if extra.state != "missing"]),
        _missing(missing),
        *notes([f"Several at once: {install_command('NAME,NAME')}"] if len(missing) > 1 else []),
    )


def _software(checkup: Checkup) -> Iterator[_Pair]:
    for name, title in (("lmgauge", "lmgauge"), ("numbers", "its numbers"), ("python", "Python"), ("platform", "platform")):
        since = "those of version " * (name == "numbers")
        yield title, since + checkup.versions[name]
    yield "kernels", checkup.kernels
    yield "libraries", ", ".join(map(_named, checkup.core))
    compilers = tuple(f"{name}: {line}" for name, line in checkup.compilers.items())
    yield "C++ compiler", compilers or "none on the path; only an install from source needs one"


def _machine(checkup: Checkup) -> Iterator[_Pair]:
    hardware = checkup.hardware
    instructions = " ".join(hardware["vector_instructions"]) or "vector instructions not known"
    yield "processor", f"{hardware['processor']} ({hardware['architecture']}, {instructions})"
    sizes = [("", hardware["memory_bytes"]), (" free", hardware["free_memory_bytes"])]
    memory = ", ".join(f"{size_in_words(size)}{what}" for what, size in sizes if size is not None)
    yield "cores", str(hardware["cores"])
    yield "memory", memory or "not known"
    cards, usable = checkup.devices["cards"], checkup.devices["usable"]
    if checkup.devices["torch"]:
        yield "torch", f"{checkup.devices['torch']}; it can use " + (", ".join(usable) or "the processor only")
    yield "graphics cards", tuple(cards) or "none that nvidia-smi knows"


def _surroundings(checkup: Checkup) -> Iterator[_Pair]:
    for place in checkup.places:
        free = "" if place.free_bytes is None else f", {size_in_words(place.free_bytes)} free"
        yield place.name, f"{place.path}{free}" + (f"; cannot be written to: {place.error}" if place.error else "")
    terminal = checkup.terminal
    kind = f"{terminal['columns']} columns" if terminal["terminal"] else "standard output is a pipe or a file"
    signs = "" if terminal["shows_signs"] else ", which cannot show ≥ and the like: others stand for them"
    yield "terminal", f"{kind}, {terminal['encoding']}{signs}"
    yield "locale", f"{terminal['locale']}, names of files in {terminal['file_names']}"


def _installed(extras: Iterable[Extra]) -> Table:
    listed = list(extras)
    columns = (
        labels("extra", [extra.name for extra in listed]),
        Column("state", [Mark(extra.state, "good" if extra.state == "ok" else "bad") for extra in listed], align="left"),
        labels("for", [extra.purpose for extra in listed], wraps=True, drop=1),
        labels("libraries", [_names(extra.libraries) for extra in listed], wraps=True),
    )
    return Table(columns, "Extras that are installed")


def _missing(extras: Iterable[Extra]) -> Table:
    listed = list(extras)
    gaps = [[library for library in extra.libraries if library.state == "missing"] for extra in listed]
    columns = (
        labels("extra", [extra.name for extra in listed]),
        labels("for", [extra.purpose for extra in listed], wraps=True),
        labels("missing", [_joined([library.name for library in gap]) for gap in gaps], wraps=True, drop=1),
        labels("to install it", [install_command(extra.name) for extra in listed]),
    )
    return Table(columns, "Extras that are not")


def _names(libraries: Iterable[Library]) -> str:
    return _joined([_named(library) for library in libraries])


def _joined(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _named(library: Library) -> str:
    return f"{library.name} {library.installed or 'missing'}" + f" ({library.asked})" * (library.state.startswith("too"))
