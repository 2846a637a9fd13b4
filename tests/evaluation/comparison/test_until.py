"""Comparisons until it is decided: equal to the ordinary ones where all is scored, going on, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.comparison import until
from lmgauge.evaluation.comparison.until import Pair, Question, decide
from lmgauge.evaluation.runs import open_run
from lmgauge.numerics.sequential import confidence_sequence
from lmgauge.work.manifest import Notes

WORDS = ["the", "a", "cat", "dog", "cow", "sat", "ran", "slept", "on", "under", "mat", "tree"]


def lines(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, generator.integers(3, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def models() -> list[Any]:
    text, other = (Corpus.from_strings([*lines(2000, seed), " ".join(WORDS)]) for seed in (1, 5))
    return [lmgauge.train("witten-bell", one, order=order) for one, order in ((text, 1), (text, 2), (other, 2))]


def corpus(count: int = 40, seed: int = 2) -> Corpus:
    return Corpus.from_strings(lines(count, seed), documents=[str(i // 2) for i in range(count)])


def test_what_uses_up_the_text_is_the_ordinary_comparison(models: list[Any], tmp_path: Path) -> None:
    text = corpus()
    found = lmgauge.decide(models[1:], text)
    lmgauge.evaluate({"a": models[1], "b": models[2]}, text, output=tmp_path / "runs")
    (usual,) = lmgauge.compare([tmp_path / "runs" / "a", tmp_path / "runs" / "b"], text=text)
    lead = usual.differences[0]
    assert (found.verdict, found.documents, found.total_documents) == ("undecided", 20, 20)
    assert found.difference.metric == lead.metric == "perplexity"
    assert found.difference.difference == pytest.approx(lead.difference, rel=1e-12)
    assert (found.difference.first, found.difference.second) == pytest.approx((lead.first, lead.second), rel=1e-12)
    assert found.p_value == pytest.approx(usual.p_value, rel=1e-9)
    assert found.exact is not None
    assert lead.interval is not None
    assert (found.exact.low, found.exact.high) == pytest.approx((lead.interval.low, lead.interval.high), rel=1e-9)
    assert "documents that were scored" not in str(found)


def test_it_stops_when_it_is_decided_and_the_interval_is_that_of_the_sequence(models: list[Any], tmp_path: Path) -> None:
    notes = Notes(tmp_path / "totals")
    found = decide(Pair(models[:2], ["a", "b"], corpus(400)), notes, margin=None, seed=1)
    notes.close()
    assert found.p_value is None
    assert found.verdict == "second"
    assert "The figures are of the documents that were scored. 'At every look'" in str(found)
    assert 7 <= found.documents < 200
    order = np.random.default_rng(1).permutation(200)[: found.documents]
    totals = np.array([Notes(tmp_path / "totals")[number,] for number in order.tolist()])
    low, high = confidence_sequence(totals[:, 1] - totals[:, 0], totals[:, 2], until.LOOKS)
    assert found.difference.interval is not None
    assert (found.difference.interval.low, found.difference.interval.high) == pytest.approx(
        (np.exp(low[-1]), np.exp(high[-1]))
    )
    assert not low[-1] < 0 < high[-1]


def test_alike_within_a_margin(models: list[Any]) -> None:
    found = lmgauge.decide(models[1:], corpus(400), margin=0.05)
    assert found.verdict == "equal"
    interval = found.difference.interval
    assert interval is not None
    assert 1 / 1.05 < interval.low < 1 < interval.high < 1.05
    assert "the two are alike within 5.00 %" in str(found)


def test_an_interrupted_run_says_what_it_has_and_goes_on(
    models: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, scored = tmp_path / "totals", []
    whole = Question.score

    def _score(self: Any, wanted: Any) -> Iterator[list[int]]:
        if len(scored) == 3:
            raise KeyboardInterrupt
        scored.append(len(wanted))
        yield from whole(self, wanted)

    monkeypatch.setattr(Question, "score", _score)
    stopped = lmgauge.decide(models[1:], corpus(), output=output)
    assert (stopped.verdict, stopped.interrupted, stopped.documents) == ("undecided", True, sum(scored))
    assert "Interrupted after 9 of 20 documents" in str(stopped)
    monkeypatch.setattr(Question, "score", whole)
    again, without = lmgauge.decide(models[1:], corpus(), output=output), lmgauge.decide(models[1:], corpus())
    assert again == without
    with pytest.raises(UsageError, match="of other models or of another text"):
        lmgauge.decide(models[:2], corpus(), output=output)
    of_lines = Corpus.from_strings(lines(40, 2), documents=[str(i) for i in range(40)])
    with pytest.raises(UsageError, match="of other models or of another text"):
        lmgauge.decide(models[1:], of_lines, output=output)


def test_models_of_other_tokens_are_compared_in_bytes(models: list[Any]) -> None:
    characters = lmgauge.train("witten-bell", Corpus.from_strings(lines(60, 1)), order=3, tokenizer="character")
    found = lmgauge.decide([models[1], characters], corpus(200), margin=0.9)
    assert found.difference.metric == "bits_per_byte"
    assert found.verdict != "undecided"
    assert found.documents < 100


def test_a_figure_that_may_not_be_compared_is_refused(models: list[Any]) -> None:
    characters = lmgauge.train("witten-bell", Corpus.from_strings(lines(60, 1)), order=3, tokenizer="character")
    texts = [f"{line} bird" for line in lines(40, 3)]
    with pytest.raises(InputError, match=r"may not be compared .*a lower bound only"):
        lmgauge.decide([models[1], characters], Corpus.from_strings(texts, documents=texts))


def test_texts_that_decide_nothing_are_refused(models: list[Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fewer than 7 documents decide nothing, and the text has 6"):
        lmgauge.decide(models[:2], corpus(12))
    with pytest.raises(UsageError, match="say what they are with --document"):
        lmgauge.decide(models[:2], Corpus.from_strings(lines(20, 1)))
    with pytest.raises(UsageError, match=r"two models .* not 3"):
        lmgauge.decide(models, corpus())
    (tmp_path / "mine.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a file of totals"):
        lmgauge.decide(models[:2], corpus(), output=tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "mine\n"


def test_a_recipe_is_held_against_a_target_by_its_runs(tmp_path: Path) -> None:
    """By the docstring of `numerics.sequential`, over the cross-entropies of the runs, each of size 1."""
    text = Corpus.from_strings(lines(50, 9))
    for seed in range(8):
        model = lmgauge.train("witten-bell", Corpus.from_strings([*lines(60, seed), " ".join(WORDS)]), order=1)
        lmgauge.evaluate(model, text, output=tmp_path / str(seed))
    runs = [tmp_path / str(seed) for seed in range(8)]
    values = np.array([open_run(run).evaluation["cross_entropy"] for run in runs])  # type: ignore[index]
    spread = float(values.std())
    below = lmgauge.decide(runs, target=float(values.mean()) + 4 * spread)
    assert (below.verdict, below.documents, below.unit) == ("second", 8, "runs")
    assert "Decided after 8 runs: the recipe is better." in str(below)
    assert lmgauge.decide(runs, target=float(values.mean()) - 4 * spread).verdict == "first"
    open_still = lmgauge.decide(runs, target=float(values.mean()))
    assert open_still.verdict == "undecided"
    low, high = confidence_sequence(values - values.mean(), np.ones(8), 0.05, 2)
    assert open_still.difference.interval is not None
    assert (open_still.difference.interval.low, open_still.difference.interval.high) == (low.max(), high.min())
    # Two recipes, seed by seed: as if the first half were of one, and the others of a second.
    halves = lmgauge.decide({"one": runs[:4], "two": runs[4:]})
    low, high = confidence_sequence(values[4:] - values[:4], np.ones(4), 0.05, 2)
    assert (halves.first, halves.second, halves.documents, halves.unit) == ("one", "two", 4, "runs")
    assert halves.difference.difference == pytest.approx(values[4:].mean() - values[:4].mean(), rel=1e-12)
    assert halves.verdict == ("first" if low.max() > 0 else "second" if high.min() < 0 else "undecided")
    with pytest.raises(UsageError, match=r"as many runs of each \(there are \[4, 3\]\)"):
        lmgauge.decide({"one": runs[:4], "two": runs[5:]})
