"""Score tables on disk: Parquet as written here, and tables from elsewhere, read with every value checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError
from lmgauge.base.files import writing
from lmgauge.base.json_text import from_json
from lmgauge.base.option_numbers import number
from lmgauge.base.paths import file_state
from lmgauge.records.formats import RECORD_ENDINGS, format_of, reader_of, split_compression
from lmgauge.records.parquet import batches_of, is_parquet, open_parquet
from lmgauge.records.records import Fields, Row
from lmgauge.records.sources import find_sources
from lmgauge.scores.sequences import SEQUENCES, choose, logprob_columns, rows_of, rows_of_records, schema_of
from lmgauge.scores.table import KINDS, TOKEN, ScoreBatch, StoredStrings, Strings, TokenStrings, distinct_neighbors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

METADATA_KEY = b"lmgauge"
PARQUET_ROWS = 1 << 18
"""Rows of a Parquet table that are read at a time; no figure depends on it."""
_JSON_ROWS = 1 << 16


class ScoreWriter:
    """Writes batches to a Parquet file, which appears under its name when the `with` block ends without an error."""

    def __init__(self, path: str | Path, metadata: Mapping[str, object]) -> None:
        self._path, self._metadata = path, metadata  # kept, not copied: the text's fingerprint is known at the end
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        # With their strings: an object that is gone could give its id to another.
        self._dictionaries: dict[int, tuple[TokenStrings, pa.Array]] = {}

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(writing(self._path))
        return self

    def write(self, batch: ScoreBatch, ids: Sequence[str] | None = None) -> None:
        """Write the rows of a batch."""
        # ids: [s], the ids of its segments; None if they have none.
        import pyarrow as pa
        import pyarrow.parquet as pq

        key = id(batch.strings)
        if key not in self._dictionaries:
            self._dictionaries[key] = batch.strings, pa.array(batch.strings.tokens, pa.string())
        rows = batch.to_arrow(self._dictionaries[key][1])
        if ids is not None:
            named = pa.array(ids, pa.string()).dictionary_encode()  # equal ids once, or the bytes of the file vary
            of_row = np.repeat(named.indices.to_numpy(), batch.segment_events)
            rows = rows.append_column("id", pa.DictionaryArray.from_arrays(pa.array(of_row), named.dictionary))
        if self._writer is None:
            schema = rows.schema.with_metadata({METADATA_KEY: json.dumps(self._metadata).encode()})
            self._writer = pq.ParquetWriter(self._file, schema, compression="zstd", use_dictionary=["token", "kind", "id"])
        self._writer.write_batch(rows)

    def __exit__(self, *error: Any) -> bool | None:
        if self._writer is not None:
            if error[0] is None:
                self._writer.add_key_value_metadata({METADATA_KEY: json.dumps(self._metadata).encode()})
            self._writer.close()
        return self._stack.__exit__(*error)


def read_scores(path: str | Path, columns: Sequence[str] | None = None, logprob: str = "") -> Iterator[ScoreBatch]:
    """Yield the batches of a score table: Parquet as written here, or records with at least `segment` and `logprob`.

    Foreign tables may leave out `start`, `end`, `token` and `kind`. A row without `kind` is a token; any other column is in
    every row or in none. A log with a row a sequence has lists instead: of token ids and of their log-probabilities. Replies
    of servers in JSON are read as `lmgauge import` reads them.

    Args:
        path: the file; its name says its format (JSON lines also in .json), and is Parquet where it says none.
        columns: which to read besides `segment` and `logprob`, also `position` (place of a token in its list); all if None.
        logprob: the column that is read as `logprob`.

    Raises:
        InputError: the file cannot be read, or a row breaks the rules of the table.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "scores.jsonl")
        ...     _ = path.write_text('{"segment": 0, "logprob": -0.5}\\n{"segment": 0, "logprob": -1.5}\\n')
        ...     [batch.logprob.tolist() for batch in read_scores(path)]
        [[-0.5, -1.5]]
    """
    path = Path(path)
    last, reach, document = -1, 0, -1
    documents: dict[object, int] = {}
    strings: TokenStrings = Strings([""])
    for rows in _read_rows(path, columns, logprob):
        batch = _from_arrow(rows, path, last, reach)
        if "position" in (columns or ()) and "position" in rows.schema.names:
            batch = replace(batch, extra={**batch.extra, "position": rows["position"].to_numpy()})
        if batch.strings == strings:  # the same object, so that what is known of it need not be found out again
            batch = replace(batch, strings=strings)
        strings = batch.strings
        if "document" in rows.schema.names:
            numbers = _numbered(rows["document"], documents, path)
            batch = replace(batch, extra={**batch.extra, "document": numbers})
            of_row = batch.row_segments()
            # segments [4, 4, 5], documents [1, 2, 2] -> torn [F, T, F]: the second row is of the segment of the first and
            # of another document.
            torn = (np.diff(of_row, prepend=last) == 0) & (np.diff(numbers, prepend=document) != 0)
            if torn.any():
                raise InputError(f"{path}: segment {of_row[torn][0]} is in several documents; a segment is in one")
            document = int(numbers[-1]) if len(numbers) else document
        if len(batch.segments) and (np.any(np.diff(batch.segments) < 0) or batch.segments[0] < last):
            raise InputError(
                f"{path}: column 'segment' must not fall: the rows of a segment stand together, in reading order"
            )
        last = int(batch.segments[-1]) if len(batch.segments) else last
        reach = int(batch.ends[-1]) if len(batch.ends) else reach
        yield batch


class RowReader:
    """Reads any rows of a Parquet score table; only the row groups that they are in are touched."""

    # The file stays open, so that what is read is of one file even if another takes its place; `unchanged` tells.

    def __init__(self, path: str | Path) -> None:
        self.path, self._stack = Path(path), ExitStack()
        with _reading(self.path):
            self._file = self._stack.enter_context(open_parquet(self.path))
            self._state = file_state(self.path)
        metadata = self._file.metadata
        sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        self._bounds = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.rows = int(self._bounds[-1])
        self.columns: list[str] = self._file.schema_arrow.names
        self._last: tuple[int, int, list[str] | None, Any] = 0, 0, None, self._file.schema_arrow.empty_table()

    def unchanged(self) -> bool:
        """Return True if the file is still there and is the one that was opened."""
        try:
            return file_state(self.path) == self._state
        except InputError:
            return False

    def read(self, begin: int, end: int, columns: Sequence[str] | None = None) -> ScoreBatch:
        """Return consecutive rows, the first of which begins a segment."""
        # bounds [0, 100, 200], rows 150 to 200: groups 1 to 2 (not included), that is one.
        first = max(0, int(np.searchsorted(self._bounds, begin, side="right")) - 1)
        last = int(np.searchsorted(self._bounds, end, side="left"))
        wanted = None if columns is None else [name for name in columns if name in self.columns]
        with _reading(self.path):
            if self._last[:3] != (first, last, wanted):  # neighbors are asked for one by one
                groups = self._file.read_row_groups(range(first, last), columns=wanted, use_threads=False)
                self._last = first, last, wanted, groups
            rows = self._last[3].slice(begin - int(self._bounds[first]), end - begin)
            if not len(rows):
                raise InputError(f"{self.path}: has no rows {begin} to {end}")
            return _from_arrow(rows.combine_chunks().to_batches()[0], self.path, -1, 0)


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return what a table stored by lmgauge records of its origin; empty for any other."""
    path = Path(path)
    if table_format(path) != "parquet":
        return {}
    with _reading(path):
        path.open("rb").close()  # where it cannot be read, that is what is wrong
        if not is_parquet(path):
            first = "a text is evaluated first: `lmgauge eval -m MODEL TEXT -o RUN`"
            raise InputError(f"{path}: is not a run or a score table ({RECORD_ENDINGS}); {first}")
        with open_parquet(path) as table:
            stored = (table.metadata.metadata or {}).get(METADATA_KEY, b"{}")
        metadata = from_json(stored)
    return metadata if isinstance(metadata, dict) else {}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
        reason = "a whole number has more than 64 bits" if isinstance(error, OverflowError) else str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be read as a score table ({RECORD_ENDINGS}): {reason}") from error


