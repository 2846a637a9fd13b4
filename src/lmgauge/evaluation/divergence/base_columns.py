"""The columns of a base file: rows as Arrow tables, and tables as rows."""

# The seal of the file is known to be right, so that only what places in memory come of is looked at: ids and lengths.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.stored_rows import BaseRows, StoredRows, stored_rows
from lmgauge.distributions.tile import LOWEST, Tile, as_numpy, ready
from lmgauge.scores.table import EOS_KIND, TOKEN

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Kept:
    """What the rows of a base file hold."""

    stored: str  # "top", "float32" or "bfloat16"
    vocabulary: int
    top: int
    samples: int

    @property
    def widest(self) -> int:
        """Return how many values of one column a row can have."""
        return max(self.top, self.samples + 1) if self.stored == "top" else self.vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class WholeRows(BaseRows):
    """Whole distributions at consecutive events."""

    logprobs: NDArray[np.float32]  # float32 [n, vocabulary], nats, -inf for what cannot come

    def tile(self) -> Tile:
        """Return the distributions, divided by their sums, which rounding moves, as a tile."""
        values = np.maximum(self.logprobs.astype(np.float64), LOWEST)
        highest = values.max(axis=1, keepdims=True)
        total = highest + np.log(np.exp(values - highest).sum(axis=1, keepdims=True))
        normal = np.where((self.mass[:, None] > 0) & (values > LOWEST / 2), np.minimum(values - total, 0.0), LOWEST)
        return ready(normal, None, self.token_ids.astype(np.int64))


Rows = Any  # StoredRows or WholeRows: no union, as all of them are alike in `joined`, `part` and `len`


def no_rows(kept: Kept) -> Rows:
    """Return no rows, of a kind."""
    if kept.stored != "top":
        return whole_rows(Tile(lambda: np.zeros((0, kept.vocabulary)), np.zeros(0, np.int64)))
    return stored_rows(Tile(lambda: np.zeros((0, kept.vocabulary)), np.zeros(0, np.int64)), 0, kept.top, kept.samples)


