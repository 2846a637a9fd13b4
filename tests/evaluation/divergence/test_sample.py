"""Drawn segments are a text of its own: whole, in order, with all that was known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.evaluation.divergence.sample import Sample, draw

MODEL = lmgauge.train("laplace", Corpus.from_strings(["a b", "b"]), order=1)
STREAM = lmgauge.train("laplace", Corpus.from_strings(["a b", "b"]), order=1, context="stream")


def drawn(lines: list[str], events: int | None, seed: int = 1, model: Any = MODEL, **options: Any) -> Sample:
    return draw((model, model), Corpus.from_strings(lines, **options), events, seed)


def texts(sample: Sample) -> list[str]:
    return [block.text(i).decode() for block in sample for i in range(len(block))]


@given(
    lines=st.lists(st.lists(st.sampled_from("ab"), max_size=5).map(" ".join), min_size=1, max_size=30),
    events=st.integers(1, 60),
    seed=st.integers(0, 5),
    block_bytes=st.integers(1, 40),
)
def test_a_sample_is_whole_segments_in_order(lines: list[str], events: int, seed: int, block_bytes: int) -> None:
    sample = drawn(lines, events, seed, block_bytes=block_bytes)
    counts = [len(line.split()) + 1 for line in lines]
    assert sample.numbers is not None
    numbers = sample.numbers.tolist()
    assert texts(sample) == [lines[i] for i in numbers]
    assert numbers == sorted(set(numbers))
    assert (sample.total_events, sample.total_segments) == (sum(counts), len(lines))
    assert sample.size == sum(counts[i] for i in numbers) >= min(events, sum(counts))
    assert sample.segments == len(numbers)
    assert min(counts[i] for i in numbers) > 0
    assert texts(sample) == texts(sample)  # can be read again
    assert [block.first for block in sample] == np.cumsum([0, *(len(block) for block in sample)])[:-1].tolist()
    # No segment more than needed: without some one of them there would be too few.
    assert len(numbers) == 1 or sample.size - max(counts[i] for i in numbers) < events
    running = drawn(lines, events, seed, STREAM, block_bytes=block_bytes)
    assert running.events is not None
    assert texts(running) == lines
    begins = np.cumsum([0, *counts])
    expected = [event for i in numbers for event in range(begins[i], begins[i + 1])]
    assert running.events.tolist() == expected


def test_what_is_known_of_segments_stays(tmp_path: Any) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f'{{"text": "a b", "g": "g{i % 3}", "d": "d{i // 4}", "id": "i{i}"}}\n' for i in range(40)))
    corpus = Corpus.from_files(path, group="g", document="d", id="id")
    sample = draw((MODEL, MODEL), corpus, 30, 3)
    (block,) = sample
    assert sample.numbers is not None
    assert block.groups is not None
    assert block.documents is not None
    numbers = sample.numbers
    assert 10 <= len(numbers) < 40
    assert block.ids == [f"i{i}" for i in numbers]
    assert block.groups.tolist() == (numbers % 3).tolist()
    assert block.documents.tolist() == (numbers // 4).tolist()
    assert block.lines().tolist() == (numbers + 1).tolist()


def test_without_a_number_of_events_all_of_the_text_is_looked_at() -> None:
    lines = ["a", "b", "a b"]
    assert texts(drawn(lines, None)) == lines
    once = Corpus.from_strings(iter(lines))
    several = draw((MODEL, MODEL, MODEL), once, None, 1)
    assert texts(several) == texts(several) == lines


def test_a_text_without_events_is_refused() -> None:
    with pytest.raises(InputError, match="no event"):
        drawn([], 10)
