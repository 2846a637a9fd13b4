"""A model trained in partitions is the one trained in memory, whatever the partitions, the chunks and the options."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import trainings

import lmgauge
from lmgauge import Corpus
from lmgauge.models.ngram.partitioned.text import read_text
from lmgauge.models.ngram.partitioned.training import train_partitions
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.stages.memory_engine import MemoryEngine


@given(trainings(), st.integers(1, 5), st.integers(1, 40), st.sampled_from([200, 1 << 20]))
def test_partitions_do_not_show(
    training: tuple[str, list[str], dict[str, Any]], partitions: int, chunk: int, memory: int
) -> None:
    kind, lines, options = training
    try:
        expected = lmgauge.train(kind, Corpus.from_strings(lines), **options)  # type: ignore[arg-type]
    except lmgauge.LmgaugeError as error:
        expected = error  # type: ignore[assignment]
    settings = NgramTrainingSettings(kind, **options)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        try:
            engine = MemoryEngine()
            text = read_text(engine, settings, Corpus.from_strings(lines), chunk, threads=1)
            path = Path(folder) / "m"
            made = train_partitions(engine, settings, text, path, partitions=partitions, memory=memory)
        except lmgauge.LmgaugeError as error:
            assert str(error) == str(expected)
            return
        assert made.fingerprint == expected.fingerprint
        assert made.to_dict() == expected.to_dict()
        assert lmgauge.load_model(path).fingerprint == expected.fingerprint
