"""`lmgauge prune`."""

from __future__ import annotations

import re
from typing import Any

import click

from lmgauge.cli.command import Command, Number, under
from lmgauge.cli.options import json_option, read_texts, reading_settings, threads_option
from lmgauge.cli.say import answer, showing_progress
from lmgauge.text.reading_options import ReadingOptions

_FACTORS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


class NgramCount(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click
    """A number of n-grams: 250000, 500k or 1.5M."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number.

        Raises:
            click.BadParameter: it is not one.

        >>> NgramCount()("1.5M")
        1500000
        """
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([kMG]?)", str(value).replace(",", "").replace("_", ""))
        if match is None:
            self.fail(f"{value!r} is not a number of n-grams such as 250000, 500k or 1M", param, ctx)
        return int(float(match[1]) * _FACTORS[match[2]] + 0.5)


@click.command(cls=Command)
@click.argument("model", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder, ARPA file or KenLM file (.binary) to write.")
@click.option(
    "--threshold",
    type=Number(),
    metavar="X",
    help="Drop n-grams whose loss raises the perplexity by less than this share, such as 1e-8.",
)
@click.option(
    "--to-size",
    type=NgramCount(),
    help="How many n-grams of all orders stay, such as 250000, 500k or 1M: those with the largest losses.",
)
@click.option(
    "--text", "texts", multiple=True, type=click.Path(allow_dash=True), help="Measure the perplexity before and after on it."
)
@threads_option
@under("Output", json_option)
@reading_settings()
def prune(
    model: str,
    output: str,
    threshold: float | None,
    to_size: int | None,
    texts: tuple[str, ...],
    threads: int | None,
    reading: ReadingOptions,
    as_json: bool,
) -> None:
    """Drop the n-grams that a model needs least.

    MODEL is the folder of an n-gram model that backs off, or an ARPA file. Unigrams stay, the n-grams whose loss changes the
    model least go (relative entropy), and the back-off weights are made anew.

    \b
    lmgauge prune kn5/ --threshold 1e-8 -o small/
    lmgauge prune theirs.arpa --to-size 1M --text valid.txt -o small.arpa
    """
    from lmgauge.api.prune import prune as run
    from lmgauge.report.pruning import blocks

    text = read_texts(texts, reading) if texts else None
    with showing_progress():
        pruned = run(model, threshold=threshold, to_size=to_size, text=text, output=output, threads=threads)
    content = {"path": output, **pruned.to_dict()}
    answer(content, lambda: blocks(pruned, name=output), as_json=as_json)
