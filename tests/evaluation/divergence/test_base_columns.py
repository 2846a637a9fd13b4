"""Rows of a base file as tables, and tables as rows."""

import numpy as np
import pytest
from tests.evaluation.divergence import bases

from lmgauge.evaluation.divergence.base_columns import Kept, bfloat16_bits, from_table, no_rows, to_table


@pytest.mark.parametrize("stored", ["top", "float32", "bfloat16"])
def test_tables_are_rows_again(stored):
    kept, rows = bases.rows_of(stored)
    again = from_table(to_table(rows, kept), kept)
    assert to_table(again, kept).equals(to_table(rows, kept))
    assert len(from_table(to_table(no_rows(kept), kept), kept)) == 0


def test_bfloat16_is_rounded_as_torch_rounds_it():
    torch = pytest.importorskip("torch")
    values = np.concatenate([np.random.default_rng(0).normal(-9, 5, 1000), [-np.inf, 0.0, -1.00390625]]).astype(np.float32)
    theirs = torch.asarray(values).to(torch.bfloat16).view(torch.uint16).numpy()
    assert np.array_equal(bfloat16_bits(values), theirs)


def test_whole_distributions_are_divided_by_their_sum():
    _, rows = bases.rows_of("float32")
    tile = rows.tile()
    assert np.exp(np.asarray(tile.logprob)).sum(axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-12)
    assert tile.p[:, -1].tolist() == [0.0] * len(rows)


def test_the_longest_column_of_a_row():
    assert Kept("top", 1000, 64, 256).widest == 257
    assert Kept("float32", 1000, 0, 0).widest == 1000
