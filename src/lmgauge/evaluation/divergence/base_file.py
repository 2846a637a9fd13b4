"""A base on disk: one Parquet file with what is stored of a model's distributions at the events of a text."""

# The file is sealed: the SHA-256 of its bytes stands in its footer, and is checked before anything is parsed. Then the
# header is checked, then the size of each row group against it, then what places in memory come of: ids and lengths.

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import BaseType, StoredType
from lmgauge.base.decoding import Meta, Whole, decode
from lmgauge.base.errors import InputError
from lmgauge.base.files import writing
from lmgauge.base.json_text import from_json
from lmgauge.base.paths import open_reading
from lmgauge.records.parquet import open_parquet
from lmgauge.scores.distributions.stored_rows import BaseRows, LastLayer, StoredRows, draws_of
from lmgauge.scores.distributions.tile import LOWEST, Tile, as_numpy, ready
from lmgauge.scores.table import EOS_KIND, TOKEN
from lmgauge.work.manifest import UNSEALED, check_seal, seal

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = "lmgauge base"
FORMAT_VERSION = 1
METADATA_KEY, SEAL_KEY = b"lmgauge", b"lmgauge.seal"
_CHUNK = 1 << 20
_AGAIN = "store it again with --save-base"
_COMPRESSION = 9
_GROUP_VALUES = 1 << 20  # of the longest column of a row group
_MOST_VOCABULARY = 1 << 24
MOST_RULED_OUT = 1 << 12
_LISTS = ("_ids", "logprobs", "states")  # how the names of columns end that are lists

Stored = Literal["top"] | BaseType


@dataclass(frozen=True, slots=True)
class StatesHeader:
    """What a base file says of the hidden states that it holds in place of distributions."""

    width: Annotated[int, Meta(ge=1, le=1 << 20)]
    dtype: StoredType
    output_layer: str  # digest of what makes distributions of them
    folder: str  # where the model was, as a full path; empty if it was in memory


