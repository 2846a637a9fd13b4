"""An evaluation in shards: networks, given text, notes, what cannot be cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.network.options import ScoringOptions


def run_in_shards(
    job: lmgauge.api.sharding.EvaluationJob, count: int, folder: Path, text: Any = None
) -> lmgauge.results.Evaluation:
    for rank in range(count):
        lmgauge.sharding.run_shard(job, rank, count, folder / "shards")
    merged = lmgauge.merge(folder / "shards", folder / "merged", text=text)
    assert isinstance(merged, lmgauge.results.Evaluation)
    return merged


@pytest.mark.parametrize("columns", [(), ("entropy", "top2")])
def test_the_digits_of_a_network_do_not_depend_on_shards(tmp_path: Path, text: Path, columns: tuple[str, ...]) -> None:
    pytest.importorskip("transformers")
    from tests.models.network.conftest import byte_level, network

    tokenizer = byte_level()
    network("gpt2", len(tokenizer)).save_pretrained(tmp_path / "net")
    tokenizer.save_pretrained(tmp_path / "net")
    scoring = ScoringOptions(context=16, stride=5, device="cpu")
    job = lmgauge.sharding.EvaluationJob(tmp_path / "net", text, columns=columns, scoring=scoring, threads=1)
    merged = run_in_shards(job, 3, tmp_path)
    outputs = lmgauge.settings.Outputs(tmp_path / "whole", columns=columns)
    whole = lmgauge.evaluate(tmp_path / "net", text, scoring=scoring, threads=1, output=outputs)
    assert merged == whole
    assert any("of 30 segments longer than 16 tokens" in note for note in merged.notes)
    for name in ("evaluation.json", "scores.parquet"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()


def test_records_with_given_text_ids_and_documents(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "text.jsonl"
    row = '{{"text": "the cat {0} sat", "before": "a dog {0}", "name": "n{0}", "of": "d{1}"}}\n'
    path.write_text("".join(row.format(i, i // 4) for i in range(20)))
    corpus = lmgauge.Corpus.from_files(path, given="before", id="name", document="of", group="of")
    job = lmgauge.sharding.EvaluationJob(model, corpus)
    merged = run_in_shards(job, 4, tmp_path)
    assert merged == lmgauge.evaluate(model, corpus, output=tmp_path / "whole")
    assert "documents" in merged.independence
    for name in ("evaluation.json", "scores.parquet"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()


def test_what_cannot_be_cut(tmp_path: Path, text: Path, model: Path) -> None:
    def refused(message: str, job: lmgauge.api.sharding.EvaluationJob) -> None:
        with pytest.raises(UsageError, match=message):
            lmgauge.sharding.run_shard(job, 0, 2, tmp_path / "shards")
        assert not (tmp_path / "shards").exists()

    stream = lmgauge.train("laplace", lmgauge.Corpus.from_files(text), order=2, context="stream")
    refused("its context spans the whole text, which shards would cut", lmgauge.sharding.EvaluationJob(stream, text))
    joined = lmgauge.Corpus.from_files(text, join="\n")
    refused("joined into one text, which cannot be cut", lmgauge.sharding.EvaluationJob(model, joined))
    once = lmgauge.Corpus.from_strings(iter(["a b"]))
    refused("save it in a file first", lmgauge.sharding.EvaluationJob(model, once))


def test_a_text_that_is_not_what_was_scored(tmp_path: Path, text: Path, shards: Path) -> None:
    with pytest.raises(InputError, match=r"the text is not what the shards scored|has no scores of|are not those of"):
        lmgauge.merge(shards, tmp_path / "run", text=lmgauge.Corpus.from_strings(["a b"] * 30))
    text.write_text(text.read_text().replace("mat", "rug"))
    with pytest.raises(InputError, match="the text is not what the shards scored"):
        lmgauge.merge(shards, tmp_path / "run")
    text.unlink()
    with pytest.raises(InputError, match="not where they remember it"):
        lmgauge.merge(shards, tmp_path / "run")
    assert not (tmp_path / "run").exists()
