"""What an evaluation writes, as one object; light, for the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

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

    Example:
        >>> Outputs("run/", columns=("entropy",)).wanted
        True
    """

    folder: PathLike | None = None
    columns: Sequence[str] = ()
    per_segment: PathLike | None = None
    per_token: PathLike | None = None

    def __post_init__(self) -> None:
        if self.columns and self.folder is None and self.per_token is None:
            raise UsageError("columns fill rows: name where they go, a run folder (-o) or a file for rows (--per-token)")
        if self.columns:
            from lmgauge.distributions.columns import reductions_named

            reductions_named(self.columns)

    @property
    def wanted(self) -> bool:
        """Return True if anything is to be written."""
        return bool(self.folder or self.per_segment or self.per_token)

    def refuse_replacing(self, inputs: Sequence[str], models: int) -> None:
        """Refuse files that would replace what is read.

        Raises:
            UsageError: the first of them.
        """
        # Several models have folders of their own in it.
        folder = self.folder if models == 1 else None
        files = {"--per-segment": self.per_segment, "--per-token": self.per_token, "-o": folder}
        refuse_replacing(files, inputs)
