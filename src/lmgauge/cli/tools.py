"""What `lmgauge quickstart`, `doctor` and `calc` do."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmgauge.api.inputs import PathLike
from lmgauge.base.errors import InputError, MissingExtraError
from lmgauge.base.files import OutputError
from lmgauge.base.option_numbers import Count, read_number
from lmgauge.cli.derive import Call
from lmgauge.cli.say import say, say_where

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.model import SpelledModel

# -- quickstart ---------------------------------------------------------------------------------------------------------
_FOLDER = "lmgauge-quickstart"
_ORDERS = {"unigram": 1, "bigram": 2, "trigram": 3, "5-gram": 5}


def quickstart(*, output: PathLike | None = None, threads: Count | None = None) -> tuple[Any, str, Any]:
    """Train and evaluate four models on bundled text.

    Unigram, bigram, trigram and 5-gram models, modified Kneser-Ney, trained on whole novels in the public domain and
    evaluated on others: the textbook's table, where perplexity falls as the context grows. Words that occur once or
    never are spelled, so bits per byte are exact. A page shows the details.

    Args:
        output: keep models and page in this folder; only the page, in lmgauge-quickstart/, if not given.
        threads: how many; all cores if not given.

    Returns:
        The evaluations, their title, and where the page lies or why there is none.

    Shell:
        lmgauge quickstart
        lmgauge quickstart -o quickstart/
    """
    from dataclasses import replace
    from tempfile import gettempdir

    from lmgauge import evaluate, report
    from lmgauge.base.files import naming
    from lmgauge.base.temporaries import scratch_folder

    data = Path(__file__).parents[1] / "data"
    models = _trained(data / "quickstart-train.txt.xz", threads)
    for name, model in models.items() if output is not None else ():
        model.save(f"{output}/{name}")
    page: Any = Path(output or _FOLDER, "report.html")
    with naming(gettempdir()), scratch_folder() as folder, naming(folder.parent, [folder]):
        results = evaluate(models, data / "quickstart-test.txt.xz", threads=threads, output=folder / "runs")
        runs = [Path(folder, "runs", name) for name in reversed(_ORDERS)]
        try:
            made = report(runs, title="n-gram models of four orders", threads=threads)
            train = f"quickstart-train.txt.xz: {models['unigram'].record.training['events']:,} events"
            head = (made.about[0], ("training text", train), ("command", "lmgauge quickstart"))
            replace(made, about=head).save(page)
        except InputError as error:
            raise OutputError(f"{page}: the scores for it, in {folder.parent}, cannot be read back") from error
        except (MissingExtraError, OutputError) as error:
            if output is not None and isinstance(error, OutputError):
                raise  # only where nobody named the folder, a table without a page is good enough
            page = error
    events = models["unigram"].record.training["events"]
    title = f"Novels in the public domain: trained on {events:,} events, tested on {results[0].events:,}"
    return results, title, page


def show(call: Call) -> None:
    """Print the table, what to do next, and where the page lies."""
    from lmgauge.report import evaluations
    from lmgauge.report.blocks import Document, Heading, Text

    results, title, page = call()
    trigram = f"{call['output']}/trigram" if call["output"] else "kn5/"
    train = "lmgauge train modified-kneser-ney --order 5 --vocabulary spelled --min-count 2 train.txt -o kn5/"
    commands = (Text(command, indent=2) for command in (train, f"lmgauge eval -m {trigram} test.txt"))
    yours: Document = (Heading("Now your own text:"), *commands)
    call.answer(results, lambda: (*evaluations.blocks(results, title), *yours))
    if isinstance(page, Path):
        say_where(page, err=bool(call.form))
    else:
        say(f"no page was written: {page}", err=bool(call.form))


def _trained(text: Path, threads: int | None) -> dict[str, SpelledModel]:
    """Return the models by name: over the same words, so that one speller is for all."""
    from lmgauge.api.train import train
    from lmgauge.base.progress import say_progress

    models: dict[str, Any] = {}
    for name, order in _ORDERS.items():
        say_progress(f"training the {name} model")
        vocabulary: Any = "open" if models else "spelled"
        words = train("modified-kneser-ney", text, order=order, min_count=2, vocabulary=vocabulary, threads=threads)
        models[name] = models["unigram"].around(words) if models else words
    return models


# -- doctor -------------------------------------------------------------------------------------------------------------
def doctor(call: Call) -> None:
    """Show what was seen, also where what shows tables is broken, and exit with 1 if anything is."""
    from lmgauge.api.doctor import doctor as look
    from lmgauge.report.documents import document_of
    from lmgauge.report.tsv_renderer import as_rows

    if sys.stderr.isatty() and not call["quick"]:  # no more than a line: what shows progress may be what is broken
        say("importing the libraries that are installed; with torch this takes seconds", err=True)
    checkup = look(quick=call["quick"])
    if not call.form and "rich" in checkup.unusable:  # what prints tables is what is broken
        click.echo(as_rows(document_of(checkup)), nl=False)
        call.context.exit(1)
    call.answer(checkup)


# -- calc ---------------------------------------------------------------------------------------------------------------
_INSTEAD = ("perplexity", "cross_entropy", "bits_per_event", "p", "q")


def calc(call: Call) -> None:
    """Compute from the numbers that are written or piped in, or from what stands in their place."""
    from lmgauge.report.calc import blocks

    words = call.values.pop("numbers", ())
    if words or not call.values.keys() & set(_INSTEAD):
        call.refuse(_INSTEAD, "stands alone, without NUMBERS; commas part a list: 1/2,1/4,1/4")
        call.values["numbers"] = _numbers(call.context, words, call["log_unit"] is None)
    result = call()
    call.answer(result, lambda: call(blocks, result=result))


def _numbers(context: click.Context, words: Sequence[str], percent: bool) -> list[str] | list[float]:
    """Return the arguments, or the numbers on standard input."""
    if words and words != ("-",):
        for word in words:
            _check_no_option(context, word)
        return list(words)
    if not words and sys.stdin.buffer.isatty():
        raise click.UsageError("no numbers: write them as arguments or pipe them in", context)
    return _numbers_of_lines(sys.stdin.buffer.read(), percent)


def _check_no_option(context: click.Context, word: str) -> None:
    """Refuse an unknown option: negative numbers look like options to click, so telling the two apart falls to us."""
    from difflib import get_close_matches

    if word.startswith("-") and not re.match(r"-([-.]*\d|inf$|infinity$|nan$|$)", word, re.IGNORECASE):
        known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        raise click.NoSuchOption(word, possibilities=get_close_matches(word, known), ctx=context)


def _numbers_of_lines(data: bytes, percent: bool) -> list[float]:
    # utf-8-sig: some shells put a byte order mark before what they pipe.
    lines = enumerate(data.decode("utf-8-sig", errors="replace").split("\n"), start=1)
    values = [read_number(word, f"<stdin>, line {n}", percent=percent) for n, line in lines for word in line.split()]
    if not values:
        raise InputError("<stdin> holds no numbers: give probabilities, separated by white space")
    return values
