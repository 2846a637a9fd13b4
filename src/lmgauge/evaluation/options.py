"""The settings of what measures models and looks into runs; light, for the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, ClassVar

from lmgauge.base.choices import (
    AUDIT_LEVELS,
    DEFAULT_BASE_SAMPLES,
    DEFAULT_BASE_TOP,
    DEFAULT_SEED,
    DIAGNOSIS_SECTIONS,
    WORD_UNITS,
    BaseType,
    DiagnosisSection,
)
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds, Count, Natural, Part, Share
from lmgauge.base.remote.addresses import PathLike

DEFAULT_CONTEXTS = 2000
"""Of a calibration."""
DEFAULT_EVENTS = 10_000
"""Of a divergence."""


@settings
class Outputs:
    """What `lmgauge.evaluate` writes besides returning numbers; of files of rows one may be "-", standard output.

    Attributes:
        output: folder for evaluation.json and scores.parquet, with a folder inside for each of several models; `compare`,
            `diagnose` and `audit` read it.
        columns: what else to keep of each distribution; in scores.parquet and `per_token`: entropy (nats), rank (of the
            actual token), top10 (or another number: the most probable tokens and their log-probabilities), moments
            (mean and deviation of log p, nats), mass (what the probabilities sum to).
        per_segment: also write one row per segment; .tsv, .jsonl, or - .
        per_token: also write one row per token; .tsv, .jsonl, or - .
        per_word: also write one row per word, with its surprisal; .tsv, .csv, .jsonl, .parquet, or - .
        words: words of `per_word`: whitespace, treebank, icu, or icu:LOCALE (such as icu:ja).
        regions: regions instead of words in `per_word`: .tsv, .csv, .jsonl, .parquet; text_id, start, end or text, region.
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
            from lmgauge.base.result_list import check_row_file

            check_row_file(os.fspath(self.per_word))
        if self.to_stdout > 1:
            raise UsageError("standard output takes one of --per-segment -, --per-token - and --per-word -")
        if self.columns and self.output is None and self.per_token is None:
            raise UsageError("columns fill rows: name where they go, a run folder (-o) or a file for rows (--per-token)")
        if self.columns:
            from lmgauge.scores.distributions.reduce import reductions_named

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
        from lmgauge.base.files import refuse_replacing

        # Several models have folders of their own in it.
        folder = self.output if models == 1 else None
        files = {"--per-segment": self.per_segment, "--per-token": self.per_token, "--per-word": self.per_word, "-o": folder}
        read = self.train if self.regions is None else (self.regions, *self.train)
        refuse_replacing(files, [*inputs, *(os.fspath(path) for path in read)])


