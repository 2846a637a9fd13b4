"""The table of protocols: what the sources do, in its own terms."""

from __future__ import annotations

from lmgauge.base.choices import PROTOCOL_NAMES
from lmgauge.scores.protocols import PROTOCOLS


def test_each_name_has_its_rules() -> None:
    assert tuple(PROTOCOLS) == PROTOCOL_NAMES
    for name, protocol in PROTOCOLS.items():
        assert protocol.name == name
        assert protocol.figures
        assert protocol.leaves_out == (name != "harness")
        assert protocol.causal == (name != "harness")


def test_half_of_a_chunk_is_what_llama_cpp_scores() -> None:
    """Its `first` is n_ctx / 2, whose logits predict the token after it; n_ctx - 1 - first tokens are scored."""
    for chunk in (2, 3, 100, 511, 512):
        assert chunk - PROTOCOLS["llama.cpp"].first_scored(chunk) == chunk - 1 - chunk // 2
        assert chunk - PROTOCOLS["gptq"].first_scored(chunk) == chunk - 1
