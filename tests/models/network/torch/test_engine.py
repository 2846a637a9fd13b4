"""Batches: every job once, next to nothing padded, no more tokens at a time than was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from lmgauge.models.network.torch import engine as module  # noqa: E402
from lmgauge.models.network.torch.engine import Batch, Job, batches, join, tokens_at_a_time  # noqa: E402

lengths = st.lists(st.integers(1, 70).flatmap(lambda shown: st.tuples(st.just(shown), st.integers(1, shown))), max_size=40)


def jobs_of(sizes: list[tuple[int, int]]) -> list[Job]:
    """Jobs whose ids are all different, so that none can be mistaken for another."""
    made, at = [], 1
    for number, (shown, predicted) in enumerate(sizes):
        made.append(Job(np.arange(at, at + shown), np.arange(at + shown - predicted + 1, at + shown + 1), number))
        at += shown + 1
    return made


def assert_whole(batch: Batch, jobs: list[Job]) -> None:
    """Each prediction is made at the id before its target; what is padded stands at the right."""
    flat = batch.ids.reshape(-1)
    assert (flat[batch.rows] == batch.targets - 1).all()
    assert batch.targets.tolist() == [target for number in batch.jobs for target in jobs[number].targets.tolist()]
    for row, number in enumerate(batch.jobs):
        length = len(jobs[number].ids)
        assert batch.ids[row, :length].tolist() == jobs[number].ids.tolist()
        assert (batch.ids[row, length:] == batch.ids[row, length - 1]).all()


@given(lengths, st.integers(1, 300))
def test_every_job_once(sizes: list[tuple[int, int]], most: int) -> None:
    jobs = jobs_of(sizes)
    found = list(batches(jobs, most))
    assert sorted(number for batch in found for number in batch.jobs) == list(range(len(jobs)))
    for batch in found:
        assert_whole(batch, jobs)


@given(lengths, st.integers(1, 300))
def test_bounds(sizes: list[tuple[int, int]], most: int) -> None:
    jobs = jobs_of(sizes)
    shown = []
    for batch in batches(jobs, most):
        assert batch.ids.size <= most or len(batch.jobs) == 1
        padded = batch.ids.size - sum(len(jobs[number].ids) for number in batch.jobs)
        assert padded <= batch.ids.size / 16
        shown.append(batch.ids.shape[1])
    assert shown == sorted(shown, reverse=True)  # if memory fails, it fails early


def test_equal_lengths_are_not_padded_and_fill_batches() -> None:
    jobs = jobs_of([(10, 10)] * 25)
    assert [batch.ids.shape for batch in batches(jobs, 100)] == [(10, 10), (10, 10), (5, 10)]
    assert [batch.ids.shape for batch in batches(jobs, 1)] == [(1, 10)] * 25


def test_no_jobs() -> None:
    assert list(batches([], 100)) == []


@given(lengths.filter(bool), st.randoms())
def test_any_jobs_can_be_joined(sizes: list[tuple[int, int]], random: object) -> None:
    jobs = jobs_of(sizes)
    chosen = list(range(len(jobs)))
    random.shuffle(chosen)  # type: ignore[attr-defined]
    assert_whole(join(jobs, chosen), jobs)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tokens_by_free_memory(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = torch.device(device)
    monkeypatch.setattr(module, "_free_bytes", lambda device: 1_000_000)
    assert tokens_at_a_time(1000, where) == 600
    assert tokens_at_a_time(10, where) == module._CPU_TOKENS  # more is no faster on a processor
    assert tokens_at_a_time(10_000_000, where) == 1
    assert tokens_at_a_time(0, where) == module._CPU_TOKENS


def test_free_memory_of_this_machine() -> None:
    assert tokens_at_a_time(1, torch.device("cpu")) == module._CPU_TOKENS


def test_free_memory_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_memory", lambda: None)
    assert tokens_at_a_time(1 << 20, torch.device("cpu")) == int(0.6 * 1024)
