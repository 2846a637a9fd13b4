"""Segments chosen while they are scored."""

from __future__ import annotations

import random

import pytest
from tests.tasks.share import error_counts

from lmgauge.base.errors import UsageError
from lmgauge.tasks import BLEU, WER, score_systems
from lmgauge.tasks.alignment import align
from lmgauge.tasks.scoring import block_of_strings, score_parallel
from lmgauge.tasks.segment_examples import (
    APART,
    SAMPLE,
    Output,
    SegmentChooser,
    SegmentExamples,
    ShownSegment,
    pairs_within,
    window,
)
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.texts import ParallelTexts

QUIET = ComparisonSettings(significance="none")


def texts(count: int) -> tuple[list[str], list[str]]:
    """References, and outputs with some words changed."""
    chance = random.Random(3)
    references = [" ".join(f"w{chance.randrange(50)}" for _ in range(chance.randint(1, 12))) for _ in range(count)]
    outputs = [" ".join(w if chance.random() < 0.7 else f"{w}x" for w in line.split()) for line in references]
    return references, outputs


def chosen(size: int) -> SegmentExamples:
    """What is chosen of 200 segments that come in blocks."""
    references, outputs = texts(200)
    chooser = SegmentChooser(WER(), 5)
    blocks = [
        block_of_strings(WER(), {"a": references[i : i + size], "b": outputs[i : i + size]}, references[i : i + size])
        for i in range(0, 200, size)
    ]
    score_parallel(WER(), ParallelTexts(["a", "b"], blocks), QUIET, chooser=chooser)
    return chooser.examples("b")


def test_the_worst_are_those_with_most_errors() -> None:
    references, outputs = texts(200)
    errors = [align(*pair) for pair in zip(references, outputs, strict=True)]
    by_errors = sorted(-one.substitutions for one in errors)[:5]
    worst = [item for item in chosen(200).items if "worst of b" in item.why]
    assert [-item.outputs[1].alignment.substitutions for item in worst] == by_errors
    assert all(item.references == (references[item.segment],) for item in worst)
    assert chosen(200).errors["b"].substitutions == error_counts(errors).substitutions


def test_blocks_change_nothing() -> None:
    whole, parts = chosen(200), chosen(7)
    assert [(item.segment, item.why) for item in whole.items] == [(item.segment, item.why) for item in parts.items]
    assert whole.counts == parts.counts
    assert sum(whole.counts["b"]) == 200
    assert {APART, SAMPLE, "worst of b"} == {why for item in whole.items for why in item.why}


def test_bleu_of_a_short_segment_is_that_of_its_length() -> None:
    chooser = SegmentChooser(BLEU(), 3)
    score_systems(BLEU(), hypotheses=["a cat", "a dog"], references=["a cat", "no bird"], settings=QUIET, chooser=chooser)
    scores = {item.segment: item.outputs[0].score for item in chooser.examples("system").items}
    assert scores[0] == pytest.approx(100)
    assert scores[1] < 50


def test_a_text_that_comes_again_is_shown_once() -> None:
    chooser = SegmentChooser(WER(), 4)
    score_systems(WER(), hypotheses=["x", "x", "y"], references=["a", "a", "b"], settings=QUIET, chooser=chooser)
    assert [item.segment for item in chooser.examples("system").items] == [0, 2]


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    chooser = SegmentChooser(BLEU(tokenizer="char"), 1)
    score_systems(BLEU(tokenizer="char"), hypotheses=["今日は雨"], references=["今日は晴"], settings=QUIET, chooser=chooser)
    assert chooser.examples("system").items[0].outputs[0].alignment.hits == 3


def test_the_part_with_most_errors_is_shown() -> None:
    reference = " ".join(map(str, range(100)))
    alignment = align(reference, reference.replace("60 61 62", "x y z"))
    item = ShownSegment(0, "", (), (reference,), (Output("a", 0.03, alignment),))
    first, last = window(item, 10)
    assert last - first == 10
    pairs = list(pairs_within(alignment, first, last))
    assert [pair for pair in pairs if pair[0] == "substitute"] == [
        ("substitute", "60", "x"),
        ("substitute", "61", "y"),
        ("substitute", "62", "z"),
    ]
    assert window(item, 100) == (0, 100)


def test_fewer_than_none_are_refused() -> None:
    with pytest.raises(UsageError, match="segments"):
        SegmentChooser(WER(), -1)
