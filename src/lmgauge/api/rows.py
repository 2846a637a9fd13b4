"""`lmgauge.read_run`: the rows of a run as data frames, one for each segment or for each event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmgauge.api.evaluate import RegionRows, word_settings
from lmgauge.api.inputs import PathLike, Text, opened, text_of
from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import visible
from lmgauge.base.result_list import pandas_module
from lmgauge.evaluation.output_files import Rows, rows_of_run
from lmgauge.evaluation.runs import Run, lockstep, remembered
from lmgauge.evaluation.words.rows import WordSurprisals, words_of_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lmgauge import Corpus


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
        missing = "" if self.text is not None else "; its text is not available"
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
            UsageError: the text is not available, or as for `lmgauge.word_surprisal`.
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
        return rows_of_run(self.run, self.text, rows)


def read_run(path: PathLike, text: Text | None = None) -> RunRows:
    """Open a run, to have its rows as data frames: `lmgauge.read_run("run").per_segment()`.

    Args:
        path: of a run folder, or of a score table.
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
