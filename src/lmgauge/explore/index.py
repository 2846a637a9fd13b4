"""The index of one or two runs: for each segment where its rows and its text are, and its exact sums; all of it in files."""

# One thread reads the tables and the text once, side by side, from the beginning; what it has read can be asked for while it
# goes on. Ten million rows take seconds, and memory for a block of them at a time.

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.digests import file_sha256
from lmgauge.errors import InputError, LmgaugeError
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.slicing.ranges import exact_sums
from lmgauge.explore.columns import Column
from lmgauge.numerics.exact import ExactSums
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import RowReader, ScoreBatch, ScoreWriter, read_scores, table_format

if TYPE_CHECKING:
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

_OF_RUN = {"row": np.int64, "events": np.int32, "oov": np.int32, "zeros": np.int32, "high": np.int64, "low": np.uint64}
_OF_TEXT = {
    "segment": np.int64, "bytes": np.int64, "group": np.int32, "document": np.int64, "source": np.int32, "line": np.int64
}  # fmt: skip
NO_DOCUMENT = -1
_LONGEST_PAUSE = 0.3  # seconds, after each block
_Shown = slice | NDArray[np.int64]


class Index:
    """What is known of each segment, by its place in reading order."""

    def __init__(self, runs: Sequence[Run], corpus: Corpus | None, folder: Path) -> None:
        self.runs, self.corpus, self._folder = tuple(runs), corpus, folder
        self.size, self.is_complete, self.problem, self.seal = 0, False, "", ""
        self.groups: list[str] = []
        self.readers = [RowReader(_as_parquet(run, folder / f"table-{i}.parquet")) for i, run in enumerate(runs)]
        self._locks = [threading.Lock() for _ in runs]
        self._of_text = {name: Column(folder / name, dtype) for name, dtype in _OF_TEXT.items()}
        self._of_run = [
            {name: Column(folder / f"{name}-{i}", dtype) for name, dtype in _OF_RUN.items()} for i, _ in enumerate(runs)
        ]
        self._text, self._text_ends = Column(folder / "text", np.uint8), Column(folder / "text-ends", np.int64)
        self._ids, self._id_ends = Column(folder / "ids", np.uint8), Column(folder / "id-ends", np.int64)
        self._given, self._given_ends = Column(folder / "given", np.uint8), Column(folder / "given-ends", np.int64)
        for ends in (self._text_ends, self._id_ends, self._given_ends):
            ends.append(np.zeros(1, np.int64))
        self._sources: dict[str, int] = {}
        self._rows = [0] * len(runs)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._answering, self._waiting = 0, 0  # requests, and those of them that wait for what is not read yet
        self._thread: threading.Thread | None = None
        policies = [run.origin.policy for run in runs]
        self._policy = next((policy for policy in policies if policy.counts_line_ends), policies[0])

    # -- reading --------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to read, in a thread of its own."""
        self._thread = threading.Thread(target=self.build, name="lmgauge-index", daemon=True)
        self._thread.start()

    def build(self) -> None:
        """Read all of the tables and the text; `problem` says what stopped it."""
        try:
            tables = [read_scores(reader.path) for reader in self.readers]
            for block, batches in lockstep(tables, self.corpus, [run.name for run in self.runs]):
                if self._stop.is_set():
                    return
                self._add(block, batches)
                self._give_way()
            self._verify()
            problem = ""
        except LmgaugeError as error:
            problem = str(error)
        except OSError as error:
            problem = f"the index cannot be written to {self._folder}: {error.strerror or error}"
        with self._changed:
            self.problem, self.is_complete = problem, not problem
            self._changed.notify_all()

    def _give_way(self) -> None:
        until = time.monotonic() + _LONGEST_PAUSE
        while self._answering > self._waiting and time.monotonic() < until and not self._stop.is_set():
            time.sleep(0.002)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Hold the reading back while the block answers a request."""
        with self._changed:
            self._answering += 1
        try:
            yield
        finally:
            with self._changed:
                self._answering -= 1

    def close(self) -> None:
        """Stop reading, and close the files."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)
        for column in (*self._of_text.values(), *(c for own in self._of_run for c in own.values())):
            column.close()
        for column in (self._text, self._text_ends, self._ids, self._id_ends, self._given, self._given_ends):
            column.close()

    def wait(self, size: int | None = None, seconds: float = 10.0) -> bool:
        """Wait until this many segments, or all, are indexed, or nothing more will come."""

        def is_there() -> bool:
            return self.is_complete or bool(self.problem) or (size is not None and self.size >= size)

        with self._changed:
            self._waiting += 1
            self._changed.wait_for(is_there, seconds)
            self._waiting -= 1
        return self.is_complete or (size is not None and self.size >= size)

    @property
    def share(self) -> float:
        """Return how much of the tables is read, 0 to 1."""
        return 1.0 if self.is_complete else self._rows[0] / max(1, self.readers[0].rows)

    def _add(self, block: Segments | None, batches: Sequence[ScoreBatch]) -> None:
        # Without the text tables are read in ranges of segments, some of which no table has.
        there = np.any([batch.segment_events > 0 for batch in batches], axis=0)
        shown = slice(None) if block is not None else np.flatnonzero(there)
        count = len(batches[0].segments[shown])
        for k, batch in enumerate(batches):
            self._add_run(k, batch, shown)
        self._add_text(block, batches, shown, count)
        if self.corpus is not None and len(self.corpus.group_names) > len(self.groups):
            self.groups = list(self.corpus.group_names)
        with self._changed:
            self.size += count
            self._changed.notify_all()

    def _add_run(self, k: int, batch: ScoreBatch, shown: _Shown) -> None:
        events = batch.segment_events
        sums = exact_sums(batch, events)
        rows = self._rows[k] + np.cumsum(events) - events
        self._rows[k] += len(batch)
        unseen = np.concatenate(([0], np.cumsum(batch.unseen())))
        bounds = np.concatenate(([0], np.cumsum(events)))
        values = {
            "row": rows, "events": events, "oov": unseen[bounds[1:]] - unseen[bounds[:-1]],
            "zeros": sums.zeros, "high": sums.high, "low": sums.low,
        }  # fmt: skip
        for name, column in values.items():
            self._of_run[k][name].append(column[shown])

    def _add_text(self, block: Segments | None, batches: Sequence[ScoreBatch], shown: _Shown, count: int) -> None:
        documents = _documents(block, batches)
        nothing = np.zeros(count, np.int64)
        segments = batches[0].segments[shown]
        values: dict[str, NDArray[Any]] = {"segment": segments, "group": nothing, "source": nothing - 1}
        values["document"] = nothing + NO_DOCUMENT if documents is None else documents[shown]
        if block is None:
            values |= {"bytes": np.max([batch.reach() for batch in batches], axis=0)[shown], "line": segments + 1}
        else:
            lengths = block.ends - block.starts
            values["bytes"] = segment_bytes(block, batches[0], self._policy)
            values["group"] = nothing if block.groups is None else block.groups
            values["source"] = nothing + self._sources.setdefault(block.source, len(self._sources))
            values["line"] = block.lines()
            self._text_ends.append(len(self._text) + np.cumsum(lengths))
            self._text.append(_joined(block))
            if block.given_starts is not None:
                self._given_ends.append(len(self._given) + np.cumsum(block.given_lengths()))
                self._given.append(_joined(replace(block, starts=block.given_starts, ends=block.starts)))
            if block.ids is not None:
                ids = [name.encode("utf-8", "replace") for name in block.ids]
                self._id_ends.append(len(self._ids) + np.cumsum([len(name) for name in ids]))
                self._ids.append(np.frombuffer(b"".join(ids), np.uint8))
        for name, column in values.items():
            self._of_text[name].append(column)

    def _verify(self) -> None:
        for run in self.runs:
            if self.corpus is not None and run.text_sha256 not in ("", self.corpus.report.sha256):
                raise InputError(
                    f"{run.path}: scored another text (fingerprint {run.text_sha256[:6]}) than the one at hand "
                    f"({self.corpus.report.sha256[:6]}): name the text it scored (--text)"
                )
        self.groups = [] if self.corpus is None else list(self.corpus.group_names)
        for run in self.runs:
            if run.scores_sha256 and file_sha256(run.scores) != run.scores_sha256:
                self.seal = f"{run.scores}: is not the table that evaluation.json was made from: it was changed"

    # -- asking ---------------------------------------------------------------------------------------------------------
    def check_unchanged(self) -> None:
        """Refuse to go on where a table is not the one that was opened."""
        for reader, run in zip(self.readers, self.runs, strict=True):
            if not reader.unchanged():
                raise InputError(f"{run.path}: was changed or removed while it was looked at: start `lmgauge explore` again")

    def of_text(self, name: str, size: int) -> NDArray[Any]:
        """Return a column of the first segments, [size]: segment, bytes, group, document, source or line."""
        return self._of_text[name].view(size)

    def of_run(self, k: int, name: str, size: int) -> NDArray[Any]:
        """Return a column of run `k` for the first segments, [size]."""
        # Row, events, oov, zeros, high or low (of the exact sum in nats).
        return self._of_run[k][name].view(size)

    def bits(self, k: int, size: int) -> NDArray[np.float64]:
        """Return bits of the first segments by run `k`, float64 [size]; infinite with an event of probability zero."""
        sums = ExactSums(*(self.of_run(k, name, size) for name in ("high", "low", "zeros")))
        return nats_to_bits(-sums.nats())

    def bits_at(self, k: int, place: int) -> float:
        """Return the bits that run `k` gives one segment."""
        high, low, zeros = (self.of_run(k, name, place + 1)[place:] for name in ("high", "low", "zeros"))
        return float(nats_to_bits(-ExactSums(np.array(high), np.array(low), np.array(zeros)).nats())[0])

    @property
    def has_text(self) -> bool:
        """Return True if the text is at hand."""
        return self.corpus is not None

    @property
    def has_ids(self) -> bool:
        """Return True if the text gives each segment an id."""
        return len(self._id_ends) > 1

    def given_text(self, place: int) -> bytes:
        """Return the text that is given before a segment; empty where there is none."""
        # place: of the segment in reading order.
        if len(self._given_ends) == 1:
            return b""
        begin, end = self._given_ends.view(place + 2)[place : place + 2].tolist()
        return self._given.view(end)[begin:end].tobytes() if end > begin else b""

    def text_of(self, place: int) -> bytes:
        """Return the UTF-8 text of a segment; empty without the text."""
        if not self.has_text:
            return b""
        begin, end = self._text_ends.view(place + 2)[place : place + 2].tolist()
        return self._text.view(end)[begin:end].tobytes() if end > begin else b""

    def texts(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the first `size` texts: where each ends, int64 [size + 1] with 0 before the first, and their bytes."""
        ends = self._text_ends.view(size + 1)
        return ends, self._text.view(int(ends[-1]))

    def ids(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the first `size` ids: where each ends, int64 [size + 1], and their bytes."""
        ends = self._id_ends.view(size + 1)
        return ends, self._ids.view(int(ends[-1]))

    def where(self, place: int) -> str:
        """Return the id of a segment, or its file and line."""
        if self.has_ids:
            ends, data = self.ids(place + 1)
            return data[int(ends[place]) : int(ends[place + 1])].tobytes().decode()
        source = int(self.of_text("source", place + 1)[place])
        line = int(self.of_text("line", place + 1)[place])
        return f"{list(self._sources)[source]}:{line}" if source >= 0 else f"segment {line - 1}"

    def sources(self) -> list[str]:
        """Return the names of the files of the text, by their number in the column `source`."""
        return list(self._sources)

    def rows(self, k: int, place: int, most: int, columns: Sequence[str]) -> ScoreBatch:
        """Return the first rows that run `k` has of a segment."""
        row, events = int(self.of_run(k, "row", place + 1)[place]), int(self.of_run(k, "events", place + 1)[place])
        with self._locks[k]:
            if not events:  # it is outside what the run scored
                return self.readers[k].read(0, 1, columns).of_segments(0, 0)
            return self.readers[k].read(row, row + min(events, most), columns)


def _as_parquet(run: Run, path: Path) -> Path:
    # Path of a run's table; of another format than Parquet, where no row is found without reading all before, a copy.
    if table_format(run.scores) == "parquet":
        return run.scores
    count = 0
    with ScoreWriter(path, {}) as writer:
        for batch in read_scores(run.scores):
            writer.write(replace(batch, extra=dict(batch.extra)))
            count += len(batch)
    if not count:
        raise InputError(f"{run.scores}: the score table has no row: there is nothing to look at")
    return path


def _documents(block: Segments | None, batches: Sequence[ScoreBatch]) -> NDArray[np.int64] | None:
    if block is not None and block.documents is not None:
        return block.documents
    return next((named for batch in batches if (named := batch.documents()) is not None), None)


def _joined(block: Segments) -> NDArray[np.uint8]:
    starts, ends = block.starts, block.ends
    if np.array_equal(starts[1:], ends[:-1]):
        return block.data[starts[0] : ends[-1]]
    inside = np.zeros(len(block.data) + 1, np.int8)
    np.add.at(inside, starts, 1)
    np.add.at(inside, ends, -1)
    return block.data[np.cumsum(inside[:-1], dtype=np.int8) > 0]