def table_format(path: str | Path) -> Format:
    """Return which format of records a score table has, by its name; where that says none, it is Parquet."""
    if split_compression(str(path))[0].endswith(".json"):
        return "jsonl"
    form = format_of(path)
    return "parquet" if form == "text" else form


def _read_rows(path: Path, columns: Sequence[str] | None, logprob: str) -> Iterator[pa.RecordBatch]:
    with _reading(path):
        if (form := table_format(path)) == "parquet":
            yield from _read_parquet(path, columns, logprob)
            return
        source = find_sources(path, form)[0]
        if not source.one_shot and not logprob and (replies := _replies(path)) is not None:
            yield from replies
            return
        records = reader_of(source, Fields(quotes=True)).rows()
        first = list(islice(records, 1))
        schema = schema_of(first[0].fields if first else {})
        if "segment" not in schema.names and logprob_columns(schema):
            yield from rows_of_records(chain(first, records), choose(schema, str(path), logprob), str(path))
        else:
            yield from _read_records(path, chain(first, records), columns, logprob)


def _read_parquet(path: Path, columns: Sequence[str] | None, logprob: str) -> Iterator[pa.RecordBatch]:
    with open_parquet(path, dictionary="token") as file:
        schema = file.schema_arrow
        if "segment" not in schema.names and logprob_columns(schema):
            log, first = choose(schema, str(path), logprob), 0
            for rows in batches_of(file, SEQUENCES, log.names):
                yield rows_of(rows, log, first, [f"{path}, row {row}" for row in range(first + 1, first + len(rows) + 1)])
                first += len(rows)
            return
        _require_columns(path, schema.names, logprob or "logprob")
        known = {"segment", "logprob", logprob, *(_COLUMNS if columns is None else _COLUMNS & {*columns})}
        wanted = [name for name in schema.names if name in known]
        for rows in batches_of(file, PARQUET_ROWS, wanted):
            if logprob in wanted:  # in the place of the column of that name
                others = [name for name in rows.schema.names if name not in ("logprob", logprob)]
                rows = rows.select([*others, logprob]).rename_columns([*others, "logprob"])
            yield rows


