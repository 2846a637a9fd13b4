"""What is said of a context curve: which steps help, as far as tests show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.report.conftest import curve

from lmgauge.evaluation.context_curve.curve import ContextCurve, ContextStep
from lmgauge.report.blocks import ChartData, Verdict
from lmgauge.report.context_curve import blocks
from lmgauge.report.terminal import as_text


def with_steps(*steps: tuple[int, int, float | None, float | None]) -> ContextCurve:
    """A curve with these steps: shorter, longer, difference in bits per token, adjusted p-value."""
    made = (ContextStep(a, b, change, None, change, None, p, p) for a, b, change, p in steps)
    return replace(curve(), model="tiny", steps=tuple(made))


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([(512, 1024, -0.2, 0.01)], "The step 512 to 1,024 saves bits (p < 0.05, adjusted for 1 step)."),
        (
            [(512, 1024, -0.2, 0.01), (1024, 2048, -0.1, 0.02)],
            "The steps 512 to 1,024, 1,024 to 2,048 save bits (p < 0.05, adjusted for 2 steps).",
        ),
        (
            [(512, 1024, -0.2, 0.01), (1024, 2048, 0.1, 0.02), (2048, 4096, 0.1, 0.5)],
            "The step 512 to 1,024 saves bits; the step 1,024 to 2,048 costs bits; the other steps show no difference (p < "
            "0.05, adjusted for 3 steps).",
        ),
        ([(512, 1024, 0.1, 0.3)], "No step from one length to the next differs significantly (smallest p = 0.3000)."),
        ([(512, 1024, None, None)], "There is too little text to tell whether the lengths differ."),
    ],
)
def test_the_answer(steps: Any, says: str) -> None:
    verdict = next(block for block in blocks(with_steps(*steps)) if isinstance(block, Verdict))
    assert verdict.text == f"The same 200 tokens cost 5.0000 bits each with a context of 512, 5.0000 with 1,024. {says}"


def test_the_charts_have_a_band_and_intervals() -> None:
    made = curve()
    line, steps = (block for block in blocks(made) if isinstance(block, ChartData))
    assert (line.series[0].x, line.series[0].low, line.series[0].high) == (("512", "1,024"), (4.5, 4.5), (5.5, 5.5))
    assert (steps.series[0].x, steps.series[0].low, steps.rule) == (("512 to 1,024",), (-0.5,), 0.0)
    assert line.y_title == "bits per token"  # those per byte are lower bounds here
    exact = replace(made, bits_per_byte_is_bound=False)
    assert next(block for block in blocks(exact) if isinstance(block, ChartData)).y_title == "bits per byte"
    unknown = replace(exact, points=tuple(replace(point, bits_per_byte=None) for point in made.points))
    assert next(block for block in blocks(unknown) if isinstance(block, ChartData)).y_title == "bits per token"


def test_tokens_of_probability_zero_have_a_column() -> None:
    made = replace(curve(), model="tiny")
    assert "p = 0" not in as_text(blocks(made))
    zero = replace(made.points[0], zero_probability_events=3)
    assert "p = 0" in as_text(blocks(replace(made, points=(zero, made.points[1]))))
