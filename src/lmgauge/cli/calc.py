"""`lmgauge calc`: perplexity and its relatives of a few numbers, without a model or a text."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from lmgauge.cli.command import Command, settings
from lmgauge.errors import InputError

if TYPE_CHECKING:
    from lmgauge.numerics.perplexity import ProbabilityUnit


@dataclass(frozen=True)
class _Events:
    """What the numbers are."""

    nats: bool
    bits: bool
    log10: bool
    tokens: str | None

    def unit(self, context: click.Context) -> ProbabilityUnit:
        """Return the unit of the numbers: probability, nats, bits or log10.

        Args:
            context: of the command, for messages.

        Raises:
            click.UsageError: two units are chosen.
        """
        if self.nats + self.bits + self.log10 > 1:
            raise click.UsageError("--nats, --bits and --log10 exclude each other: one unit for all", context)
        return "nats" if self.nats else "bits" if self.bits else "log10" if self.log10 else "probability"


@dataclass(frozen=True)
class _Instead:
    """What to compute from in place of events."""

    perplexity: str | None
    cross_entropy: str | None
    bits_per_event: str | None
    p: str | None
    q: str | None


@click.command("calc", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("numbers", nargs=-1, type=click.UNPROCESSED)
@click.option("--steps", is_flag=True, help="Show the working, line by line.")
@click.option("--json", "as_json", is_flag=True, help='Print JSON in full precision; infinity is "inf".')
@settings(
    "events",
    _Events,
    "Events",
    click.option("--nats", is_flag=True, help="The numbers are natural log-probabilities."),
    click.option("--bits", is_flag=True, help="The numbers are base-2 log-probabilities."),
    click.option("--log10", is_flag=True, help="The numbers are decimal log-probabilities, as in ARPA files."),
    click.option("--tokens", metavar="TEXT", help="The tokens that the numbers belong to, separated by white space."),
)
@settings(
    "instead",
    _Instead,
    "In place of events",
    click.option("--perplexity", metavar="NUMBER", help="Convert this perplexity to nats and bits."),
    click.option("--cross-entropy", metavar="NATS", help="Convert this cross-entropy, or loss, in nats per event."),
    click.option("--bits-per-event", metavar="BITS", help="Convert this cross-entropy in bits per event."),
    click.option("--p", metavar="LIST", help="Entropy of this distribution, such as 1/2,1/4,1/4."),
    click.option("--q", metavar="LIST", help="With --p: cross-entropy and KL divergence of this distribution under p."),
)
@click.pass_context
def calc(
    context: click.Context, numbers: tuple[str, ...], steps: bool, as_json: bool, events: _Events, instead: _Instead
) -> None:
    """Compute perplexity, cross-entropy and bits from the probabilities of events.

    NUMBERS are the probabilities a model gave to the events that happened, as 0.25, 1/4 or 25%, or, with --nats,
    --bits or --log10, their log-probabilities. Without NUMBERS, or with -, they are read from standard input.

    \b
    Examples:
      lmgauge calc 0.5 0.8 0.9 --steps
      lmgauge calc --tokens "the cat sat" 1/2 80% 0.9
      lmgauge calc --bits -1 -2
      lmgauge calc --cross-entropy 2.783
      lmgauge calc --p 0.5,0.25,0.25 --q 1/3,1/3,1/3
      lmgauge calc --json --nats < logprobs.txt
    """
    from lmgauge.api.calc import calc as compute

    unit = events.unit(context)
    chosen = [f"--{name.replace('_', '-')}" for name, value in asdict(instead).items() if value is not None]
    if chosen == ["--q"]:
        raise click.UsageError("--q needs --p, the distribution that it is compared with", context)
    if chosen and (numbers or unit != "probability" or events.tokens is not None):
        raise click.UsageError(
            f"{chosen[0]} stands alone, without NUMBERS, their units and --tokens; commas part a list: 1/2,1/4,1/4",
            context,
        )
    if chosen:
        figures = {name: value for name, value in asdict(instead).items() if name not in ("p", "q")}
        p, q = (None if words is None else words.split(",") for words in (instead.p, instead.q))
        result = compute(**figures, p=p, q=q)
    else:
        result = compute(_numbers(context, numbers, unit), unit=unit, tokens=events.tokens)
    if as_json:
        from lmgauge.json_text import to_json

        click.echo(to_json(result.to_dict()))
    else:
        from lmgauge.report.calc import blocks
        from lmgauge.report.terminal import show

        show(blocks(result, steps=steps))


def _numbers(context: click.Context, words: tuple[str, ...], unit: ProbabilityUnit) -> list[str] | list[float]:
    """Return the arguments, or the numbers on standard input."""
    if words and words != ("-",):
        for word in words:
            _check_no_option(context, word)
        return list(words)
    if not words and sys.stdin.buffer.isatty():
        raise click.UsageError("no numbers: write them as arguments or pipe them in", context)
    return _numbers_of_lines(sys.stdin.buffer.read(), unit)


def _check_no_option(context: click.Context, word: str) -> None:
    """Refuse an unknown option: negative numbers look like options to click, so telling the two apart falls to us."""
    from difflib import get_close_matches

    if (
        word.startswith("-")
        and word != "-"
        and not word.lstrip("-.")[:1].isdigit()
        and word.lower() not in ("-inf", "-infinity", "-nan")
    ):
        known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        raise click.NoSuchOption(word, possibilities=get_close_matches(word, known), ctx=context)


def _numbers_of_lines(data: bytes, unit: ProbabilityUnit) -> list[float]:
    from lmgauge.api.calc import read_number

    # utf-8-sig: some shells put a byte order mark before what they pipe.
    lines = enumerate(data.decode("utf-8-sig", errors="replace").split("\n"), start=1)
    percent = unit == "probability"
    values = [read_number(word, f"<stdin>, line {n}", percent=percent) for n, line in lines for word in line.split()]
    if not values:
        raise InputError("<stdin> holds no numbers: give probabilities, separated by white space")
    return values
