"""Percentiles of the documents of files: the same whatever engine, order of files or number of threads."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.documents import Documents
from lmgauge.filtering.filter_file import FilterPlan
from lmgauge.filtering.filter_files import sample_file
from lmgauge.filtering.options import RecordOptions
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings
from lmgauge.records.sources import find_sources

WORDS = ["a", "b", "a b", "b a a", "c", "a a b b a", "b b b"]


@pytest.fixture(scope="module")
def model() -> lmgauge.NgramModel:
    return lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "a", "b b a", "c"]), order=2)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three files of documents in two groups and none, with records that cannot be used."""
    folder = tmp_path_factory.mktemp("learn")
    paths = []
    for number in range(3):
        paths.append(folder / f"{number}.jsonl")
        rows = [
            {"text": " ".join(WORDS[: 1 + (k * (number + 2)) % 7]), "lang": ["en", "de", None][k % 3]} for k in range(300)
        ]
        lines = [json.dumps(row) for row in rows]
        lines[5:5] = ['{"text": null}', "broken"]
        paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def learn(model: lmgauge.NgramModel, files: list[Path], **options: object) -> lmgauge.results.Percentiles:
    return lmgauge.learn_percentiles({"m": model}, files, group="lang", **options)  # type: ignore[arg-type]


def test_no_order_thread_or_process_changes_a_figure(model: lmgauge.NgramModel, files: list[Path], tmp_path: Path) -> None:
    expected = learn(model, files, sample=50)
    assert learn(model, files[::-1], sample=50) == expected
    assert learn(model, files, sample=50, work=lmgauge.settings.FilterWork(threads=2)) == expected
    model.save(tmp_path / "m")
    named = {"m": tmp_path / "m"}
    one, two = (
        lmgauge.learn_percentiles(
            named, files, group="lang", sample=50, work=lmgauge.settings.FilterWork(threads=1, workers=workers)
        )
        for workers in (1, 2)
    )
    assert one == two
    assert one.overall == expected.overall
    assert one.groups == expected.groups


def test_of_all_documents_percentiles_are_those_of_their_scores(model: lmgauge.NgramModel, files: list[Path]) -> None:
    percentiles = learn(model, files, sample=None)
    rows = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines() if "broken" not in line]
    rows = [row for row in rows if row["text"] is not None]
    scores = lmgauge.Scorer({"m": model}).score_texts([row["text"] for row in rows]).columns()["m_perplexity"].tolist()
    for name in (None, "de", "en"):
        own = sorted(score for score, row in zip(scores, rows, strict=True) if name in (None, row["lang"]))
        for percent in (1, 10, 50, 99):
            assert percentiles.value("m", name, percent) == own[math.ceil(len(own) * percent / 100) - 1]
    assert (percentiles.overall.documents, percentiles.bad_records) == (900, 6)
    assert {name: group.documents for name, group in percentiles.groups.items()} == {"de": 300, "en": 300}


def test_only_documents_that_may_be_sampled_are_scored(
    model: lmgauge.NgramModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.txt"
    path.write_text("a b\n" * 30_000, encoding="utf-8")
    monkeypatch.setattr("lmgauge.filtering.filter_files.BLOCK_BYTES", 4_000)
    scored = []
    score = FilterPlan.score

    def counting(plan: FilterPlan, documents: Documents) -> object:
        scored.append(len(documents.rows))
        return score(plan, documents)

    monkeypatch.setattr(FilterPlan, "score", counting)
    monkeypatch.setattr("lmgauge.filtering.percentile_sample._PENDING", 500)
    plan = FilterPlan(lmgauge.Scorer({"m": model}))
    sample = sample_file(plan, find_sources(path, None)[0], PercentileSample(1, SampleSettings(sample=200)), threads=1)
    assert (sample.overall().documents, len(sample.overall().values)) == (30_000, 200)
    assert sum(scored) < 10_000


def test_the_models_are_chosen_by_a_field(model: lmgauge.NgramModel, files: list[Path]) -> None:
    percentiles = lmgauge.learn_percentiles({"en": model}, files, by="lang")
    assert percentiles.group == "lang"
    assert percentiles.models["lm"].startswith("doc|by:lang|en:")
    assert (percentiles.groups["de"].models["lm"]["scored"], percentiles.groups["en"].models["lm"]["scored"]) == (0, 300)
    assert "no perplexity by lm" in str(percentiles)


def test_what_is_refused(model: lmgauge.NgramModel, files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0\.jsonl:6: "):
        learn(model, files, errors="fail")
    with pytest.raises(UsageError, match="not on a shard"):
        learn(model, files, work=lmgauge.settings.FilterWork(shard=(0, 2)))
    with pytest.raises(UsageError, match="would replace"):
        learn(model, files, output=files[0])
    many = tmp_path / "many.jsonl"
    many.write_text("".join(f'{{"text": "a", "lang": "u{k}"}}\n' for k in range(1001)), encoding="utf-8")
    with pytest.raises(UsageError, match=r"field 'lang' has more than 1,000 values"):
        learn(model, [many])
    (tmp_path / "none.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(InputError, match="model 'm' gave no document a perplexity"):
        learn(model, [tmp_path / "none.jsonl"])


def test_a_filter_keeps_by_them(model: lmgauge.NgramModel, files: list[Path], tmp_path: Path) -> None:
    frozen = learn(model, files, sample=None, output=tmp_path / "p.json")
    filtered = lmgauge.filter_documents(
        {"m": model}, files, tmp_path / "out/", percentiles=tmp_path / "p.json", keep="p10..p70", group="lang"
    )
    scored = lmgauge.filter_documents({"m": model}, files, tmp_path / "all/", group="lang")
    rows = [
        json.loads(line)
        for path in sorted((tmp_path / "all").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    low_high = {name: (frozen.value("m", name, 10), frozen.value("m", name, 70)) for name in (None, "de", "en")}
    stay = sum(low_high[row["lang"]][0] < row["m_perplexity"] <= low_high[row["lang"]][1] for row in rows)
    assert (filtered.stay_documents, filtered.documents, scored.documents) == (stay, 900, 900)
    assert filtered.stand_in == 300  # documents without a language
    with pytest.raises(UsageError, match=r"p\.json was learned with group 'lang', and here it is not set"):
        lmgauge.filter_documents({"m": model}, files, tmp_path / "other/", percentiles=tmp_path / "p.json", keep="p10..")


def test_lines_are_another_way_of_reading(model: lmgauge.NgramModel, files: list[Path]) -> None:
    frozen = learn(model, files, sample=10)
    plan = FilterPlan(lmgauge.Scorer({"m": model}, lines=True), RecordOptions(lines=True, group="lang"), percentiles=frozen)
    with pytest.raises(UsageError, match="another model 'm': documents was 'whole', and here it is 'lines'"):
        plan.check()


@pytest.mark.parametrize("settings", [{"sample": 0}, {"seed": -1}, {"seed": 2**64}], ids=str)
def test_samples_out_of_range_are_refused(model: lmgauge.NgramModel, files: list[Path], settings: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=rf"{next(iter(settings))} must be a whole number, \d or more"):
        learn(model, files, **settings)
