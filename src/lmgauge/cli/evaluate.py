"""What `lmgauge eval` runs: models, a score table, contexts, or a job in shards."""

from __future__ import annotations

import click

from lmgauge.cli.derive import Call, fields_of


def evaluate(call: Call) -> None:
    """Run what the options ask for, and refuse what does not go with it."""
    from lmgauge import context_curve

    scores = "scores" in call.values
    if ("model" in call.values) == scores:
        from lmgauge.cli.models_and_texts import model_among

        folder = model_among(call["text"])
        hint = f"; {folder} is a model: write -m {folder}" if folder and not scores else ""
        raise click.UsageError(f"name models with -m, or a score table with --scores{hint}")
    if call.as_json:
        call.refuse([name for name in call.aside if name != "output"], "does not go with --json: both are standard output")
    if "shard" in call.values:
        _in_shards(call)
    elif "contexts" in call.values:
        call.refuse(call.values.keys() - fields_of(context_curve), "does not go with --contexts; --per-context writes rows")
        call.answer(call(context_curve, model=_one_model(call, "--contexts")))
    else:
        call.refuse(("per_context",), "goes with --contexts")
        call.refuse(("html",), "goes with --contexts; of an evaluation, lmgauge report makes the page")
        (_table if scores else _of_models)(call)


def _of_models(call: Call) -> None:
    from lmgauge.cli.say import say

    results = call()
    call.answer(results)
    if call.aside:  # rows say nothing of what was changed or left out
        for note in dict.fromkeys(note for result in results for note in result.notes):
            say(f"note: {note}", err=True)


def _table(call: Call) -> None:
    from lmgauge.api.evaluate import evaluate_scores
    from lmgauge.evaluation.results import Evaluations

    if not call.context.params["text"]:
        del call.values["text"]
    call.refuse(("output",), f"needs models; lmgauge import {call['scores']} -o RUN makes a run folder of a score table")
    of_models = call.values.keys() - fields_of(evaluate_scores)
    call.refuse(of_models, "is for models; a score table already has their log-probabilities")
    call.answer(Evaluations((call(evaluate_scores),)))


def _in_shards(call: Call) -> None:
    from lmgauge.api.inputs import corpus_of
    from lmgauge.api.sharding.evaluation import EvaluationJob, run_shard
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.text.reading_options import ReadingOptions
    from lmgauge.work.shard import Shard, Sharing

    shard = call(Sharing).shard
    assert isinstance(shard, Shard)
    known = {"output", *fields_of(EvaluationJob, ReadingOptions, ScoringOptions, Sharing)}
    call.refuse({*call.values, "html"} - known, "does not go with --shard: it writes a run folder")
    model, corpus = _one_model(call, "--shard"), corpus_of(call["text"], call(ReadingOptions))
    job = EvaluationJob(model, corpus, call["by_group"], call["columns"], call(ScoringOptions), call["threads"])
    if call["output"] is None:
        raise click.UsageError("--shard needs a folder for the shards: -o DIR")
    call.answer(run_shard(job, shard.number - 1, shard.of, call["output"]))


def _one_model(call: Call, option: str) -> str:
    models: tuple[str, ...] = call.values.get("model", ())
    if len(models) != 1:
        raise click.UsageError(f"{option} takes one model at a time")
    return models[0]
