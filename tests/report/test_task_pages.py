"""Pages of systems scored on a task."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser import Opened

from lmgauge.report import blocks as doc
from lmgauge.report.page import render
from lmgauge.report.task_pages import page, verdict
from lmgauge.tasks import CER, WER, ChrF, ComparisonSettings, score_systems
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.segment_examples import SegmentChooser

REFERENCES = ["the cat sat on the mat", "a dog ran", "שלום עולם יפה", "今日は 天気が いい", "yes"] * 12
SYSTEMS = {
    "good": REFERENCES,
    "bad": [text.replace("cat", "hat").replace("a ", "").replace("עולם", "לך עולם") for text in REFERENCES],
}


def made(metric: TaskMetric, systems: dict[str, list[str]] = SYSTEMS) -> doc.Document:
    """The page of systems."""
    chooser = SegmentChooser(metric, 4)
    settings = ComparisonSettings()
    result = score_systems(metric, hypotheses=systems, references=REFERENCES, settings=settings, chooser=chooser)
    return page(result, chooser.examples(result.best.system))


def test_the_verdict_says_who_is_best_and_how_sure_that_is() -> None:
    settings = ComparisonSettings()
    systems = score_systems(WER(), hypotheses=SYSTEMS, references=REFERENCES, settings=settings)
    said = verdict(systems)
    assert said.level == "good"
    assert said.text.startswith(
        "good has the lower WER of the two systems: 0.00 % (95 % interval 0.00 – 0.00) on 60 segments."
    )
    assert "The next best, bad, differs from it by +" in said.text
    assert "60 segments are taken as independent" in said.text
    swapped = dict(reversed(SYSTEMS.items()))
    systems = score_systems(ChrF(), hypotheses=swapped, references=REFERENCES, settings=settings)
    assert "It differs from bad by +" in verdict(systems).text
    alone = score_systems(WER(), hypotheses=REFERENCES, references=REFERENCES, significance="none")
    assert verdict(alone) == doc.Verdict("fact", "system has a WER of 0.00 % on 60 segments.")


def test_what_errors_are_made_of() -> None:
    charts = {block.name: block for block in made(WER()) if isinstance(block, doc.ChartData)}
    names = [series.name for series in charts["errors"].series]
    assert names == ["substitutions", "deletions", "insertions"]
    words = sum(len(text.split()) for text in REFERENCES)
    assert charts["errors"].series[0].y == (0.0, 100 * 12 / words)
    assert sum(count or 0 for count in charts["segment-scores"].series[1].y) == 60
    assert "errors" not in {block.name for block in made(ChrF()) if isinstance(block, doc.ChartData)}


def test_of_many_systems_a_histogram_shows_the_first_and_the_best() -> None:
    systems = dict.fromkeys("abcdefgh", SYSTEMS["bad"]) | {"best": REFERENCES}
    document = made(WER(), systems)
    histogram = next(block for block in document if isinstance(block, doc.ChartData) and block.kind == "histogram")
    assert [series.name for series in histogram.series] == ["a", "best"]
    tables = [block.title for block in document if isinstance(block, doc.Table) and block.title.startswith("Most")]
    assert len(tables) == 5  # `best` has no error
    assert tables[0] == "Most frequent errors of a"


def test_pages_in_a_browser(opens: Callable[..., Opened]) -> None:
    for metric, width, dark in ((WER(), 1280, False), (CER(), 320, True), (ChrF(), 400, False)):
        opened = opens(render(made(metric), "Systems"), width=width, dark=dark)
        assert opened.complaints == []
        assert opened.violations() == []
        assert not opened.is_wider_than_its_window()


def test_alignments_in_a_browser(opens: Callable[..., Opened]) -> None:
    shown = opens(render(made(WER()), "Systems"), fragment="#s1").page
    article = shown.locator("#s1")
    assert article.locator("section").count() == 2
    assert article.locator(".pair.substituted").first.inner_text().split() == ["substituted:", "cat", "hat"]
    hebrew = shown.locator(".aligned[dir=rtl]").first.locator(".pair")
    assert hebrew.nth(0).bounding_box()["x"] > hebrew.nth(1).bounding_box()["x"]
    everything = shown.locator("article:visible").count()
    shown.locator("[data-control=why]").select_option("sample")
    assert 0 < shown.locator("article:visible").count() < everything
    shown.locator("[data-control=clear]").click()
    shown.locator("[data-control=text]").fill("hat")
    assert shown.locator("article:visible").count() == 1
    assert shown.locator("output").inner_text() == f"1 of {everything} segments"
