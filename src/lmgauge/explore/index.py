"""The index of one or two runs: for each segment where its rows and its text are, and its exact sums; all of it in files."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.files import file_sha256
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.runs import Run, lockstep, refuse_other_text
from lmgauge.evaluation.slicing.span_alignment import exact_sums
from lmgauge.numerics.exact import ExactSums
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import RowReader, ScoreBatch, ScoreWriter, read_scores, table_format

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments


# -----------------------------------------------------------------------------------------------------------------------
# Columns of an index in files: they grow at their end while others read them, and take no memory of the process.
class Column:
    """An array in a file that only grows."""

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self._path, self._dtype, self._size = path, np.dtype(dtype), 0
        self._mapped: NDArray[Any] = np.zeros(0, self._dtype)

    def __len__(self) -> int:
        return self._size

    def append(self, values: NDArray[Any]) -> None:
        """Add values, [n], of any type that becomes the column's."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(values, self._dtype).data)
        self._size += len(values)

    def view(self, size: int) -> NDArray[Any]:
        """Return the first values, [size], mapped into memory read only."""
        if size > len(self._mapped):
            # As a plain array: each slice of a memmap costs as much as a small answer.
            self._mapped = np.asarray(np.memmap(self._path, self._dtype, "r", shape=(self._size,)))
        return self._mapped[:size]


