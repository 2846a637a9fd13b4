"""Recipes through several runs of each: against the formulas by hand, a simulation of seeds, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.cli.commands import ok, refused
from tests.reference import statistics as twin

import lmgauge
from lmgauge.evaluation.comparison.recipes import _with_seeds
from lmgauge.numerics.intervals import spread

WORDS = ["a", "b", "c", "d", "e", "f"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs a0, a1, a2 (bigrams) and b0, b1 (trigrams), each on another sample of one text, over one vocabulary."""
    folder = tmp_path_factory.mktemp("recipes")
    generator = np.random.default_rng(1)
    lines = [" ".join(generator.choice(WORDS, 8, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])) for _ in range(300)]
    for i in range(8):
        text = "".join(f"{line}\n" for line in lines[i * 10 : i * 10 + 10])
        (folder / f"document{i}").write_text(text, encoding="utf-8")
    texts = [folder / f"document{i}" for i in range(8)]
    for name, order in (("a0", 2), ("a1", 2), ("a2", 2), ("b0", 3), ("b1", 3)):
        sample = [lines[80 + i] for i in generator.integers(0, 220, 60)]
        model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(sample), order=order, words=WORDS)
        lmgauge.evaluate(model, texts, output=folder / name)
    return folder


def test_figures_difference_and_shares_are_those_of_the_formulas(runs: Path) -> None:
    (found,) = lmgauge.compare_recipes(
        {"bigrams": [runs / f"a{i}" for i in range(3)], "trigrams": [runs / "b0", runs / "b1"]}
    )
    figures = {name: lmgauge.evaluate_scores(runs / name / "scores.parquet") for name in ("a0", "a1", "a2", "b0", "b1")}
    assert found.metric == "perplexity"
    assert found.values[0] == pytest.approx([figures[name].perplexity for name in ("a0", "a1", "a2")], rel=1e-12)
    assert found.runs == (3, 2)
    cross = {name: figure.cross_entropy for name, figure in figures.items()}
    mean = [np.mean([cross[name] for name in group]) for group in (("a0", "a1", "a2"), ("b0", "b1"))]
    assert found.difference == pytest.approx(math.exp(mean[1] - mean[0]), rel=1e-12)
    seeds = [np.var([cross[name] for name in group], ddof=1) / len(group) for group in (("a0", "a1", "a2"), ("b0", "b1"))]
    low, high = math.log(found.interval.low), math.log(found.interval.high)
    assert (low + high) / 2 == pytest.approx(mean[1] - mean[0], abs=1e-12)
    text_variance = sum(seeds) * (1 / found.seed_share - 1)
    parts = [(text_variance, 7), (seeds[0], 2), (seeds[1], 1)]  # about 7 degrees: eight documents of like size
    freedom = math.floor(sum(v for v, _ in parts) ** 2 / sum(v * v / f for v, f in parts) + 1e-9)
    error = math.sqrt(text_variance + sum(seeds))
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-9)
    assert "8 documents (files)" in found.independence
    assert found.p_value == found.p_value_holm


def test_the_text_s_share_is_the_jackknife_over_documents() -> None:
    generator = np.random.default_rng(2)
    difference, sizes, documents = generator.normal(1, 2, 60), generator.integers(5, 9, 60) * 1.0, np.arange(60) // 6
    text = spread(difference, sizes, documents)
    assert text is not None
    sums = [np.bincount(documents, column).tolist() for column in (difference, sizes)]
    assert text.error == pytest.approx(twin.jackknife_error(*sums), rel=1e-9)
    both = _with_seeds(text, [0.5, 0.25], [2, 1])
    total = text.error**2 + 0.75
    assert both.error == pytest.approx(math.sqrt(total))
    assert both.freedom == math.floor(total**2 / (text.error**4 / text.freedom + 0.25 / 2 + 0.0625))


def test_seeds_that_differ_more_than_the_recipes_raise_no_alarm() -> None:
    """Two recipes alike, whose seeds move every document: a pair of models differs by far, the recipes seldom."""
    generator = np.random.default_rng(3)
    pairs = recipes = 0
    for _ in range(300):
        seeds = generator.normal(0, 0.3, 6)
        documents = generator.normal(0, 0.1, (6, 40))
        values = seeds[:, None] + documents
        a, b = values[:3], values[3:]
        one = spread(a[0] - b[0], np.ones(40), np.arange(40))
        text = spread(a.mean(axis=0) - b.mean(axis=0), np.ones(40), np.arange(40))
        assert one is not None
        assert text is not None
        both = _with_seeds(text, [part.mean(axis=1).var(ddof=1) / 3 for part in (a, b)], [2, 2])
        pairs += one.p_value < 0.05
        recipes += both.p_value < 0.05
    assert pairs > 0.7 * 300
    assert recipes <= 0.09 * 300  # 0.05, sd 0.013


def test_what_is_refused(runs: Path) -> None:
    a, b = [runs / "a0", runs / "a1"], [runs / "b0", runs / "b1"]
    with pytest.raises(lmgauge.base.errors.UsageError, match="recipe one: has 1 run; give two or more"):
        lmgauge.compare_recipes({"one": a[:1], "two": b})
    with pytest.raises(lmgauge.base.errors.UsageError, match="two recipes or more"):
        lmgauge.compare_recipes({"one": a})
    with pytest.raises(lmgauge.base.errors.UsageError, match="is in recipe one and again in two"):
        lmgauge.compare_recipes({"one": a, "two": [b[0], a[0]]})


def test_runs_that_may_not_be_compared_are_refused_with_the_reason(runs: Path, tmp_path: Path) -> None:
    for i in range(2):
        model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b x y z"]), order=1)
        lmgauge.evaluate(model, [runs / f"document{k}" for k in range(8)], output=tmp_path / f"other{i}")
    with pytest.raises(lmgauge.base.errors.InputError, match=r"may not be compared \(.*unseen words.*--words"):
        lmgauge.compare_recipes({"a": [runs / "a0", runs / "a1"], "b": [tmp_path / "other0", tmp_path / "other1"]})


def test_on_the_command_line(runs: Path) -> None:
    one, two = f"one={runs / 'a0'},{runs / 'a1'},{runs / 'a2'}", f"two={runs / 'b0'},{runs / 'b1'}"
    shown = ok("compare", "--recipe", one, "--recipe", two).stdout
    assert "perplexity by recipe" in shown
    assert "The difference of the recipes is" in shown
    assert "comes from the seeds" in shown
    assert "8 documents (files) are taken as independent" in shown
    (told,) = json.loads(ok("compare", "--recipe", one, "--recipe", two, "--json").stdout)
    assert told["runs"] == [3, 2]
    assert "named twice" in refused("compare", "--recipe", one, "--recipe", one)
    assert "write a name" in refused("compare", "--recipe", "one", "--recipe", two)
    assert "does not go with --recipe" in refused("compare", runs / "a0", "--recipe", one)
    assert "--strict does not go with --recipe" in refused("compare", "--recipe", one, "--recipe", two, "--strict")


def test_one_model_is_not_two_seeds(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "a0", tmp_path / "copy")
    with pytest.raises(lmgauge.base.errors.UsageError, match="score every segment alike: they are the same model"):
        lmgauge.compare_recipes({"one": [runs / "a0", tmp_path / "copy"], "two": [runs / "b0", runs / "b1"]})
