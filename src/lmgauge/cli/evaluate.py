"""What `lmgauge eval` runs: models, a score table, contexts, every protocol, or a job in shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lmgauge.api.types import Text
from lmgauge.choices import ALL_PROTOCOLS
from lmgauge.cli.derive import Call
from lmgauge.declaration import verb
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.cluster.evaluation import EvaluationJob


def evaluate(call: Call) -> None:
    """Run what the options ask for, and refuse what does not go with it."""
    from lmgauge.api.evaluate import evaluate as run
    from lmgauge.cli.named_paths import model_among
    from lmgauge.cli.say import say

    models, scores = call.values.get("model", ()), "scores" in call.values
    if bool(models) == scores:
        folder = model_among(call["text"])
        hint = f"; {folder} is a model: write -m {folder}" if folder and not models else ""
        raise click.UsageError(f"name models with -m, or a score table with --scores{hint}")
    if "shard" in call.values or "ray" in call.values:
        _in_shards(call)
    elif "contexts" in call.values:
        _curve(call)
    elif call["protocol"] == ALL_PROTOCOLS:
        _protocols(call)
    else:
        call.refuse(("per_context",), "goes with --contexts")
        call.refuse(("html",), "goes with --contexts and --protocol all; of an evaluation, lmgauge report makes the page")
        if scores:
            _table(call)
            return
        to_stdout = [name for name in ("per_segment", "per_token", "per_word") if call[name] == "-"]
        if call.as_json:
            call.refuse(to_stdout, "does not go with --json: both are standard output")
        results = call(run)
        if not to_stdout:
            call.answer(results)
            return
        for note in dict.fromkeys(note for result in results for note in result.notes):
            say(f"note: {note}", err=True)  # rows say nothing of what was changed or left out


def _in_shards(call: Call) -> None:
    from lmgauge.cli.shards import run_in_shards
    from lmgauge.evaluation.results import Evaluation, Evaluations

    option = "--ray" if "ray" in call.values else "--shard"
    call.refuse_others(f"does not go with {option}: it writes a run folder", _job, run_in_shards)
    call.refuse(("html",), f"does not go with {option}")
    if call["protocol"] == ALL_PROTOCOLS:
        raise click.UsageError(f"{option} takes one protocol at a time")
    result = call(run_in_shards, job=call(_job, model=_one_model(call, option)))
    call.answer(Evaluations((result,)) if isinstance(result, Evaluation) else result)  # a table, as without --ray


@verb
def _job(
    model: str,
    text: Text,
    *,
    by_group: bool = False,
    columns: Sequence[str] = (),
    threads: int | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> EvaluationJob:
    from lmgauge.api.inputs import corpus_of
    from lmgauge.cluster.evaluation import EvaluationJob

    return EvaluationJob(model, corpus_of(text, reading), by_group, columns, scoring, threads)


def _curve(call: Call) -> None:
    from lmgauge.api.context_curve import context_curve

    call.refuse_others("does not go with --contexts; --per-context writes rows", context_curve)
    if call.as_json and call["per_context"] == "-":
        raise click.UsageError("standard output takes one of --json and --per-context -")
    curve = call(context_curve, model=_one_model(call, "--contexts"))
    if call["per_context"] != "-":
        call.answer(curve)


def _protocols(call: Call) -> None:
    from lmgauge.api.protocols import evaluate_protocols

    call.refuse_others("does not go with --protocol all; name one protocol", evaluate_protocols)
    call.answer(call(evaluate_protocols, model=_one_model(call, "--protocol all"), protocol=None))


def _table(call: Call) -> None:
    from lmgauge.api.evaluate import evaluate_scores
    from lmgauge.evaluation.results import Evaluations

    if not call.context.params["text"]:
        del call.values["text"]
    call.refuse(("output",), f"needs models; lmgauge import {call['scores']} -o RUN makes a run folder of a score table")
    call.refuse_others("is for models; a score table already has their log-probabilities", evaluate_scores)
    call.answer(Evaluations((call(evaluate_scores),)))


def _one_model(call: Call, option: str) -> str:
    """Return the only model.

    Raises:
        click.UsageError: there are several, or none.
    """
    models: tuple[str, ...] = call.values.get("model", ())
    if len(models) != 1:
        raise click.UsageError(f"{option} takes one model at a time")
    return models[0]
