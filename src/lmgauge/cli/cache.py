"""`lmgauge cache`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import click

from lmgauge.cli.command import Command, Number, settings, under, whole_number
from lmgauge.cli.mix import print_mixture
from lmgauge.cli.options import (
    json_option,
    read_texts,
    reading_settings,
    reserved_option,
    scoring_settings,
    threads_option,
)
from lmgauge.cli.say import showing_progress
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions


@dataclass(frozen=True)
class _Choices:
    """What the cache remembers, and what it weighs: arguments of `lmgauge.cache`."""

    weight: float | None
    order: int
    window: int | None
    decay: float | None


@click.command(cls=Command)
@click.argument("model", type=click.Path())
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder of the model to write.")
@settings(
    "choices",
    _Choices,
    "Model",
    click.option(
        "--weight",
        type=Number(),
        metavar="SHARE",
        help="Of the cache, 0 to 1, instead of estimating it on TEXTS; 0.1 without either.",
    ),
    whole_number("--order", default=2, help="1: which words went by; 2: also which came after which."),
    whole_number("--window", help="How many of the last events count; 500 if not given."),
    click.option(
        "--decay",
        type=Number(),
        metavar="D",
        help="In place of a window: an event that i others came after counts D to the i.",
    ),
)
@threads_option
@under("Output", json_option)
@reading_settings()
@scoring_settings(reserved_option)
def cache(
    model: str,
    texts: tuple[str, ...],
    output: str,
    choices: _Choices,
    threads: int | None,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    as_json: bool,
) -> None:
    """Make a model adapt to the text it scores.

    The model is mixed with a cache of the words that went by.

    MODEL is a model folder or an ARPA file. TEXTS are held-out text, in the order in which it was written: the cache gets
    the weight that makes it most probable. Each event is scored before it is counted.

    \b
    lmgauge cache kn5/ valid.txt -o kn5-cache/
    lmgauge eval -m kn5/ -m kn5-cache/ test.txt
    """
    from lmgauge.api.cache import cache as run
    from lmgauge.models.mixture.model import MixtureModel

    held_out = read_texts(texts, reading) if texts else None
    with showing_progress():
        adapting = run(model, held_out, threads=threads, output=output, scoring=scoring, **vars(choices))
    mixture = cast(MixtureModel, getattr(adapting, "inner", adapting))
    print_mixture(mixture, (model, mixture.components[1].label), output, as_json=as_json)
