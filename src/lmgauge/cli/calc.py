"""What `lmgauge calc` does besides computing: it reads numbers from standard input, and shows the working."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from lmgauge.base.errors import InputError
from lmgauge.base.option_numbers import read_number
from lmgauge.cli.derive import Call
from lmgauge.report.calc import blocks

_INSTEAD = ("perplexity", "cross_entropy", "bits_per_event", "p", "q")


def calc(call: Call) -> None:
    """Compute from the numbers that are written or piped in, or from what stands in their place."""
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
