"""Rows merged to words: who has which row, and what is missing where, on tables made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lmgauge.evaluation.words.merging import Merged, Regions, Units, find_owners, merge, words_of
from lmgauge.scores import EOS_KIND, OOV, TOKEN, ScoreBatch, Strings
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer

SENTENCE = ContextPolicy()
NEWLINE = ContextPolicy.parse("sentence,end=newline")
NONE = ContextPolicy.parse("sentence,end=none")


def block(*texts: str) -> Segments:
    (one,) = Corpus.from_strings(texts)
    return one


def words(segments: Segments) -> Units:
    return words_of(segments, make_tokenizer("whitespace"))


def table(segments: Segments, ends: list[list[int]], *, eos: bool = True, **columns: Any) -> ScoreBatch:
    """Rows that end at these bytes of their segment, each of 1 bit; the last of a segment is `</s>`."""
    every = np.array([end for part in ends for end in part], np.int64)
    counts = np.array([len(part) for part in ends], np.int64)
    kind = np.full(len(every), TOKEN, np.uint8)
    if eos:
        kind[np.cumsum(counts)[counts > 0] - 1] = EOS_KIND
    extra = {name: np.asarray(values, np.float64) for name, values in columns.items()}
    nats = np.full(len(every), -np.log(2.0))
    ids = np.zeros(len(every), np.uint32)
    return ScoreBatch(np.arange(len(segments)), counts, ids, Strings(["x"]), nats, kind, every, extra)


def bits(figures: Any) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 6) for value in figures / np.log(2.0)]


@pytest.mark.parametrize(
    ("texts", "ends", "owners"),
    [
        (["the cat"], [[3, 7, 7]], [0, 1, -1]),
        (
            ["a  cats "],
            [[1, 2, 6, 7, 8]],
            [0, 1, 1, 1, -1],
        ),  # the space before a word is the word's, behind the last no word's
        (["a b", "", "c"], [[1, 3, 3], [0], [1, 1]], [0, 1, -1, -1, 2, -1]),
        (["😀 b"], [[4, 4, 4, 6, 6]], [0, 0, 0, 1, -1]),  # pieces of one character: the first has its bytes
        (["ab"], [[0, 2, 2]], [0, 0, -1]),  # a space that a tokenizer sets before the text
        ([" \t "], [[1, 3]], [-1, -1]),
    ],
)
def test_which_word_has_a_row(texts: list[str], ends: list[list[int]], owners: list[int]) -> None:
    segments = block(*texts)
    found = find_owners(segments, table(segments, ends), words(segments), SENTENCE)
    assert found.of_row.tolist() == owners
    assert not found.shared.any()
    assert not len(found.crossing)


def test_a_line_end_that_is_text_is_no_words() -> None:
    segments = replace(block("a b"), terminator=1)
    rows = table(segments, [[1, 3, 3]], eos=False)
    assert find_owners(segments, rows, words(segments), NEWLINE).of_row.tolist() == [0, 1, -1]
    # Without a newline in the text, the last row is a piece of the last character.
    assert find_owners(block("a b"), rows, words(segments), NEWLINE).of_row.tolist() == [0, 1, 1]


def test_a_token_over_two_words() -> None:
    """ "of the cat" in tokens "of the" and " cat": the first word has the token, and neither has a corrected figure."""
    segments = block("of the cat")
    merged = merge(segments, table(segments, [[6, 10, 10]], word_boundary=[0.5, 0.5, 0.5]), words(segments), SENTENCE)
    assert merged.shared.tolist() == [True, True, False]
    assert merged.pieces.tolist() == [1, 0, 1]
    assert bits(merged.nats) == [1.0, None, 1.0]
    assert bits(merged.corrected) == [None, None, 1.0]
    assert merged.rest == pytest.approx(np.log(2.0))


def test_the_correction() -> None:
    """Surprisal plus log2 B before, minus log2 B behind: 1 + log2 1/2 - log2 1/8, and 2 + log2 1/8 - log2 1/4."""
    segments = block("the cats")
    rows = table(segments, [[3, 7, 8, 8]], word_boundary=[0.5, 0.125, 0.9, 0.25], entropy=np.log(2.0) * np.arange(1, 5))
    merged = merge(segments, rows, words(segments), SENTENCE)
    assert bits(merged.nats) == [1.0, 2.0]
    assert bits(merged.corrected) == [1 - 1 + 3, 2 - 3 + 2]
    assert bits(merged.entropy) == [1.0, 2.0]


def test_regions_have_no_correction_within_a_word() -> None:
    """The parts of "cats," add up to the word."""
    segments = block("the cats, too")
    rows = table(segments, [[3, 8, 9, 13, 13]], word_boundary=[0.5, 0.125, 0.9, 0.25, 0.5])
    parts = Regions.of([{"id": 1, "text": text} for text in ("the", "cats", ",", "too")]).lay(segments)
    whole = merge(segments, rows, words(segments), SENTENCE)
    found = merge(segments, rows, parts, SENTENCE)
    assert bits(found.corrected) == [3.0, 1 - 3, 1 + 2, 1 - 2 + 1]
    assert found.corrected[1] + found.corrected[2] == pytest.approx(whole.corrected[1])


def test_a_region_has_rows_of_white_space_within_and_before_it() -> None:
    segments = block("the  cat  sat here")
    rows = table(segments, [[3, 4, 8, 9, 13, 18, 18]])
    units = Regions.of([{"id": 1, "start": 5, "end": 13}]).lay(segments)
    found = find_owners(segments, rows, units, SENTENCE)
    assert found.of_row.tolist() == [-1, 0, 0, 0, 0, -1, -1]


@pytest.mark.parametrize(("start", "end"), [(4, 6), (5, 8), (0, 6)])
def test_a_region_that_cuts_a_token(start: int, end: int) -> None:
    segments = block("the cats")
    units = Regions.of([{"id": 1, "start": start, "end": end}]).lay(segments)
    found = find_owners(segments, table(segments, [[3, 8, 8]]), units, SENTENCE)
    assert found.crossing.tolist() == [1]
    assert found.shared.tolist() == [True]


def merged_at_the_end(policy: ContextPolicy, **columns: Any) -> Merged:
    segments = block("a b")
    return merge(segments, table(segments, [[1, 3]], eos=False, **columns), words(segments), policy)


def test_no_event_behind_the_last_word() -> None:
    merged = merged_at_the_end(NONE, word_boundary=[0.5, 0.5])
    assert bits(merged.corrected) == [1.0, None]
    assert merged.without_end.tolist() == [False, True]


def test_without_whole_distributions_nothing_is_corrected_and_nothing_blamed() -> None:
    merged = merged_at_the_end(NONE)
    assert bits(merged.corrected) == bits(merged.entropy) == [None, None]
    assert not (merged.without_end | merged.impossible_before | merged.impossible_after).any()


def test_where_no_word_can_begin_or_end() -> None:
    """B = 0 behind "the": no probability; B = 0 before "cat": none can be said. Both are marked."""
    segments = block("the cat sat")
    rows = table(segments, [[3, 7, 11, 11]], word_boundary=[0.5, 0.0, 0.5, 0.5])
    merged = merge(segments, rows, words(segments), SENTENCE)
    assert bits(merged.corrected) == [np.inf, None, 1.0]
    assert merged.impossible_after.tolist() == [True, False, False]
    assert merged.impossible_before.tolist() == [False, True, False]


def test_first_tokens_without_rows() -> None:
    """The first row spans what has no row, too: "The" is not known, be it one token, or the first of its two."""
    unscored = ContextPolicy.parse("sentence,first=unscored,end=none")
    segments = block("The cat", "A dog")
    rows = table(segments, [[7], [1, 5]], eos=False, word_boundary=[0.5, 0.5, 0.5])
    merged = merge(segments, rows, words(segments), unscored)
    assert merged.unscored.tolist() == [True, False, True, False]
    assert not merged.shared.any()
    assert bits(merged.nats) == [None, 1.0, None, 1.0]
    running = ContextPolicy.parse("stream,64/64,first=unscored,end=none")
    assert merge(segments, rows, words(segments), running).unscored.tolist() == [True, False, False, False]


def test_unknown_words_are_marked() -> None:
    segments = block("a b")
    rows = table(segments, [[1, 3, 3]])
    rows.kind[1] = OOV
    assert merge(segments, rows, words(segments), SENTENCE).oov.tolist() == [False, True]
