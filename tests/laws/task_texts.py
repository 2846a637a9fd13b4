"""What the laws of tasks are stated over: texts that part, join and fold in odd ways, metrics, and rows of statistics."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from lmgauge.tasks import BLEU, CER, TER, WER, ChrF
from lmgauge.tasks.texts import References, Texts

few = settings(max_examples=2 * settings.default.max_examples // 5)
"""For laws whose examples take long: fewer, in proportion to the profile."""

Segment = tuple[str, list[str]]
"""A hypothesis and its references."""

LINE_PIECES = (
    *("a", "B", "the", "Der", "x1", "é", "e\u0301", "\u0301", "Σ", "ΑΣ", "İ", "ß", "ﬁ"),
    *(" ", " ", " ", "  ", "\t", "\x0b", "\x1c", "\x85", "\xa0", "\u1680", "\u2009", "\u2028", "\u3000"),
    *(".", ",", "-", "?", "'s", "n't", "let's", '"', "(", "“", "…", "·", "€", "$"),
    *("1", "1,5", "2.", "3-4", "٣", "½", "²"),
    *("&amp;", "&quot;", "&lt;", "&", "<skipped>", "[x]", "<", "]"),
    *("的", "。", "，", "𠀀", "カ", "か\u3099", "ㄱ", "\u4dbf", "ไท", "ع", "\u200f"),
    *("👍", "👍🏽", "👩\u200d👧", "\ufe0f", "\u200b", "\U0010ffff", "\ufffd"),
)
"""Pieces of texts that fit on a line."""
PIECES = (*LINE_PIECES, "\n", "\r", "\r\n", "\n-", "-\n", "\ufeff")
PLAIN = ("a b c d e f", "a", "b", "c", "A", " ", " ", " ", "d, e.")
"""Few words, of which many are the same."""
USUAL: Segment = ("the cat sat on the mat", ["the cat sits on the mat"])
"""A segment that is not blank, so that there is something to score."""

METRICS: tuple[Any, ...] = (
    BLEU(),
    BLEU(order=2, smoothing="add-k", lowercase=True, tokenizer="none", reference_length="average"),
    BLEU(order=6, tokenizer="char", reference_length="shortest"),
    BLEU(smoothing="floor", effective_order=True, tokenizer="zh"),
    ChrF(),
    ChrF(word_order=2, lowercase=True),
    ChrF(char_order=3, word_order=1, beta=0.5, whitespace=True, eps_smoothing=True),
    TER(),
    TER(normalized=True, no_punct=True, asian_support=True),
    TER(normalized=True, case_sensitive=True),
    WER(),
    WER(standardize=True, remove_punctuation=True, unicode_form="NFKC"),
    CER(),
    CER(standardize=True),
    CER(unicode_form="NFC", lowercase=True),
)
if find_spec("regex") is not None:
    METRICS = (*METRICS, BLEU(tokenizer="intl", smoothing="none", order=3))

metrics = st.sampled_from(METRICS)


@st.composite
def segment(draw: st.DrawFn, pieces: Sequence[str] = PIECES, references: int = 3) -> Segment:
    """A hypothesis and one or more references, which have much in common."""
    words = st.lists(st.sampled_from(pieces), max_size=12)
    base = draw(words)

    def changed() -> str:
        begin = draw(st.integers(0, len(base)))
        end = draw(st.integers(begin, len(base)))
        return "".join([*base[:begin], *draw(words.filter(lambda new: len(new) < 4)), *base[end:]])

    return changed(), [changed() for _ in range(draw(st.integers(1, references)))]


def segments(pieces: Sequence[str] = PIECES, references: int = 3, most: int = 6) -> st.SearchStrategy[list[Segment]]:
    """Some segments, at least one of them not blank."""
    return st.tuples(st.lists(segment(pieces, references), max_size=most), st.integers(0, most)).map(
        lambda found: [*found[0][: found[1]], USUAL, *found[0][found[1] :]]
    )


def of(pairs: Sequence[Segment]) -> dict[str, Any]:
    """Segments as the functions take them."""
    return {"hypotheses": [hypothesis for hypothesis, _ in pairs], "references": [tuple(against) for _, against in pairs]}


def rows_of(metric: Any, hypotheses: Texts, references: References, threads: int | None = 1) -> list[list[int]]:
    """The statistics of each segment of packed texts."""
    against = references.with_texts(metric.prepared_references(references.texts))
    found: list[list[int]] = metric.statistics(metric.prepared(hypotheses), against, threads).tolist()
    return found


def rows(metric: Any, pairs: Sequence[Segment], threads: int | None = 1) -> list[list[int]]:
    """The statistics of each segment."""
    given = of(pairs)
    return rows_of(metric, Texts.of_strings(given["hypotheses"]), References.of_lists(given["references"]), threads)


def total(found: Sequence[Sequence[int]]) -> np.ndarray:
    """The sum of rows."""
    return np.array(found, dtype=np.int64).sum(axis=0)


def scored(metric: Any, pairs: Sequence[Segment]) -> Any:
    """The score of segments, blank ones or not."""
    return metric.score(total(rows(metric, pairs)), References.of_lists(of(pairs)["references"]).count)
