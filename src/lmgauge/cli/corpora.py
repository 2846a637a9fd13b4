"""What `lmgauge filter`, `score`, `percentiles` and `overlap` do besides calling their verbs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from lmgauge.base.option_numbers import Bounds
from lmgauge.cli.derive import Call
from lmgauge.cli.say import say


def documents(call: Call) -> None:
    """Filter or score, and say what happened to the documents."""
    result = call(model=named_models(call["model"], call["by"]))
    if call["output"] == "-" and not call.as_json:
        click.echo(str(result), err=True)
    call.answer(result, page=("Filtered documents", None))


def percentiles(call: Call) -> None:
    """Learn percentiles, and say where they are and what for."""
    call.answer(call(model=named_models(call["model"], call["by"])))
    if call["output"] is not None:
        path = call["output"]
        say(f"{path}: saved; lmgauge filter --percentiles {path} --keep p10..p70 keeps by it", err=True)


def named_models(models: Sequence[str], by: str | None) -> dict[str, str] | str:
    """Return models by their names, or the one model that has none, of PATH or NAME=PATH.

    Raises:
        click.UsageError: a name is missing, or there twice.
    """
    pairs = [_named(model) for model in models]
    if by is None and len(pairs) == 1 and not pairs[0][0]:
        return pairs[0][1]
    if by is not None and not all(name for name, _ in pairs):
        raise click.UsageError("--by chooses a model by a value: write -m VALUE=MODEL, as in -m en=en/ -m '*=other/'")
    names = [name or os.path.basename(path.rstrip("/")) for name, path in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"two models are called {twice!r}: give them names, as in -m NAME=MODEL")
    return dict(zip(names, (path for _, path in pairs), strict=True))


def _named(model: str) -> tuple[str, str]:
    name, equals, path = model.partition("=")
    return ("", model) if not equals or os.path.exists(model) else (name, path)


def overlap(call: Call) -> None:
    """Find overlap, or a share of it: the last text is the test, and a share may be a gate."""
    from lmgauge.report import overlap as report

    train, test = call["train"], call["test"] or ()
    if not test and len(train) > 1:
        train, test = train[:-1], train[-1:]
    most = call["max_overlap"]
    if most is not None:
        Bounds(0, 1).check("max-overlap", most)
    result = call(train=train, test=test or None, max_overlap=None)
    call.answer(result, page=("Overlap of training and test text", report.page(result)))
    if call["write_clean"] is not None and not call.form:
        clean = result.segments - result.contaminated_segments
        say(f"{call['write_clean']}: {clean:,} of {result.segments:,} segments")
    if most is not None:
        result.require(most)
