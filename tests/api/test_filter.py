"""`filter_documents` and `score_documents`: what they return, and what they refuse before they begin."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.filtering.filtered import COLUMNS, TRAINING, small_model

import lmgauge
from lmgauge.base.errors import InputError, UsageError

ROWS = [
    {"id": "one", "text": "the cat sat on the mat", "lang": "en"},
    {"id": "two", "text": "zzz yyy xxx", "lang": "de"},
    {"id": "three", "text": "a b", "lang": None},
    {"id": "four", "text": None, "lang": "en"},
    {"id": "five", "text": "", "lang": "en"},
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_what_became_of_the_documents(source: Path, tmp_path: Path) -> None:
    result = lmgauge.filter_documents(
        {"m": small_model()}, source, tmp_path / "out.jsonl", max_perplexity=9, min_bytes=1, group="lang", id="id"
    )
    assert (result.files, result.records, result.documents, result.stay_documents) == (1, 5, 4, 2)
    assert (result.bytes, result.stay_bytes) == (36, 25)
    assert result.reasons == {"perplexity above": 1, "too short": 1}
    assert result.problems == {"no text": 1}
    assert result.first_problems == {"no text": f"{source}:4: field 'text' holds null, not a string"}
    groups = {group.name: (group.documents, group.bytes, group.stay_documents, group.stay_bytes) for group in result.groups}
    assert groups == {"": (1, 3, 1, 3), "de": (1, 11, 0, 0), "en": (2, 22, 1, 22)}
    assert {reason: {example.place for example in own} for reason, own in result.examples.items()} == {
        "stays": {f"{source}:1", f"{source}:3"},
        "perplexity above": {f"{source}:2"},
        "too short": {f"{source}:5"},
    }
    assert repr(result) == "<FilteredDocuments: 2 of 4 documents stay, 25 of 36 bytes; 1 records could not be used>"
    stays = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in stays] == ["one", "three"]


def test_scoring_drops_nothing(source: Path, tmp_path: Path) -> None:
    result = lmgauge.score_documents({"m": small_model()}, source, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["one", "two", "three", "five"]
    assert list(rows[0]) == ["id", "text", "lang", *COLUMNS]
    assert rows[3]["m_bits_per_byte"] is None
    assert (result.documents, result.stay_documents, result.reasons) == (4, 4, {})


def test_several_models_have_columns_each(source: Path, tmp_path: Path) -> None:
    other = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["zzz yyy xxx"]), order=1)
    models = {"one": small_model(), "{t}wo\"'é": other}
    lmgauge.score_documents(models, source, tmp_path / "out.jsonl")
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[1])
    assert list(row)[3:] == [f"{name}_{column[2:]}" for name in models for column in COLUMNS]
    alone = lmgauge.Scorer({"m": other}).score_texts(["zzz yyy xxx"]).columns()
    assert [row[f"{name}_bits"] for name in models][1] == alone["m_bits"][0]


def test_impossible_events_are_infinite(source: Path, tmp_path: Path) -> None:
    model = lmgauge.train("mle", lmgauge.Corpus.from_strings(TRAINING), order=2)
    result = lmgauge.filter_documents({"m": model}, source, tmp_path / "out.jsonl", min_perplexity=1)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["m_perplexity"] for row in rows if row["id"] == "two"] == ["inf"]
    assert result.scored.bins("m").infinite == sum(row["m_perplexity"] == "inf" for row in rows)
    dropped = lmgauge.filter_documents({"m": model}, source, tmp_path / "out.jsonl", max_perplexity=1e300)
    assert dropped.reasons["perplexity above"] == result.scored.bins("m").infinite


def test_a_field_chooses_the_model(source: Path, tmp_path: Path) -> None:
    german = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["zzz yyy xxx"]), order=1)
    result = lmgauge.filter_documents(
        {"en": small_model(), "de": german}, source, tmp_path / "out.jsonl", by="lang", rejects=tmp_path / "rejects"
    )
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert list(rows) == ["one", "two", "five"]
    assert rows["two"]["lm_bits"] == lmgauge.Scorer({"m": german}).score_texts(["zzz yyy xxx"]).columns()["m_bits"][0]
    rejects = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert [(row["record"], row["reason"], row["detail"]) for row in rejects] == [
        (3, "no model", "lang is None"),
        (4, "no text", "field 'text' holds null, not a string"),
    ]
    assert {group.name for group in result.groups} == {"de", "en"}
    rest = lmgauge.filter_documents({"en": small_model(), "*": german}, source, tmp_path / "out.jsonl", by="lang")
    assert rest.documents == 4


def test_buckets_are_folders(source: Path, tmp_path: Path) -> None:
    frozen = lmgauge.learn_percentiles({"m": small_model()}, source, sample=None)
    result = lmgauge.filter_documents({"m": small_model()}, source, tmp_path / "out", buckets="p33,p67", percentiles=frozen)
    most, count = 0.0, 0
    for bucket in ("head", "middle", "tail"):
        own = [json.loads(line) for line in (tmp_path / "out" / bucket / "in.jsonl").read_text().splitlines()]
        assert {row["m_bucket"] for row in own} <= {bucket}
        assert all(row["m_perplexity"] > most for row in own)
        most = max([most, *(row["m_perplexity"] for row in own)])
        count += len(own)
        assert len(own) == result.buckets.get(bucket, 0)
    assert count == 4


def test_an_output_may_be_standard_output(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Out:
        buffer = io.BytesIO()

    monkeypatch.setattr(sys, "stdout", Out)
    lmgauge.filter_documents({"m": small_model()}, source, "-")
    assert len(Out.buffer.getvalue().splitlines()) == 4


def test_percentiles_are_not_learned_on_what_can_be_read_only_once(tmp_path: Path) -> None:
    new = tmp_path / "new.json"
    with pytest.raises(UsageError, match=r"<stdin> can be read only once, and learning .*new.json takes it"):
        lmgauge.filter_documents({"m": small_model()}, "-", tmp_path / "out.txt", keep="p10..p70", percentiles=new)
    assert [*tmp_path.iterdir()] == []


def test_shards_do_not_share_a_file_of_rejects(source: Path, tmp_path: Path) -> None:
    half = lmgauge.settings.FilterWork(shard=(0, 2))
    with pytest.raises(
        UsageError, match=r"all shards would write --rejects .*; their bad records are in .*_lmgauge/rejects"
    ):
        lmgauge.filter_documents({"m": small_model()}, source, f"{tmp_path}/out/", work=half, rejects=tmp_path / "bad.jsonl")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_folder_may_be_there_or_have_a_slash(source: Path, tmp_path: Path, form: str) -> None:
    (tmp_path / "there").mkdir()
    for output in (tmp_path / "there", f"{tmp_path}/new/"):
        lmgauge.filter_documents({"m": small_model()}, source, output)
        assert (Path(output) / "in.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "p10..p70"}, "percentiles are needed for this rule"),
        ({"max_perplexity": 0.5}, "max-perplexity must be a number from 1"),
        ({"judged_by": "other"}, "the rules name model 'other'"),
        ({"work": lmgauge.settings.FilterWork(shard=(0, 2))}, "a shard has a share of the files: give -o a folder"),
        ({"shard": (2, 2)}, "shard 3/2: give a number from 1"),
        ({"shard": (-1, 2)}, "shard 0/2: give a number from 1"),
        ({"by": "lang"}, "chooses among models"),
    ],
)
def test_what_is_refused_before_anything_is_read(
    source: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    model = small_model() if "by" in options else {"m": small_model()}
    with pytest.raises(UsageError, match=message):
        lmgauge.filter_documents(model, source, tmp_path / "out.jsonl", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_what_would_replace_its_input_is_refused(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(source)
    for output, rejects in ((source, None), (tmp_path / "link.jsonl", None), (tmp_path / "out.jsonl", source)):
        with pytest.raises(UsageError, match="would replace what this command reads"):
            lmgauge.filter_documents({"m": small_model()}, source, output, rejects=rejects)
    with pytest.raises(UsageError, match="would replace each other"):
        lmgauge.filter_documents({"m": small_model()}, source, tmp_path / "out", rejects=tmp_path / "out")
    assert json.loads(source.read_text().splitlines()[0]) == ROWS[0]


def test_a_model_that_refuses_a_document_refuses_only_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.filtering import scorer
    from lmgauge.models.segment_scores import sum_segments

    def refusing(model: Any, blocks: Any, **options: Any) -> Any:
        for block in blocks:
            if any(block.text(place) == b"bad" for place in range(len(block))):
                raise InputError("model: cannot score this")
            yield from sum_segments(model, [block], **options)

    texts = ["a", "bad", "b", "c", "bad", "a b"]
    expected = lmgauge.Scorer({"m": small_model()}).score_texts(texts).columns()
    monkeypatch.setattr(scorer, "sum_segments", refusing)
    scores = lmgauge.Scorer({"m": small_model()}).score_texts(texts)
    assert scores.problems == dict.fromkeys((1, 4), ("refused by the model", "cannot score this"))
    good = [0, 2, 3, 5]
    assert scores.columns()["m_bits"][good].tolist() == expected["m_bits"][good].tolist()


def test_a_field_that_no_record_has_is_a_mistake(source: Path, tmp_path: Path) -> None:
    for output, rejects in ((tmp_path / "out.jsonl", tmp_path / "rejects"), (f"{tmp_path}/out/", None)):
        with pytest.raises(InputError, match=r"none of 5 records can be used; the first: .*in\.jsonl:1: no field 'body'"):
            lmgauge.filter_documents({"m": small_model()}, source, output, field="body", rejects=rejects)
    assert not (tmp_path / "out.jsonl").exists()
