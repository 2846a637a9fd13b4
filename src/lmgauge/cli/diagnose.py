"""`lmgauge diagnose`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from lmgauge.choices import DIAGNOSIS_SECTIONS
from lmgauge.cli.command import Command, names_of, refuse_given, settings, under, whole_number
from lmgauge.cli.options import (
    html_option,
    json_option,
    scored_text_option,
    scoring_settings,
    seed_option,
    threads_option,
    training_text,
)
from lmgauge.cli.say import Page, answer, showing_progress
from lmgauge.models.network.options import ScoringOptions

if TYPE_CHECKING:
    from lmgauge.evaluation.diagnosis.results import Diagnosis


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


@dataclass(frozen=True)
class _Inputs:
    """What is read: arguments of `lmgauge.diagnose`."""

    run: str
    text: list[str] | None
    train: list[str] | None
    model: str | None
    scoring: ScoringOptions | None


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
@under("Output", html_option, json_option)
@scoring_settings()
def diagnose(
    run: str,
    texts: tuple[str, ...],
    train: tuple[str, ...],
    model: str | None,
    choices: _Choices,
    scoring: ScoringOptions,
    html: str | None,
    as_json: bool,
) -> None:
    """Show where a model fails.

    RUN is a folder that `lmgauge eval -o` wrote, or a score table (Parquet, JSONL).

    \b
    lmgauge eval -m kn5/ test.txt -o run-kn5/
    lmgauge diagnose run-kn5/ --train train.txt -m kn5/
    """
    from lmgauge.report import diagnosis as report

    if model is None:
        of_model = ("contexts", "exhaustive", "sample_tokens")
        refuse_given((*names_of(ScoringOptions), *of_model), "needs the model: name it with -m")
    inputs = _Inputs(run, list(texts) or None, list(train) or None, model, None if model is None else scoring)
    with showing_progress("reading the run"):
        result, page = (_diagnosis(inputs, choices), None) if html is None else _with_page(inputs, choices)
    answer(
        result,
        lambda: report.blocks(result),
        as_json=as_json,
        html=html,
        page=page,
    )


def _diagnosis(inputs: _Inputs, choices: _Choices) -> Diagnosis:
    from lmgauge.api.diagnose import diagnose as run_diagnosis

    return run_diagnosis(**vars(inputs), **asdict(choices) | {"only": choices.only or DIAGNOSIS_SECTIONS})


def _with_page(inputs: _Inputs, choices: _Choices) -> tuple[Diagnosis, Page]:
    """Return the run diagnosed as the options say, and the page that `lmgauge report` makes of it."""
    from lmgauge.api.report import overview_of, page_of
    from lmgauge.evaluation.overview import OverviewSettings
    from lmgauge.evaluation.passages import PassageSettings

    settings = OverviewSettings(
        passages=PassageSettings(seed=choices.seed),
        contexts=None if choices.exhaustive else choices.contexts,
        sample_tokens=choices.sample_tokens,
        sections=choices.only or DIAGNOSIS_SECTIONS,
        examples=choices.examples,
        seed=choices.seed,
        threads=choices.threads,
    )
    of_run = {name: value for name, value in vars(inputs).items() if name != "run"}
    overview = overview_of([inputs.run], settings, sampled=True, **of_run)
    (diagnosed,) = overview.diagnoses
    page = page_of(overview)
    printed = replace(diagnosed, worst_segments=diagnosed.worst_segments[: choices.examples])
    return printed, Page(page.title, page.document)
