"""`lmgauge diagnose`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click

from lmgauge.choices import DIAGNOSIS_SECTIONS
from lmgauge.cli.command import Command, names_of, refuse_given, settings, under, whole_number
from lmgauge.cli.options import (
    json_option,
    scored_text_option,
    scoring_settings,
    seed_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import answer, showing_progress
from lmgauge.models.network.options import ScoringOptions


@dataclass(frozen=True)
class _Choices:
    """What is worked out: arguments of `lmgauge.diagnose`."""

    only: tuple[str, ...]
    examples: int
    contexts: int
    exhaustive: bool
    sample_tokens: int | None
    seed: int
    threads: int | None


@click.command("diagnose", cls=Command)
@click.argument("run", type=click.Path())
@scored_text_option
@training_text("for slices by how often words, and how long n-grams, occur in it")
@click.option("-m", "--model", type=click.Path(), help="The model behind the run: adds calibration and sampled text.")
@settings(
    "choices",
    _Choices,
    "Statistics",
    click.option(
        "--only",
        multiple=True,
        type=click.Choice(DIAGNOSIS_SECTIONS),
        help="Work out only this; may be given several times.",
    ),
    whole_number("--examples", least=0, default=10, help="Tokens, segments and words to show."),
    whole_number("--contexts", default=2000, help="With -m: how many contexts to draw for calibration."),
    click.option("--exhaustive", is_flag=True, help="With -m: calibration over all contexts; slow."),
    whole_number(
        "--sample-tokens",
        help="With -m: tokens to sample for the mutual-information curve; what takes seconds if not given.",
    ),
    seed_option,
    threads_option,
)
@under("Output", json_option)
@scoring_settings()
def diagnose(
    run: str,
    texts: tuple[str, ...],
    train: tuple[str, ...],
    model: str | None,
    choices: _Choices,
    scoring: ScoringOptions,
    as_json: bool,
) -> None:
    """Show where a model fails.

    RUN is a folder that `lmgauge eval -o` wrote, or a score table (Parquet, JSONL).

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge diagnose run-kn5/ --train train.txt -m kn5/
    """
    from lmgauge.api.diagnose import diagnose as run_diagnosis
    from lmgauge.report import diagnosis as report

    if model is None:
        of_model = ("contexts", "exhaustive", "sample_tokens")
        refuse_given((*names_of(ScoringOptions), *of_model), "needs the model: name it with -m")
    with showing_progress("reading the run"):
        result = run_diagnosis(
            run,
            text=list(texts) or None,
            train=list(train) or None,
            model=model,
            scoring=None if model is None else scoring,
            **asdict(choices) | {"only": choices.only or DIAGNOSIS_SECTIONS},
        )
    answer(result, lambda: report.blocks(result), as_json=as_json)
