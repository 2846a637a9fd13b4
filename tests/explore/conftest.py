"""Two runs of one text with groups, ids and documents, in several groups of rows; a server for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmgauge import Corpus, evaluate, train
from lmgauge.models.ngram.model import NgramModel

pytest.importorskip("starlette", reason="the extra explore is not installed")
pytest.importorskip("httpx", reason="httpx asks the server in tests")

from starlette.testclient import TestClient

from lmgauge.explore.explorer import Explorer
from lmgauge.explore.launch import open_explorer
from lmgauge.explore.server import application

TOKEN = "a token for tests"
ADDRESS = "http://127.0.0.1:8000"
WORDS = ["the", "a", "cat", "dog", "sees", "hears", "it", "runs", "and", "then", "für", "東京", "<b>", "zebra"]


def texts() -> list[str]:
    """Segments of many lengths, one of them empty, some with words that no model knows."""
    return [" ".join(WORDS[(7 * i + 3 * j) % len(WORDS)] for j in range(i % 9)) for i in range(300)]


def corpus(path: Path) -> Corpus:
    """The text of a file of records, read in small blocks."""
    return Corpus.from_files(path, group="kind", document="book", id="name", block_bytes=500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text and the runs `a` and `b`."""
    folder = tmp_path_factory.mktemp("runs")
    rows = [
        {"text": text, "kind": ["news", "law"][i % 5 == 0], "book": f"book {i // 10}", "name": f"n{i:03}"}
        for i, text in enumerate(texts())
    ]
    (folder / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, model in models().items():
        evaluate({name: model}, corpus(folder / "text.jsonl"), by_group=True, output=folder / name)
    return folder


def models() -> dict[str, NgramModel]:
    """Two models of which the second knows less."""
    known = Corpus.from_strings(texts()[:150])
    return {"a": train("witten-bell", known, order=3), "b": train("laplace", known, order=1)}


Ask = Callable[..., dict[str, Any]]


class Served:
    """An explorer, and a client that has its token."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.client = TestClient(application(explorer, TOKEN), base_url=ADDRESS, headers={"x-lmgauge-token": TOKEN})

    def get(self, path: str, **asked: object) -> dict[str, Any]:
        """The answer of the API, which must be one."""
        response = self.client.post(f"/api/{path}", json=asked)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def refused(self, path: str, **asked: object) -> str:
        """Why the API does not answer, in words."""
        response = self.client.post(f"/api/{path}", json=asked)
        assert 400 <= response.status_code < 500, response.text
        error: str = response.json()["error"]
        assert "Traceback" not in error
        assert "\n" not in error
        return error

    def all(self, **parameters: object) -> list[dict[str, Any]]:
        """The segments of all pages."""
        first = self.get("segments", size=100, **parameters)
        pages = [self.get("segments", size=100, page=page, **parameters) for page in range(1, first["pages"])]
        return [item for page in [first, *pages] for item in page["items"]]


def serving(*paths: Path, **options: Any) -> Iterator[Served]:
    explorer = open_explorer(list(paths), **options)
    if explorer.index is not None:
        explorer.index.wait()
    yield Served(explorer)
    explorer.close()


@pytest.fixture(scope="module")
def two(folder: Path) -> Iterator[Served]:
    """Both runs."""
    yield from serving(folder / "a", folder / "b")


@pytest.fixture(scope="module")
def one(folder: Path) -> Iterator[Served]:
    """The first run, and its model for what is typed."""
    yield from serving(folder / "a", model=models()["a"])
