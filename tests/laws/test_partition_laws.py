"""A model trained in partitions, or from counts, is the one trained in memory, whatever the partitions and options."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import trainings

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.models.ngram.count_files import train_from_counts, write_counts
from lmgauge.models.ngram.model import load_ngram_model
from lmgauge.models.ngram.reading import read_text
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_partitions
from lmgauge.work.engine import Engine


@given(trainings(), st.integers(1, 5), st.integers(1, 40), st.sampled_from([200, 1 << 20]))
def test_partitions_do_not_show(
    training: tuple[str, list[str], dict[str, Any]], partitions: int, chunk: int, memory: int
) -> None:
    kind, lines, options = training
    settings = NgramTrainingSettings(kind, **options)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"

        def _in_memory() -> NgramModel:
            return lmgauge.train(kind, Corpus.from_strings(lines), **options)  # type: ignore[arg-type]

        def _in_partitions() -> NgramModel:
            engine = Engine()
            text = read_text(engine, settings, Corpus.from_strings(lines), chunk, threads=1)
            return train_partitions(engine, settings, text, path, partitions=partitions, memory=memory)

        def _from_counts() -> NgramModel:
            engine, file = Engine(), Path(folder) / "counts"
            whole = {name: options[name] for name in ("order", "context", "tokenizer", "eos")}
            text = read_text(engine, NgramTrainingSettings("mle", **whole), Corpus.from_strings(lines), chunk, threads=1)
            write_counts(engine, settings, text, file, False, partitions, memory)
            return train_from_counts(settings, str(file))

        expected, made = outcome(_in_memory), outcome(_in_partitions)
        assert made == expected
        if path.exists():
            assert outcome(lambda: load_ngram_model(path)) == expected
            counted = outcome(_from_counts)
            assert isinstance(counted, tuple)
            assert isinstance(expected, tuple)
            assert counted[1] | {"training": None} == expected[1] | {"training": None}
            assert counted[0] == expected[0]


def outcome(train: Callable[[], NgramModel]) -> object:
    """What is in the model, or why there is none."""
    try:
        model = train()
    except lmgauge.LmgaugeError as error:
        return str(error)
    return model.fingerprint, model.to_dict()
