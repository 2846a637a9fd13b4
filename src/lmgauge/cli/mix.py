"""`lmgauge mix`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.cli.command import CommaList, Command, settings, under
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
    from lmgauge.api.mix import StaticMixture
    from lmgauge.models.mixture.together import Mixture


@dataclass(frozen=True)
class Mixing:
    """How to mix, as the options say it.

    Attributes:
        weights: of the models; None estimates them.
        static: make one n-gram model.
        threads: how many.
    """

    weights: tuple[float, ...] | None = None
    static: bool = False
    threads: int | None = None


@click.command(cls=Command)
@click.argument("texts", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "-m",
    "--model",
    "models",
    multiple=True,
    type=click.Path(),
    help="Model folder, ARPA or KenLM file; two or more.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Folder to write; with --static also an ARPA or KenLM file.",
)
@settings(
    "mixing",
    Mixing,
    "Options",
    click.option(
        "--weights",
        metavar="W,W...",
        type=CommaList(float, "0.7,0.3"),
        help="One a model, summing to 1, instead of estimating them; TEXTS, if named, then only measure them.",
    ),
    click.option(
        "--static",
        is_flag=True,
        help="Make one n-gram model of n-gram models, or of one mixture of such: the n-grams of all, each as probable as in "
        "the mixture, and new back-off weights.",
    ),
    threads_option,
)
@under("Output", json_option)
@reading_settings()
@scoring_settings(reserved_option)
def mix(
    texts: tuple[str, ...],
    models: tuple[str, ...],
    output: str,
    mixing: Mixing,
    reading: ReadingOptions,
    scoring: ScoringOptions,
    as_json: bool,
) -> None:
    """Mix models, with weights estimated on held-out text.

    TEXTS are held-out text, which no model was trained on: files, globs or - (standard input, also if none is named). The
    weights are those that make it most probable (expectation maximization). Models over different words are mixed over the
    union: a model gives zero to a word that it does not know and another does. Models that cut text differently are mixed
    byte by byte, if they are spelled (lmgauge spell) or models of bytes.

    \b
    lmgauge mix -m kn3/ -m wb3/ valid.txt -o mixed/
    lmgauge mix -m kn3/ -m wb3/ --weights 0.7,0.3 -o mixed/
    lmgauge mix -m theirs.arpa -m kn3/ --reserved unk valid.txt --static -o mixed.arpa
    """
    from lmgauge.api.mix import mix as run

    held_out = read_texts(texts, reading) if texts or (mixing.weights is None and len(models) > 1) else None
    with showing_progress():
        if mixing.static:
            merged = run(
                models, held_out, weights=mixing.weights, static=True, threads=mixing.threads, output=output, scoring=scoring
            )
        else:
            mixture = run(models, held_out, weights=mixing.weights, threads=mixing.threads, output=output, scoring=scoring)
    if mixing.static:
        print_static(merged, models, output, as_json=as_json)
    else:
        print_mixture(mixture, models, output, as_json=as_json)


def print_static(merged: StaticMixture, models: tuple[str, ...], output: str, *, as_json: bool) -> None:
    """Print a static mixture: the weight of each component, its n-grams, and the perplexity lost.

    Args:
        merged: what was made.
        models: the paths of the components, or of the mixture.
        output: where it was saved.
        as_json: print JSON instead.
    """
    from lmgauge.report import mixture as report

    paths = models if len(models) == len(merged.mixture.components) else ()
    content = merged.to_dict() | {"path": output}
    for component, path in zip(content["components"], paths, strict=False):
        component["path"] = path
    answer(content, lambda: report.static_blocks(merged, name=output, paths=paths), as_json=as_json)


def print_mixture(mixture: Mixture, models: tuple[str, ...], output: str, *, as_json: bool) -> None:
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
