"""`lmgauge.calc`: perplexity and its relatives of a few numbers, without a model or a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lmgauge.base.choices import LogUnit
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import read_number

if TYPE_CHECKING:
    from lmgauge.numerics.information.calculation import CalcResult

Numbers = Sequence[float | str]


@verb
def calc(
    numbers: Numbers | None = None,
    *,
    log_unit: LogUnit | None = None,
    tokens: str | Sequence[str] | None = None,
    perplexity: float | str | None = None,
    cross_entropy: float | str | None = None,
    bits_per_event: float | str | None = None,
    p: Numbers | None = None,
    q: Numbers | None = None,
) -> CalcResult:
    """Compute perplexity, cross-entropy and bits of a few events, of one figure, or of one or two distributions.

    Numbers are the probabilities that a model gave to the events that happened, or their logarithms. Each may be written as
    0.25 or 1/4, a probability also as 25%. If the command has none, or -, they are read from standard input.

    Args:
        numbers: [events], probabilities, or log-probabilities if their unit is given.
        log_unit: unit of numbers that are log-probabilities; log10 as in ARPA files.
        tokens: the tokens that the numbers belong to; a string is split at white space.
        perplexity: convert this perplexity to nats and bits.
        cross_entropy: convert this cross-entropy, or loss, in nats per event.
        bits_per_event: convert this cross-entropy in bits per event.
        p: entropy of this distribution, such as 1/2,1/4,1/4.
        q: cross-entropy and KL divergence of this one under `p`.

    Raises:
        InputError: a number is not one, or not possible; a distribution does not sum to one; numbers do not match.
        UsageError: nothing to compute, or two things at once.

    Shell:
        lmgauge calc 0.5 0.8 0.9 --steps
        lmgauge calc --tokens "the cat sat" 1/2 80% 0.9
        lmgauge calc --log-unit bits -1 -2
        lmgauge calc --cross-entropy 2.783
        lmgauge calc --p 0.5,0.25,0.25 --q 1/3,1/3,1/3
        lmgauge calc --json --log-unit nats < logprobs.txt

    Example:
        >>> round(calc([0.5, 0.8, 0.9]).perplexity, 4)
        1.4057
        >>> round(calc(cross_entropy=2.783).perplexity, 3)
        16.167
        >>> result = calc(p=["1/2", "1/4", "1/4"], q=["1/4", "1/4", "50%"]).distributions
        >>> result.entropy_p, result.kl_divergence, result.cross_entropy
        (1.5, 0.25, 1.75)
    """
    from lmgauge.numerics.information.calculation import convert, of_distributions, of_events

    figures = {"perplexity": perplexity, "cross_entropy": cross_entropy, "bits_per_event": bits_per_event}
    wanted = {name: value for name, value in figures.items() if value is not None}
    if q is not None and p is None:
        raise UsageError("q is compared with the distribution p: give both")
    if (numbers is not None) + len(wanted) + (p is not None) != 1:
        raise UsageError(
            "calc needs exactly one input: probabilities of events, a perplexity, a cross-entropy, bits per event, "
            "or the distribution p"
        )
    if numbers is None and (tokens is not None or log_unit is not None):
        raise UsageError("tokens and units belong to the numbers of events: give these")
    if p is not None:
        lists = [None if x is None else _read_all(x, name, percent=True) for x, name in ((p, "p"), (q, "q"))]
        return of_distributions(lists[0] or [], lists[1])
    if numbers is not None:
        words = tokens.split() if isinstance(tokens, str) else tokens
        return of_events(_read_all(numbers, "", percent=log_unit is None), log_unit or "probability", words)
    ((name, value),) = wanted.items()
    return convert(name, read_number(value, name))


def _read_all(values: Numbers, name: str, *, percent: bool) -> list[float]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(f"{name or 'numbers'} must be a list of numbers, such as [0.5, 0.25], not {values!r}")
    where = f"value {{}} of {name}" if name else "value {}"
    return [read_number(value, where.format(i), percent=percent) for i, value in enumerate(values, start=1)]
