"""`lmgauge mix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lmgauge.cli.command import CommaList, Command, under
from lmgauge.cli.options import (
    json_option,
    read_texts,
    reading_settings,
    reserved_option,
    scoring_settings,
    threads_option,
)
from lmgauge.cli.say import answer, showing_progress
from lmgauge.models.network.options import ScoringOptions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.mixture.model import MixtureModel


@click.command(cls=Command)
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(),
    help="Model folder, or ARPA file; two or more, over the same words.",
)
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder of the mixture to write.")
@click.option(
    "--weights",
    metavar="W,W...",
    type=CommaList(float, "0.7,0.3"),
    help="One a model, summing to 1, instead of estimating them; TEXTS, if named, then only measure them.",
)
@threads_option
@under("Output", json_option)
@reading_settings()
@scoring_settings(reserved_option)
def mix(
    texts: tuple[str, ...],
    models: tuple[str, ...],
    output: str,
    weights: tuple[float, ...] | None,
    threads: int | None,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    as_json: bool,
) -> None:
    """Mix models, with weights estimated on held-out text.

    TEXTS are held-out text, which no model was trained on: files, globs or - (standard input, also if none is named). The
    weights are those that make it most probable (expectation maximization).

    \b
    lmgauge mix -m kn3/ -m wb3/ valid.txt -o mixed/
    lmgauge mix -m kn3/ -m wb3/ --weights 0.7,0.3 -o mixed/
    """
    from lmgauge.api.mix import mix as run

    held_out = read_texts(texts, reading) if texts or weights is None else None
    with showing_progress():
        mixture = run(models, held_out, weights=weights, threads=threads, output=output, scoring=scoring)
    print_mixture(mixture, models, output, as_json=as_json)


def print_mixture(mixture: MixtureModel, models: tuple[str, ...], output: str, *, as_json: bool) -> None:
    """Print a mixture: the weight of each component, and what they are worth on held-out text.

    Args:
        mixture: what was made.
        models: the paths of its components, or what else to call them.
        output: where it was saved.
        as_json: print JSON instead.
    """
    from lmgauge.report import mixture as report

    content = mixture.to_dict() | {"path": output, "label": mixture.label, "fingerprint": mixture.fingerprint}
    for component, path in zip(content["components"], models, strict=True):
        component["path"] = path
    answer(content, lambda: report.blocks(mixture, name=output, paths=models), as_json=as_json)
