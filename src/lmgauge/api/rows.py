"""`lmgauge.read_run`: the rows of a run as data frames, one for each segment or for each event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgauge.api.evaluate import RegionRows, word_settings
from lmgauge.api.inputs import PathLike, Text, opened, text_of
from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import UsageError
from lmgauge.evaluation.evaluate import sum_block
from lmgauge.evaluation.row_files import ID_COLUMN, SEGMENT_COLUMNS, segment_rows, with_kept
from lmgauge.evaluation.runs import Run, lockstep, remembered
from lmgauge.evaluation.words.results import WordSurprisals
from lmgauge.evaluation.words.rows import words_of_table
from lmgauge.numerics.units import nats_to_bits
from lmgauge.readable import visible
from lmgauge.result_list import pandas_module
from lmgauge.scores import ScoreBatch

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lmgauge import Corpus
    from lmgauge.text.segments import Segments

Rows = Literal["segment", "token"]


@dataclass(frozen=True, repr=False)
class RunRows:
    """The rows of a run; every call reads them anew.

    Attributes:
        run: the run folder, or the score table.
        text: what it scored; None where it is not at hand: what only the text tells is then missing (null).

    Example:
        >>> import tempfile, lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = lmgauge.evaluate(lmgauge.train("witten-bell", text), text, output=f"{folder}/wb3")
        ...     tokens = lmgauge.read_run(f"{folder}/wb3", text).to_arrow("token")
        >>> tokens.column("token").to_pylist()[:4]
        ['the', 'cat', 'sat', '</s>']
    """

    run: Run
    text: Corpus | None

    def __repr__(self) -> str:
        missing = "" if self.text is not None else "; its text is not at hand"
        return f"<RunRows: {visible(self.run.name)}, {visible(str(self.run.path))}{missing}>"

    def per_segment(self) -> pd.DataFrame:
        """Return a row for each segment: `to_arrow("segment")` as a data frame.

        Raises:
            InputError: the table or the text cannot be read.
            MissingExtraError: pandas is not installed.
        """
        pandas_module()
        return self.to_arrow("segment").to_pandas()

    def per_token(self) -> pd.DataFrame:
        """Return a row for each event: `to_arrow("token")` as a data frame.

        Raises:
            InputError: the table or the text cannot be read.
            MissingExtraError: pandas is not installed.
        """
        pandas_module()
        return self.to_arrow("token").to_pandas()

    def per_word(
        self, *, words: str = "whitespace", regions: RegionRows | pd.DataFrame | None = None, train: Text | None = None
    ) -> WordSurprisals:
        """Return a row for each word, or region, of the text; corrected where the run was written with `--per-word`.

        Args:
            words, regions, train: as of `lmgauge.word_surprisal`.

        Raises:
            InputError: the table or the text cannot be read, the table has no byte spans, or a region cuts a token.
            UsageError: the text is not at hand, or as for `lmgauge.word_surprisal`.
        """
        if self.text is None:
            raise UsageError(f"{self.run.name}: words are in the text that was scored; name it: read_run(path, text)")
        settings, origin = word_settings(words, regions, train, self.text.kept), self.run.origin
        blocks = lockstep([self.run.batches()], self.text, [self.run.name])
        parts = ((block, batch) for block, (batch,) in blocks if block is not None)
        return words_of_table(parts, settings, origin, self.text)

    def to_arrow(self, rows: Rows) -> pa.Table:
        """Return the columns that `lmgauge eval --per-segment` (or `--per-token`) writes, and `bits`.

        Args:
            rows: "segment": model, segment, group, events, logprob (nats), bits, perplexity, zero_probability_events, id,
                document, tokens, oov, bytes; "token": model, id, segment, start and end (bytes), token, logprob (nats),
                bits, kind, and the columns that the run has besides.

        Raises:
            InputError: the table or the text cannot be read.
        """
        import pyarrow as pa

        columns_of = self._segments if rows == "segment" else self._tokens
        blocks = lockstep([self.run.batches()], self.text, [self.run.name])
        parts = [pa.table(columns_of(block, batch)) for block, (batch,) in blocks if len(batch)]
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _segments(self, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
        if block is None:  # what has no rows is not known
            some = batch.segment_events > 0
            events, lossy = batch.segment_events[some], np.zeros(0, bool)
            batch = replace(batch, segments=batch.segments[some], segment_events=events, lossy=lossy)
        sums, policy = sum_block(batch).total.per_segment(), ContextPolicy.parse(self.run.origin.context)
        groups = [] if self.text is None else self.text.group_names
        return self._in_order(SEGMENT_COLUMNS, segment_rows(self.run.name, batch, sums, block, groups, policy))

    def _tokens(self, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
        import pyarrow as pa

        place = batch.row_segments() - (0 if block is None else block.first)
        ids = pa.nulls(len(batch), pa.string()) if block is None else pa.array(block.identifiers()).take(pa.array(place))
        columns = {"model": pa.repeat(self.run.name, len(batch)), ID_COLUMN: ids}
        stored = batch.to_arrow()
        for name, values in zip(stored.schema.names, stored.columns, strict=True):
            columns[name] = values.cast(pa.string()) if name in ("token", "kind") else values
        return self._in_order(columns, columns if block is None else columns | block.kept(place))

    def _in_order(self, own: Iterable[str], columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return columns with bits behind the log-probabilities, and the fields that are carried along last."""
        names = list(with_kept(tuple(own), () if self.text is None else self.text.kept))
        names.insert(names.index("logprob") + 1, "bits")
        bits = nats_to_bits(-np.asarray(columns["logprob"], np.float64))
        return {name: bits if name == "bits" else columns[name] for name in names}


def read_run(path: PathLike, text: Text | None = None) -> RunRows:
    """Open a run, to have its rows as data frames: `lmgauge.read_run("run").per_segment()`.

    Args:
        path: of a run folder, or of a score table (Parquet or JSON lines).
        text: what it scored: a path, several, or a `Corpus`; if not given, where the run remembers it, if it is still there.

    Raises:
        InputError: nothing is there, or a file was changed after it was written.
        UsageError: it is not a path.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = evaluate(train("witten-bell", text), text, output=f"{folder}/wb3")
        ...     read_run(f"{folder}/wb3", text).to_arrow("segment").column("events").to_pylist()
        [4, 4]
    """
    run = opened(Path(path) if isinstance(path, str) else path)
    return RunRows(run, remembered(run) if text is None else text_of([run], text))