def _replies(path: Path) -> Iterator[pa.RecordBatch] | None:
    # Rows of replies of servers in JSON, as `lmgauge import` reads them; None if it is something else.
    from lmgauge.scores.imports.log import Log, LogFile
    from lmgauge.scores.imports.replies import OUTPUTS
    from lmgauge.scores.imports.token_alignment import rows

    file, log = LogFile(path), Log("nats")
    head = file.head if path.stat().st_size else b""
    parse = next((output.parse for output in OUTPUTS if output.recognizes(head)), None)
    return None if parse is None else (batch.to_arrow() for batch in rows(parse(file, log), log))


def _read_records(
    path: Path, records: Iterable[Row], columns: Sequence[str] | None, logprob: str
) -> Iterator[pa.RecordBatch]:
    # Records in batches of rows; a logprob that is a string, such as "-inf" (JSON has no infinities), is read as a number.
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    first, names = 0, frozenset[str]()
    known = _COLUMNS if columns is None else _COLUMNS & {*columns, "segment", "logprob"}
    for line, row in records:
        if logprob in row:
            row["logprob"] = row[logprob]
        if isinstance(row.get("logprob"), str):
            row["logprob"] = number(row["logprob"], f"{path}, line {line}")
        if not first:
            _require_columns(path, list(row), logprob or "logprob")
        row.setdefault("kind", KINDS[TOKEN])  # some programs write it only where it is not this
        here = known & row.keys()
        if not first:
            first, names = line, here
        if here != names:
            name = min(here ^ names)
            has, lacks = (first, line) if name in names else (line, first)
            raise InputError(f"{path}, line {lacks}: no {name!r}, which line {has} has; write it in every row, or in none")
        rows.append(row)
        if len(rows) == _JSON_ROWS:
            yield pa.RecordBatch.from_pydict({name: [row[name] for row in rows] for name in sorted(names)})
            rows = []
    if rows:
        yield pa.RecordBatch.from_pydict({name: [row[name] for row in rows] for name in sorted(names)})


_INTEGERS = ("segment", "start", "end", "context", "rank")
_FLOATS = (
    *("logprob", "entropy", "mean_logprob", "logprob_deviation", "mass", "word_boundary", "kl", "base_logprob"),
    *("spelling", "separator", "altered"),
)
_COLUMNS = frozenset((*_INTEGERS, *_FLOATS, "top_tokens", "top_logprobs", "token", "kind", "document"))
_LARGEST = 1 << 52  # of an integer
_ROUNDING = 1e-9  # nats: an entropy of 0 may come out that far below it


