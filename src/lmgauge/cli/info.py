"""`lmgauge info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lmgauge.cli.command import Command
from lmgauge.cli.options import json_option, model_argument, neural_options, scoring_options

_ESTIMATED = {"given", "iterations", "perplexity", "events", "held_out_sha256"}


@click.command(cls=Command)
@model_argument
@neural_options
@json_option
def info(model: str, as_json: bool, **neural: Any) -> None:
    """Show what is in a model."""
    from lmgauge.json_text import to_json
    from lmgauge.models.ngram.model import NgramModel
    from lmgauge.models.registry import load_model
    from lmgauge.report.blocks import Lines
    from lmgauge.report.terminal import show

    loaded = load_model(model, scoring_options(neural))
    path = Path(model)
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files)
    content: dict[str, Any] = {"path": model, "label": loaded.label, "fingerprint": loaded.fingerprint, "bytes": size}
    if isinstance(loaded, NgramModel):
        content |= loaded.to_dict()
        content["unk_probability"] = loaded.unk_probability
    elif hasattr(loaded, "to_dict"):
        content |= loaded.to_dict()
    if as_json:
        click.echo(to_json(content))
        return
    shown = {name.replace("_", " "): _shown(name, value) for name, value in content.items() if value not in ((), {}, "")}
    show((Lines(tuple(shown.items())),))


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
        return ", ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _shown_training(told: dict[str, Any]) -> str:
    run = told.get("training", {})
    paper = str(run.get("settings", {}).get("paper", ""))
    valid = run.get("valid_perplexity")
    parts = [f"{told['kind']}, preset {told.get('preset')} ({paper})", f"{run.get('epochs')} epochs, seed {run.get('seed')}"]
    return "; ".join([*parts, *([] if valid is None else [f"validation perplexity {valid:,.2f}"])])


def _shown_estimation(told: dict[str, Any]) -> str:
    how = "weights given, measured" if told["given"] else f"EM, {told['iterations']} iterations"
    perplexity = told["perplexity"]  # "inf", where it is that
    shown = perplexity if isinstance(perplexity, str) else f"{perplexity:,.4f}"
    return f"{how} on {told['events']:,} events of text {told['held_out_sha256'][:6]}, perplexity {shown}"