class Table:
    """Columns of one length, by name."""

    def __init__(self, folder: Path, kinds: Mapping[str, DTypeLike]) -> None:
        folder.mkdir()
        self._columns = {name: Column(folder / name, kind) for name, kind in kinds.items()}

    def append(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, [n] of each column."""
        for name, column in self._columns.items():
            column.append(values[name])

    def view(self, name: str, size: int) -> NDArray[Any]:
        """Return the first values of a column, [size]."""
        return self._columns[name].view(size)


# -----------------------------------------------------------------------------------------------------------------------
# One thread reads the tables and the text once, side by side, from the beginning; what it has read can be asked for while it
# goes on. Ten million rows take seconds, and memory for a block of them at a time.


NO_DOCUMENT = -1
# `row` is a segment's first in the table; `high` and `low` are its exact sum in nats, without the `zeros` events of
# probability zero.
_OF_RUN = {"row": np.int64, "events": np.int32, "oov": np.int32, "zeros": np.int32, "high": np.int64, "low": np.uint64}
# `given`, `start` and `end` are places in the text of all segments; `id_end` is one in all their ids, side by side.
_OF_TEXT = {
    "segment": np.int64, "bytes": np.int64, "group": np.int32, "document": np.int64, "source": np.int32, "line": np.int64,
    "given": np.int64, "start": np.int64, "end": np.int64, "id_end": np.int64,
}  # fmt: skip


class Index:
    """What is known of each segment, by its place in reading order."""

    def __init__(self, runs: Sequence[Run], corpus: Corpus | None, folder: Path) -> None:
        self.runs, self.corpus, self._folder = tuple(runs), corpus, folder
        self.size, self.is_complete, self.problem, self.seal = 0, False, "", ""
        self.groups: list[str] = []
        self.sources: dict[str, int] = {}
        self.readers = [RowReader(_as_parquet(run, folder / f"table-{i}.parquet")) for i, run in enumerate(runs)]
        self.segments = Table(folder / "segments", _OF_TEXT)
        self.scores = [Table(folder / f"scores-{i}", _OF_RUN) for i in range(len(runs))]
        self.text, self.ids = Column(folder / "text", np.uint8), Column(folder / "ids", np.uint8)
        self._locks = [threading.Lock() for _ in runs]
        self._rows = [0] * len(runs)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.build, name="lmgauge-index", daemon=True)
        self._policy = max((run.origin.policy for run in runs), key=lambda policy: policy.counts_line_ends)

    # -- reading --------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to read, in a thread of its own."""
        self._thread.start()

    def build(self) -> None:
        """Read all of the tables and the text; `problem` says what stopped it."""
        problem = ""
        try:
            tables = [read_scores(reader.path) for reader in self.readers]
            for block, batches in lockstep(tables, self.corpus, [run.name for run in self.runs]):
                if self._stop.is_set():
                    return
                self._add(block, batches)
            self._verify()
        except LmgaugeError as error:
            problem = str(error)
        except OSError as error:
            problem = f"the index cannot be written to {self._folder}: {error.strerror or error}"
        with self._changed:
            self.problem, self.is_complete = problem, not problem
            self._changed.notify_all()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def wait(self, size: int | None = None, seconds: float = 10.0) -> None:
        """Wait until this many segments, or all, are indexed, or nothing more will come."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.is_complete or bool(self.problem) or (size is not None and self.size >= size), seconds
            )

    @property
    def share(self) -> float:
        """Return how much of the tables is read, 0 to 1."""
        return 1.0 if self.is_complete else self._rows[0] / max(1, self.readers[0].rows)

    def _add(self, block: Segments | None, batches: Sequence[ScoreBatch]) -> None:
        # Without the text tables are read in ranges of segments, some of which no table has.
        there = np.any([batch.segment_events > 0 for batch in batches], axis=0)
        shown = slice(None) if block is not None else np.flatnonzero(there)
        for k, batch in enumerate(batches):
            self.scores[k].append({name: column[shown] for name, column in self._of_run(k, batch).items()})
        documents = [numbers for part in (block, *batches) if (numbers := _documents(part)) is not None]
        segments = batches[0].segments[shown]
        values: dict[str, NDArray[Any]] = dict.fromkeys(_OF_TEXT, np.zeros(len(segments), np.int64))
        values |= {"segment": segments, "source": values["group"] - 1, "line": segments + 1}
        values["document"] = documents[0][shown] if documents else values["group"] + NO_DOCUMENT
        if block is None:
            values["bytes"] = np.max([batch.reach() for batch in batches], axis=0)[shown]
        else:
            values |= self._of_text(block, batches[0])
        self.segments.append(values)
        if self.corpus is not None:
            self.groups = list(self.corpus.group_names)
        with self._changed:
            self.size += len(segments)
            self._changed.notify_all()

    def _of_run(self, k: int, batch: ScoreBatch) -> dict[str, NDArray[Any]]:
        events = batch.segment_events
        sums = exact_sums(batch, events)
        bounds = np.concatenate(([0], np.cumsum(events)))
        unseen = np.concatenate(([0], np.cumsum(batch.unseen())))[bounds]
        rows = self._rows[k] + bounds[:-1]
        self._rows[k] += len(batch)
        figures = {"zeros": sums.zeros, "high": sums.high, "low": sums.low}
        return {"row": rows, "events": events, "oov": np.diff(unseen)} | figures

    def _of_text(self, block: Segments, batch: ScoreBatch) -> dict[str, NDArray[Any]]:
        leads = block.starts if block.given_starts is None else block.given_starts
        first = int(leads[0])
        before = len(self.text) - first  # from places in the block to those in all of the text
        self.text.append(block.data[first : int(block.ends[-1])])
        values: dict[str, NDArray[Any]] = {"bytes": segment_bytes(block, batch, self._policy), "line": block.lines()}
        values |= {"given": leads + before, "start": block.starts + before, "end": block.ends + before}
        values["source"] = np.full(len(block), self.sources.setdefault(block.source, len(self.sources)))
        if block.groups is not None:
            values["group"] = block.groups
        if block.ids is not None:
            ids = [name.encode("utf-8", "replace") for name in block.ids]
            values["id_end"] = len(self.ids) + np.cumsum([len(name) for name in ids])
            self.ids.append(np.frombuffer(b"".join(ids), np.uint8))
        return values

    def _verify(self) -> None:
        for run in self.runs:
            if self.corpus is not None:
                refuse_other_text(run, self.corpus.report.sha256)
            if run.scores_sha256 and file_sha256(run.scores) != run.scores_sha256:
                self.seal = f"{run.scores}: is not the table that evaluation.json was made from: it was changed"

    # -- asking ---------------------------------------------------------------------------------------------------------
    def check_unchanged(self) -> None:
        """Refuse to go on where a table is not the one that was opened."""
        for reader, run in zip(self.readers, self.runs, strict=True):
            if not reader.unchanged():
                raise InputError(f"{run.path}: was changed or removed while it was looked at: start `lmgauge explore` again")

    def sums(self, k: int, size: int, places: slice | NDArray[Any] = slice(None)) -> ExactSums:
        """Return the exact sums of run `k` for some of the first segments."""
        return ExactSums(*(np.asarray(self.scores[k].view(name, size)[places]) for name in ("high", "low", "zeros")))

    def bits(self, k: int, size: int, places: slice = slice(None)) -> NDArray[np.float64]:
        """Return the bits of these segments by run `k`, float64; infinite with an event of probability zero."""
        return nats_to_bits(-self.sums(k, size, places).nats())

    def number(self, name: str, place: int) -> int:
        """Return one segment's value of a column of `segments`."""
        return int(self.segments.view(name, place + 1)[place])

    def text_between(self, first: str, last: str, place: int) -> bytes:
        """Return the UTF-8 text of a segment from `start` to `end`, or what is `given` before its `start`."""
        begin, end = self.number(first, place), self.number(last, place)
        return self.text.view(end)[begin:end].tobytes()

    def where(self, place: int) -> str:
        """Return the id of a segment, or its file and line."""
        if len(self.ids):
            begin, end = self.number("id_end", place - 1) if place else 0, self.number("id_end", place)
            return self.ids.view(end)[begin:end].tobytes().decode()
        source, line = self.number("source", place), self.number("line", place)
        return f"{list(self.sources)[source]}:{line}" if source >= 0 else f"segment {line - 1}"

    def rows(self, k: int, place: int, most: int, columns: Sequence[str]) -> ScoreBatch:
        """Return the first rows that run `k` has of a segment."""
        row, events = (int(self.scores[k].view(name, place + 1)[place]) for name in ("row", "events"))
        with self._locks[k]:
            if not events:  # it is outside what the run scored
                return self.readers[k].read(0, 1, columns).of_segments(0, 0)
            return self.readers[k].read(row, row + min(events, most), columns)


def _as_parquet(run: Run, path: Path) -> Path:
    # Path of a run's table; of another format than Parquet, where no row is found without reading all before, a copy.
    if table_format(run.scores) == "parquet":
        return run.scores
    rows = 0
    with ScoreWriter(path, {}) as writer:
        for batch in read_scores(run.scores):
            writer.write(replace(batch, extra=dict(batch.extra)))
            rows += len(batch)
    if not rows:
        raise InputError(f"{run.scores}: the score table has no row: there is nothing to look at")
    return path


def _documents(part: Segments | ScoreBatch | None) -> NDArray[np.int64] | None:
    return part.documents() if isinstance(part, ScoreBatch) else None if part is None else part.documents
