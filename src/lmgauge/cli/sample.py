"""`lmgauge sample`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import click

from lmgauge.cli.command import Command, settings, whole_number
from lmgauge.cli.options import scoring_settings, seed_option
from lmgauge.models.network.options import ScoringOptions


@dataclass(frozen=True)
class _Choices:
    """How text is drawn: arguments of `lmgauge.sample`."""

    count: int
    prompt: str
    temperature: float
    top_k: int | None
    max_tokens: int
    seed: int


@click.command(cls=Command)
@click.option("-m", "--model", "model", required=True, type=click.Path(), help="Model folder, ARPA or KenLM file.")
@settings(
    "choices",
    _Choices,
    "Options",
    whole_number("-n", "--count", least=0, default=5, help="How many segments."),
    click.option("--prompt", default="", show_default=False, help="Text each segment begins with."),
    click.option(
        "--temperature",
        type=click.FloatRange(min=0),
        default=1.0,
        help="Below 1 safer, above 1 wilder, of tokens and letters; 0 always takes the most probable one.",
    ),
    whole_number("--top-k", metavar="K", help="Draw from the K most probable tokens only; letters are not limited."),
    whole_number("--max-tokens", default=100, help="A segment ends here at the latest."),
    seed_option,
)
@scoring_settings()
def sample(model: str, choices: _Choices, scoring: ScoringOptions) -> None:
    """Draw text from a model.

    A model with a spelled vocabulary spells new words, and draws white space as its training text has it.
    """
    from lmgauge.api.sample import sample as run
    from lmgauge.readable import for_output

    for text in run(model, scoring=scoring, **asdict(choices)):
        click.echo(for_output(text))
