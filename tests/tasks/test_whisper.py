"""Whisper's normalizers, through the package that brings them."""

from __future__ import annotations

import sys

import pytest

from lmgauge.base.errors import MissingExtraError
from lmgauge.tasks import wer
from lmgauge.tasks.whisper import whisper_normalizer


def test_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    whisper_normalizer.cache_clear()
    for name in ("whisper_normalizer", "whisper"):
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=r"pip install 'lmgauge\[whisper\]'"):
        wer(hypotheses=["a"], references=["a"], whisper="english")
    whisper_normalizer.cache_clear()


def test_it_is_whispers() -> None:
    english = pytest.importorskip("whisper_normalizer.english").EnglishTextNormalizer()
    references, hypotheses = ["It's Mr. Colour, twenty-five percent!"], ["it is mister color 25%"]
    assert english(references[0]) == english(hypotheses[0])
    score = wer(hypotheses=hypotheses, references=references, whisper="english")
    assert score.score == 0
    assert "whisper:english-whisper-normalizer-" in score.signature
    assert wer(hypotheses=["Año"], references=["ano!"], whisper="basic").errors == 1
