"""What training is said to take is what it takes: held against a process that trains on a text of 1.4 million words."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from lmgauge import Corpus
from lmgauge.base.errors import NotEnoughMemoryError
from lmgauge.models.ngram import memory_needs
from lmgauge.models.ngram.memory_needs import TextSize, check_reading, check_training, training_bytes
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_ngram

_PROGRAM = """
import json, sys
import numpy as np
import lmgauge
from lmgauge.base.memory import resident_bytes
from lmgauge.models.ngram import memory_needs, training
from lmgauge.models.ngram.settings import NgramTrainingSettings

def lines(number):
    for block in range(number // 1000):
        words = (30_000 * np.random.default_rng(block).random((1000, 14)) ** 3).astype(int)
        yield from (" ".join(map(str, line)) for line in words.tolist())

needed = []
computed = memory_needs.training_bytes
memory_needs.training_bytes = lambda *size: needed.append(computed(*size)) or needed[-1]
settings = NgramTrainingSettings(sys.argv[1], order=int(sys.argv[2]), **json.loads(sys.argv[3]))
training.train_ngram(settings, lmgauge.Corpus.from_strings(lines(1000)), threads=1)
before = resident_bytes()
training.train_ngram(settings, lmgauge.Corpus.from_strings(lines(100_000)), threads=1)
# Not ru_maxrss, which a process has from the one that started it.
peak = 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([peak - before, max(needed[-1].values())]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured as Linux does")
@pytest.mark.parametrize(
    ("kind", "order", "options"),
    [
        ("modified-kneser-ney", 5, {}),
        ("kneser-ney", 3, {"cutoffs": [0, 0, 1]}),
        ("good-turing", 4, {}),
        ("laplace", 3, {}),
        ("modified-kneser-ney", 3, {"prune": 1e-8}),
    ],
)
def test_the_peak_is_known_within_15_percent(kind: str, order: int, options: dict[str, object]) -> None:
    command = [sys.executable, "-c", _PROGRAM, kind, str(order), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    peak, needed = json.loads(done.stdout)
    assert needed == pytest.approx(peak, rel=0.15)


TEXT = TextSize(tokens=1_000_000, words=10_000, vocabulary_bytes=400_000, types=[300_000, 700_000, 900_000])


def needed(**options: object) -> dict[str, int]:
    return training_bytes(NgramTrainingSettings(**({"kind": "kneser-ney", "order": 4} | options)), TEXT)  # type: ignore[arg-type]


def test_options_change_the_stages_they_are_about() -> None:
    plain = needed()
    assert set(plain) == {"reading", "counting", "estimating", "packing"}
    assert needed(cutoffs=(0, 0, 4))["packing"] < plain["packing"]
    assert needed(interpolate=False)["estimating"] > plain["estimating"]
    assert needed(kind="laplace")["counting"] < plain["counting"]
    assert needed(prune=1e-8)["pruning"] > plain["reading"]
    shared = training_bytes(NgramTrainingSettings("kneser-ney", order=4), replace(TEXT, partitions=4))
    assert shared["counting"] < plain["counting"]
    listed = training_bytes(NgramTrainingSettings("kneser-ney", order=4), replace(TEXT, listed=True))
    assert listed["writing"] > plain["reading"]


def test_single_words_take_hardly_more_than_their_ids() -> None:
    size = TextSize(10_000_000, 1000, 40_000)
    assert max(training_bytes(NgramTrainingSettings("mle", order=1), size).values()) < 120_000_000


def test_it_is_compared_with_what_is_free_beside_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, most = NgramTrainingSettings("kneser-ney", order=4), max(needed().values())
    held = 4 * TEXT.tokens + TEXT.vocabulary_bytes
    monkeypatch.setattr(memory_needs, "free_memory", lambda: int(most / 0.9) + 2 - held)
    assert check_training(settings, TEXT).startswith("needs about 74.5 MB of memory, 82.7 MB are")
    monkeypatch.setattr(memory_needs, "free_memory", lambda: int(most / 0.9) - 2 - held)
    with pytest.raises(NotEnoughMemoryError, match=r"^training in memory needs about .* of memory, and .* are free$"):
        check_training(settings, TEXT)
    monkeypatch.setattr(memory_needs, "free_memory", lambda: None)
    assert "free" not in check_training(settings, TEXT)
    check_reading(10**12)
    monkeypatch.setattr(memory_needs, "free_memory", lambda: 4_500_000)
    check_reading(1_000_000)
    with pytest.raises(NotEnoughMemoryError, match=r"needs more than 8.8 MB of memory, and 8.9 MB are free"):
        check_reading(1_100_000)


def test_progress_tells_it() -> None:
    stages: list[str] = []
    train_ngram(NgramTrainingSettings("laplace", order=2), Corpus.from_strings(["a b"] * 9), progress=stages.append)
    assert any(stage.startswith("counting n-grams of 27 events: needs about 4.") for stage in stages)