def with_kept(columns: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of rows, and behind them those of the fields that are carried along."""
    taken = next((name for name in kept if name in columns), None)
    if taken is not None:
        raise UsageError(f"keep: rows have a column {taken!r} of their own; give the field of the text another name")
    return (*columns, *kept)


@settings
class DiagnosisSettings:
    """What a diagnosis works out, and how much of it.

    Attributes:
        only: compute only this; may be given several times.
        examples: how many tokens, segments and words to show of each kind.
        contexts: how many contexts to draw for calibration; with a model.
        exhaustive: calibration over all contexts; with a model, slow.
        seed: same seed, same output.
        threads: threads to use; all cores if not given. Does not change results.

    Raises:
        UsageError: a section is not known, or a number is out of range.

    Example:
        >>> DiagnosisSettings(only="slices").only
        ('slices',)
    """

    heading: ClassVar[str] = "Statistics"
    only: Sequence[DiagnosisSection] = DIAGNOSIS_SECTIONS
    examples: Natural = 10
    contexts: Count = DEFAULT_CONTEXTS
    exhaustive: bool = False
    seed: Natural = DEFAULT_SEED
    threads: Count | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "only", (self.only,) if isinstance(self.only, str) else tuple(self.only))
        unknown = [name for name in self.only if name not in DIAGNOSIS_SECTIONS]
        if unknown:
            raise UsageError(f"section {unknown[0]!r} is not known; choose from {', '.join(DIAGNOSIS_SECTIONS)}")


@settings
class AuditSettings:
    """What an audit checks and how closely.

    Attributes:
        levels: which levels to check, with commas between; of coverage, normalization, causality, contamination and
            compression. All if not given.
        contexts: how many distributions to sum, at contexts drawn from the text; level 2. Of a server, at most how many
            prompts to ask about, and at once.
        sum_tolerance: how far a sum of probabilities may be from 1; level 2. Rounded ones, as in some ARPA files, need 1e-5.
        max_overlap: share of the text's bytes that may be in the training text; level 4, in long runs or whole lines.
        compression_bytes: bytes of the text to compress and decode; level 5.
        exhaustive: all contexts, segments and bytes instead of samples; slow. A server is asked about longer prompts, too.
        seed: same seed, same samples.

    Raises:
        UsageError: an unknown level, or a number out of range.

    Example:
        >>> AuditSettings(levels=["coverage"], contexts=10).to_dict()["contexts"]
        10
    """

    heading: ClassVar[str] = "Checks"
    levels: Sequence[str] = AUDIT_LEVELS
    contexts: Count = 1000
    sum_tolerance: Annotated[float, Bounds(0, 1e-3)] = 1e-6  # sums that are farther off are not rounding
    max_overlap: Share = 0.01
    compression_bytes: Count = 100_000
    exhaustive: bool = False
    seed: Natural = DEFAULT_SEED

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", (self.levels,) if isinstance(self.levels, str) else tuple(self.levels))
        unknown = [level for level in self.levels if level not in AUDIT_LEVELS]
        if unknown or not self.levels:
            level = repr(unknown[0]) if unknown else "nothing"
            raise UsageError(f"levels: {level} is not a level of the audit; choose from {', '.join(AUDIT_LEVELS)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name, without the levels: results list those themselves."""
        return {name: value for name, value in asdict(self).items() if name != "levels"}


@settings
class DivergenceSettings:
    """At how many events models are compared with a base, and by what.

    Attributes:
        events: about how many events to look at, in whole segments drawn at random; of a stored base those it holds.
        exhaustive: look at every event of the text.
        top_k: for which K to compare the most probable tokens; which share of the base's K is among the candidate's.
        examples: tokens to show of each kind; those that suffer most.
        seed: same seed, same segments, and same tests of several candidates; of a stored base its own.
        threads: how many to use; all cores if not given. Does not change results.

    Raises:
        UsageError: a number is out of range.

    Example:
        >>> DivergenceSettings(events=2_000).top_k
        (1, 5, 10)
    """

    heading: ClassVar[str] = "Statistics"
    events: Count | None = DEFAULT_EVENTS
    exhaustive: bool = False
    top_k: int | Sequence[int] = (1, 5, 10)
    examples: Natural = 5
    seed: Natural = DEFAULT_SEED
    threads: Count | None = None

    def __post_init__(self) -> None:
        if self.exhaustive:
            object.__setattr__(self, "events", None)
        if not self.ranks or min(self.ranks) < 1:
            raise UsageError(f"top-k must be whole numbers from 1; got {', '.join(map(str, self.ranks)) or 'none'}")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Each K of `top_k`."""
        return (self.top_k,) if isinstance(self.top_k, int) else tuple(self.top_k)


@settings
class StoringSettings:
    """How much is stored of each distribution of a base.

    Attributes:
        base_top: with --save-base: most probable tokens of each event to store.
        base_samples: with --save-base: tokens to draw from the rest, for each unit of its probability; more draws give
            narrower bounds.
        exact: with --save-base: store whole distributions, in this type; or the hidden states that the output layer of a
            network makes them of, which are far shorter.
        seed: same seed, same draws.

    Raises:
        UsageError: a number is out of range.

    Example:
        >>> StoringSettings(base_top=20).base_samples
        256
    """

    heading: ClassVar[str] = "Stored bases"
    base_top: Annotated[int, Bounds(1, 1 << 20)] = DEFAULT_BASE_TOP
    base_samples: Annotated[int, Bounds(1, 1 << 20)] = DEFAULT_BASE_SAMPLES
    exact: BaseType | None = None
    seed: Natural = DEFAULT_SEED


@settings
class MembershipSettings:
    """How texts are scored and sets compared.

    Attributes:
        k: share of the least probable tokens for Min-K%; above 0.
        fpr: rate of false alarms at which hits are counted; between 0 and 1.
        threads: how many to use; all cores if not given. Does not change results, except by rounding.

    Raises:
        UsageError: a number is out of range.

    Example:
        >>> MembershipSettings(k=0.1).fpr
        0.01
    """

    heading: ClassVar[str] = "Statistics"
    k: Annotated[float, Bounds(0, 1, open_least=True)] = 0.2
    fpr: Part = 0.01
    threads: Count | None = None


@settings
class SampleSettings:
    """How many documents of a text a model scores, drawn by chance; cheaper models, its proxies, score all of them.

    Attributes:
        sample: the number of documents.
        until: as many as give an interval of bits per byte this narrow: half of it, as a share of the figure, such as 0.5%.
            Their number follows from a first sample of 20 or more, which is scored twice.
        budget: as many as this time allows, such as 90s, 30m or 2h; a first sample shows how long they take.
        seed: same seed and first proxy, same documents; a larger sample holds a smaller one.

    Raises:
        UsageError: none of the first three or several of them, or a value out of range.

    Example:
        >>> SampleSettings(sample=200).seed
        12345
    """

    heading: ClassVar[str] = "A sample of the documents"
    sample: Count | None = None
    until: Annotated[float, Bounds(0, 1, open_least=True, open_most=True)] | None = None
    budget: str | None = None
    seed: Natural = DEFAULT_SEED

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.sample, self.until, self.budget)) > 1:
            raise UsageError("sample, until and budget each say how many documents are scored: give one of them")
        if self.budget is not None and not self.seconds > 0:
            raise UsageError(f"budget {self.budget!r} is not a time: write it as in 90s, 30m or 2h")

    @property
    def seconds(self) -> float:
        """The budget in seconds; 0 where there is none."""
        match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", self.budget or "")
        return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
