"""The scores of single texts, worked out by hand and by a slow twin."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest

import lmgauge
from lmgauge.evaluation.membership.membership import lowest_mean, score_texts, standardized
from lmgauge.evaluation.options import MembershipSettings


def slow_lowest_mean(values: list[float], k: float) -> float:
    """As the paper's authors write it, but for at least one value."""
    lowest = sorted(values)[: max(1, int(k * len(values) + 1e-9))]
    return sum(lowest) / len(lowest)


def test_lowest_mean_as_written_in_the_paper() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 40, 30)
    values = np.round(rng.normal(size=counts.sum()), 1)  # with ties
    parts = np.split(values, np.cumsum(counts)[:-1])
    for k in (0.05, 0.2, 0.29, 1.0):
        expected = [slow_lowest_mean(part.tolist(), k) for part in parts]
        np.testing.assert_allclose(lowest_mean(values, counts, k), expected, rtol=1e-12)


def test_lowest_mean_of_an_impossible_event_and_of_nothing() -> None:
    values, counts = np.array([-1.0, -np.inf, -2.0]), np.array([0, 2, 1])
    assert lowest_mean(values, counts, 0.5).tolist() == [0.0, -math.inf, -2.0]


def test_standardized() -> None:
    found = standardized(np.array([-3.0, -1.0, -np.inf]), np.array([-2.0, -1.0, -1.0]), np.array([0.5, 1e-9, 0.0]))
    assert found.tolist() == [-2.0, 0.0, -math.inf]


TEXTS = ["the cat sat on the mat", "a", "", "für dich ein satz", "the dog"]


def test_each_score_from_the_definitions() -> None:
    text = lmgauge.Corpus.from_strings(TEXTS)
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sat", "a dog sat on the mat"]), order=2)
    other = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a dog"]), order=1)
    found = score_texts(model, text, MembershipSettings(k=0.4), other)
    assert found.left_out == 1  # the empty one
    assert found.columns["segment"] == [0, 1, 3, 4]
    for place, words in enumerate(one for one in TEXTS if one):
        ids = [*(model.vocabulary.tokens.index(w) if w in model.vocabulary.tokens else 0 for w in words.split()), 2]
        logprob, standard = [], []
        for i, token in enumerate(ids):
            log_p = model.log_distribution(np.array([1, *ids[:i]], np.uint32))
            p = np.exp(log_p)
            there = p > 0
            mean = float((p[there] * log_p[there]).sum())
            deviation = math.sqrt(float((p[there] * (log_p[there] - mean) ** 2).sum()))
            logprob.append(float(log_p[token]))
            standard.append((logprob[-1] - mean) / deviation)
        nats, raw = -sum(logprob), words.encode()
        expected = {
            "loss": nats / len(ids),
            "min_k": slow_lowest_mean(logprob, 0.4),
            "min_k_plus_plus": slow_lowest_mean(standard, 0.4),
            "zlib": nats / len(zlib.compress(raw)),
            "zlib_per_byte": len(zlib.compress(raw)) / len(raw),
        }
        assert {name: found.columns[name][place] for name in expected} == pytest.approx(expected)
        assert found.columns["reference"][place] == pytest.approx(
            (nats + other.score_text(words).log_probability) / len(raw)
        )


def test_blocks_and_threads_do_not_matter() -> None:
    lines = [f"the {a} sat on the {b}" for a in "abcdefgh" for b in ("cat", "dog")]
    model = lmgauge.train("kneser-ney", lmgauge.Corpus.from_strings(lines[:9]), order=2)
    whole = score_texts(model, lmgauge.Corpus.from_strings(lines), MembershipSettings(threads=1), model)
    cut = score_texts(model, lmgauge.Corpus.from_strings(lines, block_bytes=50), MembershipSettings(threads=2), model)
    assert len(whole) == len(lines)
    assert whole == cut


def test_labels_part_the_texts() -> None:
    text = lmgauge.Corpus.from_strings(["a b", "b", "c"], groups=["1", "0", "Seen"], documents=["x", "y", "y"])
    scores = score_texts(lmgauge.train("laplace", text, order=1), text, MembershipSettings())
    asked, control = scores.labeled(True), scores.labeled(False)
    assert (asked.columns["segment"], control.columns["segment"]) == ([0, 2], [1])
    assert (asked.columns["document"], control.columns["bytes"]) == ([0, 1], [1])
