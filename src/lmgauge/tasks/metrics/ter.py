"""Translation edit rate: edits and shifts by words of the reference; the digits are Tercom's and sacreBLEU's.

Source: Snover, Dorr, Schwartz, Micciulla & Makhoul (2006), "A study of translation edit rate with targeted human
annotation": TER = edits / average number of reference words.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from lmgauge._kernels import _native
from lmgauge.tasks.metrics.compiled import LENGTH_SCALE, CompiledMetric, Kernel, PrintedScore, Stop
from lmgauge.tasks.metrics.protocol import SACREBLEU_VERSION, Floats, Statistics
from lmgauge.tasks.settings import TerOptions
from lmgauge.tasks.texts import References, Texts


def ter_scores(sums: Floats) -> Floats:
    """Return TER times 100: edits for each 100 words of reference, which may be more than 100."""
    # Without reference words it is 100 where there are edits and 0 where there are none.
    # sums: float64 [rows, 2]: edits, and reference words times `LENGTH_SCALE`.
    # -> float64 [rows].
    # ter_scores([[2.0, 5 * LENGTH_SCALE], [3.0, 0.0]]) -> [40.0, 100.0]
    edits, length = sums[:, 0], sums[:, 1] / LENGTH_SCALE
    return 100 * np.divide(edits, length, out=np.where(edits > 0, 1.0, 0.0), where=length > 0)


@dataclass(frozen=True, repr=False)
class TerScore(PrintedScore):
    """TER of a text and what it was made of."""

    metric: str
    score: float  # edits for each 100 words of reference; less is better, and it may exceed 100
    num_edits: int
    ref_length: float  # words of the references, of several the average
    signature: str  # all choices that move the number, in sacreBLEU's format


class TER(TerOptions, CompiledMetric):
    """Translation edit rate (Snover et al. 2006), with `lmgauge.tasks.settings.TerOptions`, as Tercom and sacreBLEU have it.

    The edits are those of a greedy search for shifts of up to 10 words over up to 50, with an edit distance that leaves the
    diagonal by at most 25 words; a segment gets no further shift after 1,000 were tried.

    Example:
        >>> import lmgauge
        >>> systems = lmgauge.tasks.score_systems(TER(), hypotheses=["sat the cat"], references=["the cat sat"])
        >>> round(systems[0].score.score, 2)  # one shift, three words
        33.33
    """

    averages_lengths: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    reference_columns: ClassVar[slice] = slice(1, 2)
    name: ClassVar[str] = "TER"
    columns: ClassVar[tuple[str, ...]] = ("edits", "reference_length")  # the length is in words times `LENGTH_SCALE`

    def prepared(self, texts: Texts) -> Texts:
        """Return the texts in lower case and normalized, as the options say.

        Args:
            texts: one for each segment, as they were written.

        >>> TER(normalized=True).prepared(Texts.of_strings(["The mat."])).strings()
        ['the mat .']
        """
        return tercom(texts, self)

    def prepared_references(self, texts: Texts) -> Texts:
        """Return the references after the same, twice if normalized, as in sacreBLEU: "it's," comes apart once more.

        Args:
            texts: one or more for each segment, as they were written.
        """
        once = self.prepared(texts)
        return self.prepared(once) if self.normalized else once

    def kernel(self, hypotheses: Texts, references: References, stop: Stop) -> Kernel:
        """Return what counts edits against the reference that needs fewest, and the average length of the references.

        Args:
            hypotheses: one for each segment, prepared.
            references: 1 to 16 for each segment, prepared.
            stop: not looked at.
        """
        return partial(_native.ter_statistics, hypotheses.arrays, references.texts.arrays, references.offsets)

    def scores(self, sums: Floats) -> Floats:
        """Return TER of each row of sums, float64 [rows, 2] -> float64 [rows]."""
        return ter_scores(sums)

    def score(self, sums: Statistics, references: int | None, choices: dict[str, str] | None = None) -> TerScore:
        """Return the score and its parts from one sum of statistics, int64 [2]; see `ScoredSums.score`."""
        keys: dict[str, str | bool] = {"case": "mixed" if self.case_sensitive else "lc", "tok": "tercom"}
        keys |= {"norm": self.normalized, "punct": not self.no_punct, "asian": self.asian_support}
        return TerScore(
            metric=self.name,
            score=float(self.scores(np.asarray(sums, dtype=np.float64)[None])[0]),
            num_edits=int(sums[0]),
            ref_length=int(sums[1]) / LENGTH_SCALE,
            signature=self.signature_with(references, choices, keys | {"version": SACREBLEU_VERSION}),
        )


# What is between texts that are prepared together. No rule below looks across one: NUL is neither a letter nor skipped
# between letters (the final sigma's rule), and there is a blank to both its sides.
_BREAK = "\0"

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# ASCII punctuation without ' , - and the full stop, which the other rules are about.
_PUNCTUATION = re.compile(r"([{|}~\[\\\]^_`!\"#$%&()*+:;<=>?@/])")
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])-")
_REMOVED = re.compile(r"[.,?:;!\"()]")

_ASIAN_PUNCTUATION = "\u3001\u3002\u3008-\u3011\u3014-\u301f\uff61-\uff65\u30fb"
_FULL_WIDTH_PUNCTUATION = "\uff0e\uff0c\uff1f\uff1a\uff1b\uff01\uff02\uff08\uff09"
_IDEOGRAPHS = "\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
# Blanks around a character are all that any of the Asian rules adds, so that one rule does for all.
_ASIAN = re.compile(f"([{_IDEOGRAPHS}{_ASIAN_PUNCTUATION}{_FULL_WIDTH_PUNCTUATION}])")
_ASIAN_REMOVED = re.compile(f"[{_ASIAN_PUNCTUATION}{_FULL_WIDTH_PUNCTUATION}]")


def tercom(texts: Texts, options: TerOptions) -> Texts:
    """Return texts as Tercom prepares them; their words are what is between white space."""
    # tercom(Texts.of_strings(["The mat."]), TerOptions(normalized=True)).strings() -> ['the mat .']
    if options.case_sensitive and not options.normalized and not options.no_punct:
        return texts
    return texts.mapped_together(partial(_prepared, options))


def _prepared(options: TerOptions, text: str) -> str:
    if options.normalized:  # what ends a text would otherwise come between its last word and the blank set behind it
        text = _BREAK.join([one.rstrip() for one in text.split(_BREAK)])
    if not options.case_sensitive:
        text = text.lower()
    if options.normalized:
        text = _western(text)
        if options.asian_support:
            text = _ASIAN.sub(r" \1 ", text)
    if options.no_punct:
        text = _REMOVED.sub("", text)
        if options.asian_support:
            text = _ASIAN_REMOVED.sub("", text)
    # References pass twice, and the second pass looks for a blank behind 's: white space of any kind becomes one.
    return " ".join(text.split()) if options.normalized else text


def _western(text: str) -> str:
    text = text.replace("\n-", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = " " + text.replace(_BREAK, f" {_BREAK} ") + " "
    text = _PUNCTUATION.sub(r" \1 ", text)
    text = text.replace("'s ", " 's ")
    text = _AFTER_NO_DIGIT.sub(r"\1 \2 ", text)
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", text)
    return _DASH_AFTER_DIGIT.sub(r"\1 - ", text)
