"""What an evaluation writes, as one object; light, for the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from lmgauge.choices import WORD_UNITS
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Outputs:
    """What `lmgauge.evaluate` writes besides returning numbers.

    Attributes:
        folder: gets evaluation.json and scores.parquet (one folder for each model, if several), for `compare`, `diagnose`
            and `audit` to read.
        columns: what to keep of each whole distribution, in scores.parquet and `per_token`: "entropy" (nats), "rank" of the
            token that came, "top10" (or another number: the most probable tokens and their log-probabilities), "moments"
            (mean and deviation of log p under the distribution, nats), "mass" (what the probabilities sum to).
        per_segment: file for one row per segment, .tsv or .jsonl; "-" is standard output.
        per_token: file for one row per token, .tsv or .jsonl; "-" is standard output.
        per_word: file for one row per word of the text, with its surprisal, .tsv, .csv, .jsonl or .parquet; "-" is standard
            output.
        words: what words are in `per_word`: "whitespace", "treebank", "icu", or "icu:ja" (any locale).
        regions: file of regions, rows of `per_word` in place of words; see `lmgauge.word_surprisal`.
        train: text to count words in, for the columns `log_frequency` and `unseen` of `per_word`.

    Example:
        >>> Outputs("run/", columns=("entropy",)).wanted
        True
    """

    folder: PathLike | None = None
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
        if self.columns and self.folder is None and self.per_token is None:
            raise UsageError("columns fill rows: name where they go, a run folder (-o) or a file for rows (--per-token)")
        if self.columns:
            from lmgauge.distributions.columns import reductions_named

            reductions_named(self.columns)

    @property
    def wanted(self) -> bool:
        """Return True if anything is to be written."""
        return bool(self.folder or self.per_segment or self.per_token or self.per_word)

    def refuse_replacing(self, inputs: Sequence[str], models: int) -> None:
        """Refuse files that would replace what is read.

        Raises:
            UsageError: the first of them.
        """
        # Several models have folders of their own in it.
        folder = self.folder if models == 1 else None
        files = {"--per-segment": self.per_segment, "--per-token": self.per_token, "--per-word": self.per_word, "-o": folder}
        read = self.train if self.regions is None else (self.regions, *self.train)
        refuse_replacing(files, [*inputs, *(os.fspath(path) for path in read)])
