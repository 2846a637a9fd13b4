"""Reports: the page of one run, of two, of many; what a run does not have is said; what is not of it is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError, MissingExtraError, UsageError
from lmgauge.base.json_text import to_json
from lmgauge.evaluation.overview import group_matrix, step_numbers
from lmgauge.report import blocks as doc
from lmgauge.report import page
from lmgauge.report.documents import Report

TEXTS = {name: [f"{a} {b} c {d} {name}" for a in "ab" for b in "cde" for d in "fgh"] for name in ("one", "two", "three")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    for name, lines in TEXTS.items():
        (path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    files = [path / f"{name}.txt" for name in TEXTS]
    for steps, kind in ((500, "laplace"), (1000, "witten-bell"), (2000, "kneser-ney")):
        model = lmgauge.train(kind, files[0], order=2)  # type: ignore[arg-type]
        model.save(path / f"checkpoint-{steps}")
        lmgauge.evaluate(path / f"checkpoint-{steps}", files, output=path / f"run-{steps}")
    lmgauge.evaluate(lmgauge.train("mle", files[0], order=2), files, output=path / "run-mle")
    return path


def of(report: Report, kind: type[Any]) -> list[Any]:
    return [block for block in report.document if isinstance(block, kind)]


def charts(report: Report) -> dict[str, doc.ChartData]:
    return {chart.name: chart for chart in of(report, doc.ChartData)}


def test_one_run(folder: Path) -> None:
    made = lmgauge.report(folder / "run-500", train=folder / "one.txt", segments=4)
    first = made.document[0]
    assert isinstance(first, doc.Verdict)
    evaluation = lmgauge.evaluate(folder / "checkpoint-500", [folder / f"{name}.txt" for name in TEXTS])
    assert f"perplexity of {evaluation.perplexity:,.2f} (95 % interval" in first.text
    assert "lower bound" in first.text
    (passages,) = of(made, doc.Passages)
    assert passages.names == ("checkpoint-500",)
    assert "occurrences" in passages.items[0].spans[0].columns
    cuts = {table.cut for table in of(made, doc.Table)} | {chart.cut for chart in of(made, doc.ChartData)}
    assert {"class", "occurrences in training", "position in the segment (events)"} <= cuts
    for block in (*of(made, doc.Table), *of(made, doc.ChartData)):
        if block.cut and block.cut != "group":
            assert block.cut in passages.cuts
    headings = [heading.text for heading in of(made, doc.Heading)]
    assert len(headings) == len(set(headings))
    assert "segment-scores" in charts(made)
    worst = next(table for table in of(made, doc.Table) if table.title.startswith("segments furthest above"))
    assert set(worst.anchors[:4]) <= {passage.segment for passage in passages.items}


def test_numbers_of_one_run_are_the_diagnosis(folder: Path) -> None:
    plain = lmgauge.report(folder / "run-500", segments=0).to_dict()
    diagnosis = lmgauge.diagnose(folder / "run-500").to_dict()
    assert to_json(plain["diagnoses"][0]) == to_json(diagnosis)
    assert plain["passages"] == []


def test_two_runs(folder: Path) -> None:
    made = lmgauge.report([folder / "run-500", folder / "run-1000"], segments=3)
    (verdict,) = of(made, doc.Verdict)
    assert "checkpoint-1000" in verdict.text
    (passages,) = of(made, doc.Passages)
    assert passages.names == ("checkpoint-500", "checkpoint-1000")
    assert len(passages.items[0].spans) == 2
    reasons = {reason for passage in passages.items for reason in passage.why}
    assert {"worst", "sample"} < reasons
    comparison = lmgauge.compare([folder / "run-500", folder / "run-1000"], examples=3)[0]
    lost = [passage.segment for passage in passages.items if "most lost" in passage.why]
    assert sorted(lost) == sorted(example.segment for example in comparison.segments_lost)
    assert {"group-matrix", "group-differences"} < charts(made).keys()


def test_many_runs_have_a_matrix(folder: Path) -> None:
    made = lmgauge.report([folder / "run-1000", folder / "run-2000", folder / "run-500"], segments=1)
    assert len(of(made, doc.Verdict)) == 1
    matrix = charts(made)["group-matrix"]
    assert [series.name for series in matrix.series] == ["checkpoint-500", "checkpoint-1000", "checkpoint-2000"]
    assert matrix.series[0].x == ("one", "two", "three")
    assert charts(made)["group-differences"].rule == 0.0


def test_three_runs_are_ranked_and_checkpoints_stand_in_the_order_of_their_steps(folder: Path) -> None:
    runs = [folder / f"run-{steps}" for steps in (1000, 2000, 500)]
    made = lmgauge.report(runs, segments=0)
    assert lmgauge.report(runs[::-1], segments=0).document == made.document
    assert made.to_dict()["ranked_by"] == "perplexity"
    in_order = [f"checkpoint-{steps}" for steps in (500, 1000, 2000)]
    table = next(table for table in of(made, doc.Table) if table.columns[0].title == "rank")
    assert list(table.columns[1].cells) == in_order == list(charts(made)["steps"].series[0].names)
    assert charts(made)["difference"].series[0].x == tuple(in_order)
    values = [cell.value for cell in table.columns[2].cells if isinstance(cell, doc.Number)]
    assert [str(sorted(values).index(value) + 1) for value in values] == list(table.columns[0].cells)
    best = in_order[values.index(min(values))]
    assert made.verdicts[0].text.startswith(best)  # type: ignore[union-attr]
    assert table.footnotes[0].startswith(f"The best is {best}, which is not the last step; each difference is from it")
    gaps = {item["second"]: item["differences"][0]["difference"] for item in made.to_dict()["comparisons"]["comparisons"]}
    shown = dict(zip(in_order, table.columns[4].cells, strict=True))
    for name, ratio in gaps.items():
        assert shown[name] == doc.Number(pytest.approx(ratio), 2, "change")


def test_what_cannot_be_ranked_is_not(folder: Path, tmp_path: Path) -> None:
    """An infinite figure has no rank; and where texts differ no model has one."""
    runs = [folder / "run-mle", folder / "run-1000", folder / "run-500"]
    made = lmgauge.report(runs, segments=0)
    table = next(table for table in of(made, doc.Table) if table.columns[0].title == "rank")
    assert list(table.columns[0].cells) == ["1", "2", "–"]
    assert table.columns[-1].cells[2] == doc.Mark("no rank", "unknown")
    assert "has no rank: an event has probability zero." in made.verdicts[0].text  # type: ignore[union-attr]
    lmgauge.evaluate(folder / "checkpoint-2000", folder / "one.txt", output=tmp_path / "run")
    other = lmgauge.report([*runs[1:], tmp_path / "run"], segments=0)
    first = other.verdicts[0]
    assert isinstance(first, doc.Verdict)
    assert (first.level, first.text[:40]) == ("unknown", "These 3 models cannot be ranked: no figu")
    assert len(other.verdicts) == 3
    assert other.to_dict()["runs"][:2] == ["checkpoint-500", "checkpoint-1000"]  # by step


def test_a_page_says_what_it_is_made_of(folder: Path) -> None:
    runs = [folder / "run-500", folder / "run-1000"]
    made = lmgauge.report(runs, segments=0, train=folder / "one.txt")
    about = dict(made.about)
    assert about["test text"] == "one.txt, two.txt, three.txt: 54 segments, 684 bytes"
    assert about["training text"] == "one.txt"
    assert about["command"] == f"lmgauge report {runs[0]} {runs[1]} --train {folder / 'one.txt'}"


def test_the_matrix_is_made_of_what_was_worked_out_already(folder: Path) -> None:
    runs = [folder / f"run-{steps}" for steps in (500, 1000, 2000)]
    diagnoses, compared = [lmgauge.diagnose(run, only="slices") for run in runs], lmgauge.compare(runs)
    found = group_matrix(diagnoses, compared)
    assert found is not None
    groups = next(slices for slices in diagnoses[1].slices if slices.name == "group")
    assert found.bits(1) == [row.bits_per_unit[0] for row in groups.rows]
    assert found.mean_bits(1) == pytest.approx(sum(row.bits_per_unit[0] or 0.0 for row in groups.rows) / 3)
    gaps = next(slices for slices in compared[0].slices if slices.name == "group")
    assert [row.difference for row in found.paired[1].values()] == [row.difference for row in gaps.rows]
    assert found.p_values(1) == [row.p_value_holm and min(1.0, 2 * row.p_value_holm) for row in gaps.rows]
    assert all(row.difference is None for row in found.paired[0].values())
    assert group_matrix([lmgauge.diagnose(runs[0], only="tokens")], None) is None


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["checkpoint-500", "checkpoint-1000"], [500, 1000]),
        (["a1-epoch2", "a1-epoch3"], [2, 3]),
        (["a1-epoch2", "a2-epoch3"], []),
        (["a1", "b1"], []),
        (["a", "a"], []),
        (["1", "1 2"], []),
    ],
)
def test_steps_are_the_one_number_by_which_names_differ(names: list[str], numbers: list[int]) -> None:
    assert step_numbers(names) == numbers


def test_impossible_events(folder: Path) -> None:
    made = lmgauge.report(folder / "run-mle", segments=2)
    assert made.verdicts[0].level == "bad"  # type: ignore[union-attr]
    assert "probability zero" in made.verdicts[0].text  # type: ignore[union-attr]
    assert lmgauge.report([folder / "run-500", folder / "run-mle"], segments=2).verdicts


def test_a_run_without_its_text_says_so(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "gone.txt"
    text.write_text("a c c f\nb d c g\n", encoding="utf-8")
    lmgauge.evaluate(folder / "checkpoint-500", text, output=tmp_path / "run")
    text.unlink()
    made = lmgauge.report(tmp_path / "run")
    assert of(made, doc.Passages) == []
    assert any("text is not available" in block.text for block in of(made, doc.Text))
    table = tmp_path / "bare.jsonl"
    table.write_text("".join(f'{{"segment": {i}, "logprob": -{i + 1}.5}}\n' for i in range(3)), encoding="utf-8")
    assert isinstance(lmgauge.report(table).document[0], doc.Verdict)


def test_two_texts_are_not_laid_side_by_side(folder: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(folder / "checkpoint-1000", folder / "one.txt", output=tmp_path / "run")
    made = lmgauge.report([folder / "run-500", tmp_path / "run"], segments=2)
    assert "Not comparable" in made.verdicts[0].text  # type: ignore[union-attr]
    (passages,) = of(made, doc.Passages)
    assert passages.names == ("checkpoint-500",)


def test_an_audit_is_shown_with_its_own_run_only(folder: Path, tmp_path: Path) -> None:
    audit = lmgauge.audit(folder / "checkpoint-500", run=folder / "run-500", contexts=5, compression_bytes=100)
    file = tmp_path / "audit.json"
    file.write_text(to_json(audit.to_dict()), encoding="utf-8")
    for given in (audit, file, lmgauge.audit_run(folder / "run-500")):
        made = lmgauge.report(folder / "run-500", audit=given, segments=0)
        (ladder,) = of(made, doc.Ladder)
        assert ladder.rungs[0].name == "coverage"
        assert any(block.text.startswith("Audit: PASS") for block in of(made, doc.Verdict))
    with pytest.raises(InputError, match=r"the audit is not of .*run-1000: its model has fingerprint"):
        lmgauge.report(folder / "run-1000", audit=file)
    plain = json.loads(file.read_text(encoding="utf-8"))
    del plain["settings"]["fingerprints"]
    file.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(InputError, match="audit again"):
        lmgauge.report(folder / "run-500", audit=file)
    for content in ("{}", "[", "[1]", '{"model": "x", "checks": [{"level": 1}]}'):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="audit"):
            lmgauge.report(folder / "run-500", audit=file)


def test_a_run_that_was_changed_is_refused(folder: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(folder / "checkpoint-500", folder / "one.txt", output=tmp_path / "run")
    file = tmp_path / "run" / "evaluation.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"perplexity": ', '"perplexity": 1'), encoding="utf-8")
    with pytest.raises(InputError, match="was changed"):
        lmgauge.report(tmp_path / "run")


def test_what_is_not_a_run_is_refused(folder: Path) -> None:
    run = folder / "run-500"
    for wrong in ([], [run, run], 3, [run, 3], [run, lmgauge.calc([0.5])]):
        with pytest.raises(UsageError):
            lmgauge.report(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="one run"):
        lmgauge.report([run, folder / "run-1000"], model=folder / "checkpoint-500")
    with pytest.raises(UsageError):
        lmgauge.report(run, run)
    for wrong_number in ({"segments": 61}, {"segments": -1}, {"seed": -1}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong_number))} must be a whole number"):
            lmgauge.report(run, **wrong_number)
    with pytest.raises(UsageError, match="only goes with one run"):
        lmgauge.report([run, folder / "run-1000"], only="slices")
    with pytest.raises(InputError, match="curves"):
        lmgauge.report(folder / "checkpoint-500")


def test_results_have_a_report_too(folder: Path) -> None:
    made = lmgauge.report([lmgauge.calc([0.5, 0.25]), lmgauge.diagnose(folder / "run-500", only="slices")])
    assert made.title == "CalcResult, Diagnosis"
    assert len(made.to_dict()["results"]) == 2


def test_a_training_has_its_curves(tmp_path: Path) -> None:
    history = [{"epoch": i, "perplexity": 90.0 / i, "learning_rate": 0.1} for i in (1, 2, 3)]
    (tmp_path / "config.json").write_text(json.dumps({"lmgauge": {"training": {"history": history}}}), encoding="utf-8")
    made = lmgauge.report(tmp_path)
    assert of(made, doc.ChartData)
    assert made.to_dict() == {"history": history}


def test_the_function_stays_the_function() -> None:
    from lmgauge.report import terminal

    assert callable(lmgauge.report)
    assert terminal.__name__ == "lmgauge.report.terminal"


def test_a_page_is_written_whole(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    file = tmp_path / "report.html"
    made = lmgauge.report(folder / "run-500", file, segments=2, title="a <title>")
    html = file.read_text(encoding="utf-8")
    assert html == made.html()
    assert "a &lt;title&gt;" in html
    assert file.stat().st_size < 1_000_000


def test_without_the_extra_its_name_is_said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for part in vars(page).values():
        if hasattr(part, "cache_clear"):
            part.cache_clear()
    with pytest.raises(MissingExtraError, match=r"lmgauge\[report\]"):
        lmgauge.report(folder / "run-500", tmp_path / "report.html", segments=0)
    assert list(tmp_path.iterdir()) == []
