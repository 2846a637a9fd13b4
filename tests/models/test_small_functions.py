"""What small functions of `models` give for an example each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmgauge.models import registry
from lmgauge.models.combined.mixture import model
from lmgauge.models.network import windows
from lmgauge.models.network.gguf import network
from lmgauge.models.ngram import adjusted_counts, discounts, ngram_arrays, packed_tables


def test_model() -> None:
    assert model.check_weights([0.25, 0.75], 2) == (0.25, 0.75)


def test_network() -> None:
    assert network.of_targets([np.zeros((1, 4), np.float32)], np.array([3], np.int32)).round(4).tolist() == [-1.3863]


def test_allocator() -> None:
    allocator = pytest.importorskip("lmgauge.models.network.torch.runtime")
    assert (
        allocator.out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"))
        is True
    )


def test_windows() -> None:
    assert (
        str(windows.windows_note(windows.ContextPolicy(length=8, stride=4), False, 2, 10))[:60]
        == "2 of 10 segments longer than 8 tokens, read in windows of th"
    )


def test_adjusted_counts() -> None:
    assert adjusted_counts.cutoff_of((0, 0, 1), 5) == 1
    assert adjusted_counts.cutoff_of((), 5) == 0


def test_discounts() -> None:
    assert discounts.estimate_discounts(discounts.NgramTrainingSettings("kneser-ney"), 2, np.array([0, 6, 3, 1])).values == (
        0.0,
        0.5,
    )


def test_levels() -> None:
    assert [hex(key) for key in ngram_arrays.make_keys(np.array([5]), np.array([7]))] == ["0x500000007"]


def test_packed_tables() -> None:
    assert packed_tables.line_width(last=False) == 5
    assert packed_tables.line_width(last=True) == 7
    assert packed_tables.slots_for(1000000, 2000000, 50000, last=True) == (1250109, 11429568)


def test_registry() -> None:
    assert registry.takers("stride") == "neural models"
    assert registry.unused_option(registry.ScoringOptions(context=512), []) == "context"


def test_run() -> None:
    run = pytest.importorskip("lmgauge.models.training.run")
    assert run.is_trained_here(Path("nothing/here")) is False


def test_spelling() -> None:
    spelling = pytest.importorskip("lmgauge.models.training.run")
    assert spelling.whole_already("bpe").partition(":")[0] == "tokenizer bpe"
