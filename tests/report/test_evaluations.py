"""The table of evaluations: columns that go on narrow terminals, and what is said below it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import lmgauge
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.evaluation.results import Evaluation
from lmgauge.report.evaluations import blocks, footnotes
from lmgauge.report.terminal import as_text
from lmgauge.text.documents import Corpus

HOSTILE = "a\x1b[31m\u202e\n[bold]b\t" + "long" * 50


@pytest.fixture(scope="module")
def result() -> Evaluation:
    corpus = Corpus.from_strings(["the cat", "the dog"] * 3)
    one: Evaluation = evaluate([lmgauge.train("witten-bell", corpus, order=2)], corpus)[0]
    return one


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_columns_that_do_not_fit_are_named_and_the_perplexity_stays(result: Evaluation, width: int) -> None:
    shown = as_text(blocks([result]), width)
    head = shown.splitlines()[0]
    table, _, note = shown.split("\n\n")[0].partition("not shown at this width: ")
    columns = ("95 % interval", "nats/event", "bits/word", "bits/char", "bits/byte", "OOV", "events")
    assert [name for name in columns if (name in head) == (name in note.replace("\n", " "))] == []
    assert f"{result.perplexity:.2f}" in table
    assert "…" not in table
    assert max(map(len, table.splitlines())) <= width
    assert (note == "") == (width == 120)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_hostile_names_stay_in_their_cells(result: Evaluation, width: int) -> None:
    shown = as_text(blocks([replace(result, model=HOSTILE, group=HOSTILE), result]), width)
    assert not set("\x1b\u202e\t") & set(shown)
    assert f"{result.perplexity:.2f}" in shown
    lines = shown.split("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= max(width, 45)
    assert "[bold]" in as_text(blocks([replace(result, model="[bold]b")]))


def test_infinite_figures_are_signs_and_counted(result: Evaluation) -> None:
    zeros = replace(
        result,
        perplexity=math.inf,
        cross_entropy=math.inf,
        bits_per_byte=math.inf,
        bits_per_byte_is_bound=True,
        zero_probability_events=2,
        perplexity_without_zeros=3.5,
        first_zero_probability_events=[lmgauge.evaluation.event_sums.ZeroEvent(1, 2, "x")],
    )
    shown = as_text(blocks([zeros]), 240)
    row = shown.splitlines()[2]
    assert row.split()[1:3] == ["∞", "–"]
    assert "≥ ∞" not in row
    assert row.split()[-2:] == ["2", "3.50"]
    assert "2 events have probability zero, first 'x', event 3 of segment 2" in shown.replace("\n", " ")


def test_a_signature_is_one_line_and_said_once(result: Evaluation) -> None:
    lines = as_text(blocks([result, replace(result, group="g")]), 40).splitlines()
    assert lines.count(result.signature) == 1
    assert lines[-1] == result.signature


def test_the_reasons_of_bounds_are_said_once(result: Evaluation) -> None:
    bound = replace(result, bits_per_byte_is_bound=True, bound_reasons=["one thing", "another"])
    notes = list(footnotes([result, bound, replace(bound, group="g")]))
    assert notes[0] == "≥ is a lower bound: one thing and another."


def test_where_no_figure_shows_a_bound_none_is_explained(result: Evaluation) -> None:
    infinite = replace(result, bits_per_byte=math.inf, bits_per_byte_is_bound=True, bound_reasons=["one thing"])
    zeros = [lmgauge.evaluation.event_sums.ZeroEvent(1, 2, "x")]
    infinite = replace(infinite, zero_probability_events=1, first_zero_probability_events=zeros)
    assert not any("lower bound" in note for note in footnotes([infinite]))
    assert any("lower bound" in note for note in footnotes([infinite, replace(infinite, zero_probability_events=0)]))


def test_notes_that_differ_in_shares_are_one_note(result: Evaluation) -> None:
    notes = {"a": "of 8 words 7.7 % take 16.4 % of the bits", "b": "of 8 words 7.7 % take 9.1 % of the bits"}
    results = [replace(result, model=name, notes=(note,), interval=None) for name, note in notes.items()]
    assert "of 8 words 7.7 % take 9.1 to 16.4 % of the bits" in list(footnotes(results))
    assert "a: of 8 words 7.7 % take 16.4 % of the bits" in list(
        footnotes([results[0], replace(results[0], model="c", notes=())])
    )


def test_a_note_names_its_models_where_it_is_not_about_all(result: Evaluation) -> None:
    first, second = (replace(result, model=name, notes=["of all"]) for name in ("a", "b"))
    second = replace(second, notes=["of all", "of one"])
    notes = list(footnotes([first, second]))
    assert "of all" in notes
    assert "b: of one" in notes
    assert "of one" in list(footnotes([second, replace(second, group="g", notes=[])]))


def test_where_two_models_differ_in_their_intervals_each_sentence_names_its_model(result: Evaluation) -> None:
    assert result.interval is not None
    independent = replace(result, model="a", independence="as they come")
    alike = replace(result, model="b", independence="alike", interval=replace(result.interval, alike=1.5))
    both = [note for note in footnotes([independent, alike]) if note.startswith("95 %")]
    assert both == ["95 % interval of a: as they come.", "95 % interval of b: alike."]
    assert [note for note in footnotes([alike, alike]) if note.startswith("95 %")] == ["95 % interval: alike."]


def test_where_nothing_is_known_of_an_interval_nothing_is_said(result: Evaluation) -> None:
    infinite = replace(result, model="mle", independence="")
    assert not any(note.startswith("95 %") for note in footnotes([infinite]))


@pytest.mark.parametrize(
    ("tokenizer", "cure"), [("character", "--vocabulary spelled"), ("byte", "--words of all bytes, <0x00> to <0xFF>")]
)
def test_a_bound_by_few_unseen_events_is_not_called_none_and_has_its_cure(tokenizer: str, cure: str) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(["abc"]), order=2, tokenizer=tokenizer)
    (found,) = evaluate([model], Corpus.from_strings(["abcabc" * 5000, "d"]))
    assert found.bits_per_byte_is_bound
    shown = as_text(blocks([found]), 200)
    assert "< 0.01 %" in shown
    assert f"(for exact bits, train with {cure})." in " ".join(shown.split())
