"""The six verdicts from Python: on small texts, with paths and objects, printed, as dicts, and asked wrongly."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.json_text import to_json

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models over one vocabulary, their runs on a test text, and the texts."""
    folder = tmp_path_factory.mktemp("verdicts")
    lines = (DATA / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()
    for name, part in {"train.txt": lines[:600], "valid.txt": lines[600:700], "test.txt": lines[700:850]}.items():
        (folder / name).write_text("\n".join(part) + "\n", encoding="utf-8")
    for name, kind in {"kn": "kneser-ney", "wb": "witten-bell"}.items():
        lmgauge.train(kind, folder / "train.txt", order=2).save(folder / name)  # type: ignore[arg-type]
        lmgauge.evaluate(folder / name, folder / "test.txt", output=folder / f"run-{name}")
    return folder


VERDICTS: dict[str, Callable[[Path], Any]] = {
    "compare": lambda s: lmgauge.compare([s / "run-kn", s / "run-wb"], train=s / "train.txt"),
    "diagnose": lambda s: lmgauge.diagnose(s / "run-kn", model=s / "kn", train=s / "train.txt", contexts=50),
    "overlap": lambda s: lmgauge.overlap(s / "train.txt", s / "test.txt", n=4),
    "audit": lambda s: lmgauge.audit(s / "kn", s / "test.txt", train=s / "train.txt", contexts=50, compression_bytes=1000),
    "audit_run": lambda s: lmgauge.audit_run(s / "run-kn", train=s / "train.txt"),
    "divergence": lambda s: lmgauge.divergence(s / "kn", s / "wb", s / "test.txt", events=200),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_prints_and_turns_into_json(shop: Path, name: str) -> None:
    found = VERDICTS[name](shop)
    assert str(found).strip()
    assert "object at 0x" not in str(found)
    told = json.loads(to_json(found.to_dict()))
    assert told


def test_a_mixture_is_a_model_like_any_other(shop: Path, tmp_path: Path) -> None:
    mixed = lmgauge.mix([shop / "kn", shop / "wb"], shop / "valid.txt")
    assert sum(mixed.weights) == pytest.approx(1)
    mixed.save(tmp_path / "mixed")
    assert lmgauge.load_model(tmp_path / "mixed").fingerprint == mixed.fingerprint
    best = min(lmgauge.evaluate([shop / "kn", shop / "wb"], shop / "valid.txt"), key=lambda e: e.perplexity)
    assert lmgauge.evaluate(mixed, shop / "valid.txt").perplexity <= best.perplexity
    assert lmgauge.audit(mixed, shop / "test.txt", contexts=20, compression_bytes=500).passed


def test_objects_stand_for_paths(shop: Path) -> None:
    model, text = lmgauge.load_model(shop / "kn"), lmgauge.Corpus.from_files(shop / "test.txt")
    assert lmgauge.divergence(model, shop / "kn", text, events=50).to_dict()["kl_ab_nats"]["value"] == 0
    assert lmgauge.audit(model, text, levels="coverage").perplexity == pytest.approx(
        lmgauge.evaluate(model, text).perplexity, rel=1e-12
    )


def test_one_level_or_section_may_be_a_string(shop: Path) -> None:
    assert {
        check.verdict for check in lmgauge.audit_run(shop / "run-kn", levels="coverage").checks if check.level == "coverage"
    } == {"PASS"}
    assert lmgauge.diagnose(shop / "run-kn", only="baselines").to_dict()["baselines"]


WRONG: dict[str, Callable[[Path], Any]] = {
    "one run": lambda s: lmgauge.compare([s / "run-kn"]),
    "a string for a list of runs": lambda s: lmgauge.compare(str(s / "run-kn")),  # type: ignore[arg-type]
    "fewer than no examples": lambda s: lmgauge.compare([s / "run-kn", s / "run-wb"], examples=-1),
    "a section that is none": lambda s: lmgauge.diagnose(s / "run-kn", only="slice"),
    "a level that is none": lambda s: lmgauge.audit(s / "kn", s / "test.txt", levels="coverag"),
    "a string for a list of models": lambda s: lmgauge.mix(str(s / "kn"), s / "valid.txt"),  # type: ignore[arg-type]
    "no run there": lambda s: lmgauge.diagnose(s / "run-none"),
    "another text": lambda s: lmgauge.compare([s / "run-kn", s / "run-wb"], text=s / "valid.txt"),
    "another model": lambda s: lmgauge.diagnose(s / "run-kn", model=s / "wb"),
    "n-grams of length 0": lambda s: lmgauge.overlap(s / "train.txt", s / "test.txt", n=0),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_one_line(shop: Path, name: str) -> None:
    with pytest.raises(lmgauge.LmgaugeError) as error:
        WRONG[name](shop)
    assert len(str(error.value).splitlines()) == 1
    assert error.value.exit_code == 2


def test_recipes_are_lists_of_runs_by_name() -> None:
    with pytest.raises(lmgauge.base.errors.UsageError, match="recipes are lists of runs by name"):
        lmgauge.compare_recipes({"A": "run-a", "B": "run-b"})


def test_evaluations_are_compared_as_their_run_folders_are(shop: Path, tmp_path: Path) -> None:
    """What wrote no folder is scored again: figures, verdicts and examples are the same to the bit."""
    models, text = {"kn": shop / "kn", "wb": shop / "wb"}, shop / "test.txt"
    expected = lmgauge.compare([shop / "run-kn", shop / "run-wb"]).to_dict()
    assert lmgauge.compare(lmgauge.evaluate(models, text)).to_dict() == expected
    kept = lmgauge.evaluate(models, text, output=tmp_path / "runs")
    assert [item.scores for item in kept] == [tmp_path / "runs" / name for name in models]
    for some in (kept, [kept[0], shop / "run-wb"], pickle.loads(pickle.dumps(kept))):
        assert lmgauge.compare(some).to_dict() == expected


def test_groups_of_evaluations_are_not_compared(shop: Path) -> None:
    results = lmgauge.evaluate([shop / "kn", shop / "wb"], shop / "test.txt", by_group=True)
    assert len(results) == 4
    assert len(lmgauge.compare(results)) == 1


def test_evaluations_of_strings_bring_their_text(shop: Path) -> None:
    results = lmgauge.evaluate([shop / "kn", shop / "wb"], texts=["what is the city", "but the people"] * 3)
    (comparison,) = lmgauge.compare(results)
    assert {one.metric for one in comparison.differences} >= {"perplexity", "bits_per_byte"}


def test_evaluations_without_scores_are_refused(shop: Path) -> None:
    read_once = lmgauge.evaluate([shop / "kn", shop / "wb"], texts=(text for text in ["a b"] * 6))
    unpickled = pickle.loads(pickle.dumps(lmgauge.evaluate([shop / "kn", shop / "wb"], shop / "test.txt")))
    for results in (read_once, unpickled):
        with pytest.raises(lmgauge.LmgaugeError, match=r"has figures only: keep the scores with evaluate\(..., output="):
            lmgauge.compare(results)
    with pytest.raises(lmgauge.LmgaugeError, match="has figures only"):
        lmgauge.diagnose(lmgauge.evaluate(shop / "kn", shop / "test.txt"))  # type: ignore[arg-type]


def test_an_evaluation_of_a_text_that_changed_is_not_compared(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b\n" * 6, encoding="utf-8")
    models = [lmgauge.train("laplace", text, order=order) for order in (1, 2)]
    results = lmgauge.evaluate(models, text)
    text.write_text("a b\n" * 7, encoding="utf-8")
    with pytest.raises(lmgauge.LmgaugeError, match="chang"):
        lmgauge.compare(results)


def test_an_evaluation_keeps_no_network_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = lmgauge.Corpus.from_strings(["a b a", "b a b"] * 3)
    lmgauge.train_neural("rnn", text, output=tmp_path / "rnn", hidden_size=8, epochs=1, batch_size=2)
    network = lmgauge.load_model(tmp_path / "rnn")
    results = lmgauge.evaluate([network, lmgauge.train("laplace", text, order=1)], text)
    (comparison,) = lmgauge.compare(results)
    assert comparison.first == "rnn"
    del network
    gc.collect()
    with pytest.raises(lmgauge.LmgaugeError, match="the network of rnn is not in memory any more"):
        lmgauge.compare(results)