@dataclass(frozen=True, slots=True)
class BaseHeader:
    """What a base file says of itself."""

    model: str
    model_fingerprint: str
    tokenizer_fingerprint: str
    vocabulary_fingerprint: str
    vocabulary_size: Annotated[int, Meta(ge=1, le=_MOST_VOCABULARY)]
    context: str  # its context policy, as signatures show it
    text_sha256: str
    asked_events: Whole | None  # about how many events were asked for; None: all
    events: Whole
    total_events: Whole
    segments: Whole
    total_segments: Whole
    stored: Stored  # "top", or what whole distributions are stored as
    top: Whole  # how many of the most probable tokens are stored for each event; 0 where all are
    # how many tokens were drawn from the rest for each unit of its probability
    samples: Annotated[int, Meta(ge=0, le=1 << 20)]
    seed: Whole  # of the sample of segments, and of the draws
    # ids, ascending, of tokens that cannot come at any stored event, such as `<s>`; all, or none of too many
    ruled_out: Annotated[tuple[Whole, ...], Meta(max_length=MOST_RULED_OUT)]
    lmgauge: str  # version of the program that wrote it
    states: StatesHeader | None = None  # where they are stored

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the file."""
        import pyarrow as pa

        columns = {"token": pa.uint32(), "kind": pa.uint8(), "logprob": pa.float64(), "mass": pa.float64()}
        if self.stored == "top":
            columns |= {"entropy": pa.float64(), "tail_mass": pa.float64(), "tail_tokens": pa.uint32()}
            columns |= {"top_ids": pa.list_(pa.uint32()), "top_logprobs": pa.list_(pa.float32())}
            columns |= {"drawn_ids": pa.list_(pa.uint32()), "drawn_logprobs": pa.list_(pa.float32())}
        else:
            name, dtype = ("logprobs", self.stored) if self.states is None else ("states", self.states.dtype)
            columns[name] = pa.list_(pa.float32() if dtype == "float32" else pa.uint16())
        return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])

    @property
    def widest(self) -> int:
        """Return how many values of one column a row can have."""
        if self.states is not None:
            return self.states.width
        return max(self.top, self.samples + 1) if self.stored == "top" else self.vocabulary_size

    @property
    def whole_bytes(self) -> int:
        """Return how many bytes whole distributions in 16 bits a token take, as llama.cpp stores them."""
        return 2 * self.vocabulary_size * self.events

    @property
    def group_rows(self) -> int:
        """Return how many rows a row group has, but the last."""
        return max(1, _GROUP_VALUES // self.widest)


# --- rows, and tables of them -----------------------------------------------------------------------------------------


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
        return ready(normal, None, self.token.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class ComputedRows(WholeRows):
    """Whole distributions at consecutive events that an output layer has just made of hidden states."""

    logprobs: Any  # float32 [n, vocabulary] of torch
    p: Any  # the same as probabilities

    def tile(self) -> Tile:
        return ready(self.logprobs.clip(min=LOWEST), self.p, self.token.astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class StateRows(BaseRows):
    """The hidden states that an output layer makes the distributions at consecutive events of."""

    states: NDArray[np.float32]  # float32 [n, width]; NaN where nothing is shown before an event

    def computed(self, layer: LastLayer) -> Iterator[ComputedRows]:
        """Yield the rows with their distributions, a few at a time."""
        done = 0
        for logprob, p in layer.distributions(self.states):
            part = self.part(done, done + len(p))
            yield ComputedRows(part.token, part.kind, part.logprob, part.mass, logprob, p)
            done += len(p)


Rows = StoredRows | WholeRows | StateRows


def whole_rows(tile: Tile) -> WholeRows:
    """Return a tile as rows, all events as ordinary tokens."""
    # whole_rows(Tile(lambda: np.log([[0.5, 0.5]]), [0])).logprobs.round(4) -> [[-0.6930999755859375, -0.6930999755859375]]
    logprobs = as_numpy(tile.logprob)
    mass = np.exp(logprobs).sum(axis=1)
    log_mass = np.log(np.where(mass > 0, mass, 1.0))[:, None]
    rounded = np.where(logprobs < LOWEST / 2, -np.inf, np.minimum(logprobs - log_mass, 0.0)).astype(np.float32)
    kind = np.full(len(tile), TOKEN, np.uint8)
    return WholeRows(tile.targets.astype(np.uint32), kind, tile.of_targets(), mass, rounded)


def state_rows(tile: Tile, width: int) -> StateRows:
    """Return what the distributions of a tile are made of, as rows, all events as ordinary tokens."""
    states = np.full((len(tile), width), np.nan, np.float32) if tile.states is None else tile.states.float().cpu().numpy()
    kind = np.full(len(tile), TOKEN, np.uint8)
    mass = as_numpy(tile.xp.sum(tile.p, axis=1))
    return StateRows(tile.targets.astype(np.uint32), kind, tile.of_targets(), mass, states)


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the upper 16 bits of float32 values, rounded to the nearest, ties to even."""
    # [hex(bits) for bits in bfloat16_bits([1.0, -2.0])] -> ['0x3f80', '0xc000']
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_table(rows: Rows, header: BaseHeader) -> pa.Table:
    """Return rows as a table."""
    import pyarrow as pa

    schema, columns = header.schema, []
    for field in schema:
        values = getattr(rows, field.name)
        if not pa.types.is_list(field.type):
            columns.append(pa.array(values, field.type))
            continue
        # A row has as many values as the array is wide, or as many as draws: draws [2, 0, 1] -> bounds [0, 2, 2, 3].
        sizes = np.full(len(rows), values.shape[1]) if values.ndim == 2 else rows.draws  # type: ignore[union-attr]
        bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        values = bfloat16_bits(values) if pa.types.is_uint16(field.type.value_type) else values
        flat = values.ravel().astype(field.type.value_type.to_pandas_dtype())
        columns.append(pa.ListArray.from_arrays(pa.array(bounds), pa.array(flat), type=field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def from_table(table: pa.Table, header: BaseHeader) -> Rows:
    """Return the rows of a table."""
    columns = {name: table[name].combine_chunks() for name in table.schema.names}
    for name, column in columns.items():
        _require(not column.null_count, f"column {name!r} has rows without a value")
    plain = {name: _numbers(column) for name, column in columns.items() if not name.endswith(_LISTS)}
    _require((plain["token"] < header.vocabulary_size).all(), "a token is not in the vocabulary")
    _require((plain["kind"] <= EOS_KIND).all(), "a kind is unknown")  # of events only: nothing is spelled in a base
    if header.stored != "top":
        name = table.schema.names[-1]
        values = _list(columns, name, np.full(len(table), header.widest))
        if values.dtype == np.uint16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        values = values.reshape(len(table), header.widest)
        if header.states is None:
            return WholeRows(**plain, logprobs=values)
        _require(np.isfinite(values[~np.isnan(values).all(axis=1)]).all(), "a hidden state is not finite")
        return StateRows(**plain, states=values)
    tail_mass = plain["tail_mass"]
    _require(((tail_mass >= 0) & (tail_mass <= 1)).all(), "a mass is not between 0 and 1")
    draws, fixed = draws_of(tail_mass, header.samples), np.full(len(table), header.top)
    rows = StoredRows(
        **plain,
        draws=draws,
        top_ids=_list(columns, "top_ids", fixed).reshape(-1, header.top),
        top_logprobs=_list(columns, "top_logprobs", fixed).astype(np.float64).reshape(-1, header.top),
        drawn_ids=_list(columns, "drawn_ids", draws),
        drawn_logprobs=_list(columns, "drawn_logprobs", draws).astype(np.float64),
    )
    _require((rows.top_ids < header.vocabulary_size).all(), "a most probable token is not in the vocabulary")
    _require((rows.drawn_ids < header.vocabulary_size).all(), "a drawn token is not in the vocabulary")
    return rows


def _numbers(column: pa.Array) -> NDArray[Any]:
    return np.array(column.to_numpy(zero_copy_only=False))


def _list(columns: dict[str, pa.Array], name: str, sizes: NDArray[np.int64]) -> NDArray[Any]:
    # Values of a list column, whose lists must have given lengths.
    import pyarrow.compute as pc

    lengths = np.array(pc.list_value_length(columns[name]).to_numpy(zero_copy_only=False))
    _require(np.array_equal(lengths, sizes), f"the lists of {name!r} have other lengths than they should")
    values = columns[name].flatten()
    _require(not values.null_count, f"a list of {name!r} lacks a value")
    return _numbers(values)


def _require(right: bool | np.bool_, wrong: str) -> None:
    if not right:
        raise ValueError(wrong)


# --- the file ---------------------------------------------------------------------------------------------------------


@contextmanager
def writing_base(path: str | os.PathLike[str], header: BaseHeader) -> Iterator[BaseWriter]:
    """Open a base file for writing, which appears under its name when the block ends well, and not at all otherwise."""
    with writing(path) as file:
        writer = BaseWriter(file, header)
        try:
            yield writer
            writer.finish()
        finally:
            with suppress(OSError):  # where it is not closed yet, it is not whole, and does not appear
                writer.parquet.close()
        seal(file)


class BaseWriter:
    """Writes the rows of a base file; `writing_base` makes one."""

    def __init__(self, file: IO[bytes], header: BaseHeader) -> None:
        import pyarrow.parquet as pq

        self.header = header  # may change until the end in all but what the columns come of
        self._waiting = header.schema.empty_table()
        lists = [f"{name}.list.element" for name in header.schema.names if name.endswith(_LISTS)]
        self.parquet = pq.ParquetWriter(
            file,
            header.schema,
            compression="zstd",
            compression_level=_COMPRESSION,
            use_dictionary=["kind"],
            column_encoding=dict.fromkeys(lists, "BYTE_STREAM_SPLIT"),
            write_page_checksum=True,
            write_statistics=False,
            store_schema=False,
        )

    def write(self, table: pa.Table) -> None:
        """Write a table of rows; how they are cut into calls makes no difference to the file."""
        import pyarrow as pa

        self._waiting = pa.concat_tables([self._waiting, table])
        while len(self._waiting) >= self.header.group_rows:
            self._write_group(self.header.group_rows)

    def _write_group(self, size: int) -> None:
        self.parquet.write_table(self._waiting.slice(0, size).combine_chunks(), row_group_size=size)
        self._waiting = self._waiting.slice(size)

    def finish(self) -> None:
        """Write what is left, the header and the place of the seal."""
        if len(self._waiting):
            self._write_group(len(self._waiting))
        header = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(self.header)
        if self.header.states is None:
            del header["states"]
        self.parquet.add_key_value_metadata({METADATA_KEY: json.dumps(header).encode(), SEAL_KEY: UNSEALED})
        self.parquet.close()


class BaseFile:
    """A base that was stored, whole and unchanged; to be closed, or used in a `with` block."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with ExitStack() as stack:
            self._file = stack.enter_context(open_reading(self.path))
            with _explained(self.path):
                check_seal(self._file)
                self._parquet = stack.enter_context(open_parquet(self._file))
                self.header = _header(self._parquet, self.path)
                _check_groups(self._parquet, self.header)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    @property
    def size_bytes(self) -> int:
        """Return how long the file is."""
        return os.fstat(self._file.fileno()).st_size

    def rows(self) -> Iterator[Rows]:
        """Yield the rows, some at a time."""
        first = 0
        for group in range(self._parquet.metadata.num_row_groups):
            with _explained(self.path, f"event {first} and those behind it: "):
                rows = from_table(self._parquet.read_row_group(group, use_threads=False), self.header)
            yield rows
            first += len(rows)


@contextmanager
def _explained(path: Path, where: str = "") -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if str(path) in str(error):  # it says all there is to say
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"{path}: is not a base file as lmgauge writes it: {where}{reason}; {_AGAIN}") from error


def _header(file: pq.ParquetFile, path: Path) -> BaseHeader:
    values = from_json((file.metadata.metadata or {}).get(METADATA_KEY, b"{}"), own=True)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ValueError("its header is that of another file")
    if values.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path}: is a base file of version {str(values.get('format_version'))[:20]}; this lmgauge reads version "
            f"{FORMAT_VERSION}: store it again with --save-base, or install the lmgauge that wrote it"
        )
    header = decode(values, BaseHeader, path, "a base file", _AGAIN)
    if any(one >= other for one, other in pairwise((*header.ruled_out, header.vocabulary_size))):
        raise ValueError("the tokens that cannot come are not ids in order")
    if (header.stored == "states") != (header.states is not None):
        raise ValueError("it does not say what hidden states it holds")
    return header


def _check_groups(file: pq.ParquetFile, header: BaseHeader) -> None:
    metadata, schema = file.metadata, header.schema
    if list(map(_shape, file.schema_arrow)) != list(map(_shape, schema)):
        raise ValueError("its columns are not those of a base file")
    if metadata.num_rows != header.events:
        raise ValueError(f"it has {metadata.num_rows:,} rows, and its header speaks of {header.events:,}")
    most = header.group_rows
    for group in range(metadata.num_row_groups):
        own = metadata.row_group(group)
        if not 0 < own.num_rows <= most:
            raise ValueError(f"a row group has {own.num_rows:,} rows, not 1 to {most:,}")
        # 8 bytes a value, as many for levels and pages, and what a short column takes in any case.
        if not 0 <= own.total_byte_size <= len(schema) * (own.num_rows * 16 * header.widest + _CHUNK):
            raise ValueError("a row group is larger than its rows")


def _shape(field: pa.Field) -> tuple[str, str]:
    # Name and type of a column, of a list the type of its values, whose name is free.
    import pyarrow.types as types

    return field.name, f"list of {field.type.value_type}" if types.is_list(field.type) else str(field.type)
