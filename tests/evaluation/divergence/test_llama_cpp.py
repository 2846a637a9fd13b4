"""The table of llama.cpp: its names and its forms, and the numbers behind them.

`PRINTED` is what llama-perplexity (llama.cpp as in llama-cpp-python 0.3.36) printed for the tiny network of the book and the
same with its matrices rounded to 4 bits, on tests/data/pud.en.txt with -c 64. The figures that this house computes of the
same tokens agree with it to what storing the base in 16 bits allows.
"""

from __future__ import annotations

import re

import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError

PRINTED = """\
====== Perplexity statistics ======
Mean PPL(Q)                   : 442.228616 ±   5.095116
Mean PPL(base)                : 440.841888 ±   5.058989
Cor(ln(PPL(Q)), ln(PPL(base))):  98.99%
Mean ln(PPL(Q)/PPL(base))     :   0.003141 ±   0.001637
Mean PPL(Q)/PPL(base)         :   1.003146 ±   0.001642
Mean PPL(Q)-PPL(base)         :   1.386729 ±   0.723259

====== KL divergence statistics ======
Mean    KLD:   0.002476 ±   0.000027
Maximum KLD:   0.010408
99.9%   KLD:   0.008579
99.0%   KLD:   0.006490
95.0%   KLD:   0.004650
90.0%   KLD:   0.003908
Median  KLD:   0.002193
10.0%   KLD:   0.001308
 5.0%   KLD:   0.001113
 1.0%   KLD:   0.000895
 0.1%   KLD:   0.000719
Minimum KLD:   0.000531

====== Token probability statistics ======
Mean    Δp: -0.000 ± 0.000 %
Maximum Δp:  0.155%
99.9%   Δp:  0.135%
99.0%   Δp:  0.056%
95.0%   Δp:  0.030%
90.0%   Δp:  0.020%
75.0%   Δp:  0.009%
Median  Δp: -0.001%
25.0%   Δp: -0.010%
10.0%   Δp: -0.021%
 5.0%   Δp: -0.030%
 1.0%   Δp: -0.052%
 0.1%   Δp: -0.107%
Minimum Δp: -0.196%
RMS Δp    :  0.020 ± 0.001 %
Same top p: 79.287 ± 0.964 %"""

LINES = ["a b c", "b c a", "a b", "c c c c", "", "a a b d"] * 3


def result(kind: str = "laplace") -> lmgauge.results.Divergence:
    text = Corpus.from_strings(LINES)
    base, other = lmgauge.train("witten-bell", text, order=3), lmgauge.train(kind, text, order=2)  # type: ignore[arg-type]
    return lmgauge.divergence(base, other, Corpus.from_strings([*LINES, "d d a"]), events=None)


def test_the_lines_are_those_that_llama_perplexity_prints() -> None:
    ours = result().to_llama_cpp().split("\n")[: len(PRINTED.split("\n"))]
    for mine, theirs in zip(ours, PRINTED.split("\n"), strict=True):
        name, colon, _ = theirs.rpartition(":")
        assert mine.rpartition(":")[:2] == (name, colon)
        decimals = [len(number.partition(".")[2]) for number in re.findall(r"[0-9]+\.[0-9]+", mine.rpartition(":")[2])]
        assert decimals == [len(n.partition(".")[2]) for n in re.findall(r"[0-9]+\.[0-9]+", theirs.rpartition(":")[2])]
        assert ("±" in mine, "%" in mine) == ("±" in theirs, "%" in theirs)


def test_the_numbers_are_those_of_the_result() -> None:
    found = result()
    errors = found.token_errors
    assert errors is not None
    lines = {name.strip(): values for name, _, values in (line.rpartition(":") for line in found.to_llama_cpp().split("\n"))}
    numbers = {name: [float(n) for n in re.findall(r"-?[0-9]+\.[0-9]+", values)] for name, values in lines.items()}
    q, base = found.perplexity_b.value, found.perplexity_a.value
    assert q is not None
    assert base is not None
    assert numbers["Mean PPL(Q)"] == pytest.approx([q, q * errors.log_perplexity_b], abs=1e-6)
    assert numbers["Mean PPL(Q)/PPL(base)"][0] == pytest.approx(q / base, abs=1e-6)
    assert numbers["Mean PPL(Q)-PPL(base)"][0] == pytest.approx(q - base, abs=1e-6)
    assert numbers["Mean    KLD"] == pytest.approx([found.kl_ab_nats.value, errors.kl_ab], abs=1e-6)
    assert numbers["99.9%   KLD"] == pytest.approx([found.kl_ab_quantiles_nats["99.9"]], abs=1e-6)
    assert numbers["Minimum Δp"] == pytest.approx([100 * found.probability_change_quantiles["0"]], abs=1e-3)
    rms = found.probability_change_rms.value
    assert rms is not None
    assert numbers["RMS Δp"] == pytest.approx([100 * rms, 100 * errors.squared_probability_change / (2 * rms)], abs=1e-3)
    interval = found.kl_ab_nats.interval
    assert interval is not None
    assert numbers["95 % interval of Mean KLD"] == pytest.approx([interval.low, interval.high], abs=1e-6)


def test_infinite_figures_have_no_such_table() -> None:
    with pytest.raises(InputError, match="finite figures"):
        result("mle").to_llama_cpp()
