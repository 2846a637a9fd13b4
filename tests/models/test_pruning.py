"""Entropy pruning against the twin in tests/reference/pruning.py; sums stay one whatever was dropped."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference.pruning import BackOffModel, Gram

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import UsageError
from lmgauge.models.ngram.pruning import limit_vocabulary, prune_model

KINDS = ("modified-kneser-ney", "witten-bell", "good-turing", "absolute-discounting")


@pytest.fixture(scope="module")
def lines(data: Path) -> list[str]:
    return (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")[:90]


def reference(model: NgramModel, folder: Path) -> BackOffModel:
    """The model as dictionaries, by way of its ARPA form."""
    path = folder / "model.arpa"
    lmgauge.models.write_arpa(model, path)
    probability: dict[Gram, float] = {}
    weight: dict[Gram, float] = {}
    order = 0
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.endswith("-grams:"):
            order = int(line[1:-7])
        elif order and "\t" in line:
            value, words, *rest = line.split("\t")
            gram = tuple(words.split(" "))
            probability[gram] = 10 ** float(value)
            if rest:
                weight[gram] = 10 ** float(rest[0])
    return BackOffModel(probability, weight)


def worst_sum(model: NgramModel, lines: list[str]) -> float:
    """How far from one the probabilities after the contexts of a text sum."""
    worst = 0.0
    for line in lines:
        ids = [1, *model.vocabulary.ids(line.split()).tolist()]
        for end in range(1, len(ids) + 1):
            for begin in range(max(0, end - model.order + 1), end):
                total = math.fsum(np.exp(model.log_distribution(ids[begin:end])).tolist())
                worst = max(worst, abs(total - 1))
    return worst


@pytest.mark.parametrize("threshold", [1e-6, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_pruned_is_what_the_equations_say(lines: list[str], tmp_path: Path, kind: Any, order: int, threshold: float) -> None:
    texts = lines[:24]
    model = lmgauge.train(kind, Corpus.from_strings(texts), order=order)
    whole = reference(model, tmp_path)
    expected, losses = whole.pruned(threshold)
    pruned = prune_model(model, threshold)
    seen = reference(pruned, tmp_path)
    disputed = seen.probability.keys() ^ expected.probability.keys()
    # Probabilities in single precision can tip what lies on the threshold, and then the beginnings it needs.
    assert all(abs(losses.get(gram, threshold) / threshold - 1) < 1e-3 for gram in disputed)
    assert len(disputed) <= 2
    if disputed:
        return
    for gram, value in seen.probability.items():
        assert value == pytest.approx(whole.probability[gram], rel=1e-6)
    for line in texts[:6]:
        words = ["<s>", *line.split()]
        for end in range(1, len(words) + 1):
            context = tuple(words[max(0, end - order + 1) : end])
            p = np.exp(pruned.log_distribution(pruned.vocabulary.ids(context)))
            for word in expected.words[:40]:
                assert p[pruned.vocabulary.id(word)] == pytest.approx(expected.p(word, context), abs=1e-6)


@pytest.mark.parametrize("threshold", [1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1.0])
@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("interpolate", [True, False])
def test_sums_stay_one(lines: list[str], interpolate: bool, order: int, threshold: float) -> None:
    options: dict[str, Any] = {"order": order, "interpolate": interpolate, "prune": threshold}
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), **options)
    assert worst_sum(model, lines[:20]) < 1e-6


def test_a_threshold_above_nothing_keeps_nearly_all(lines: list[str]) -> None:
    whole = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=3)
    pruned = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=3, prune=1e-15)
    assert pruned.types[0] == whole.types[0]
    for before, after in zip(whole.types, pruned.types, strict=True):
        assert 0.95 * before <= after <= before


def test_a_huge_threshold_leaves_unigrams(lines: list[str]) -> None:
    whole = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=4)
    pruned = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=4, prune=1e9)
    assert pruned.types == [whole.types[0], 0, 0, 0]
    after_a = np.exp(pruned.log_distribution(pruned.vocabulary.ids(["First"])))
    assert after_a == pytest.approx(np.exp(whole.log_distribution([])), rel=1e-5)
    evaluation = lmgauge.evaluate(pruned, Corpus.from_strings(lines))
    assert evaluation.events_by_matched_order[1:] in ([], [0, 0, 0])


def test_more_pruning_means_fewer_ngrams_and_a_higher_perplexity(lines: list[str]) -> None:
    corpus = Corpus.from_strings(lines)
    models = [
        lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=3, prune=t) for t in (1e-4, 1e-3, 1e-2, 1e-1)
    ]
    types = [sum(model.types) for model in models]
    assert types == sorted(types, reverse=True)
    assert len(set(types)) == 4
    perplexities = [lmgauge.evaluate(model, corpus).perplexity for model in models]
    assert perplexities == sorted(perplexities)


def test_unigrams_and_order_one_are_left_alone(lines: list[str]) -> None:
    model = lmgauge.train("kneser-ney", Corpus.from_strings(lines), order=1)
    pruned = prune_model(model, 1.0)
    assert pruned.types == model.types
    assert np.array_equal(pruned.log_distribution([]), model.log_distribution([]))


def test_pruned_models_say_so_and_prune_again(lines: list[str], tmp_path: Path) -> None:
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=3, prune=1e-5)
    assert model.settings.prune == 1e-5
    assert any("pruning at 1e-05 dropped" in note for note in model.record.notes)
    model.save(tmp_path / "model")
    loaded = lmgauge.load_model(tmp_path / "model")
    assert isinstance(loaded, NgramModel)
    assert loaded.fingerprint == model.fingerprint
    again = prune_model(loaded, 1e-2)
    assert all(a <= b for a, b in zip(again.types, model.types, strict=True))
    assert worst_sum(again, lines[:10]) < 1e-6


# -- to a size ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_size_is_met_exactly_by_the_largest_losses(lines: list[str], tmp_path: Path, kind: Any) -> None:
    model = lmgauge.train(kind, Corpus.from_strings(lines[:12]), order=3)
    _, losses = reference(model, tmp_path).pruned(math.inf)
    largest = dict(losses)  # of the n-grams that begin with it, itself included
    for gram in losses:
        largest[gram[:2]] = max(largest[gram[:2]], losses[gram])
    for size in (model.types[0], model.types[0] + 1, sum(model.types) - 40, sum(model.types) - 1):
        pruned = prune_model(model, size=size)
        assert sum(pruned.types) == size
        stays = reference(pruned, tmp_path).probability.keys()
        assert all(gram[:-1] in stays for gram in stays if len(gram) > 1)
        threshold = pruned.settings.prune
        assert threshold is not None
        for gram, loss in largest.items():
            if gram in stays:
                assert loss >= threshold * (1 - 1e-3) - 1e-12
            else:
                assert loss <= threshold * (1 + 1e-3) + 1e-12


def test_the_model_of_a_size_is_that_of_its_threshold_but_for_ties(lines: list[str]) -> None:
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(lines), order=3)
    by_size = prune_model(model, size=700)
    by_threshold = prune_model(model, by_size.settings.prune)
    assert sum(by_size.types) == 700 <= sum(by_threshold.types)
    above = prune_model(model, float(np.nextafter(by_size.settings.prune, 1)))  # type: ignore[arg-type]
    assert sum(above.types) <= 700


def test_a_size_that_is_not_exceeded_drops_nothing(lines: list[str]) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=3)
    assert prune_model(model, size=10**9).types == model.types


def test_sizes_and_models_that_cannot_be(lines: list[str]) -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(lines), order=2)
    with pytest.raises(lmgauge.base.errors.UsageError, match="unigrams stay"):
        prune_model(model, size=10)
    with pytest.raises(lmgauge.base.errors.UsageError, match="does not back off"):
        prune_model(lmgauge.train("laplace", Corpus.from_strings(lines), order=2), 1e-3)


def test_an_arpa_file_that_leaves_out_beginnings_is_pruned(tmp_path: Path) -> None:
    path = tmp_path / "gaps.arpa"
    path.write_text(
        "\\data\\\nngram 1=5\nngram 2=1\nngram 3=2\n\n\\1-grams:\n-0.7\t<unk>\t0\n-99\t<s>\t-0.1\n-0.5\t</s>\n"
        "-0.6\ta\t-0.2\n-0.8\tb\t-0.3\n\n"
        "\\2-grams:\n-0.4\t<s> b\t-0.1\n\n\\3-grams:\n-0.3\t<s> a b\n-0.2\ta b b\n\n\\end\\\n",
        encoding="utf-8",
    )
    model = lmgauge.models.read_arpa(path)
    assert sum(prune_model(model, size=sum(model.types) - 1).types) == sum(model.types) - 1
    for context in ([1], [1, 3], [3], [3, 4], [4]):
        assert np.exp(prune_model(model, 1e-9).log_distribution(context)).sum() == pytest.approx(1.0, abs=2e-2)


def after(model: NgramModel, context: tuple[str, ...]) -> dict[str, float]:
    """The distribution after some words, by words."""
    p = np.exp(model.log_distribution(model.vocabulary.ids(("<s>", *context))))
    return dict(zip(model.vocabulary.tokens, p.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_leaves_words_what_they_had_and_unknown_ones_the_rest(lines: list[str], kind: Any) -> None:
    model = prune_model(lmgauge.train(kind, Corpus.from_strings(lines[:40]), order=3, cutoffs=(0, 0, 1)), 1e-5)
    texts = [text.split() for text in lines[:40]]
    words = [word for word, _ in Counter(itertools.chain(*texts)).most_common(16)]
    small, shared = (limit_vocabulary(model, [*words, "notaword"], renormalize=shares) for shares in (False, True))
    assert small.vocabulary.tokens[3:] == shared.vocabulary.tokens[3:] == [w for w in model.vocabulary.tokens if w in words]
    every = (*words[:5], "<unk>")
    for context in ((), *itertools.product(every, repeat=1), *itertools.product(every, repeat=2)):
        before, one, other = (after(own, context) for own in (model, small, shared))
        assert math.fsum(one.values()) == pytest.approx(1, abs=1e-6)
        assert math.fsum(other.values()) == pytest.approx(1, abs=1e-6)
        for word in (*words, "</s>"):
            assert one[word] == pytest.approx(before[word], rel=1e-6)
        rest = math.fsum(p for word, p in before.items() if word not in (*words, "</s>", "<s>"))
        assert one["<unk>"] == pytest.approx(rest, abs=1e-6)
    pairs = {pair for text in texts for pair in itertools.pairwise(["<s>", *text]) if set(pair[1:]) <= set(words)}
    same = [after(shared, pair[:1])[pair[1]] == after(model, pair[:1])[pair[1]] for pair in pairs if pair[0] in words]
    assert sum(same) > len(same) / 2 > 0  # n-grams that stay keep their probabilities
    assert "they are <unk> now" in small.record.notes[-1]
    assert "those that stay share it" in shared.record.notes[-1]


def test_where_every_word_that_stays_is_listed_its_share_grows() -> None:
    model = lmgauge.train("absolute-discounting", Corpus.from_strings(["a b", "a c", "a"]), order=2, vocabulary="closed")
    shared = limit_vocabulary(model, ["b"], renormalize=True)
    assert after(shared, ("<s>",)).keys() == {"<unk>", "<s>", "</s>", "b"}
    assert math.fsum(after(shared, ("b",)).values()) == pytest.approx(1, abs=1e-6)
    with pytest.raises(UsageError, match="has no <unk>"):
        limit_vocabulary(model, ["b"])
    with pytest.raises(UsageError, match="none of the 1 words"):
        limit_vocabulary(model, ["z"])
    with pytest.raises(UsageError, match="does not back off"):
        limit_vocabulary(lmgauge.train("laplace", Corpus.from_strings(["a b"]), order=2), ["a"])
