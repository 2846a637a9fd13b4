"""`lmgauge.calc`: the function has everything that the command has."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.cli.commands import TERMINAL

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.json_text import plain
from lmgauge.cli.derive import calc as command


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["0.5", "0.8", "0.9"], {"numbers": [0.5, 0.8, 0.9]}),
        (["1/2", "80%", "0"], {"numbers": ["1/2", "80%", 0]}),
        (["--log-unit", "bits", "-1", "-2"], {"numbers": [-1, -2], "log_unit": "bits"}),
        (["--tokens", "the cat", "0.5", "0.25"], {"numbers": [0.5, 0.25], "tokens": ["the", "cat"]}),
        (["--perplexity", "64"], {"perplexity": 64}),
        (["--cross-entropy", "2.783"], {"cross_entropy": 2.783}),
        (["--bits-per-event", "6"], {"bits_per_event": "6"}),
        (["--p", "1/2,1/2"], {"p": [0.5, 0.5]}),
        (["--p", "1/2,1/2", "--q", "1/4,3/4"], {"p": np.array([0.5, 0.5]), "q": [0.25, 0.75]}),
    ],
)
def test_both_doors_give_the_same(arguments: list[str], options: dict[str, Any]) -> None:
    result = lmgauge.calc(**options)
    shown = CliRunner().invoke(command, ["--json", *arguments])
    assert json.loads(shown.output) == plain(result.to_dict())
    output = CliRunner().invoke(command, arguments, env=TERMINAL).output
    assert str(result) == output.rstrip("\n")
    for name, value in result.lines():
        assert re.search(f"^{re.escape(name)} +{re.escape(value)}$", output, re.MULTILINE)


def test_the_parts_are_typed() -> None:
    result = lmgauge.calc([0.5, 0.0], tokens="a b")
    assert result.score is not None
    assert result.score.zero_probability_events == 1
    assert [token.bits for token in result.tokens] == [1.0, math.inf]
    assert result.perplexity == math.inf
    figures = lmgauge.calc(p=[0.5, 0.5], q=[1.0, 0.0]).distributions
    assert figures is not None
    assert figures.kl_divergence == math.inf


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, UsageError, "exactly one input"),
        ({"numbers": [0.5], "perplexity": 2}, UsageError, "exactly one input"),
        ({"q": [1.0], "perplexity": 2}, UsageError, "q is compared with the distribution p"),
        ({"perplexity": 2, "log_unit": "bits"}, UsageError, "tokens and units belong to the numbers"),
        ({"numbers": "0.5 0.8"}, UsageError, r"numbers must be a list of numbers, such as \[0.5, 0.25\], not '0.5 0.8'"),
        ({"numbers": 0.5}, UsageError, "numbers must be a list of numbers"),
        ({"p": "1/2,1/2"}, UsageError, "p must be a list of numbers"),
        ({"numbers": []}, InputError, "no probability value given"),
        ({"numbers": [0.5, None]}, InputError, "value 2: None is not a number"),
        ({"numbers": [0.5, math.nan]}, InputError, "value 2 of 2 is nan"),
        ({"numbers": [0.5], "log_unit": "log2"}, UsageError, "unknown log-unit 'log2': choose one of nats, bits, log10"),
        ({"numbers": [0.5], "tokens": []}, InputError, "tokens: 0, numbers: 1;"),
        ({"p": []}, InputError, "no p value given"),
        ({"p": [0.5, 0.5], "q": [1.0]}, InputError, "p has 2 outcomes, q has 1"),
        ({"perplexity": [1]}, InputError, r"perplexity: \[1\] is not a number"),
        ({"perplexity": 0.5}, InputError, "below 1"),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lmgauge.calc(**options)
