"""What is in a model or a run, what `lmgauge doctor` has seen, and what a split and a shard wrote: names and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import install_command
from lmgauge.numerics.figures import FIGURES
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_words, number, percent

if TYPE_CHECKING:
    from lmgauge.api.doctor import Checkup, Library
    from lmgauge.api.sharding.evaluation import FinishedShard
    from lmgauge.tasks.items.table import ItemScores
    from lmgauge.text.split import SplitText

_DIGEST = re.compile("[0-9a-f]{64}")
Shown = str | tuple[str, ...]
_BOUNDED = {figure.name for figure in FIGURES if figure.bounded}
_ESTIMATED = {"given", "iterations", "perplexity", "events", "held_out_sha256"}


def blocks(content: Mapping[str, Any]) -> doc.Document:
    """Return a line for each value that says something, and the curves of a trained network."""
    if (rows := content.get("plugins")) is not None:
        columns = (doc.labels(name, [row[name] for row in rows], wraps=name == "description") for name in rows[0])
        return (doc.Table(tuple(columns)),)
    shown = {name: _shown(name, value) for name, value in content.items() if value is not None}
    if content.get("bits_per_byte_is_bound"):
        shown |= {name: f"≥ {shown[name]}" for name in _BOUNDED & shown.keys()}
    pairs = ((name.replace("_", " "), value) for name, value in shown.items() if value not in ("", (), "None"))
    if not (history := _history(content)):
        return (doc.Lines(tuple(pairs)),)
    from lmgauge.report.models import training_charts  # it needs NumPy, which `doctor` may find broken

    return (doc.Lines(tuple(pairs)), *training_charts(history))


def item_blocks(scores: ItemScores) -> doc.Document:
    """Return a line for each thing that is known of a run of scores of items."""
    return blocks(scores.to_dict())


def _history(content: Mapping[str, Any]) -> list[Mapping[str, float]]:
    # What a trained network says of its epochs; nothing where it does not.
    stored = content.get("training")
    run = stored.get("training") if isinstance(stored, dict) else None
    history = run.get("history") if isinstance(run, dict) else None
    return [entry for entry in history if isinstance(entry, dict) and "epoch" in entry] if isinstance(history, list) else []


def _shown(name: str, value: Any) -> Shown:
    if name in _SHOWN and not isinstance(value, str):
        # A file can hold anything under a name: what is not as lmgauge writes it is shown as it stands.
        with suppress(TypeError, ValueError, LookupError, AttributeError):
            parts = _SHOWN[name](value)
            return parts if isinstance(parts, str) else tuple(map(str, parts))
    if isinstance(value, dict):
        said = {key: _shortened(part) for key, part in value.items() if part not in (None, "", [], {})}
        shown = {key: f"({_shown('', part)})" if isinstance(part, dict) else _shown("", part) for key, part in said.items()}
        return ", ".join(f"{key} {part}" for key, part in shown.items())
    if isinstance(value, list):
        return ", ".join(str(part if isinstance(part, int) else _shown("", part)) for part in value)
    if isinstance(value, float):
        return number(value, 2 if "perplexity" in name else 4)
    return f"{value:,}" if type(value) is int else str(value)


def _shortened(value: Any) -> Any:
    # Beginning of a digest, which is enough to tell one from another; anything else as it is.
    return value[:12] if isinstance(value, str) and _DIGEST.fullmatch(value) else value


def _shown_discounts(value: list[list[float]]) -> str:
    orders = {k: ", ".join(f"{d:.4f}" for d in values[1:]) for k, values in enumerate(value, 1) if len(values) > 1}
    return "; ".join(f"order {k}: {values}" for k, values in orders.items())


def _shown_interval(value: dict[str, Any]) -> str:
    return f"{in_words(doc.between((float(value['low']), float(value['high'])), 2))} ({100 * value['level']:.0f} %)"


def _shown_training(stored: dict[str, Any]) -> str:
    if "kind" not in stored:
        return str(_shown("", stored))
    run = stored.get("training", {})
    paper = str(run.get("settings", {}).get("paper", ""))
    valid = run.get("valid_perplexity")
    parts = [
        f"{stored['kind']}, preset {stored.get('preset')} ({paper})",
        f"{run.get('epochs')} epochs, seed {run.get('seed')}",
    ]
    return "; ".join([*parts, *([] if valid is None else [f"validation perplexity {valid:,.2f}"])])


def _shown_estimation(stored: dict[str, Any]) -> str:
    if not stored.keys() >= _ESTIMATED:
        return str(_shown("", stored))
    how = "weights given, measured" if stored["given"] else f"EM, {stored['iterations']} iterations"
    perplexity = stored["perplexity"]  # "inf", where it is that
    shown = perplexity if isinstance(perplexity, str) else f"{perplexity:,.4f}"
    return f"{how} on {stored['events']:,} events of text {stored['held_out_sha256'][:6]}, perplexity {shown}"


_SHOWN: dict[str, Callable[[Any], Shown]] = {
    "types": lambda value: ", ".join(f"{n:,} {k}-grams" for k, n in enumerate(value, 1)),
    "discounts": _shown_discounts,
    "components": lambda value: tuple(f"{part['weight']:.4f} {part['label']} in {part['folder']}" for part in value),
    "training": _shown_training,
    "estimation": _shown_estimation,
    "interval": _shown_interval,
    "oov_rate": percent,
    "bound_reasons": tuple,
    "notes": tuple,
}
"""How values are written that are more than a number or a word, by name."""


# -- the machine --------------------------------------------------------------------------------------------------------
_STATES: dict[str, doc.Level] = {"ok": "good", "missing": "unknown"}
_MOST_NAMES = 6


def checkup_blocks(checkup: Checkup) -> doc.Document:
    """Return the verdict, the problems with their remedies, versions, and the extras."""
    count, versions = len(checkup.problems), checkup.versions
    verdict = doc.Verdict("good", f"lmgauge {versions['lmgauge']} works; nothing that is installed is broken or too old")
    if count:
        verdict = doc.Verdict("bad", f"lmgauge {versions['lmgauge']}: {count} problem{'s' * (count > 1)}")
    lines = {
        "lmgauge": versions["lmgauge"],
        "its numbers": f"those of version {versions['numbers']}",
        "Python": versions["python"],
        "platform": versions["platform"],
        "kernels": checkup.kernels,
        "libraries": _libraries(checkup.core),
    }
    extras = checkup.extras
    columns = (
        doc.labels("extra", [extra.name for extra in extras]),
        doc.Column("state", [doc.Mark(extra.state, _STATES.get(extra.state, "bad")) for extra in extras], align="left"),
        doc.labels("for", [extra.purpose for extra in extras], wraps=True, drop=1),
        doc.labels("libraries", [_libraries(extra.libraries) for extra in extras], wraps=True),
    )
    return (
        verdict,
        *(doc.Text(problem, indent=2) for problem in checkup.problems),
        *doc.notes(checkup.notes),
        doc.Lines(tuple(lines.items())),
        doc.Table(columns, "Extras"),
        doc.Text(f"To install what is missing, by name: {install_command('NAME,NAME')}"),
    )


def _libraries(libraries: Sequence[Library]) -> str:
    names = [
        f"{one.name} {one.installed or 'missing'}" + f" ({one.asked})" * one.state.startswith("too") for one in libraries
    ]
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


# -- what was written ---------------------------------------------------------------------------------------------------
def split_blocks(split: SplitText) -> doc.Document:
    """Return a row for each part, and what is needed to split the text in this way again."""
    parts = split.parts
    columns = (
        doc.labels("part", [part.name for part in parts]),
        doc.numbers("segments", [part.segments for part in parts], form="count"),
        doc.numbers("share", [part.segments / split.segments for part in parts], 2, "percent"),
        doc.numbers("bytes", [part.bytes for part in parts], form="count"),
        doc.labels("file", [str(part.path) for part in parts], wraps=True),
    )
    return (doc.Table(columns), *doc.notes([*split.notes, f"seed {split.seed}, text {split.text_sha256[:6]}"]))


def shard_blocks(result: FinishedShard) -> doc.Document:
    """Return a line for each thing that is known of a shard."""
    state = "computed" if result.computed else "was complete before"
    pairs = (
        ("shard", f"{result.shard} of {result.of}"),
        ("of", result.job),
        ("pieces of the text", f"{result.parts:,}"),
        ("folder", result.folder),
        ("state", state),
    )
    return (doc.Lines(pairs),)
