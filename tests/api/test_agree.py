"""`lmgauge.agree` of models, servers and runs: what is scored, and where the floor is from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.models.network.server.toy_server import ToyServer

import lmgauge
from lmgauge.base.errors import UsageError

LINES = ["the cat sat on a mat", "a bird sat", "the dog and the cat", "on a mat sat the dog", "a mat", "the cat", "a dog"]


@pytest.fixture
def text() -> lmgauge.Corpus:
    return lmgauge.Corpus.from_strings(LINES)


def test_models_score_the_text_and_the_first_once_more(text: lmgauge.Corpus) -> None:
    one, two = (lmgauge.train("witten-bell", text, order=order) for order in (2, 3))
    made = lmgauge.agree(one, two, text=text)
    assert (made.first, made.second) == ("wb2", "wb3")
    assert made.floor is not None
    assert made.floor.largest.value == 0.0  # n-gram models give the same bits in any order
    assert made.floor_from == "wb2 again, segment by segment, from the last segment to the first"
    assert made.beyond is True
    runs = [lmgauge.evaluate(model, text) for model in (one, two)]
    assert lmgauge.agree(*runs).figures == made.figures
    assert lmgauge.agree(*runs, floor=one).floor == made.floor


def test_a_model_reads_the_text_of_the_run_beside_it(text: lmgauge.Corpus, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    model = lmgauge.train("witten-bell", text)
    lmgauge.evaluate(model, tmp_path / "test.txt", output=tmp_path / "run")
    assert lmgauge.agree(tmp_path / "run", model).figures.largest.value == 0.0
    assert lmgauge.agree(model, tmp_path / "run", document="segment").beyond is False
    with pytest.raises(UsageError, match=r"unit: the text is read as the runs read it"):
        lmgauge.agree(tmp_path / "run", model, unit="document")


def test_a_server_is_asked_again_in_another_order() -> None:
    with ToyServer().running() as toy:
        made = lmgauge.agree(toy.url, toy.url, text=lmgauge.Corpus.from_strings(LINES))
    assert made.beyond is False
    assert made.floor is not None
    assert made.floor.largest.value == 0.0
    assert "from the last segment to the first" in made.floor_from


def test_a_series_keeps_names_and_order(text: lmgauge.Corpus) -> None:
    one, two, three = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2, 3))
    series = lmgauge.agree_series({"b": (one, two), "a": (two, three, two)}, text=text)
    assert [pair.label for pair in series] == ["b", "a"]
    assert {row["label"] for row in series.to_rows()} == {"a", "b"}
    assert len(series.to_rows()) == 22
    assert "Beyond their noise floor: b and a." in str(series)


@pytest.mark.parametrize("band", [(1.1, 0.9), (0.0, 1.1), (1.2, 1.5), 0.9])
def test_impossible_bands_are_refused(band: object, text: lmgauge.Corpus) -> None:
    model = lmgauge.train("witten-bell", text)
    with pytest.raises(UsageError, match="band must be two ratios around 1"):
        lmgauge.agree(model, model, text=text, band=band)


def test_what_is_missing_is_said(text: lmgauge.Corpus) -> None:
    model = lmgauge.train("witten-bell", text)
    with pytest.raises(UsageError, match="is a model, and needs a text to score"):
        lmgauge.agree(model, model)
    for pairs in ({}, {"1": (model,)}, {"1": "ab"}):
        with pytest.raises(UsageError, match="pair"):
            lmgauge.agree_series(pairs, text=text)
