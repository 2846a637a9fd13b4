"""What `lmgauge eval` runs: models, a score table, contexts, every protocol, or a job in shards."""

from __future__ import annotations

import click

from lmgauge.choices import ALL_PROTOCOLS
from lmgauge.cli.derive import Call


def evaluate(call: Call) -> None:
    """Run what the options ask for, and refuse what does not go with it."""
    from lmgauge.api.evaluate import evaluate as run
    from lmgauge.cli.options import model_among
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
    from lmgauge.api.inputs import corpus_of
    from lmgauge.api.outputs import Outputs
    from lmgauge.cli.derive import fields_of
    from lmgauge.cli.shards import run_in_shards
    from lmgauge.cluster.evaluation import EvaluationJob
    from lmgauge.evaluation.results import Evaluation, Evaluations
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.text.reading_options import ReadingOptions

    option = "--ray" if "ray" in call.values else "--shard"
    call.refuse(("scores", "contexts", "per_context", "html"), f"does not go with {option}")
    call.refuse(fields_of(Outputs) - {"output", "columns"}, f"does not go with {option}: it writes a run folder")
    if call["protocol"] == ALL_PROTOCOLS:
        raise click.UsageError(f"{option} takes one protocol at a time")
    corpus = corpus_of(call["text"], call.settings(ReadingOptions))
    job = EvaluationJob(
        _one_model(call, option),
        corpus,
        by_group=call["by_group"],
        columns=call["columns"],
        scoring=call.settings(ScoringOptions),
        threads=call["threads"],
    )
    result = run_in_shards(call, job)
    call.answer(Evaluations((result,)) if isinstance(result, Evaluation) else result)  # a table, as without --ray


def _curve(call: Call) -> None:
    from lmgauge.api.context_curve import context_curve

    call.refuse_others(context_curve, "does not go with --contexts; --per-context writes rows")
    if call.as_json and call["per_context"] == "-":
        raise click.UsageError("standard output takes one of --json and --per-context -")
    curve = call(context_curve, model=_one_model(call, "--contexts"))
    if call["per_context"] != "-":
        call.answer(curve)


def _protocols(call: Call) -> None:
    from lmgauge.api.protocols import evaluate_protocols

    call.refuse_others(evaluate_protocols, "does not go with --protocol all; name one protocol")
    call.answer(call(evaluate_protocols, model=_one_model(call, "--protocol all"), protocol=None))


def _table(call: Call) -> None:
    from lmgauge.api.evaluate import evaluate_scores
    from lmgauge.evaluation.results import Evaluations

    if not call.context.params["text"]:
        del call.values["text"]
    call.refuse(("output",), f"needs models; lmgauge import {call['scores']} -o RUN makes a run folder of a score table")
    call.refuse_others(evaluate_scores, "needs models; a score table already has their log-probabilities per token")
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
