"""`lmgauge diagnose`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.choices import DIAGNOSIS_SECTIONS
from lmgauge.cli.options import (
    NEURAL_OPTIONS,
    json_option,
    neural_options,
    refuse_given,
    refuse_unused,
    scored_text_option,
    scoring_options,
    seed_option,
    threads_option,
)

_OF_MODEL = ("contexts", "exhaustive", "sample_tokens")


@click.command(name="diagnose")
@click.argument("run", type=click.Path())
@scored_text_option
@click.option(
    "--train",
    "train",
    multiple=True,
    type=click.Path(),
    help="Training text: adds slices by how often words, and how long n-grams, occur in it.",
)
@click.option("-m", "--model", type=click.Path(), help="The model behind the run: adds calibration and sampled text.")
@click.option(
    "--contexts",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="How many contexts to draw for calibration.",
)
@click.option("--exhaustive", is_flag=True, help="Calibration over all contexts; slow.")
@click.option(
    "--sample-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens to sample for the mutual-information curve; what takes seconds if not given.",
)
@click.option(
    "--examples", type=click.IntRange(min=0), default=10, show_default=True, help="Tokens, segments and words to show."
)
@click.option(
    "--only", multiple=True, type=click.Choice(DIAGNOSIS_SECTIONS), help="Work out only this; may be given several times."
)
@neural_options
@seed_option
@threads_option
@json_option
def diagnose(
    run: str,
    texts: tuple[str, ...],
    train: tuple[str, ...],
    model: str | None,
    only: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Show where a model fails.

    RUN is a folder that `lmgauge eval -o` wrote, or a score table (Parquet, JSONL).

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge diagnose run-kn5/ --train train.txt -m kn5/
    """
    from lmgauge.api.verdicts import diagnose as run_diagnosis
    from lmgauge.json_text import to_json
    from lmgauge.models.registry import open_model
    from lmgauge.report.diagnose import print_diagnosis
    from lmgauge.report.terminal import progress

    if model is None:
        refuse_given((*NEURAL_OPTIONS, *_OF_MODEL), "needs the model: name it with -m")
    scoring = scoring_options(options)
    with progress() as status:
        loaded = None if model is None else open_model(model, scoring)
        if loaded is not None:
            refuse_unused(options, [loaded])
        found = run_diagnosis(
            run,
            text=list(texts) or None,
            train=list(train) or None,
            model=loaded,
            only=only or DIAGNOSIS_SECTIONS,
            progress=status.update,
            **{name: value for name, value in options.items() if name not in NEURAL_OPTIONS},
        )
    if as_json:
        click.echo(to_json(found.to_dict()))
    else:
        print_diagnosis(found)