def _from_arrow(rows: pa.RecordBatch, path: Path, last: int, reach: int) -> ScoreBatch:
    # Checked rows; the row before them is of segment `last`, and its span ended at byte `reach`.
    import pyarrow as pa

    names = rows.schema.names
    _require_columns(path, names)
    for name in sorted(_COLUMNS & set(names)):
        if names.count(name) > 1:
            raise InputError(f"{path}: the score table has {names.count(name)} columns called {name!r}; leave one")
        if rows[name].null_count:
            raise InputError(f"{path}: column {name!r} of the score table has rows without a value")
    try:
        kind = _kinds(rows["kind"]) if "kind" in names else np.full(len(rows), TOKEN, np.uint8)
        token = _tokens(rows["token"]) if "token" in names else None
        integers, floats = (
            {name: rows[name].cast(type_).to_numpy(zero_copy_only=False) for name in known if name in names}
            for known, type_ in ((_INTEGERS, pa.int64()), (_FLOATS, pa.float64()))
        )
        types = {"top_tokens": pa.string(), "top_logprobs": pa.float64()}
        lists = {name: _lists(rows[name], type_) for name, type_ in types.items() if name in names}
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{path}: the score table holds a value of the wrong type: {str(error).splitlines()[0]}") from error
    row_segments, ends, logprob = integers["segment"], integers.get("end", np.zeros(0, np.int64)), floats["logprob"]
    nothing = np.zeros(0)
    entropy = floats.get("entropy", nothing)
    for name, wrong, rule in (
        ("logprob", ~(logprob <= 0), "it must be the natural log of a probability"),
        ("entropy", ~((entropy >= -_ROUNDING) & (entropy < np.inf)), "an entropy is 0 or more and finite, in nats"),
        ("kl", floats.get("kl", nothing) < 0, "a divergence is not below 0"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{path}: {name} is {floats[name][row]} in segment {row_segments[row]}; {rule}")
    for name, values in integers.items() if len(rows) else ():
        lowest = int(name == "rank")
        if values.min() < lowest:
            raise InputError(f"{path}: column {name!r} holds {values.min()}; {name}s count from {lowest}")
        if values.max() > _LARGEST:
            raise InputError(f"{path}: column {name!r} holds {values.max()}; no {name} is above {_LARGEST:,}")
    extra: dict[str, Any] = {name: integers[name] for name in ("context", "rank") if name in integers}
    extra |= {name: values for name, values in floats.items() if name != "logprob"} | lists
    segments, counts = distinct_neighbors(row_segments)
    ids, strings = token or (np.zeros(len(logprob), np.uint32), Strings([""]))
    batch = ScoreBatch(segments, counts, ids, strings, np.array(logprob), kind, ends, extra)
    if len(ends):
        expected = batch.starts()
        starts = integers.get("start", expected)
        begins = ends[:0] if np.array_equal(starts, expected) else starts
        # A segment that goes on from the batch before: its first span here begins where the last one there ended.
        if row_segments[0] == last:
            expected[0] = reach
        apart = int(np.count_nonzero(starts != expected)) + int(np.count_nonzero(batch.ends < starts))
        batch = replace(batch, spans_apart=apart, gaps=int(np.count_nonzero(starts > expected)), begins=begins)
    return batch


def _tokens(column: pa.Array) -> tuple[NDArray[np.uint32], StoredStrings]:
    # Ids of tokens and their strings, as a dictionary that the file has, or a new one.
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column.cast(pa.string()))
    strings = encoded.dictionary.cast(pa.string())
    if strings.null_count:
        raise ValueError("a token is null")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.uint32), StoredStrings(strings)


def _lists(column: pa.Array, kind: pa.DataType) -> NDArray[Any]:
    # Column of lists as an array [n, k], where all have the same length.
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(lengths) and (lengths != lengths[0]).any():
        raise ValueError("the lists of most probable tokens have different lengths")
    values: NDArray[Any] = pc.list_flatten(column).cast(kind).to_numpy(zero_copy_only=False)
    return values.reshape(len(lengths), int(lengths[0]) if len(lengths) else 0)


def _numbered(column: pa.Array, known: dict[object, int], path: Path) -> NDArray[np.int64]:
    # Documents of rows as numbers by first appearance in the table; `known` has those met before, and grows.
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(fits(column.type) for fits in (pa.types.is_integer, pa.types.is_dictionary, *texts)):
        raise InputError(f"{path}: column 'document' of the score table holds {column.type}, not whole numbers or strings")
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    numbers = np.array([known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()], np.int64)
    of_row: NDArray[np.int64] = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
    return of_row


def _require_columns(path: Path, names: Sequence[str], logprob: str = "logprob") -> None:
    for name in ("segment", logprob):
        if name not in names:
            way = f"lmgauge import {path} --logprob COLUMN --logprob COLUMN --log-unit nats -o RUNS"
            raise InputError(
                f"{path}: no column {name!r} in the score table; it has {', '.join(names) or 'none'}; "
                f"another table is imported first: `{way}`"
            )


def _kinds(column: pa.Array) -> NDArray[np.uint8]:
    import pyarrow as pa
    import pyarrow.compute as pc

    strings = column.cast(pa.string())
    places = pc.index_in(strings, pa.array(KINDS))
    if places.null_count:
        unknown = strings.filter(places.is_null())[0].as_py()
        raise ValueError(f"kind {unknown!r} is unknown; kinds are {', '.join(KINDS)}")
    kinds: NDArray[np.uint8] = places.to_numpy(zero_copy_only=False).astype(np.uint8)
    return kinds
