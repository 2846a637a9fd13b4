"""Divergence until it is decided: equal to the ordinary one where all is compared, going on, and refusals."""

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
from lmgauge.evaluation.divergence.divergence import Nearness
from lmgauge.numerics.sequential import confidence_sequence
from lmgauge.work.manifest import Notes

WORDS = ["the", "a", "cat", "dog", "cow", "sat", "ran", "slept", "on", "under", "mat", "tree"]


def lines(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, generator.integers(3, 12))) for _ in range(count)]


def corpus(count: int = 40) -> Corpus:
    return Corpus.from_strings(lines(count, 2), documents=[str(i // 2) for i in range(count)])


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    text = Corpus.from_strings([*lines(300, 1), " ".join(WORDS)])
    each = {"base": lmgauge.train("witten-bell", text, order=3), "near": lmgauge.train("witten-bell", text, order=2)}
    return each | {"far": lmgauge.train("laplace", text, order=1), "mle": lmgauge.train("mle", text, order=2)}


def test_what_uses_up_the_text_is_the_ordinary_divergence(
    models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven documents and a limit at their mean nothing is decided; the totals that are kept decide on another limit."""
    base, near, kept = models["base"], models["near"], tmp_path / "totals"
    usual = lmgauge.divergence(base, near, corpus(14), events=None).kl_ab_nats
    assert usual.value is not None
    assert usual.interval is not None
    limit = usual.value + 1e-6
    decision = lmgauge.divergence(base, near, corpus(14), until="decided", margin=limit, output=kept)
    assert (decision.verdict, decision.documents, decision.base) == ("undecided", 7, base.label)
    assert decision.difference.second == pytest.approx(usual.value, rel=1e-9)
    assert decision.exact is not None
    assert (decision.exact.low + limit, decision.exact.high + limit) == pytest.approx(
        (usual.interval.low, usual.interval.high), rel=1e-9
    )
    monkeypatch.setattr(Nearness, "batches", None)
    other = lmgauge.divergence(base, near, corpus(14), until="decided", margin=9, output=kept)
    assert (other.verdict, other.first) == ("second", "9 nats")
    assert "is nearer to wb3 than 9 nats" in str(other)


def test_of_two_candidates_the_nearer_one_is_named(models: dict[str, Any], tmp_path: Path) -> None:
    """By the totals that it notes, which are the sums of the ordinary divergence."""
    base, two, kept = models["base"], {name: models[name] for name in ("near", "far")}, tmp_path / "totals"
    decision = lmgauge.divergence(base, two, corpus(), until="decided", seed=1, output=kept)
    assert (decision.verdict, decision.first, decision.second, decision.margin) == ("first", "near", "far", None)
    assert decision.documents < decision.total_documents == 20
    notes = Notes(kept)
    totals = np.array([notes[number,] for number in np.random.default_rng(1).permutation(20)[: decision.documents].tolist()])
    low, high = confidence_sequence(totals[:, 1] - totals[:, 0], totals[:, 2], until.LOOKS)
    assert decision.difference.interval is not None
    assert (decision.difference.interval.low, decision.difference.interval.high) == (low[-1], high[-1])
    assert "far is further from wb3 than near" in str(decision)
    with pytest.raises(UsageError, match="of other models or of another text"):
        lmgauge.decide([base, models["near"]], corpus(), output=kept)
    alike = lmgauge.divergence(base, two, corpus(), until="decided", margin=9)
    assert alike.verdict == "first"  # known sooner than that they are alike within nine nats


def test_an_interrupted_one_says_what_it_has_and_goes_on(
    models: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored, whole = [], Nearness.batches
    mean = lmgauge.divergence(models["base"], models["far"], corpus(), events=None).kl_ab_nats.value
    options: dict[str, Any] = {"until": "decided", "margin": mean, "output": tmp_path / "totals"}

    def batches(self: Any, text: Corpus) -> Iterator[Any]:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(text)
        yield from whole(self, text)

    monkeypatch.setattr(Nearness, "batches", batches)
    stopped = lmgauge.divergence(models["base"], models["far"], corpus(), **options)
    assert (stopped.verdict, stopped.interrupted, stopped.documents) == ("undecided", True, 8)
    monkeypatch.setattr(Nearness, "batches", whole)
    again = lmgauge.divergence(models["base"], models["far"], corpus(), **options)
    assert again == lmgauge.divergence(models["base"], models["far"], corpus(), **options | {"output": None})
    assert again.documents > 8


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        (["near"], {}, "one candidate needs a limit"),
        (["near", "far", "mle"], {}, "there are 3 candidates"),
        (["near", "far"], {"until": None, "margin": 1.0}, "add --until decided"),
        (["near", "far"], {"exhaustive": True}, "exhaustive does not go with until decided"),
        (["near", "far"], {"train": corpus()}, "train does not go with until decided"),
        (["near", "far"], {"text": corpus(12)}, "fewer than 7 documents decide nothing, and the text has 6"),
        (["near", "far"], {"text": Corpus.from_strings(lines(20, 1))}, "say what they are with --document"),
        (["near", "mle"], {}, "rules out what the base holds possible"),
    ],
)
def test_what_decides_nothing_is_refused(
    models: dict[str, Any], candidates: list[str], options: dict[str, Any], message: str
) -> None:
    chosen = {"text": corpus(), "until": "decided"} | options
    with pytest.raises((InputError, UsageError), match=message):
        lmgauge.divergence(models["base"], [models[name] for name in candidates], **chosen)


def test_a_stored_base_is_refused(models: dict[str, Any], tmp_path: Path) -> None:
    lmgauge.save_base(models["base"], corpus(), tmp_path / "base.parquet")
    with pytest.raises(UsageError, match="takes documents at random: name the model itself"):
        lmgauge.divergence(tmp_path / "base.parquet", models["near"], corpus(), until="decided", margin=1.0)
