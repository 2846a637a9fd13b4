"""A base on disk: one Parquet file with what is stored of a model's distributions at the events of a text."""

# The file is sealed: the SHA-256 of its bytes stands in its footer, and is checked before anything is parsed. Then the
# header is checked, then the size of each row group against it, then that ids are in the vocabulary.

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal, Self

from lmgauge.choices import BaseType
from lmgauge.decoding import Meta, Whole, decode
from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.base_columns import Kept, Rows, column_types, from_table, to_table
from lmgauge.files import writing
from lmgauge.json_text import from_json
from lmgauge.places import open_reading
from lmgauge.records.parquet_files import open_parquet
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

Stored = Literal["top"] | BaseType


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
    stored: Stored  # "top", or the type of whole distributions
    top: Whole  # how many of the most probable tokens are stored of each event; 0 where all are
    # how many tokens were drawn from the rest for each unit of its probability
    samples: Annotated[int, Meta(ge=0, le=1 << 20)]
    seed: Whole  # of the sample of segments, and of the draws
    # ids, ascending, of tokens that cannot come at any stored event, such as `<s>`; all, or none of too many
    ruled_out: Annotated[tuple[Whole, ...], Meta(max_length=MOST_RULED_OUT)]
    lmgauge: str  # version of the program that wrote it

    @property
    def kept(self) -> Kept:
        """Return what the rows hold."""
        return Kept(self.stored, self.vocabulary_size, self.top, self.samples)


@contextmanager
def writing_base(path: str | os.PathLike[str], kept: Kept) -> Iterator[BaseWriter]:
    """Open a base file for writing, which appears under its name when the block ends well, and not at all otherwise."""
    with writing(path) as file:
        writer = BaseWriter(file, kept)
        try:
            yield writer
            writer.finish()
        finally:
            with suppress(OSError):  # where it is not closed yet, it is not whole, and does not appear
                writer.parquet.close()
        seal(file)


class BaseWriter:
    """Writes the rows of a base file; `writing_base` makes one."""

    def __init__(self, file: IO[bytes], kept: Kept) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.kept, self._waiting = kept, list[Rows]()
        self._group = group_rows(kept)
        self.header: BaseHeader | None = None
        types = column_types(kept)
        lists = [f"{name}.list.element" for name in types if name.endswith(("_ids", "logprobs"))]
        self.parquet = pq.ParquetWriter(
            file,
            pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()]),
            compression="zstd",
            compression_level=_COMPRESSION,
            use_dictionary=["kind"],
            column_encoding=dict.fromkeys(lists, "BYTE_STREAM_SPLIT"),
            write_page_checksum=True,
            write_statistics=False,
            store_schema=False,
        )

    def write(self, rows: Rows) -> None:
        """Write rows; how they are cut into calls makes no difference to the file."""
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) < self._group:
            return
        whole = type(rows).joined(self._waiting)
        begin = 0
        while len(whole) - begin >= self._group:
            self._write_group(whole.part(begin, begin + self._group))
            begin += self._group
        self._waiting = [whole.part(begin, len(whole))]

    def _write_group(self, rows: Rows) -> None:
        self.parquet.write_table(to_table(rows, self.kept), row_group_size=len(rows))

    def finish(self) -> None:
        """Write what is left, the header and the place of the seal."""
        assert self.header is not None
        rest = [rows for rows in self._waiting if len(rows)]
        if rest:
            self._write_group(type(rest[0]).joined(rest))
        header = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(self.header)
        self.parquet.add_key_value_metadata({METADATA_KEY: json.dumps(header).encode(), SEAL_KEY: UNSEALED})
        self.parquet.close()


def group_rows(kept: Kept) -> int:
    """Return how many rows a row group has, but the last."""
    return max(1, _GROUP_VALUES // kept.widest)


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
                rows = from_table(self._parquet.read_row_group(group, use_threads=False), self.header.kept)
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
    return header


def _check_groups(file: pq.ParquetFile, header: BaseHeader) -> None:
    metadata, kept = file.metadata, header.kept
    types = column_types(kept)
    schema = file.schema_arrow
    if schema.names != list(types) or any(_shape(schema.field(name).type) != _shape(types[name]) for name in types):
        raise ValueError("its columns are not those of a base file")
    if metadata.num_rows != header.events:
        raise ValueError(f"it has {metadata.num_rows:,} rows, and its header speaks of {header.events:,}")
    most = group_rows(kept)
    for group in range(metadata.num_row_groups):
        own = metadata.row_group(group)
        if not 0 < own.num_rows <= most:
            raise ValueError(f"a row group has {own.num_rows:,} rows, not 1 to {most:,}")
        # 8 bytes a value, as many for levels and pages, and what a short column takes in any case.
        if not 0 <= own.total_byte_size <= len(types) * (own.num_rows * 16 * kept.widest + _CHUNK):
            raise ValueError("a row group is larger than its rows")


def _shape(kind: pa.DataType) -> tuple[str, str]:
    # Kind of a column, and of the values of a list: the name of a list's values is free.
    import pyarrow.types as types

    return ("list", str(kind.value_type)) if types.is_list(kind) else (str(kind), "")
