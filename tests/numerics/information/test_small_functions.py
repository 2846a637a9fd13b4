"""What small functions of `information` give for an example each."""

from __future__ import annotations

from lmgauge.numerics.information.calculation import conversion_steps


def test_steps() -> None:
    assert conversion_steps("perplexity", 64.0, 4.1588830833596715, 6.0) == (
        "cross-entropy = ln 64 = 4.15888 nats per event",
        "bits per event = log2 64 = 6 bits",
        "check: 2^6 = 64",
    )
