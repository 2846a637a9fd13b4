"""Outputs of systems as articles of a page: short, safe, in the direction of their script."""

from __future__ import annotations

from lmgauge.report import blocks as doc
from lmgauge.report.output_articles import articles, direction
from lmgauge.report.page import render
from lmgauge.tasks.alignment import Unit, align
from lmgauge.tasks.segment_examples import Output, ShownSegment


def block(reference: str, *outputs: str, unit: Unit = "word", aligned: bool = True, times: int = 1) -> doc.Outputs:
    """A block of a segment that is there some times."""
    made = tuple(Output(f"s{i}", 0.5, align(reference, text, unit)) for i, text in enumerate(outputs))
    items = tuple(ShownSegment(i, "", ("worst",), (reference,), made) for i in range(times))
    return doc.Outputs(items, "WER", aligned, True)


def test_operations_and_counts() -> None:
    (article,) = articles(block("a b c", "a x c d"))
    (output,) = article["outputs"]
    assert output["pieces"] == [("", "a", "a"), ("substituted", "b", "x"), ("", "c", "c"), ("inserted", "", "d")]
    assert output["figures"] == "WER 50.0 % · 1 substituted, 1 inserted"
    assert not article["is_cut"]


def test_equal_characters_stand_together() -> None:
    (article,) = articles(block("one two", "one twx", unit="character"))
    assert article["outputs"][0]["pieces"] == [("", "one ", "one "), ("", "tw", "tw"), ("substituted", "o", "x")]


def test_texts_below_each_other() -> None:
    (article,) = articles(block("the cat sat", "the dog sat", "a cat", aligned=False))
    assert article["references"] == ["the cat sat"]
    assert [output["pieces"] for output in article["outputs"]] == [
        [("", "the"), ("other", "dog"), ("", "sat")],
        [("other", "a"), ("", "cat")],
    ]


def test_hostile_text_is_shown_as_text() -> None:
    for aligned in (True, False):
        page = render(
            (block("<script>alert(1)</script> \x1b[2J", "<img src=x onerror=alert(1)> \u202e", aligned=aligned),), "t"
        )
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page


def test_long_texts_are_cut_and_that_is_said() -> None:
    long = " ".join(f"<word{i}>" for i in range(1500))
    for aligned in (True, False):
        shown = block(long, long[::-1], *[long] * 5, aligned=aligned, times=150)
        assert all(article["is_cut"] for article in articles(shown))
        page = render((shown,), "t")
        assert len(page.encode()) < 1_900_000
        assert ("A part of the segment." in page) == aligned


def test_direction() -> None:
    assert direction("«42» שלום abc") == "rtl"
    assert direction("") == direction("42") == direction("日本 א") == "ltr"
