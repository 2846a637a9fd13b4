"""`lmgauge quickstart`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmgauge.cli.command import Command
from lmgauge.cli.options import json_option, threads_option
from lmgauge.cli.say import answer, say, say_where, showing_progress
from lmgauge.errors import MissingExtraError
from lmgauge.files import OutputError, making_parents
from lmgauge.temporaries import scratch_folder

if TYPE_CHECKING:
    from lmgauge.models.spelling.model import SpelledModel

_FOLDER = "lmgauge-quickstart"
_ORDERS = {"unigram": 1, "bigram": 2, "trigram": 3, "5-gram": 5}
_TRAINING = "--order 5 --vocabulary spelled --min-count 2"


@click.command(cls=Command)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help=f"Keep models and page in this folder; only the page, in {_FOLDER}/, if not given.",
)
@threads_option
@json_option
def quickstart(output: str | None, threads: int | None, as_json: bool) -> None:
    """Train and evaluate four models on bundled text.

    Unigram, bigram, trigram and 5-gram models, modified Kneser-Ney, trained on whole novels in the public domain and
    evaluated on others: the textbook's table, where perplexity falls as the context grows. Words that occur once, or never,
    are spelled, so that bits per byte are exact. A page shows what is behind it.
    """
    from importlib.resources import as_file, files

    from lmgauge.api.evaluate import evaluate
    from lmgauge.report import evaluations
    from lmgauge.report.blocks import Document, Heading, Text

    home = files("lmgauge") / "data"
    with (
        ExitStack() as stack,
        showing_progress(),
        as_file(home / "quickstart-train.txt.xz") as train_text,
        as_file(home / "quickstart-test.txt.xz") as test_text,
    ):
        models = _trained(train_text, threads)
        if output is not None:
            for name in models:
                models[name].save(f"{output}/{name}")
        runs = stack.enter_context(scratch_folder())
        results = evaluate(models, test_text, threads=threads, output=runs)
        page = _page([Path(runs, name) for name in reversed(_ORDERS)], Path(output or _FOLDER, "report.html"), threads)
    training = models["unigram"].record.training
    title = f"Novels in the public domain: trained on {training['events']:,} events, tested on {results[0].events:,}"
    model = f"{output}/trigram" if output else "kn5/"
    commands = (
        f"lmgauge train modified-kneser-ney {_TRAINING} train.txt -o kn5/",
        f"lmgauge eval -m {model} test.txt",
    )
    yours: Document = (Heading("Now your own text:"), *(Text(command, indent=2) for command in commands))
    answer(results, lambda: (*evaluations.blocks(results, title), *yours), as_json=as_json)
    if isinstance(page, Path):
        say_where(page, err=as_json)
    else:
        say(f"no page was written: {page}", err=as_json)


def _trained(text: Path, threads: int | None) -> dict[str, SpelledModel]:
    """Return the models by name: over the same words, so that one speller is for all."""
    from lmgauge.api.train import train
    from lmgauge.progress import say_progress

    models: dict[str, SpelledModel] = {}
    for name, order in _ORDERS.items():
        say_progress(f"training the {name} model")
        if not models:
            first = train("modified-kneser-ney", text, order=order, min_count=2, vocabulary="spelled", threads=threads)
            models[name] = first
        else:
            words = train("modified-kneser-ney", text, order=order, min_count=2, threads=threads)
            models[name] = first.around(words)
    return models


def _page(runs: Sequence[Path], page: Path, threads: int | None) -> Path | MissingExtraError | OutputError:
    """Write the page of the runs, and return where it lies, or why there is none."""
    from lmgauge.api.report import report

    try:
        with making_parents(page):
            report(runs, page, title="n-gram models of four orders", threads=threads)
    except (MissingExtraError, OutputError) as error:
        return error
    return page
