"""The figures of a divergence in the words of `llama-perplexity --kl-divergence`.

Source: llama.cpp, tools/perplexity/perplexity.cpp, function kl_divergence. The base is what the program calls `base`, the
candidate its Q. What stands behind ± is computed as there: standard errors of independent tokens, carried through exp and
the square root to first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lmgauge.base.errors import InputError
from lmgauge.base.escaping import visible

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.divergence_result import Divergence

_KL_QUANTILES = ("100", "99.9", "99", "95", "90", "50", "10", "5", "1", "0.1", "0")
_P_QUANTILES = ("100", "99.9", "99", "95", "90", "75", "50", "25", "10", "5", "1", "0.1", "0")
_NAMES = {"100": "Maximum", "50": "Median ", "0": "Minimum"}


def llama_cpp_table(result: Divergence) -> str:
    """Return the three blocks of figures, under llama.cpp's names and with its digits; ends without a newline."""
    errors = result.token_errors
    if errors is None:
        raise InputError(
            "the table of llama.cpp needs finite figures of two events or more; some are infinite or undefined here "
            "(see the notes without --llama-cpp)"
        )
    figures = {name: figure.value or 0.0 for name, figure in result.figures().items()}  # none is None where errors are not
    q, base, log_ratio = figures["perplexity_b"], figures["perplexity_a"], -figures["log_probability_change_nats"]
    q_error, base_error, ratio = q * errors.log_perplexity_b, base * errors.log_perplexity_a, math.exp(log_ratio)
    covariance = errors.correlation * q_error * base_error
    difference_error = math.sqrt(max(0.0, q_error**2 + base_error**2 - 2 * covariance))
    rms = figures["probability_change_rms"]
    rms_error = 0.5 / rms * errors.squared_probability_change if rms else 0.0
    lines = [
        "====== Perplexity statistics ======",
        _row("Mean PPL(Q)", q, q_error),
        _row("Mean PPL(base)", base, base_error),
        f"Cor(ln(PPL(Q)), ln(PPL(base))): {100 * errors.correlation:6.2f}%",
        _row("Mean ln(PPL(Q)/PPL(base))", log_ratio, errors.log_probability_change),
        _row("Mean PPL(Q)/PPL(base)", ratio, ratio * errors.log_probability_change),
        _row("Mean PPL(Q)-PPL(base)", q - base, difference_error),
        "",
        "====== KL divergence statistics ======",
        f"Mean    KLD: {figures['kl_ab_nats']:10.6f} ± {errors.kl_ab:10.6f}",
        *_quantiles(result.kl_ab_quantiles_nats, _KL_QUANTILES, "KLD: {:10.6f}"),
        "",
        "====== Token probability statistics ======",
        f"Mean    Δp: {_percent(figures['probability_change'], errors.probability_change)}",
        *_quantiles({k: 100 * p for k, p in result.probability_change_quantiles.items()}, _P_QUANTILES, "Δp: {:6.3f}%"),
        f"RMS Δp    : {_percent(rms, rms_error)}",
        f"Same top p: {_percent(figures['top_1_agreement'], errors.top_1)}",
        "",
        *_intervals(result),
    ]
    return "\n".join(lines)


def _row(name: str, value: float, error: float) -> str:
    return f"{name:<30}: {value:10.6f} ± {error:10.6f}"


def _percent(value: float, error: float) -> str:
    return f"{100 * value:6.3f} ± {100 * error:5.3f} %"


def _quantiles(quantiles: Mapping[str, float], percents: tuple[str, ...], form: str) -> Iterator[str]:
    for percent in percents:
        yield f"{_NAMES.get(percent) or f'{float(percent):4.1f}%  '} {form.format(quantiles[percent])}"


def _intervals(result: Divergence) -> Iterator[str]:
    yield "±: one standard error, as if every token were independent of all others."
    figures = (("Mean KLD", result.kl_ab_nats, 1), ("Mean ln(PPL(Q)/PPL(base))", result.log_probability_change_nats, -1))
    for name, figure, sign in figures:
        if figure.interval is not None:
            low, high = sorted((sign * figure.interval.low, sign * figure.interval.high))
            yield f"95 % interval of {name}: {low:.6f} to {high:.6f}"
    if result.independence:
        yield visible(f"95 % intervals: {result.independence}.")
