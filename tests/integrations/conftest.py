"""Fixtures for the frameworks' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.integrations.tiny import make_lines, make_network, make_tokenizer
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny products are quicker on one thread, and alike wherever the tests run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE of 400 tokens."""
    return make_tokenizer()


@pytest.fixture
def network() -> GPT2LMHeadModel:
    """Two layers, with dropout."""
    return make_network()


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    """Two texts with names."""
    lines = make_lines()
    found = {"front": tmp_path / "front.txt", "back": tmp_path / "back.txt"}
    found["front"].write_text("\n".join(lines[:12]) + "\n", encoding="utf-8")
    found["back"].write_text("\n".join(lines[-7:]) + "\n", encoding="utf-8")
    return found
