"""`lmgauge calc`: perplexity and its relatives of a few numbers, without a model or a text."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from lmgauge.errors import InputError

if TYPE_CHECKING:
    from lmgauge.numerics.perplexity import ProbabilityUnit, SequenceScore

Row = tuple[str, str, str]  # name, value, unit

DEFINITIONS: tuple[str, ...] = (
    "cross-entropy = -(log-probability) / events",
    "bits per event = cross-entropy / ln 2",
    "perplexity = exp(cross-entropy) = 2^(bits per event)",
)


@click.command("calc", context_settings={"ignore_unknown_options": True})
@click.argument("numbers", nargs=-1, type=click.UNPROCESSED)
@click.option("--nats", is_flag=True, help="The numbers are natural log-probabilities.")
@click.option("--bits", is_flag=True, help="The numbers are base-2 log-probabilities.")
@click.option("--log10", is_flag=True, help="The numbers are decimal log-probabilities, as in ARPA files.")
@click.option("--perplexity", type=float, metavar="NUMBER", help="Convert this perplexity to nats and bits.")
@click.option("--json", "as_json", is_flag=True, help='Print JSON in full precision; infinity is "inf".')
@click.pass_context
def calc(
    context: click.Context,
    numbers: tuple[str, ...],
    nats: bool,
    bits: bool,
    log10: bool,
    perplexity: float | None,
    as_json: bool,
) -> None:
    """Compute perplexity, cross-entropy and bits from the probabilities of events.

    NUMBERS are the probabilities a model gave to the events that happened, or, with --nats, --bits or
    --log10, their log-probabilities. Without NUMBERS, or with -, they are read from standard input.

    \b
    Examples:
      lmgauge calc 0.5 0.8 0.9
      lmgauge calc --bits -1 -2
      lmgauge calc --perplexity 64
      lmgauge calc --json --nats < logprobs.txt
    """
    unit = _unit(context, nats=nats, bits=bits, log10=log10)
    if perplexity is not None:
        if numbers or unit != "probability":
            raise click.UsageError("--perplexity goes without other numbers and their units", context)
        result, rows = _converted(perplexity)
        definitions = DEFINITIONS[1:]
    else:
        from lmgauge.numerics.perplexity import score_sequence

        score = score_sequence(_values(context, numbers), unit=unit)
        result, rows = score.to_dict(), _rows(score)
        definitions = DEFINITIONS
    if as_json:
        _print_json(result)
    else:
        _print_table(rows, definitions)


def _unit(context: click.Context, *, nats: bool, bits: bool, log10: bool) -> ProbabilityUnit:
    if nats + bits + log10 > 1:
        raise click.UsageError("--nats, --bits and --log10 exclude each other: one unit for all", context)
    if nats:
        return "nats"
    if bits:
        return "bits"
    return "log10" if log10 else "probability"


# --- reading numbers --------------------------------------------------------------------------------------


def _values(context: click.Context, numbers: tuple[str, ...]) -> list[float]:
    if numbers and numbers != ("-",):
        return [_argument(context, at, word) for at, word in enumerate(numbers, start=1)]
    stream = sys.stdin.buffer
    if not numbers and stream.isatty():
        raise click.UsageError("no numbers given: write them as arguments or pipe them in", context)
    return _numbers_of_lines(stream.read())


def _argument(context: click.Context, at: int, word: str) -> float:
    value = _float_of(word)
    if value is None:
        # Negative numbers look like options to click, so telling the two apart falls to this command.
        if word.startswith("-") and not word[1:2].isdigit():
            known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
            raise click.NoSuchOption(word, possibilities=_near(word, known), ctx=context)
        raise InputError(f"argument {at}, {word!r}, is not a number: write probabilities such as 0.5")
    return value


def _near(word: str, known: list[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word, known)


def _numbers_of_lines(data: bytes) -> list[float]:
    # utf-8-sig: some shells put a byte order mark before what they pipe.
    lines = data.decode("utf-8-sig", errors="replace").split("\n")
    values = []
    for number, line in enumerate(lines, start=1):
        for word in line.split():
            value = _float_of(word)
            if value is None:
                remedy = "give numbers only, separated by white space"
                raise InputError(f"<stdin>, line {number}: {word!r} is not a number: {remedy}")
            values.append(value)
    if not values:
        raise InputError("<stdin> holds no numbers: give probabilities, separated by white space")
    return values


def _float_of(word: str) -> float | None:
    # Python reads 1_0 as ten; in a list of numbers it is a slip.
    if "_" in word:
        return None
    try:
        return float(word)
    except ValueError:
        return None


# --- printing ---------------------------------------------------------------------------------------------


def _converted(perplexity: float) -> tuple[dict[str, Any], list[Row]]:
    from lmgauge.numerics.units import bits_from_perplexity, nats_from_perplexity

    nats, bits = nats_from_perplexity(perplexity), bits_from_perplexity(perplexity)
    rows = [
        ("perplexity", f"{perplexity:.12g}", ""),
        ("cross-entropy", f"{nats:.12g}", "nats per event"),
        ("bits per event", f"{bits:.12g}", "bits"),
    ]
    return {"perplexity": perplexity, "cross_entropy": nats, "bits_per_event": bits}, rows


def _rows(score: SequenceScore) -> list[Row]:
    from lmgauge.numerics.units import scientific_from_nats

    rows = [
        ("events", str(score.events), ""),
        ("joint probability", scientific_from_nats(score.log_probability), ""),
        ("log-probability", f"{score.log_probability:.12g}", "nats"),
        ("cross-entropy", f"{score.cross_entropy:.12g}", "nats per event"),
        ("bits per event", f"{score.bits_per_event:.12g}", "bits"),
        ("perplexity", f"{score.perplexity:.12g}", ""),
    ]
    if score.zero_probability_events:
        finite = score.perplexity_without_zeros
        zeros = score.zero_probability_events
        where = "at " + ", ".join(map(str, score.first_zero_events))
        where += ", ..." if zeros > len(score.first_zero_events) else ""
        rows += [
            ("zero-probability events", str(zeros), where),
            ("perplexity without zeros", "none left" if finite is None else f"{finite:.12g}", ""),
        ]
    return rows


def _print_json(result: dict[str, Any]) -> None:
    import json

    # JSON has no infinity; a bare Infinity would be refused by most readers.
    safe = {name: str(x) if isinstance(x, float) and math.isinf(x) else x for name, x in result.items()}
    click.echo(json.dumps(safe, allow_nan=False, indent=2))


def _print_table(rows: list[Row], definitions: tuple[str, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for style in ("", "bold", "dim"):
        # Folded, never cut: half a number is another number.
        table.add_column(style=style, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()
    for line in definitions:
        console.print(line, style="dim", soft_wrap=True)
