"""Pieces tile blocks, and units are the same whether all of a text is counted or grouped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.text import work_units
from lmgauge.text.documents import Corpus


@given(st.lists(st.text("ab ", min_size=1, max_size=12), min_size=1, max_size=20), st.integers(1, 40), st.integers(1, 30))
def test_pieces_and_units(lines: list[str], block_bytes: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_units, "UNIT_BYTES", size)
        blocks = list(Corpus.from_strings(lines, given=["g"] * len(lines), block_bytes=block_bytes))
        cut = [list(work_units.pieces(block)) for block in blocks]
        for block, own in zip(blocks, cut, strict=True):
            assert [piece.text(i) for piece in own for i in range(len(piece))] == [block.text(i) for i in range(len(block))]
            assert all(piece.given_text(i) == b"g" for piece in own for i in range(len(piece)))
            assert [line for piece in own for line in piece.lines().tolist()] == block.lines().tolist()
            assert [piece.first for piece in own] == [block.first + sum(map(len, own[:i])) for i in range(len(own))]
            for piece in own[:-1]:
                last = piece.ends[-1] - piece.starts[-1]
                assert piece.byte_count() - last < size <= piece.byte_count()
        everything = [piece for own in cut for piece in own]
        counter = work_units.UnitCounter()
        numbers = [counter.unit_of(piece) for piece in everything]
        grouped = [number for number, unit in enumerate(work_units.in_units(everything, lambda piece: piece)) for _ in unit]
        assert numbers == grouped


def test_an_empty_block_is_a_piece() -> None:
    block = next(iter(Corpus.from_strings(["a"]))).part(0, 1)
    empty = type(block)(block.data[:0], block.starts[:0], block.ends[:0], "nothing")
    assert [len(piece) for piece in work_units.pieces(empty)] == [0]
