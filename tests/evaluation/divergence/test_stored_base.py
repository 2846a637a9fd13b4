"""Storing a model's distributions, and walking a candidate beside them, where the text comes in odd pieces."""

import numpy as np
from tests.evaluation.divergence.bases import header_of

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.divergence.base_file import BaseFile, writing_base
from lmgauge.evaluation.divergence.stored_base import kept_of, reduce_stored, write_base
from lmgauge.evaluation.options import StoringSettings

LINES = ["a b", "", "c a b", "b", "", "a a c b"]


def test_blocks_of_any_size_and_events_of_any_choice(tmp_path):
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    candidate = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=1)
    settings = StoringSettings(base_top=10)
    kept = kept_of(model, settings)
    for events in (None, np.array([0, 3, 9, 14]), np.array([2]), np.zeros(0, np.int64)):
        with writing_base(tmp_path / "a.base", kept) as writer:
            count, ruled_out = write_base(writer, model, Corpus.from_strings(LINES), settings, events=events)
            header = {"events": count, "total_events": 16, "stored": "top", "ruled_out": ruled_out}
            writer.header = header_of(kept, **header)
        assert count == (16 if events is None else len(events))
        small = list(Corpus.from_strings(LINES, block_bytes=4))
        with BaseFile(tmp_path / "a.base") as base:
            parts = list(reduce_stored(base, candidate, small, (1,), events=events))
        assert len(parts) == len(small)  # a block without events has its rows: none
        assert sum(len(batch) for _, batch, _ in parts) == count
        assert sum(len(columns["kl_ab"]) for _, _, columns in parts) == count
        if count:
            assert [model.vocabulary.tokens[i] for i in ruled_out] == ["<s>"]
