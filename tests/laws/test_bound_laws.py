"""A lower bound is never ranked, drawn as a point, called best or divided by: as a type, and in what commands print."""

from __future__ import annotations

import json
import math
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.commands import ok

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.evaluation.diagnosis.compressors import Baseline, in_order
from lmgauge.numerics.lower_bound import LowerBound, marked
from lmgauge.report import blocks as doc
from lmgauge.report.chart_values import values
from lmgauge.report.charts import specification
from lmgauge.report.documents import document_of
from lmgauge.report.formats import number

FIGURES = st.floats(0, 1e6)
PER_TEXT = re.compile(r"bits(/| per )(byte|char|character|word)$")


@given(FIGURES, FIGURES)
def test_a_bound_is_not_compared_and_nothing_is_divided_by_it(bound: float, figure: float) -> None:
    least = LowerBound(bound)
    refused: list[Callable[[], object]] = [
        lambda: least < figure,
        lambda: figure < least,
        lambda: least >= LowerBound(figure),
        lambda: sorted([figure, least]),
        lambda: min(least, figure),
        lambda: max([figure, least]),
        lambda: figure / least,
        lambda: least / LowerBound(figure + 1),
    ]
    for ask in refused:
        with pytest.raises(UsageError, match="lower bound"):
            ask()
    assert least.exceeds(figure) == (bound > figure)


@given(FIGURES, st.integers(1, 1000))
def test_a_bound_stays_one_where_its_scale_changes(bound: float, count: int) -> None:
    for scaled in (LowerBound(bound) / count, LowerBound(bound) * count):
        assert isinstance(scaled, LowerBound)
    assert (LowerBound(bound) / count).exceeds(-1.0)
    assert pickle.loads(pickle.dumps(LowerBound(bound))).exceeds(-1.0)


@given(FIGURES)
def test_a_bound_is_written_as_one_and_is_a_number_in_json(bound: float) -> None:
    least = LowerBound(bound)
    assert str(least).startswith(">= ")
    assert f"{least:.4f}" == f">= {bound:.4f}"
    assert number(least) == f"≥ {number(bound)}"
    assert json.loads(json.dumps(least)) == bound


@given(st.lists(st.tuples(FIGURES, st.booleans()), min_size=1))
def test_a_ladder_has_exact_figures_in_order_and_bounds_behind_them(rungs: list[tuple[float, bool]]) -> None:
    made = in_order(
        Baseline(str(i), "", *(marked(bits, bound=bound) for bits in (8 * figure, figure)))
        for i, (figure, bound) in enumerate(rungs)
    )
    exact = [rung.bits for rung in made if not rung.bound]
    assert exact == sorted(exact)
    assert [rung.bound for rung in made] == sorted(rung.bound for rung in made)


# -- results and commands ------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def texts(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training text, a test text, and models: three of which bits per byte are a bound, one that is exact."""
    folder = tmp_path_factory.mktemp("bounds")
    train = (data / "classic-books.train.txt").read_text(encoding="utf-8").split("\n")[:3000]
    test = (data / "classic-books.test.txt").read_text(encoding="utf-8").split("\n")[:200]
    (folder / "train.txt").write_text("\n".join(train) + "\n", encoding="utf-8", newline="\n")
    (folder / "test.txt").write_text("\n".join(test) + "\n", encoding="utf-8", newline="\n")
    text = lmgauge.Corpus.from_files(folder / "train.txt")
    models = {
        "step-1": lmgauge.train("modified-kneser-ney", text, order=2, min_count=50),
        "step-2": lmgauge.train("modified-kneser-ney", text, order=2, min_count=20),
        "step-3": lmgauge.train("modified-kneser-ney", text, order=2, min_count=5),
        "exact": lmgauge.train("modified-kneser-ney", text, order=2, min_count=20, vocabulary="spelled"),
    }
    lmgauge.evaluate(models, folder / "test.txt", output=folder / "runs")
    models["step-2"].save(folder / "step-2")
    return folder


def cells(document: doc.Document) -> Iterator[tuple[str, str, Any]]:
    """Row name, heading and cell of every table."""
    for block in document:
        if isinstance(block, doc.Table):
            first = block.columns[0].cells
            for column in block.columns[1:]:
                for name, cell in zip(first, column.cells, strict=True):
                    yield str(name), column.title, cell


def results(folder: Path) -> Iterator[tuple[str, object]]:
    runs, text, train = folder / "runs", folder / "test.txt", folder / "train.txt"
    opened = lmgauge.load_model(folder / "step-2")
    yield "eval", lmgauge.evaluate({"step-2": opened}, text)
    yield "groups", lmgauge.evaluate({"step-2": opened}, lmgauge.Corpus.from_files([text, train]), by_group=True)
    yield "diagnose", lmgauge.diagnose(runs / "step-2", train=train)
    yield "compare", lmgauge.compare([runs / "step-1", runs / "step-2", runs / "exact"])
    yield "baseline", lmgauge.baseline(train, text, models={"step-2": opened}, order=2, character_order=3)
    yield "report", lmgauge.report([runs / name for name in ("step-1", "step-2", "step-3")], train=train)
    yield "report of one", lmgauge.report(runs / "step-2", train=train)


