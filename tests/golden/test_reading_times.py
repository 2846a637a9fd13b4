"""Surprisal predicts reading times: Natural Stories (Futrell et al. 2021), with a small model of the bundled text.

Published studies find positive slopes and correlations of word surprisal with self-paced reading times, with n-gram models
and networks alike (Smith & Levy 2013; Goodkind & Bicknell 2018; Oh & Schuler 2024). The texts are not in the repository.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge

ROOT = Path(__file__).resolve().parent.parent.parent


def test_surprisal_of_words_goes_with_reading_times(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shared_data / "restricted" / "natural-stories"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import natural_stories

    stories, times = natural_stories.read_stories(folder)
    books = ROOT / "tests" / "data" / "classic-books.train.txt"
    model = lmgauge.train("modified-kneser-ney", books, order=6, tokenizer="character")
    frame = lmgauge.word_surprisal(model, texts=stories, train=books).to_pandas()
    assert len(frame) == sum(map(len, times)) == 10_256
    observed = np.concatenate(times)
    assert frame.surprisal_corrected.notna().all()
    for name in ("surprisal", "surprisal_corrected"):
        bits: NDArray[np.float64] = frame[name].to_numpy(np.float64)
        assert np.corrcoef(bits, observed)[0, 1] > 0.25
        control = [frame.length.to_numpy(np.float64), frame.log_frequency.to_numpy(np.float64)]
        fitted = natural_stories.fit(observed, [*control, bits])
        assert fitted.slopes[-1] > 3 * fitted.errors[-1]
