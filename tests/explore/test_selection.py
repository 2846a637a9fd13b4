"""Filters, sorting and numbers of what is chosen: as a slow and obvious twin has them."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explore.conftest import Served, serving, texts

from lmgauge import read_scores
from lmgauge.evaluation.runs import open_run
from lmgauge.explore import requests
from lmgauge.explore.requests import Search, column_names, sorted_places
from lmgauge.scores import iter_segments


@cache
def rows(folder: Path) -> list[dict[str, float]]:
    """Each segment with its columns, one by one, from the tables."""
    runs = [list(iter_segments(read_scores(folder / name / "scores.parquet"))) for name in "ab"]
    made = []
    for number, text in enumerate(texts()):
        row: dict[str, float] = {"segment": number, "bytes": len(text.encode())}
        for suffix, run in zip(("", "_b"), runs, strict=True):
            own = run[number]
            assert own.segment == number
            bits = math.fsum(-value / math.log(2) for value in own.logprob.tolist())
            row |= {
                f"bits{suffix}": bits,
                f"events{suffix}": len(own),
                f"zeros{suffix}": int((own.logprob == -np.inf).sum()),
            }
            row[f"unseen{suffix}"] = int((own.kind == 1).sum())
            row[f"bits_per_byte{suffix}"] = bits / row["bytes"] if row["bytes"] else math.nan
            row[f"bits_per_event{suffix}"] = bits / len(own)
        row["difference"] = row["bits_b"] - row["bits"]
        row["difference_per_byte"] = row["difference"] / row["bytes"] if row["bytes"] else math.nan
        made.append(row)
    return made


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("name", column_names(2))
def test_segments_are_sorted(two: Served, folder: Path, name: str, falling: bool) -> None:
    items = two.all(sort=name, falling=falling)
    expected = rows(folder)
    assert sorted(item["segment"] for item in items) == list(range(300))
    values = [expected[item["segment"]][name] for item in items]
    finite = [value for value in values if not math.isnan(value)]
    assert all(math.isnan(value) for value in values[len(finite) :])  # those without a value stand at the end
    steps = np.diff(finite)
    assert (steps <= 1e-9).all() if falling else (steps >= -1e-9).all()


@pytest.mark.parametrize("name", column_names(2))
def test_segments_are_filtered(two: Served, folder: Path, name: str) -> None:
    expected = rows(folder)
    values = [row[name] for row in expected if math.isfinite(row[name])]
    low, high = (float(np.quantile(values, share)) + 1e-7 for share in (0.3, 0.8))
    items = two.all(column=name, min=low, max=high)
    assert [item["segment"] for item in items] == [i for i, row in enumerate(expected) if low <= row[name] <= high]


def test_filters_are_joined(two: Served, folder: Path) -> None:
    expected = [
        i for i, (row, text) in enumerate(zip(rows(folder), texts(), strict=True))
        if i % 5 == 0 and "dog" in text and 3 <= row["bits"] <= 60
    ]  # fmt: skip
    items = two.all(group="law", q="dog", sort="segment", column="bits", min=3, max=60)
    assert [item["segment"] for item in items] == expected != []


def test_numbers_of_all_are_those_of_the_evaluation(one: Served, folder: Path) -> None:
    numbers = one.get("numbers")
    evaluation = json.loads((folder / "a" / "evaluation.json").read_text())
    whole, groups = evaluation["evaluation"], {group["group"]: group for group in evaluation["groups"]}
    for figures, expected in ((numbers, whole), (one.get("numbers", group="law"), groups["law"])):
        own = figures["runs"][0]
        assert own["perplexity"] == pytest.approx(expected["perplexity"], rel=1e-15)
        assert own["perplexity_interval"] == pytest.approx(
            [expected["interval"]["low"], expected["interval"]["high"]], rel=1e-12
        )
        assert own["bits_per_byte"] == pytest.approx(expected["bits_per_byte"], rel=1e-15)
        assert (own["events"], figures["bytes"], figures["segments"]) == tuple(
            expected[name] for name in ("events", "bytes", "segments")
        )
        assert figures["unit"]["of"] == expected["interval"]["unit"] == "documents"
        assert figures["unit"]["count"] == expected["interval"]["units"]


def test_the_difference_is_that_of_a_comparison(two: Served, folder: Path) -> None:
    from lmgauge import compare

    difference = two.get("numbers")["difference"]
    groups = next(cut for cut in compare([folder / "a", folder / "b"]).items[0].slices if cut.name == "group")
    for row in groups.rows:
        own = two.get("numbers", group=row.label)["difference"]
        assert own["value"] == pytest.approx(row.difference, rel=1e-12)
        assert own["interval"] == pytest.approx(row.interval, rel=1e-9)
    runs = two.get("numbers")["runs"]
    assert difference["value"] == pytest.approx(runs[1]["bits_per_byte"] - runs[0]["bits_per_byte"], rel=1e-12)
    assert difference["interval"][0] < difference["value"] < difference["interval"][1]


def test_parts_add_up_to_the_whole(two: Served) -> None:
    parts = [two.get("numbers", group=name) for name in ("news", "law")]
    whole = two.get("numbers")
    for name in ("segments", "bytes"):
        assert sum(part[name] for part in parts) == whole[name]
    for k in (0, 1):
        assert sum(part["runs"][k]["events"] for part in parts) == whole["runs"][k]["events"]
        assert math.fsum(part["runs"][k]["bits"] for part in parts) == pytest.approx(whole["runs"][k]["bits"], rel=1e-15)


def test_nothing_chosen_has_no_numbers(two: Served) -> None:
    numbers = two.get("numbers", q="no segment says this")
    assert (numbers["segments"], numbers["bytes"], numbers["unit"], numbers["difference"]) == (0, 0, None, None)
    assert numbers["runs"][0]["bits_per_byte"] is None
    assert two.get("segments", q="no segment says this")["items"] == []


def test_events_of_probability_zero_are_infinite(tmp_path: Path) -> None:
    table = tmp_path / "table.jsonl"
    lines = [{"segment": i // 3, "logprob": "-inf" if i == 4 else -1.5, "token": f"t{i}"} for i in range(12)]
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for served in serving(table):
        items = served.all(sort="bits", falling=True)
        assert [item["bits"][0] for item in items] == ["inf", *[pytest.approx(4.5 / math.log(2))] * 3]
        assert items[0]["text"] == "t3 t4 t5 "  # the text is not available: its tokens are shown
        figures = served.get("numbers")["runs"][0]
        assert (figures["bits"], figures["bits_per_byte"], figures["perplexity"]) == ("inf", None, "inf")


def test_sorted_places_are_stable() -> None:
    values = np.array([3.0, np.nan, 1.0, 3.0, np.inf])
    assert sorted_places(values, False).tolist() == [2, 0, 3, 4, 1]
    assert sorted_places(values, True).tolist() == [4, 0, 3, 2, 1]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"sort": "price"}, "no column 'price'"),
        ({"sort": "bits_b; drop"}, "no column"),
        ({"column": "price", "min": 1}, "no column 'price'"),
        ({"min": "many"}, "Expected `float`, got `str` - at `$.min`"),
        ({"page": -1}, "Expected `int` >= 0 - at `$.page`"),
        ({"page": 1.5}, "Expected `int`"),
        ({"page": 10**60}, "Expected `int`"),
        ({"size": 101}, "Expected `int` <= 100"),
        ({"regex": "1"}, "Expected `bool`"),
        ({"q": "x" * 1001}, "length <= 1000"),
        ({"group": "sport"}, "no group 'sport'"),
        ({"at": 10_000}, "is not among"),
    ],
)
def test_what_is_not_known_is_said(two: Served, parameters: dict[str, Any], said: str) -> None:
    assert said in two.refused("segments", **parameters)


def test_the_run_is_what_was_opened(folder: Path) -> None:
    assert open_run(folder / "a", hash_scores=False).scores_sha256 == json.loads(
        (folder / "a" / "evaluation.json").read_text()
    )["scores_sha256"]  # fmt: skip


# -- search by text and regular expression: what Python's own search finds; a piece at a time ---------------------------
@pytest.mark.parametrize("text", ["dog", "DOG", "für", "FÜR", "東京", "<b>", ".", "a c", "$", "zebra the"])
@pytest.mark.parametrize("case", [False, True])
def test_text_is_found(two: Served, text: str, case: bool) -> None:
    fold = str if case else str.lower
    expected = [i for i, segment in enumerate(texts()) if fold(text) in fold(segment)]
    assert [item["segment"] for item in two.all(q=text, case=case)] == expected


@pytest.mark.parametrize("text", ["^the", "dog$", "^$", r"\bca?t\b", "(cat|dog) .*zebra", "f.r", "[東京]+", "Dog"])
@pytest.mark.parametrize("case", [False, True])
def test_regular_expressions_are_found(two: Served, text: str, case: bool) -> None:
    pattern = re.compile(text, 0 if case else re.IGNORECASE)
    expected = [i for i, segment in enumerate(texts()) if pattern.search(segment)]
    assert [item["segment"] for item in two.all(q=text, regex=True, case=case)] == expected


@pytest.mark.parametrize("text", ["((", "a**", "[z-a]", "(?P<", r"\1", "(?=a)", "(a{1000}){1000}", "*"])
def test_a_bad_expression_is_said(two: Served, text: str) -> None:
    assert "regular expression cannot be used" in two.refused("segments", q=text, regex=True)


def test_an_expression_that_is_slow_elsewhere_is_not_here(two: Served) -> None:
    answer = two.get("segments", q="(a*)*(a|aa)*(b|ba*)*x$", regex=True)
    assert answer["is_complete"]


def test_a_search_goes_on_where_it_stopped(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_PIECE", 500)
    index = two.explorer.index
    assert index is not None
    own = Search(index, "dog", False, False)
    sizes = [0]
    while sizes[-1] < index.size:
        sizes.append(own.advance(0.0))
    assert len(sizes) > 5
    assert all(np.diff(sizes) > 0)
    assert np.flatnonzero(own.matches(300)).tolist() == [i for i, text in enumerate(texts()) if "dog" in text]


def test_an_answer_before_the_search_has_ended(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.explore import requests

    monkeypatch.setattr(requests, "_PIECE", 500)
    monkeypatch.setattr(requests, "SEARCH_SECONDS", 0.0)
    answers = [two.get("segments", q="hears", case=True)]
    while not answers[-1]["is_complete"]:
        answers.append(two.get("segments", q="hears", case=True))
    assert len(answers) > 5
    assert answers[0]["total"] < answers[-1]["total"] == sum("hears" in text for text in texts())
