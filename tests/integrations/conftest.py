"""Fixtures for the frameworks' tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

import lmgauge
from tests.integrations.documents import BOOKS, RULES, make_documents, write_documents
from tests.integrations.tiny import make_lines, make_network, make_tokenizer


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


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a trigram model."""
    path = tmp_path_factory.mktemp("models") / "wb3"
    lines = BOOKS.read_text(encoding="utf-8").splitlines()[:200]
    lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(lines), order=3).save(path)
    return str(path)


@pytest.fixture(scope="session")
def percentiles_path(model_path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of percentiles of its perplexity on the documents, by language."""
    folder = tmp_path_factory.mktemp("percentiles")
    path = folder / "percentiles.json"
    lmgauge.learn_percentiles(model_path, write_documents(folder / "in.jsonl"), group="lang", output=path)
    return str(path)


@pytest.fixture(scope="session")
def decisions(model_path: str, percentiles_path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `lmgauge filter` makes of the documents with `RULES`: the records that stay, by their ids."""
    folder = tmp_path_factory.mktemp("filtered")
    documents = write_documents(folder / "in.jsonl")
    lmgauge.filter_documents(model_path, documents, folder / "out", percentiles=percentiles_path, group="lang", **RULES)
    files = [path.read_text(encoding="utf-8") for path in folder.glob("out/*/in.jsonl")]
    records = {record["id"]: record for text in files for record in map(json.loads, text.splitlines())}
    return {document["id"]: records[document["id"]] for document in make_documents() if document["id"] in records}