def whole_rows(tile: Tile) -> WholeRows:
    """Return a tile as rows, all events as ordinary tokens."""
    # whole_rows(Tile(lambda: np.log([[0.5, 0.5]]), [0])).logprobs.round(4) -> [[-0.6930999755859375, -0.6930999755859375]]
    logprobs = as_numpy(tile.logprob)
    mass = np.exp(logprobs).sum(axis=1)
    log_mass = np.log(np.where(mass > 0, mass, 1.0))[:, None]
    rounded = np.where(logprobs < LOWEST / 2, -np.inf, np.minimum(logprobs - log_mass, 0.0)).astype(np.float32)
    kind = np.full(len(tile), TOKEN, np.uint8)
    return WholeRows(tile.targets.astype(np.uint32), kind, tile.of_targets(), mass, rounded)


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the upper 16 bits of float32 values, rounded to the nearest, ties to even."""
    # [hex(bits) for bits in bfloat16_bits([1.0, -2.0])] -> ['0x3f80', '0xc000']
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def column_types(kept: Kept) -> dict[str, pa.DataType]:
    """Return the columns of a base file, and their types."""
    import pyarrow as pa

    first = {"token": pa.uint32(), "kind": pa.uint8(), "logprob": pa.float64(), "mass": pa.float64()}
    if kept.stored != "top":
        return first | {"logprobs": pa.list_(pa.float32() if kept.stored == "float32" else pa.uint16())}
    return first | {
        "entropy": pa.float64(),
        "tail_mass": pa.float64(),
        "tail_tokens": pa.uint32(),
        "top_ids": pa.list_(pa.uint32()),
        "top_logprobs": pa.list_(pa.float32()),
        "drawn_ids": pa.list_(pa.uint32()),
        "drawn_logprobs": pa.list_(pa.float32()),
    }


def to_table(rows: Rows, kept: Kept) -> pa.Table:
    """Return rows as a table."""
    import pyarrow as pa

    n = len(rows)
    plain = {"token": rows.token_ids, "kind": rows.kind, "logprob": rows.logprob, "mass": rows.mass}
    lists: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    if isinstance(rows, WholeRows):
        every = np.arange(n + 1) * kept.vocabulary
        values = rows.logprobs if kept.stored == "float32" else bfloat16_bits(rows.logprobs)
        lists["logprobs"] = every, values
    else:
        plain |= {"entropy": rows.entropy, "tail_mass": rows.tail_mass, "tail_tokens": rows.tail_tokens}
        every, drawn = np.arange(n + 1) * rows.top_ids.shape[1], np.concatenate(([0], np.cumsum(rows.draws)))
        lists |= {"top_ids": (every, rows.top_ids), "top_logprobs": (every, rows.top_logprobs)}
        lists |= {"drawn_ids": (drawn, rows.drawn_ids), "drawn_logprobs": (drawn, rows.drawn_logprobs)}
    columns = {}
    for name, kind in column_types(kept).items():
        if name in plain:
            columns[name] = pa.array(plain[name], kind)
        else:
            bounds, values = lists[name]
            flat = values.ravel().astype(kind.value_type.to_pandas_dtype())
            columns[name] = pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), pa.array(flat), type=kind)
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in column_types(kept).items()])
    return pa.Table.from_pydict(columns, schema=schema)


def from_table(table: pa.Table, kept: Kept) -> Rows:
    """Return the rows of a table."""
    columns = {name: table[name].combine_chunks() for name in table.schema.names}
    for name, column in columns.items():
        _require(not column.null_count, f"column {name!r} has rows without a value")
    logprob, mass = (_numbers(columns[name]) for name in ("logprob", "mass"))
    token_ids, kind = _numbers(columns["token"]), _numbers(columns["kind"])
    _require((token_ids < kept.vocabulary).all(), "a token is not in the vocabulary")
    _require((kind <= EOS_KIND).all(), "a kind is unknown")  # of events only: nothing is spelled in a base
    first = {"token_ids": token_ids, "kind": kind, "logprob": logprob, "mass": mass}
    if kept.stored != "top":
        return _whole(first, columns["logprobs"], kept)
    entropy, tail_mass = _numbers(columns["entropy"]), _numbers(columns["tail_mass"])
    _require(((tail_mass >= 0) & (tail_mass <= 1)).all(), "a mass is not between 0 and 1")
    tail_tokens = _numbers(columns["tail_tokens"]).astype(np.int64)
    draws = np.ceil(kept.samples * tail_mass).astype(np.int64)
    fixed = np.full(len(table), kept.top, np.int64)
    rows = StoredRows(
        **first,
        entropy=entropy,
        top_ids=_list(columns["top_ids"], fixed, "top_ids").reshape(-1, kept.top),
        top_logprobs=_list(columns["top_logprobs"], fixed, "top_logprobs").astype(np.float64).reshape(-1, kept.top),
        tail_mass=tail_mass,
        tail_tokens=tail_tokens,
        draws=draws,
        drawn_ids=_list(columns["drawn_ids"], draws, "drawn_ids"),
        drawn_logprobs=_list(columns["drawn_logprobs"], draws, "drawn_logprobs").astype(np.float64),
    )
    _require((rows.top_ids < kept.vocabulary).all(), "a most probable token is not in the vocabulary")
    _require((rows.drawn_ids < kept.vocabulary).all(), "a drawn token is not in the vocabulary")
    return rows


def _whole(first: dict[str, NDArray[Any]], column: pa.Array, kept: Kept) -> WholeRows:
    n = len(first["token_ids"])
    values = _list(column, np.full(n, kept.vocabulary, np.int64), "logprobs")
    if kept.stored == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return WholeRows(**first, logprobs=values.reshape(n, kept.vocabulary))


def _numbers(column: pa.Array) -> NDArray[Any]:
    return np.array(column.to_numpy(zero_copy_only=False))


def _list(column: pa.Array, sizes: NDArray[np.int64], name: str) -> NDArray[Any]:
    # Values of a list column, whose lists must have given lengths.
    import pyarrow.compute as pc

    lengths = np.array(pc.list_value_length(column).to_numpy(zero_copy_only=False))
    _require(np.array_equal(lengths, sizes), f"the lists of {name!r} have other lengths than they should")
    values = column.flatten()
    _require(not values.null_count, f"a list of {name!r} lacks a value")
    return _numbers(values)


def _require(right: bool | np.bool_, wrong: str) -> None:
    if not right:
        raise ValueError(wrong)
