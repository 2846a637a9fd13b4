"""What is shown of filtered documents: what became of them, and what they look like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.conftest import HOSTILE, filtered

import lmgauge
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc
from lmgauge.report import page
from lmgauge.report.filtering import blocks
from lmgauge.report.terminal import as_text
from lmgauge.report.tsv_renderer import as_rows


def tables(result: lmgauge.results.FilteredDocuments) -> dict[str, doc.Table]:
    return {block.columns[0].title: block for block in blocks(result) if isinstance(block, doc.Table) and block.rows}


def charts(result: lmgauge.results.FilteredDocuments) -> dict[str, doc.ChartData]:
    return {block.name: block for block in blocks(result) if isinstance(block, doc.ChartData)}


def scored(result: lmgauge.results.FilteredDocuments) -> lmgauge.results.FilteredDocuments:
    return replace(
        result,
        rules=(),
        reasons={},
        stay_documents=result.documents,
        stay_bytes=result.bytes,
        stays=result.scored,
    )


def test_the_answer_comes_first() -> None:
    verdict = blocks(filtered())[0]
    assert isinstance(verdict, doc.Verdict)
    assert verdict.text == "4 of 12 documents stay (33.33 %), with 200 of all 600 bytes (33.33 %)."


def test_nothing_scored_is_said() -> None:
    result = filtered()
    empty = replace(result, documents=0, bytes=0, stay_documents=0, stay_bytes=0, groups=(), reasons={}, examples={})
    assert as_text(blocks(empty)).startswith("No document could be scored.\n")


def test_outcomes_are_counted() -> None:
    table = tables(replace(filtered(), reasons={"too short": 3, "perplexity above": 5}))["outcome"]
    assert [row[0] for row in table.rows] == ["stays", "too short", "perplexity above"]
    assert [cell.value for cell in table.columns[1].cells if isinstance(cell, doc.Number)] == [4, 3, 5]
    assert table.rows[1][2] == doc.Number(0.25, 2, "percent")


def test_bad_records_have_their_own_table() -> None:
    row = tables(filtered())["what is wrong"].rows[0]
    assert row[0] == "no text"
    assert isinstance(row[2], str)
    assert row[2].startswith(HOSTILE[:5])


def test_buckets_have_their_shares_of_what_stays() -> None:
    table = tables(replace(filtered(), buckets={"head": 3, "middle": 0, "tail": 1}))["bucket"]
    assert [row[:2] for row in table.rows] == [
        (name, doc.Number(count, form="count")) for name, count in (("head", 3), ("middle", 0), ("tail", 1))
    ]
    assert table.rows[0][2] == doc.Number(0.75, 2, "percent")


def test_documents_that_are_only_scored_have_no_outcome() -> None:
    result = scored(filtered())
    assert as_text(blocks(result)).startswith("12 documents were scored, of 600 bytes.\n")
    assert not {"outcome", "bucket"} & tables(result).keys()
    assert [one.name for one in charts(result)["perplexity"].series] == ["all documents"]
    assert "groups" not in charts(result)
    assert repr(result).startswith("<FilteredDocuments: 12 documents scored, 600 bytes; 1 records")


def test_the_histogram_has_what_stays_within_all_documents() -> None:
    chart = charts(filtered())["perplexity"]
    before, after = chart.series
    assert before.x == after.x
    assert sum(y or 0 for y in before.y) == 11  # but for the one with an infinite perplexity
    assert sum(y or 0 for y in after.y) == 4
    assert chart.log_x
    assert "1 document with an impossible event" in chart.note


def test_groups_are_in_the_order_of_their_bytes_and_at_most_40() -> None:
    result = filtered(groups=1000)
    largest = max(result.groups, key=lambda group: group.name)
    groups = [replace(group, bytes=10**6) if group is largest else group for group in result.groups]
    table = tables(replace(result, groups=tuple(groups)))[HOSTILE]
    assert len(table.rows) == 40
    assert table.rows[0][0] == largest.name
    assert table.footnotes == ("and 961 more, with fewer bytes: --json has them all",)


def test_documents_without_a_group_are_named() -> None:
    assert "(no group)" in [row[0] for row in tables(filtered())[HOSTILE].rows]


def test_figures_of_the_corpus_are_of_all_its_tokens() -> None:
    result = filtered()
    rows = tables(result)[""].rows
    (sums,) = result.totals.values()
    assert [row[0] for row in rows] == ["all documents", "what stays"]
    assert rows[0][4] == doc.Number(LowerBound(sums.bits_per_byte))
    assert rows[0][5] == doc.Number(sums.perplexity, 2)


@pytest.mark.parametrize("models", [1, 2, 60])
@pytest.mark.parametrize("groups", [1, 1000])
def test_what_is_shown_is_bounded(models: int, groups: int) -> None:
    result = filtered(groups, models)
    assert len(as_text(blocks(result)).splitlines()) < 450
    assert len(page.render(blocks(result), "filtered")) < 800_000


def test_texts_of_documents_are_no_markup_and_drive_nothing() -> None:
    document = blocks(filtered())
    html = page.render(document, "filtered")
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    for shown in (html, as_text(document), as_rows(document)):
        assert not {"\x1b", "\u202e", "\x9b", "\x07"} & set(shown)


def test_a_terminal_has_the_first_examples_and_a_page_all() -> None:
    document = blocks(filtered())
    (gallery,) = (block for block in document if isinstance(block, doc.Gallery))
    assert [quotes.title for quotes in gallery.parts] == ["stays", "perplexity above"]
    assert [len(quotes.items) for quotes in gallery.parts] == [5, 5]
    assert [as_text(document).count(title) for title in ("perplexity above", ", perplexity")] == [2, 2]
    assert page.render(document, "x").count('class="quote"') == 10
    texts = {text for _, text in gallery.parts[0].items}
    assert "(empty)" in texts


def test_documents_judged_by_the_percentiles_of_all_are_counted() -> None:
    assert "4 documents were judged by the percentiles of all documents, as their" in as_text(blocks(filtered()), 200)
    assert "1 document was judged by the percentiles of all documents, as its" in as_text(
        blocks(replace(filtered(), stand_in=1)), 200
    )


def test_files_that_were_complete_before_are_said() -> None:
    assert "1, 1 of them complete before" in as_text(blocks(filtered()))


def test_bits_of_models_that_spell_are_no_lower_bounds(tmp_path: Path) -> None:
    text = lmgauge.Corpus.from_strings(["a b", "a c"] * 3)
    spelled, plain = (lmgauge.train("witten-bell", text, order=2, vocabulary=kind) for kind in ("spelled", "open"))
    (tmp_path / "in.txt").write_text("a b\nx y z\n")
    exact = lmgauge.filter_documents({"s": spelled}, tmp_path / "in.txt", tmp_path / "s.txt", max_perplexity=3)
    bound = lmgauge.filter_documents({"s": plain}, tmp_path / "in.txt", tmp_path / "p.txt", max_perplexity=3)
    assert "|oov:spelled|" in exact.signatures["s"]
    assert exact.totals["s"].unseen == bound.totals["s"].unseen == 3
    assert "≥" not in str(exact)
    assert "≥" in str(bound)


def test_empty_documents_that_stay_are_counted_and_shown_last(tmp_path: Path) -> None:
    model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
    (tmp_path / "in.jsonl").write_text('{"text": ""}\n' * 3 + '{"text": "a b"}\n' + '{"text": ""}\n' * 3, encoding="utf-8")
    result = lmgauge.filter_documents(model, tmp_path / "in.jsonl", tmp_path / "out.jsonl", max_perplexity=100)
    assert (result.stay_documents, result.stay_empty) == (7, 6)
    assert "What stays includes 6 empty documents; --min-bytes 1 drops empty ones." in as_text(blocks(result), 200)
    dropped = lmgauge.filter_documents(model, tmp_path / "in.jsonl", tmp_path / "o.jsonl", max_perplexity=100, min_bytes=1)
    assert (dropped.stay_empty, "--min-bytes" in str(dropped)) == (0, False)
    gallery = next(block for block in blocks(filtered()) if isinstance(block, doc.Gallery))
    assert [text == "(empty)" for _, text in gallery.parts[0].items] == [False, False, False, False, True]
