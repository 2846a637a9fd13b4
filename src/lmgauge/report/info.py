"""What is in a model or a run, as names and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmgauge.report.blocks import Document, Lines

_ESTIMATED = {"given", "iterations", "perplexity", "events", "held_out_sha256"}


def blocks(content: Mapping[str, Any]) -> Document:
    """Return a line for each value that says something.

    Args:
        content: plain values by name, as `lmgauge.info` gives them.
    """
    shown = [(name.replace("_", " "), _shown(name, value)) for name, value in content.items()]
    return (Lines(tuple((name, value) for name, value in shown if value not in ("", (), "None"))),)


def _shown(name: str, value: Any) -> str | tuple[str, ...]:
    if name == "bytes":
        return f"{value:,}"
    if name == "types":
        return ", ".join(f"{n:,} {k}-grams" for k, n in enumerate(value, 1))
    if name == "discounts":
        return "; ".join(
            f"order {k}: " + ", ".join(f"{d:.4f}" for d in values[1:])
            for k, values in enumerate(value, 1)
            if len(values) > 1
        )
    if name == "components":
        return tuple(f"{part['weight']:.4f} {part['label']} in {part['folder']}" for part in value)
    if name == "training" and isinstance(value, dict) and "kind" in value:
        return _shown_training(value)
    if name == "estimation" and value.keys() >= _ESTIMATED:
        return _shown_estimation(value)
    if name == "notes":
        return tuple(value)
    if isinstance(value, dict):
        said = {key: part for key, part in value.items() if part not in (None, "", [], {})}
        return ", ".join(f"{key} {part:,}" if type(part) is int else f"{key} {part}" for key, part in said.items())
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _shown_training(stored: dict[str, Any]) -> str:
    run = stored.get("training", {})
    paper = str(run.get("settings", {}).get("paper", ""))
    valid = run.get("valid_perplexity")
    parts = [
        f"{stored['kind']}, preset {stored.get('preset')} ({paper})",
        f"{run.get('epochs')} epochs, seed {run.get('seed')}",
    ]
    return "; ".join([*parts, *([] if valid is None else [f"validation perplexity {valid:,.2f}"])])


def _shown_estimation(stored: dict[str, Any]) -> str:
    how = "weights given, measured" if stored["given"] else f"EM, {stored['iterations']} iterations"
    perplexity = stored["perplexity"]  # "inf", where it is that
    shown = perplexity if isinstance(perplexity, str) else f"{perplexity:,.4f}"
    return f"{how} on {stored['events']:,} events of text {stored['held_out_sha256'][:6]}, perplexity {shown}"
