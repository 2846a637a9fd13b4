"""What is counted adds up, in whatever parts it was counted, and is stored and read again whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.filtering.filtered import small_model

import lmgauge
from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError
from lmgauge.base.json_text import to_json
from lmgauge.filtering.documents import MOST_GROUPS, OTHERS
from lmgauge.filtering.filter_file import FilterPlan, filter_file
from lmgauge.filtering.filter_files import jobs_of
from lmgauge.filtering.options import FilterRules, RecordOptions
from lmgauge.filtering.results import EXAMPLES, Tally, example_text
from lmgauge.records.sources import find_sources


def tally_of(folder: Path, rows: list[dict[str, Any]], **rules: Any) -> Tally:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = FilterPlan(lmgauge.Scorer({"m": small_model()}), RecordOptions(group="lang"), FilterRules(**rules))
    (job,) = jobs_of(find_sources(path), str(folder / "out.jsonl"), columns=False)
    return filter_file(plan, job)


def read(stored: dict[str, Any]) -> Tally:
    return decode(stored, Tally, "x.json", "a tally", "count again")


ROWS = [{"text": "a b " * (number % 5), "lang": ["en", "de", None][number % 3]} for number in range(50)] + [{"text": 1}]


def test_parts_add_up(tmp_path: Path) -> None:
    whole = tally_of(tmp_path, ROWS, min_bytes=5)
    parts = (ROWS[:20], ROWS[20:21], [], ROWS[21:])
    total = sum((tally_of(tmp_path, part, min_bytes=5) for part in parts), Tally.of_nothing(["m"]))
    one, other = whole.to_dict(), total.to_dict()
    for told in (one, other):  # examples and places are numbered within a file
        del told["examples"], told["problems"]
    assert one == other
    assert (whole.records, sum(whole.reasons.values()), sum(one.records for one in whole.problems.values())) == (51, 50, 1)
    assert sum(group.documents for group in whole.groups.values()) == 50
    assert {reason: len(drawn.examples) for reason, drawn in whole.examples.items()} == {
        "stays": EXAMPLES,
        "too short": EXAMPLES,
    }


def test_what_is_stored_is_read_again(tmp_path: Path) -> None:
    tally = tally_of(tmp_path, ROWS, min_bytes=5)
    stored = json.loads(to_json(tally.to_dict()))
    assert read(stored).to_dict() == tally.to_dict()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("records", -1),
        ("records", 1.0),
        ("records", True),
        ("bytes", 1 << 64),
        ("reasons", {"unknown": 1}),
        ("buckets", {"unknown": 1}),
        ("groups", {"en": {}}),
        ("groups", []),
        ("problems", {"no text": 1}),
        ("examples", {"stays": {}}),
        ("examples", {"unknown": {"examples": []}}),
        ("examples", {"stays": {"examples": [{"key": 1, "place": "a", "text": "a", "perplexity": {"m": "nan"}}]}}),
        ("examples", {"stays": {"examples": [{"key": 1, "place": "a", "text": "a", "perplexity": {"m": 10**400}}]}}),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, name: str, value: object) -> None:
    stored = tally_of(tmp_path, ROWS).to_dict()
    with pytest.raises(InputError):
        read(stored | {name: value})
    del stored[name]
    with pytest.raises(InputError):
        read(stored)


def test_a_field_of_many_values_takes_bounded_memory(tmp_path: Path) -> None:
    rows = [{"text": "a b", "lang": f"url {number}"} for number in range(2 * MOST_GROUPS)]
    tally = tally_of(tmp_path, rows)
    assert len(tally.groups) == MOST_GROUPS + 1
    assert tally.groups[OTHERS].documents == MOST_GROUPS
    total = tally_of(tmp_path, rows[:1500]) + tally_of(tmp_path, rows[1000:])
    assert len(total.groups) == MOST_GROUPS + 1
    assert sum(group.documents for group in total.groups.values()) == 2500
    assert total.groups[OTHERS].documents == 500 + 1000


@pytest.mark.parametrize("text", ["", "a" * 3000, "é" * 3000, "\U0001f600" * 3000])
def test_an_example_is_how_a_text_begins(text: str) -> None:
    assert example_text(text.encode()) == text[:400] + "…" * (len(text) > 400)
