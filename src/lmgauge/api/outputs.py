"""What an evaluation writes, as one object; light, for the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from lmgauge.api.types import PathLike
from lmgauge.choices import WORD_UNITS
from lmgauge.declaration import settings
from lmgauge.errors import UsageError


@settings
class Outputs:
    """What `lmgauge.evaluate` writes besides returning numbers; of files of rows one may be "-", standard output.

    Attributes:
        output: folder for evaluation.json and scores.parquet, one in it for each model if several; what `compare`,
            `diagnose` and `audit` read.
        columns: also keep of each whole distribution, in scores.parquet and `per_token`: entropy (nats), rank (of the token
            that came), top10 (or another number: the most probable tokens and their log-probabilities), moments (mean and
            deviation of log p, nats), mass (what the probabilities sum to).
        per_segment: also write one row per segment: .tsv, .jsonl, or - .
        per_token: also write one row per token: .tsv, .jsonl, or - .
        per_word: also write one row per word, with its surprisal: .tsv, .csv, .jsonl, .parquet, or - .
        words: words of `per_word`: whitespace, treebank, icu, or icu:LOCALE (such as icu:ja).
        regions: regions in place of words in `per_word`: .tsv, .csv or .jsonl with text_id, start and end or text, region.
        train: training text to count words in, for the columns log_frequency and unseen of `per_word`.

    Example:
        >>> Outputs("run/", columns=("entropy",)).wanted
        True
    """

    heading: ClassVar[str] = "Output"
    output: PathLike | None = None
    columns: Sequence[str] = ()
    per_segment: PathLike | None = None
    per_token: PathLike | None = None
    per_word: PathLike | None = None
    words: str = WORD_UNITS[0]
    regions: PathLike | None = None
    train: Sequence[PathLike] = ()

    def __post_init__(self) -> None:
        if self.per_word is None:
            for name, value in (("words", self.words != WORD_UNITS[0]), ("regions", self.regions), ("train", self.train)):
                if value:
                    raise UsageError(f"--{name} is about the rows of words: name a file for them (--per-word)")
        else:
            from lmgauge.evaluation.row_files import check_row_file

            check_row_file(os.fspath(self.per_word))
        if self.to_stdout > 1:
            raise UsageError("standard output takes one of --per-segment -, --per-token - and --per-word -")
        if self.columns and self.output is None and self.per_token is None:
            raise UsageError("columns fill rows: name where they go, a run folder (-o) or a file for rows (--per-token)")
        if self.columns:
            from lmgauge.distributions.columns import reductions_named

            reductions_named(self.columns)

    @property
    def to_stdout(self) -> int:
        """How many files of rows are standard output."""
        return (self.per_segment, self.per_token, self.per_word).count("-")

    @property
    def wanted(self) -> bool:
        """Return True if anything is to be written."""
        return bool(self.output or self.per_segment or self.per_token or self.per_word)

    def refuse_replacing(self, inputs: Sequence[str], models: int) -> None:
        """Refuse files that would replace what is read.

        Raises:
            UsageError: the first of them.
        """
        # Several models have folders of their own in it.
        from lmgauge.files import refuse_replacing

        folder = self.output if models == 1 else None
        files = {"--per-segment": self.per_segment, "--per-token": self.per_token, "--per-word": self.per_word, "-o": folder}
        read = self.train if self.regions is None else (self.regions, *self.train)
        refuse_replacing(files, [*inputs, *(os.fspath(path) for path in read)])
