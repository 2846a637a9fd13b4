"""Systems' scores against perplexities: what is told of many, few and equal ones, and the tables they come from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.correlation import correlate, paired_columns, read_table
from lmgauge.tasks.settings import CorrelationSettings

SYSTEMS = ["kn3", "kn5", "lstm", "transformer", "big"]
PERPLEXITY = [210.0, 180.0, 90.0, 60.0, 70.0]
BLEU = [20.0, 21.5, 24.0, 27.0, 26.0]


def test_better_models_better_systems() -> None:
    found = correlate(SYSTEMS, PERPLEXITY, BLEU, y_name="BLEU")
    assert found.spearman == -1
    assert found.p_value == 2 / 120
    assert found.exact
    assert found.log_x
    assert found.pearson == pytest.approx(stats.pearsonr([math.log(p) for p in PERPLEXITY], BLEU).statistic)
    assert found.spearman_interval is None
    assert found.notes == ("the order agrees entirely, and for that the interval's approximation does not hold",)
    line = repr(found)
    assert line.startswith("<Correlation: BLEU against perplexity, 5 systems: Spearman's rho -1.000, Kendall's tau-b -1.000")
    assert "Pearson's r with the logarithm " in line
    assert "p-value of rho: all permutations." in str(found)


def test_a_system_that_stands_apart_is_seen() -> None:
    found = correlate(SYSTEMS, PERPLEXITY, [20.0, 21.5, 24.0, 22.0, 26.0])
    rows = {row["system"]: row for row in found.to_rows()}
    assert rows["transformer"] == {
        "system": "transformer",
        "x": 60.0,
        "y": 22.0,
        "rank_x": 1,
        "rank_y": 3,
        "rank_difference": -2,
    }
    assert sum(row["rank_difference"] for row in rows.values()) == 0
    assert found.to_dict()["systems"] == found.to_rows()
    low, high = found.spearman_interval or (0, 0)
    assert (found.to_dict()["spearman_low"], found.to_dict()["spearman_high"]) == (low, high)
    assert low < (found.spearman or 0) < high
    told = (
        "5 systems are taken as independent, which variants of one system are not; the uncertainty of each score is not used"
    )
    assert found.independence == found.to_dict()["independence"] == told
    assert told in str(found).replace("\n", " ")


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(0, 100)), min_size=1, max_size=15), st.booleans())
def test_ranks_do_not_mind_the_logarithm(points: list[tuple[float, float]], log_x: bool) -> None:
    names = [str(i) for i in range(len(points))]
    found = correlate(names, [x for x, _ in points], [y for _, y in points], log_x=log_x)
    other = correlate(names, [x for x, _ in points], [y for _, y in points], log_x=not log_x)
    assert (found.spearman, found.kendall, found.p_value) == (other.spearman, other.kendall, other.p_value)
    assert json.loads(json.dumps(found.to_dict()))["n"] == len(points)
    assert repr(found).startswith("<Correlation: score against perplexity")


@pytest.mark.parametrize(
    ("n", "notes"),
    [
        (1, ("one system says nothing about a correlation",)),
        (2, ("2 systems are too few for an interval: 4 are needed", "with 2 systems no p-value can be below 1")),
        (3, ("3 systems are too few for an interval: 4 are needed", "with 3 systems no p-value can be below 0.33")),
    ],
)
def test_few_systems(n: int, notes: tuple[str, ...]) -> None:
    found = correlate(SYSTEMS[:n], PERPLEXITY[:n], BLEU[:n])
    assert found.notes == notes
    assert found.spearman_interval is None
    assert (found.spearman is None) == (n == 1)


def test_equal_numbers_have_no_correlation() -> None:
    found = correlate(SYSTEMS, PERPLEXITY, [20.0] * 5)
    assert found.spearman is found.kendall is found.pearson is found.p_value is None
    assert "5 systems: no correlation" in repr(found)
    assert "score is the same for all systems" in str(found)


def test_infinite_perplexity_keeps_its_rank() -> None:
    found = correlate(SYSTEMS, [math.inf, *PERPLEXITY[1:]], BLEU)
    assert found.spearman == -1
    assert found.pearson is None
    assert any("infinite" in note for note in found.notes)


def test_many_systems_are_sampled_with_the_seed() -> None:
    names = [str(i) for i in range(12)]
    x, y = [float(i) for i in range(1, 13)], [3.0, 1, 2, 6, 5, 4, 9, 8, 7, 12, 10, 11]
    found = correlate(names, x, y, x_name="bits per byte")
    assert not found.exact
    assert not found.log_x
    assert found == correlate(names, x, y, x_name="bits per byte")
    assert f"p-value of rho: 100,000 permutations, seed {found.seed}." in str(found)
    assert found.p_value == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.001)


@pytest.mark.parametrize(
    ("systems", "x", "words"),
    [
        (["a", "b"], [1.0], "2 systems, 1 times"),
        (["a", "a"], [1.0, 2.0], "'a' occurs twice"),
        (["a", "b"], [1.0, math.nan], "'b' is NaN"),
        (["a", "b"], [1.0, 0.0], "no logarithm; correlate without it: --no-log-x"),
    ],
)
def test_numbers_that_cannot_be(systems: list[str], x: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        correlate(systems, x, [1.0, 2.0])


def test_nothing_and_a_negative_seed() -> None:
    with pytest.raises(InputError, match="no systems"):
        correlate([], [], [])
    with pytest.raises(UsageError, match="seed: -1"):
        correlate(SYSTEMS, PERPLEXITY, BLEU, seed=-1)


# --- tables -----------------------------------------------------------------------------------------------

TABLES = {
    "t.tsv": "\ufeffsystem\tscore\r\na b\t1.5\r\n\r\nc\u2028d\t2\r\n",
    "t.csv": 'system,score\na b,1.5\n"c\u2028d","2"\n',
    "t.jsonl": '{"system": "a b", "score": 1.5}\n\n{"system": "c\u2028d", "score": 2}\n',
    "t.json": '[{"system": "a b", "score": 1.5}, {"system": "c\u2028d", "score": "2"}]',
    "u.JSON": '{"metric": "BLEU", "systems": [{"system": "a b", "score": 1.5}, {"system": "c\u2028d", "score": 2}]}',
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_every_kind(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(TABLES[name].encode())
    rows = read_table(str(path))
    names, x, y, notes = paired_columns(rows, rows, CorrelationSettings("score", "score"))
    assert (names, x, y, notes) == (["a b", "c\u2028d"], [1.5, 2], [1.5, 2], [])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.tsv", "system\tscore\na\t1\t2\n", r"t\.tsv:2: 3 columns, where the first line has 2"),
        ("t.csv", "system,system\n", r"t\.csv:1: the column 'system' occurs twice"),
        ("t.csv", "system,\n", r"t\.csv:1: a column has no name"),
        ("t.csv", 'system,score\n"a"b,1\n', r"t\.csv:2: "),
        ("t.csv", "system,score\n", "no rows"),
        ("t.jsonl", '{"a": 1}\n{\n', r"t\.jsonl:2: not valid JSON"),
        ("t.jsonl", '{"a": 1}\n' + "[" * 100_000, r"t\.jsonl:2: not usable JSON"),
        ("t.jsonl", "[1]\n", r"t\.jsonl:1: a JSON object is needed, not a list"),
        ("t.json", '{\n"a": }', r"t\.json: is not JSON: .*line 2"),
        ("t.json", '{"systems": 1}', 'under "systems"'),
        ("t.json", '{"systems": [1]}', "needs a list of objects"),
        ("t.json", "", r"t\.json: is empty"),
    ],
)
def test_broken_tables(name: str, content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_table(str(path))


def test_no_table_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_table(str(tmp_path / "none.tsv"))
    (tmp_path / "t.txt").write_text("system\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"t\.txt: tables are read from \.json, \.jsonl, "):
        read_table(str(tmp_path / "t.txt"))
    (tmp_path / "t.csv").write_bytes(b"system\n\xff")
    with pytest.raises(InputError, match=r"t\.csv:2: 0xFF is not valid UTF-8"):
        read_table(str(tmp_path / "t.csv"))


def test_two_tables_are_joined_by_name() -> None:
    scores = [{"system": name, "score": score} for name, score in zip("abcd", [4, 3, 2, 1], strict=True)]
    perplexities = [{"system": name, "perplexity": value} for name, value in zip("xcba", "9876", strict=True)]
    names, x, y, notes = paired_columns(perplexities, scores, CorrelationSettings())
    assert (names, x, y) == (["a", "b", "c"], [6, 7, 8], [4, 3, 2])
    assert notes == ["left out, without score: 'x'", "left out, without perplexity: 'd'"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"system": "a"}], "row 1 has no column 'score'; it has 'system'"),
        ([{"name": "a", "score": 1}], "row 1 has no column 'system'"),
        ([{"system": "a", "score": "high"}], "row 1: score of system 'a' is 'high', not a number"),
        ([{"system": "a", "score": None}], "is None, not a number"),
        ([{"system": "a", "score": True}], "is True, not a number"),
        ([{"system": "a", "score": "nan"}], "is 'nan', not a number"),
        ([{"system": "a", "score": 1}, {"system": "a", "score": 1}], "row 2: system 'a' occurs a second time"),
        ([{"system": "b", "score": 1}], "no system is in both tables: perplexity is given for 'a', score for 'b'"),
    ],
)
def test_columns_that_do_not_fit(rows: list[dict[str, object]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        paired_columns([{"system": "a", "perplexity": 1}], rows, CorrelationSettings())
