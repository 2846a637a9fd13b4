"""Whose rules a figure follows: what other programs do to a text before they print a perplexity, in one table.

A protocol is a rule for the text (how segments become one), a layout of windows, and what it leaves out. The sources, read
in 2026:

    hf-guide    transformers, docs/source/en/perplexity.md, "Perplexity of fixed-length models"
    harness     lm-evaluation-harness 0.4, lm_eval/utils.py (get_rolling_token_windows), models/huggingface.py
    llama.cpp   llama.cpp, tools/perplexity/perplexity.cpp (perplexity), common/arg.cpp (--file)
    gptq        IST-DASLab/gptq, llama.py (llama_eval), datautils.py (get_wikitext2); so most papers on quantization
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmgauge.base.choices import ProtocolName

LayoutName = Literal["sliding", "filled", "chunks"]


@dataclass(frozen=True, kw_only=True)
class ScoringProtocol:
    """The rules of one source."""

    name: ProtocolName
    source: str
    rules: str  # what it does, in a sentence
    separator: str | None  # what segments are joined by into one text; None: each is scored by itself
    # of windows: `sliding` (each begins `stride` tokens after the one before), `filled` (side by side, the last moved left
    # until it is full) or `chunks` (side by side, the rest that fills none dropped)
    layout: LayoutName
    window: int | None = None  # tokens of a window; None: as many as the model has positions for
    shrinks: bool = False  # a window is no longer than the model has positions for; otherwise such a model is refused
    stride: int | None = None  # tokens from one window to the next; None: the window
    second_half: bool = False  # only the second half of each window is scored
    # what a text begins with: `bos`, the BOS token (else EOS), or `own`, what the tokenizer itself puts there
    begins: Literal["bos", "own"] = "own"
    bos_each: bool = False  # each window begins with the BOS token where the tokenizer puts one before a text
    figures: tuple[str, ...] = ("ppl",)  # what the source calls its figures

    @property
    def leaves_out(self) -> bool:
        """Return True if tokens may have no score, and their bytes no place in denominators."""
        return self.separator is not None

    @property
    def causal(self) -> bool:
        """Return True if what a prediction sees depends on what is before it alone, and not on the length of the text."""
        return self.layout != "filled"

    def first_scored(self, chunk: int) -> int:
        """Return the first position of a chunk that is scored."""
        return chunk // 2 + 1 if self.second_half else 1


PROTOCOLS: dict[ProtocolName, ScoringProtocol] = {
    protocol.name: protocol
    for protocol in (
        ScoringProtocol(
            name="hf-guide",
            source="the guide of transformers",
            rules="segments joined by a blank line; windows that overlap, each token scored in the first that reaches it",
            separator="\n\n",
            layout="sliding",
            stride=512,
        ),
        ScoringProtocol(
            name="harness",
            source="lm-evaluation-harness",
            rules="each segment a document after BOS (else EOS); windows side by side, the last moved left until it is full",
            separator=None,
            layout="filled",
            begins="bos",
            figures=("word_perplexity", "byte_perplexity", "bits_per_byte"),
        ),
        ScoringProtocol(
            name="llama.cpp",
            source="llama-perplexity",
            rules="the text as one, in chunks; the second half of each is scored, and what fills no chunk is dropped",
            separator="\n",
            layout="chunks",
            window=512,
            second_half=True,
            bos_each=True,
            figures=("PPL",),
        ),
        ScoringProtocol(
            name="gptq",
            source="GPTQ",
            rules="segments joined by a blank line, in chunks; all but the first token of each is scored, the rest dropped",
            separator="\n\n",
            layout="chunks",
            window=2048,
            shrinks=True,
        ),
    )
}
