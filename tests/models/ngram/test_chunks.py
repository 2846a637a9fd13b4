"""Chunks of ids, with what stands around each."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.models.ngram.reading import ChunkWriter
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import Engine, Stored


@given(st.lists(st.lists(st.integers(1, 9), max_size=12), max_size=6), st.integers(1, 4), st.integers(1, 9))
def test_chunks_tile_the_text(blocks: list[list[int]], order: int, size: int) -> None:
    engine = Engine()
    writer = ChunkWriter(engine, order, size)
    for block in blocks:
        writer.add(np.array(block, np.uint32))
    chunks = [engine.read(Stored(f"text/{c}")).tolist() for c in range(writer.finish())]
    text = [token for block in blocks for token in block]
    around = [BOS, *text, *[BOS] * order]
    assert all(len(chunk) == 1 + size + order for chunk in chunks[:-1])
    for c, chunk in enumerate(chunks):
        assert chunk == around[c * size : c * size + len(chunk)]
    assert [token for chunk in chunks for token in chunk[1 : len(chunk) - order]] == text
