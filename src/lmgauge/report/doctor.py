"""What `lmgauge doctor` has seen: the verdict, what is wrong, the versions, and a line for each extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmgauge.errors import install_command
from lmgauge.report.blocks import Column, Document, Level, Lines, Mark, Table, Text, Verdict, labels, notes

if TYPE_CHECKING:
    from lmgauge.api.doctor import Checkup
    from lmgauge.installation.requirements import Library

_LEVELS: dict[str, Level] = {"ok": "good", "missing": "unknown"}
_MOST_NAMES = 6


def blocks(checkup: Checkup) -> Document:
    """Return the verdict, the problems with their remedies, versions, and the extras."""
    count, versions = len(checkup.problems), checkup.versions
    verdict = Verdict("good", f"lmgauge {versions['lmgauge']} works; nothing that is installed is broken or too old")
    if count:
        verdict = Verdict("bad", f"lmgauge {versions['lmgauge']}: {count} problem{'s' * (count > 1)}")
    lines = {
        "lmgauge": versions["lmgauge"],
        "its numbers": f"those of version {versions['numbers']}",
        "Python": versions["python"],
        "platform": versions["platform"],
        "kernels": checkup.kernels,
        "libraries": _named(checkup.core),
    }
    extras = checkup.extras
    columns = (
        labels("extra", [extra.name for extra in extras]),
        Column("state", [Mark(extra.state, _LEVELS.get(extra.state, "bad")) for extra in extras], align="left"),
        labels("for", [extra.purpose for extra in extras], wraps=True, drop=1),
        labels("libraries", [_named(extra.libraries) for extra in extras], wraps=True),
    )
    return (
        verdict,
        *(Text(problem, indent=2) for problem in checkup.problems),
        *notes(checkup.notes),
        Lines(tuple(lines.items())),
        Table(columns, "Extras"),
        *notes([f"What is missing is installed by its name: {install_command('NAME,NAME')}"]),
    )


def _named(libraries: Sequence[Library]) -> str:
    names = [
        f"{one.name} {one.installed or 'missing'}" + f" ({one.asked})" * one.state.startswith("too") for one in libraries
    ]
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