def test_every_result_prints_a_bound_as_one_and_ranks_none(texts: Path) -> None:
    seen = set()
    for what, result in results(texts):
        document = result.document if isinstance(result, lmgauge.results.Report) else document_of(result)
        assert "step-2" in str(result) + repr(result)
        for name, heading, cell in cells(document):
            if isinstance(cell, doc.Number) and cell.value is not None and math.isfinite(cell.value):
                if PER_TEXT.fullmatch(heading) and name.startswith("step-"):
                    assert isinstance(cell.value, LowerBound), (what, name, heading)
                    seen.add(what)
                assert not (cell.form == "times" and name.startswith("step-")), (what, name, heading)
        for block in document:
            if isinstance(block, doc.Verdict):
                assert not re.search(r"step-\d[^;.]*\b(beats|best)\b", block.text), (what, block.text)
            if isinstance(block, doc.ChartData) and PER_TEXT.fullmatch(block.y_title):
                for row in values(block).rows:
                    if "step-" in (row["series"] + str(row["x"]) + block.rule_name):
                        assert row["y"] is None or row["x"] != "step-2", (what, block.name)
                assert not block.rule_name.startswith("step-"), (what, block.name)
    assert seen >= {"eval", "baseline", "diagnose"}


def test_no_command_says_that_a_bound_beats_anything(texts: Path) -> None:
    runs = texts / "runs"
    commands = [
        ["baseline", texts / "train.txt", texts / "test.txt", "-m", runs / "step-2", "--order", 2, "--character-order", 3],
        ["diagnose", runs / "step-2", "--train", texts / "train.txt"],
        ["eval", "-m", texts / "step-2", texts / "test.txt"],
        ["info", runs / "step-2"],
        ["audit", runs / "step-2"],
    ]
    for command in commands:
        shown = ok(*command).output
        assert not re.search(r"step-2\S* .*(beats|times as many|the best of)", shown), shown
        for line in shown.split("\n"):
            if "step-2" in line and (
                stated := re.search(r"(\S+ )?(\d\.\d+) bits per byte|bits per byte (\S+ )?(\d\.\d+)", line)
            ):
                assert (stated[1] or stated[3] or "").strip() in ("≥", ">="), line


def test_correlations_do_not_rank_bounds(texts: Path) -> None:
    table = [
        {"system": name, "score": 10.0 + i, **lmgauge.evaluate({name: model}, texts=["the cat sat"])[0].to_dict()}
        for i, (name, model) in enumerate([("a", lmgauge.load_model(texts / "step-2"))] * 1)
    ]
    path = texts / "systems.json"
    path.write_text(json.dumps([row | {"bits_per_byte_is_bound": True} for row in table]), encoding="utf-8")
    settings = lmgauge.tasks.CorrelationSettings(x="bits_per_byte", y="score")
    with pytest.raises(lmgauge.LmgaugeError, match="lower bound"):
        lmgauge.tasks.correlate_tables(path, settings=settings)


def test_replacing_the_flag_marks_the_figures(texts: Path) -> None:
    result = lmgauge.evaluate(lmgauge.load_model(texts / "step-2"), texts / "test.txt")
    exact = replace(result, bits_per_byte=1.5, bits_per_byte_is_bound=False, bits_per_word=2.0, bits_per_character=1.0)
    assert not isinstance(exact.bits_per_byte, LowerBound)
    assert isinstance(result.bits_per_byte, LowerBound)
    assert type(result.to_dict()["bits_per_byte"]) is float
    assert "≥" not in str(exact)


@pytest.mark.parametrize("kind", ["bars", "intervals", "line"])
def test_a_chart_has_an_open_triangle_where_only_a_bound_is_known(kind: doc.ChartKind) -> None:
    series = doc.series("kn3", ["word", "number"], [LowerBound(1.5), 2.0], [(1.4, 1.6), (1.9, 2.1)])
    chart = doc.ChartData("a", "A chart", "class", "bits per byte", "bits", (series,), kind=kind, better="lower")
    bound, exact = values(chart).rows
    assert (bound["y"], bound["low"], bound["bound"], bound["what"]) == (None, None, 1.5, "word: at least 1.5 bits per byte")
    assert (exact["y"], exact["low"], "bound" in exact) == (2.0, 1.9, False)
    made = specification(chart)
    (triangles,) = (layer for layer in made["layer"] if layer["mark"].get("shape", "").startswith("triangle"))
    assert [row["x"] for row in triangles["data"]["values"]] == ["word"]
    assert "open triangles" in " ".join(made["title"]["subtitle"])
