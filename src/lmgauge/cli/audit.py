"""`lmgauge audit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from lmgauge.choices import AUDIT_LEVELS, OVERLAP_UNITS
from lmgauge.cli.options import (
    NEURAL_OPTIONS,
    corpus_of,
    json_option,
    neural_options,
    refuse_field,
    refuse_given,
    refuse_unused,
    reserved_option,
    scored_text_option,
    scoring_options,
    seed_option,
    text_options,
    threads_option,
)

if TYPE_CHECKING:
    from lmgauge.evaluation.audit import Audit
    from lmgauge.evaluation.audit.contamination import OverlapSource
    from lmgauge.evaluation.runs import Run
    from lmgauge.text.documents import Corpus

_OF_MODEL = ("reserved", "contexts", "sum_tolerance", "compression_bytes", "exhaustive")


@click.command(name="audit")
@click.argument("what", nargs=-1, type=click.Path(allow_dash=True), metavar="TEXT... | RUN")
@click.option("-m", "--model", type=click.Path(), help="Model folder, or ARPA file; without it a RUN is audited.")
@scored_text_option
@click.option("--train", multiple=True, type=click.Path(), help="Training text, for level 4; may be given several times.")
@click.option(
    "--max-overlap",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Share of the bytes of TEXT that may lie in stretches of the training text.",
)
@click.option(
    "--overlap-unit",
    type=click.Choice(OVERLAP_UNITS),
    default="word",
    show_default=True,
    help="Stretches of 13 words or more; or 25 characters, for scripts that do not space words.",
)
@click.option(
    "--levels",
    default=",".join(AUDIT_LEVELS),
    metavar="NAMES",
    help="Which levels, e.g. coverage,compression; all if not given.",
)
@click.option(
    "--contexts",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Distributions to sum, at contexts drawn from TEXT.",
)
@click.option(
    "--sum-tolerance",
    type=click.FloatRange(0, 1e-3),
    default=1e-6,
    show_default=True,
    help="How far probabilities may sum from 1; rounded ones, as in some ARPA files, need 1e-5.",
)
@click.option(
    "--compression-bytes",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Bytes of TEXT to code and decode.",
)
@click.option("--exhaustive", is_flag=True, help="All contexts, segments and bytes instead of samples; slow.")
@neural_options
@reserved_option
@seed_option
@text_options
@threads_option
@json_option
@click.pass_context
def audit(ctx: click.Context, /, what: tuple[str, ...], model: str | None, as_json: bool, **options: Any) -> None:
    """Prove a result, or show what is wrong with it.

    With -m, a model on TEXT (files, globs or -, standard input, also if none is named). Without it a RUN, a folder that
    `lmgauge eval -o` wrote or a score table, for what can be seen without the model; with it, also whether the model
    made the run. Exits with 1 where a check fails.

    \b
    lmgauge audit -m kn5/ test.txt --train train.txt
    lmgauge audit run-kn5/
    lmgauge audit run-kn5/ -m kn5/
    """
    from lmgauge.json_text import to_json
    from lmgauge.report import audit as report
    from lmgauge.report.terminal import progress, show

    levels = [name.strip() for name in options["levels"].split(",") if name.strip()]
    unknown = [name for name in levels if name not in AUDIT_LEVELS]
    if unknown or not levels:
        raise click.UsageError(
            f"--levels: {unknown[0] if unknown else 'nothing'!r} is no level; choose from {', '.join(AUDIT_LEVELS)}"
        )
    with progress() as status:
        found = (
            _audit_model(what, model, levels, options, status.update)
            if model
            else _audit_run(what, levels, options, status.update)
        )
    if as_json:
        click.echo(to_json(found.to_dict()))
    else:
        show(report.blocks(found))
    if not found.passed:
        ctx.exit(1)


def _audit_model(
    what: tuple[str, ...], path: str, levels: list[str], options: dict[str, Any], say: Callable[[str], None]
) -> Audit:
    from dataclasses import replace
    from pathlib import Path

    from lmgauge.evaluation.audit import audit as audit_model
    from lmgauge.evaluation.audit import audit_run, check_model_of_run
    from lmgauge.models.mixture.model import with_reserved
    from lmgauge.models.registry import load_model

    run = _run_named(what)
    if options["texts"] and run is None:
        raise click.UsageError("--text belongs to a RUN; with -m the texts stand alone: lmgauge audit -m MODEL TEXT")
    say("loading")
    scoring = scoring_options(options)
    model = load_model(path, scoring)
    refuse_unused(options, [model])
    corpus = corpus_of(what, options, alone=False) if run is None else run.corpus(list(options["texts"]) or None)
    if corpus is None:
        raise click.UsageError(f"the text that {what[0]} scored is not where it was: name it with --text")
    if not options["train"]:
        refuse_field(corpus)
    if options["reserved"]:
        (model,) = with_reserved([model], options["reserved"])
    found = audit_model(
        model,
        corpus,
        levels=levels,
        exhaustive=options["exhaustive"],
        contexts=options["contexts"],
        compression_bytes=options["compression_bytes"],
        seed=options["seed"],
        overlap=_overlap(corpus, levels, options),
        max_overlap=options["max_overlap"],
        sum_tolerance=options["sum_tolerance"],
        threads=options["threads"],
        name=Path(path).name or path,
        untouched=lambda: load_model(path, scoring),
        progress=say,
    )
    if run is None or "coverage" not in levels:
        return found
    say("comparing with the run")
    stored = [
        check
        for check in audit_run(run, corpus, levels=["coverage"]).checks
        if check.name in ("seal", "text", "table", "claims")
    ]
    return replace(found, checks=(*stored, *check_model_of_run(run, corpus, model, options["threads"]), *found.checks))


def _run_named(what: tuple[str, ...]) -> Run | None:
    """The run folder that stands in the place of a text; None where texts do."""
    from pathlib import Path

    from lmgauge.evaluation.runs import EVALUATION_FILE, open_run

    return open_run(what[0], check_seal=False) if len(what) == 1 and (Path(what[0]) / EVALUATION_FILE).exists() else None


def _audit_run(what: tuple[str, ...], levels: list[str], options: dict[str, Any], say: Callable[[str], None]) -> Audit:
    from lmgauge.evaluation.audit import audit_run
    from lmgauge.evaluation.runs import open_run

    if len(what) != 1 or what == ("-",):
        raise click.UsageError("name a model with -m and its TEXT, or one RUN")
    refuse_given((*NEURAL_OPTIONS, *_OF_MODEL), "needs the model: name it with -m")
    run = open_run(what[0], check_seal=False)
    corpus = run.corpus(list(options["texts"]) or None)
    return audit_run(
        run,
        corpus,
        levels=levels,
        overlap=None if corpus is None else _overlap(corpus, levels, options),
        max_overlap=options["max_overlap"],
        progress=say,
    )


def _overlap(corpus: Corpus, levels: list[str], options: dict[str, Any]) -> OverlapSource | None:
    """What compares the text with the training text when it is called; None where none is named."""
    if not options["train"] or "contamination" not in levels:
        return None
    if not corpus.rereadable:
        raise click.UsageError("--train reads the text a second time, which standard input cannot be: save it in a file")

    from lmgauge.api.audit import contamination_source

    train = corpus_of(options["train"], options, alone=False)  # a file that is missing is told before the long work
    refuse_field(train, corpus)
    return contamination_source(train, corpus, unit=options["overlap_unit"], threads=options["threads"])
