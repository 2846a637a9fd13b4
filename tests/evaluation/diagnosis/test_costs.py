"""Where the bits of a model go that spells unseen words."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.diagnosis.costs import ENDS, KNOWN, LETTERS, SPACE, UNSEEN, spelling_costs
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import SPELLED, TOKEN, example_batch

TRAIN = ["the cat sat on the mat", "a dog  ran to the cat", "the dog sat", "zebras ran quickly"] * 2
TEXT = ["the quokka  sat on a mat", "dogs ran\t", "", "the quokka and aardvarks", "x the cat"]


@pytest.fixture(scope="module")
def model() -> lmgauge.models.SpelledModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=2, min_count=3, vocabulary="spelled")


def test_the_parts_are_all_of_the_bits(model: lmgauge.models.SpelledModel) -> None:
    (batch,) = model.score(Corpus.from_strings(TEXT))
    costs = spelling_costs(EventSums.of(batch))
    assert costs is not None
    parts = {part.part: part for part in costs.parts}
    assert list(parts) == [KNOWN, UNSEEN, LETTERS, SPACE, ENDS]
    assert math.fsum(part.bits for part in costs.parts) == pytest.approx(nats_to_bits(-math.fsum(batch.logprob)), rel=1e-12)
    assert math.fsum(part.share for part in costs.parts) == pytest.approx(1.0)
    event = nats_to_bits(-batch.event_logprob())
    assert parts[KNOWN].bits == pytest.approx(event[batch.kind == TOKEN].sum())
    assert parts[UNSEEN].bits == pytest.approx(event[batch.kind == SPELLED].sum())
    assert parts[LETTERS].events == parts[UNSEEN].events == np.count_nonzero(batch.kind == SPELLED)


def test_a_table_without_spelling_says_nothing() -> None:
    assert spelling_costs(EventSums.of(example_batch())) is None


def test_a_diagnosis_shows_it_everywhere(model: lmgauge.models.SpelledModel, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8", newline="\n")
    lmgauge.evaluate(model, path, output=tmp_path / "run")
    result = lmgauge.diagnose(tmp_path / "run", model=model, text=path, only=["unseen", "slices", "calibration"])
    shown = str(result)
    for words in ("where the bits go", "unseen words: their letters", "white space between words", "quokka"):
        assert words in shown
    assert "unseen words: their letters" in result._repr_html_()
    assert result.to_dict()["spelling"]["parts"][0]["part"] == "known"
    kinds = next(slices for slices in result.slices if slices.name == "kind of event")
    assert "unseen word (spelled)" in [row.label for row in kinds.rows]
    assert result.unseen_words[0].word == "quokka"
    (batch,) = model.score(Corpus.from_strings(TEXT))
    assert result.calibration.mean_surprisal_bits == pytest.approx(nats_to_bits(-batch.event_logprob().mean()))


def test_a_model_of_characters_shows_what_its_unseen_ones_cost(tmp_path: Path) -> None:
    text = Corpus.from_strings(TRAIN)
    model = lmgauge.train("witten-bell", text, order=3, tokenizer="character", vocabulary="spelled")
    path = tmp_path / "text.txt"
    path.write_text("the \u00e9t\u00e9\n", encoding="utf-8", newline="\n")
    lmgauge.evaluate(model, path, output=tmp_path / "run")
    result = lmgauge.diagnose(tmp_path / "run", text=path, only=["unseen"])
    assert [part.part for part in result.spelling.parts] == [KNOWN, UNSEEN, LETTERS, ENDS]
    assert "unseen characters: which it is" in str(result)
