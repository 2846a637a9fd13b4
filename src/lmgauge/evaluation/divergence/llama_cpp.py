"""The figures of a divergence in the words of `llama-perplexity --kl-divergence`.

Source: llama.cpp, tools/perplexity/perplexity.cpp, function kl_divergence. The base is what the program calls `base`, the
candidate its Q. What stands behind ± is computed as there: standard errors of independent tokens, carried through exp and
the square root to first order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lmgauge.errors import InputError
from lmgauge.readable import visible

if TYPE_CHECKING:
    from lmgauge.evaluation.divergence.results import Divergence, TokenErrors

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
    lines = [
        "====== Perplexity statistics ======",
        *_perplexities(result, errors),
        "",
        "====== KL divergence statistics ======",
        f"Mean    KLD: {_value(result.kl_ab_nats.value):10.6f} ± {errors.kl_ab:10.6f}",
        *_quantiles(result.kl_ab_quantiles_nats, _KL_QUANTILES, "KLD: ", 1.0, "10.6f", ""),
        "",
        "====== Token probability statistics ======",
        *_probabilities(result, errors),
        "",
        *_intervals(result),
    ]
    return "\n".join(lines)


def _intervals(result: Divergence) -> Iterator[str]:
    yield "±: one standard error, as if every token were independent of all others."
    figures = {"Mean KLD": result.kl_ab_nats, "Mean ln(PPL(Q)/PPL(base))": result.log_probability_change_nats.mapped(_minus)}
    for name, figure in figures.items():
        if figure.interval is not None:
            low, high = sorted((figure.interval.low, figure.interval.high))
            yield f"95 % interval of {name}: {low:.6f} to {high:.6f}"
    if result.independence:
        yield visible(f"95 % intervals: {result.independence}.")


def _minus(value: float) -> float:
    return -value


def _perplexities(result: Divergence, errors: TokenErrors) -> Iterator[str]:
    q, base = _value(result.perplexity_b.value), _value(result.perplexity_a.value)
    q_error, base_error = q * errors.log_perplexity_b, base * errors.log_perplexity_a
    log_ratio = -_value(result.log_probability_change_nats.value)
    ratio = math.exp(log_ratio)
    covariance = errors.correlation * q_error * base_error
    difference_error = math.sqrt(max(0.0, q_error**2 + base_error**2 - 2 * covariance))
    rows = {
        "Mean PPL(Q)": (q, q_error),
        "Mean PPL(base)": (base, base_error),
        "Cor(ln(PPL(Q)), ln(PPL(base)))": None,
        "Mean ln(PPL(Q)/PPL(base))": (log_ratio, errors.log_probability_change),
        "Mean PPL(Q)/PPL(base)": (ratio, ratio * errors.log_probability_change),
        "Mean PPL(Q)-PPL(base)": (q - base, difference_error),
    }
    for name, pair in rows.items():
        if pair is None:
            yield f"{name}: {100 * errors.correlation:6.2f}%"
        else:
            yield f"{name:<30}: {pair[0]:10.6f} ± {pair[1]:10.6f}"


def _probabilities(result: Divergence, errors: TokenErrors) -> Iterator[str]:
    rms = _value(result.probability_change_rms.value)
    rms_error = 0.5 / rms * errors.squared_probability_change if rms else 0.0
    yield f"Mean    Δp: {_percent(result.probability_change.value, errors.probability_change)}"
    yield from _quantiles(result.probability_change_quantiles, _P_QUANTILES, "Δp: ", 100.0, "6.3f", "%")
    yield f"RMS Δp    : {_percent(rms, rms_error)}"
    yield f"Same top p: {_percent(result.top_1_agreement.value, errors.top_1)}"


def _quantiles(
    quantiles: Mapping[str, float], percents: tuple[str, ...], name: str, scale: float, form: str, unit: str
) -> Iterator[str]:
    for percent in percents:
        shown = _NAMES.get(percent) or f"{float(percent):4.1f}%  "
        yield f"{shown} {name}{scale * quantiles[percent]:{form}}{unit}"


def _percent(value: float | None, error: float) -> str:
    return f"{100 * _value(value):6.3f} ± {100 * error:5.3f} %"


def _value(value: float | None) -> float:
    assert value is not None, "token_errors are None where a figure is"
    return value
