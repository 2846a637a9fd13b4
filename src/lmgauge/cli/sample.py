"""`lmgauge sample`."""

from __future__ import annotations

from typing import Any

import click

from lmgauge.cli.options import neural_options, scoring_options, seed_option


@click.command()
@click.option("-m", "--model", "model", required=True, type=click.Path(), help="Model folder, or ARPA file.")
@click.option("-n", "--count", type=click.IntRange(min=0), default=5, show_default=True, help="How many segments.")
@seed_option
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Below 1 safer, above 1 wilder; 0 always takes the most probable token.",
)
@click.option("--top-k", type=click.IntRange(min=1), help="Draw from the so many most probable tokens only.")
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="A segment ends here at the latest.",
)
@click.option("--prompt", default="", help="Text each segment begins with.")
@neural_options
def sample(
    model: str,
    count: int,
    seed: int,
    temperature: float,
    top_k: int | None,
    max_tokens: int,
    prompt: str,
    **neural: Any,
) -> None:
    """Draw text from a model."""
    from lmgauge.api.sample import sample as run
    from lmgauge.models.registry import open_model
    from lmgauge.readable import for_output

    options = {"seed": seed, "temperature": temperature, "top_k": top_k, "max_tokens": max_tokens, "prompt": prompt}
    for text in run(open_model(model, scoring_options(neural)), count, **options):  # type: ignore[arg-type]
        click.echo(for_output(text))
