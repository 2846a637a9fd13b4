"""datatrove: its executor on this machine, with one task and with two, decides as `lmgauge filter` does."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from tests.integrations.documents import BOOKS, RULES, make_documents

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("datatrove") is None, reason="datatrove is an optional library"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # its executor leaves the pipes of its manager open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    from datatrove.utils.logging import logger

    logger.disable("datatrove")
    yield
    logger.enable("datatrove")


def run(folder: Path, *steps: Any, tasks: int = 1, documents: Iterable[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Run steps on the documents in two files, and return the documents that come out, by id."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    (folder / "in").mkdir()
    # Its reader leaves out documents without text before any step sees them.
    lines = [f"{json.dumps(document)}\n" for document in documents or make_documents() if document["text"]]
    for name, part in (("a", lines[:200]), ("b", lines[200:])):
        (folder / "in" / f"{name}.jsonl").write_text("".join(part), encoding="utf-8")
    pipeline = [JsonlReader(str(folder / "in")), *steps, JsonlWriter(str(folder / "out"), compression=None)]
    logs = str(folder / "logs")
    # One worker: its pool forks, and a program with threads that forks may wait forever.
    LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=logs).run()
    return read(folder / "out")


IN_PROCESSES = """
import sys
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
from lmgauge.integrations.datatrove import PerplexityFilter

if __name__ == "__main__":
    source, model, output, logs = sys.argv[1:]
    steps = [JsonlReader(source), PerplexityFilter(model, max_perplexity=20_000.0), JsonlWriter(output, compression=None)]
    LocalPipelineExecutor(steps, tasks=2, workers=2, logging_dir=logs).run()
"""


def read(folder: Path) -> dict[str, Any]:
    """Return the documents that a writer wrote, by id."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jsonl"))]
    return {document["id"]: document for text in texts for document in map(json.loads, text.splitlines())}


def statistics_of(folder: Path) -> dict[str, Any]:
    """Return the totals of the step after the reader, added up over tasks by datatrove."""
    stats = json.loads((folder / "logs" / "stats.json").read_text(encoding="utf-8"))[1]["stats"]
    return {name: stat["total"] if isinstance(stat, dict) else stat for name, stat in stats.items()}


@pytest.mark.parametrize("tasks", [1, 2])
def test_the_filter_decides_as_the_command_does(
    tasks: int, model_path: str, percentiles_path: str, decisions: dict[str, Any], tmp_path: Path
) -> None:
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    from lmgauge.integrations.datatrove import PerplexityFilter

    dropped = JsonlWriter(str(tmp_path / "dropped"), compression=None)
    step = PerplexityFilter(model_path, percentiles_path, exclusion_writer=dropped, batch_size=32, **RULES)
    stay = run(tmp_path, step, tasks=tasks)
    assert {*stay} == {*decisions}
    for name, record in decisions.items():
        figures = {key: value for key, value in record.items() if key.startswith("wb3_")}
        assert {key: stay[name]["metadata"][key] for key in figures} == figures
        assert stay[name]["text"] == record["text"]
    reasons = {name: document["metadata"]["filter_reason"] for name, document in read(tmp_path / "dropped").items()}
    assert {*reasons} | {*stay} == {document["id"] for document in make_documents() if document["text"]}
    assert {*reasons.values()} == {"invalid_text", "too_short", "percentile_below", "percentile_above"}
    stats = statistics_of(tmp_path)
    counts = {name: stats[f"dropped_{name}"] for name in {*reasons.values()}}
    assert counts == {name: [*reasons.values()].count(name) for name in counts}
    without_language = [document["text"] for document in make_documents() if document["lang"] is None and document["text"]]
    valid = lmgauge.Scorer(model_path).score_texts(without_language)
    assert stats["judged_by_percentiles_of_all"] == len(without_language) - len(valid.problems)
    assert (stats["total"], stats["forwarded"]) == (len(reasons) + len(stay), len(stay))


def test_the_statistics_of_the_step_are_those_of_the_corpus(model_path: str, tmp_path: Path) -> None:
    """Bits and bytes add up to what an evaluation of all documents has."""
    from lmgauge.integrations.datatrove import PerplexityFilter

    lines = BOOKS.read_text(encoding="utf-8").splitlines()[200:260]
    documents = [{"id": f"d{row}", "text": line} for row, line in enumerate(lines)]
    run(tmp_path, PerplexityFilter(model_path, max_perplexity=1.5), documents=documents)
    stats = statistics_of(tmp_path)
    evaluation = lmgauge.evaluate(model_path, lmgauge.Corpus.from_strings(lines))
    assert stats["wb3_bits"] == pytest.approx(evaluation.cross_entropy * evaluation.events / math.log(2))
    assert (stats["wb3_tokens"], stats["scored_bytes"]) == (evaluation.events, len("".join(lines).encode()))


def test_two_processes_decide_as_one(model_path: str, tmp_path: Path) -> None:
    from lmgauge.integrations.datatrove import PerplexityFilter

    alone = run(tmp_path, PerplexityFilter(model_path, max_perplexity=20_000.0))
    (tmp_path / "program.py").write_text(IN_PROCESSES, encoding="utf-8")
    arguments = [str(tmp_path / "in"), model_path, str(tmp_path / "out2"), str(tmp_path / "logs2")]
    subprocess.run([sys.executable, str(tmp_path / "program.py"), *arguments], check=True, timeout=300, capture_output=True)
    assert [path.name for path in sorted((tmp_path / "out2").iterdir())] == ["00000.jsonl", "00001.jsonl"]
    assert read(tmp_path / "out2") == alone != {}


def test_a_step_of_statistics_finds_the_figures(model_path: str, tmp_path: Path) -> None:
    """As the page on pipelines has it."""
    from datatrove.data import Document
    from datatrove.pipeline.stats.base import BaseStats
    from datatrove.utils.stats import MetricStatsDict

    from lmgauge.integrations.datatrove import PerplexityFilter

    class FigureStats(BaseStats):  # type: ignore[misc]
        name = "figures"

        def extract_stats(self, doc: Document) -> dict[str, int | float]:
            return {"wb3_perplexity": doc.metadata["wb3_perplexity"]}

    folder = tmp_path / "stats"
    run(tmp_path, PerplexityFilter(model_path), FigureStats(str(folder), ["summary"], 3), tasks=2)
    texts = [document["text"] for document in make_documents() if document["text"]]
    expected = lmgauge.Scorer(model_path).score_texts(texts)
    perplexities = [value for row, value in enumerate(expected.sums["wb3"].perplexity) if row not in expected.problems]
    parts = [json.loads(path.read_text()) for path in sorted((folder / "summary" / "wb3_perplexity").iterdir())]
    total = sum(map(MetricStatsDict.from_dict, parts), MetricStatsDict())["summary"]
    assert (total.n, total.min, total.max) == (len(perplexities), min(perplexities), max(perplexities))
    assert total.mean == pytest.approx(sum(perplexities) / len(perplexities))


def test_a_document_alone_and_an_infinite_perplexity(model_path: str, tmp_path: Path) -> None:
    from datatrove.data import Document

    from lmgauge.integrations.datatrove import PerplexityFilter

    assert PerplexityFilter(model_path).filter(Document("the cat sat", id="1")) is True
    assert PerplexityFilter(model_path, max_perplexity=1).filter(Document("a", id="2")) == (False, "perplexity_above")
    model, document = str(tmp_path / "mle"), Document("b a", id="2")
    lmgauge.train("mle", lmgauge.Corpus.from_strings(["a b", "a"]), order=2).save(model)
    assert PerplexityFilter(model).filter(document) is True
    assert document.metadata["mle_perplexity"] == math.inf


def test_a_model_for_each_language(model_path: str) -> None:
    from datatrove.data import Document

    from lmgauge.integrations.datatrove import PerplexityFilter

    scorer = lmgauge.Scorer({"en": model_path}, by="lang")
    texts = {"en": "the cat", "de": "die Katze"}
    documents = [Document(text, id=language, metadata={"lang": language}) for language, text in texts.items()]
    assert PerplexityFilter(scorer).filter_batch(documents) == [True, (False, "no_model")]
    assert documents[0].metadata["lm_tokens"] == 3
    assert documents[1].metadata["score_problem"] == "no model: lang is 'de'"


def test_what_is_wrong_is_said(model_path: str) -> None:
    from datatrove.data import Document

    from lmgauge.integrations.datatrove import PerplexityFilter

    with pytest.raises(UsageError, match="batch_size must be a whole number, 1 or more; got 0"):
        PerplexityFilter(model_path, batch_size=0)
    with pytest.raises(UsageError, match="give its path"):
        PerplexityFilter(lmgauge.load_model(model_path))
    with pytest.raises(InputError, match="no text: null"):
        PerplexityFilter(lmgauge.Scorer(model_path, errors="fail")).filter(Document(None, id="1"))


def test_datatroves_own_step_has_the_same_perplexity(tmp_path: Path) -> None:
    """Of a model as CCNet publishes them: pieces of SentencePiece after its normalizer, and a binary file of KenLM.

    datatrove makes one 0 of each number, where CCNet makes one of each digit: the texts here have no numbers.
    """
    kenlm, sentencepiece = pytest.importorskip("kenlm"), pytest.importorskip("sentencepiece")
    from datatrove.pipeline.stats.perplexity_stats import CCNetPerplexityStats

    from lmgauge.integrations.datatrove import PerplexityFilter

    lines = [re.sub(r"\d", "", line) for line in BOOKS.read_text(encoding="utf-8").splitlines()]
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:200]), model_writer=content, vocab_size=400, minloglevel=2, num_threads=1
    )
    (tmp_path / "en.sp.model").write_bytes(content.getvalue())
    cut = {"tokenizer": str(tmp_path / "en.sp.model"), "normalizer": "ccnet"}
    lmgauge.train("modified-kneser-ney", lmgauge.Corpus.from_strings(lines[:200]), order=4, **cut).save(  # type: ignore[arg-type]
        tmp_path / "en.arpa.bin"
    )
    theirs = CCNetPerplexityStats(str(tmp_path / "theirs"), "wikipedia", "en", groups_to_compute=["summary"])
    theirs.model._model = kenlm.Model(str(tmp_path / "en.arpa.bin"))
    theirs.model.tokenizer._model = sentencepiece.SentencePieceProcessor(model_proto=content.getvalue())
    scorer = lmgauge.Scorer({"ccnet": tmp_path / "en.arpa.bin"}, scoring=lmgauge.settings.ScoringOptions(**cut))  # type: ignore[arg-type]
    documents = [{"id": f"d{row}", "text": "\n".join(lines[row : row + 3])} for row in range(200, 260, 3)]
    for document in run(tmp_path, theirs, PerplexityFilter(scorer), documents=documents).values():
        rounded = document["metadata"]["ccnet_perplexity_wikipedia_en"]
        assert document["metadata"]["ccnet_perplexity"] == pytest.approx(rounded, abs=0.0501)
