"""What may be chosen when tasks are scored, as objects that are made once, where a user chooses, and handed on whole."""

# The keywords of a metric are fields of its class as well, where they are explained: `lmgauge.tasks.BLEU` and its like.
# Nothing heavy is imported, so that the help page of a command needs no more than this.

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from lmgauge.choices import (
    DEFAULT_SEED,
    SIGNIFICANCE_TESTS,
    TASK_ERROR_POLICIES,
    Format,
    NbestFormat,
    SignificanceTest,
    TranscriptFormat,
    UnicodeForm,
    WhisperNormalizer,
)
from lmgauge.errors import UsageError
from lmgauge.option_numbers import check_whole
from lmgauge.tasks.substitutions import Substitutions
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.tasks.metrics.error_rates import EditRate

MOST_STARTS = 10_000


class BleuOptions(TypedDict, total=False):
    """The options of `BLEU` as keywords."""

    order: int
    weights: tuple[float, ...] | None
    smoothing: str
    smoothing_value: float | None
    effective_order: bool
    lowercase: bool
    tokenizer: str
    reference_length: str


class ChrfOptions(TypedDict, total=False):
    """The options of `ChrF` as keywords."""

    char_order: int
    word_order: int
    beta: float
    lowercase: bool
    whitespace: bool
    eps_smoothing: bool


class TerOptions(TypedDict, total=False):
    """The options of `TER` as keywords."""

    normalized: bool
    no_punct: bool
    asian_support: bool
    case_sensitive: bool


class NormalizationOptions(TypedDict, total=False):
    """The options of `WER` and `CER` as keywords."""

    lowercase: bool
    remove_punctuation: bool
    expand_contractions: bool
    remove_nonwords: bool
    collapse_spaces: bool
    unicode_form: UnicodeForm | None
    standardize: bool
    jiwer_words: bool
    whisper: WhisperNormalizer | None
    substitutions: Substitutions | Mapping[str, str] | str | os.PathLike[str] | None
    transform: Callable[[str], str] | None


@dataclass(frozen=True, kw_only=True)
class Reading(ReadingOptions):
    """How the files of references and outputs are read.

    Attributes:
        field: field or column that holds the text of a record (a TSV column without name by its number).
        reference_fields: those of the references; several give several references. Empty: `field`.
        id: field that says which segment a record is, where files are not in one order; None: they are.
        group: what names a segment's group: "file" (with folders), a field of the references, or a file with the name of a
            group on each line; None: there are no groups.
        document: what is independent: "file" (with folders), "segment", "unknown", "blank-line" or "heading" (lines of the
            references), a field of the references or, if these are plain text, of the first system's outputs, or a file with
            the name of a document on each line; None: each of several text files in folders, otherwise unknown.
        unit: "line", or "document": a whole file is one segment.
        format: one of `lmgauge.choices.FORMATS` for all files; None: by their names. For error rates also "kaldi", "trn" and
            "stm" (outputs are ctm then): utterances are matched by ids or by time, and have "speaker" to group by; None
            also recognizes the first two by ids that are the same in all files.
        errors: "fail" or "replace" what is not valid text.
        block_bytes, lists: as `lmgauge.ReadingOptions` has them.
        keep_bom: count a byte order mark at the head of a text file as text, as the commands of sacreBLEU and jiwer do.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, words in (("ref", "the dog"), ("a", "a dog")):
        ...         _ = Path(folder, f"{name}.jsonl").write_text('{"said": "' + words + '"}')
        ...     files = {"references": f"{folder}/ref.jsonl", "hypotheses": [f"{folder}/a.jsonl"]}
        ...     lmgauge.tasks.score_files(lmgauge.tasks.WER(), **files, reading=Reading(field="said"))[0].score.score
        0.5
    """

    reference_fields: tuple[str, ...] = ()
    format: Format | TranscriptFormat | None = None  # type: ignore[assignment]  # more than other texts may have
    group: str | None = None
    keep_bom: bool = True

    def __post_init__(self) -> None:
        if self.errors not in TASK_ERROR_POLICIES:
            raise UsageError(f"errors {self.errors!r}: give fail or replace, as a line left out would shift all that follow")


@dataclass(frozen=True)
class ComparisonSettings:
    """How systems are compared with the first one.

    Attributes:
        test: "student" (Student's t over what is independent, as for perplexity), "sacrebleu" (its paired approximate
            randomization and the bootstrap's intervals, to its digits, over segments), "sacrebleu-bootstrap" (its paired
            bootstrap, which is lenient), or None: no intervals, no p-values.
        resamples: of sacreBLEU's tests; None: 10,000 trials of the randomization, whose intervals are of 1,000 resamples, or
            1,000 resamples of the bootstrap (40 at least).
        seed: of sacreBLEU's tests; same seed, same draws, which are sacreBLEU's.
        threads: how many to use, all cores if None; no number depends on it.

    Example:
        >>> from lmgauge.tasks import WER, score_systems
        >>> outputs = {"a": ["a dog barks", "it rains"], "b": ["the dog barks", "it rains"]}
        >>> settings = ComparisonSettings(test="sacrebleu-bootstrap", resamples=500, seed=1)
        >>> systems = score_systems(WER(), hypotheses=outputs, references=["the dog barks", "it rains"], settings=settings)
        >>> systems.test, systems.resamples, systems.seed
        ('sacrebleu-bootstrap', 500, 1)
    """

    test: SignificanceTest | None = "student"
    resamples: int | None = None
    seed: int = DEFAULT_SEED
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.test is not None and self.test not in SIGNIFICANCE_TESTS:
            known = ", ".join(SIGNIFICANCE_TESTS)
            raise UsageError(f"test {self.test!r} is not known; choose from {known}, or None for no test")
        if self.resamples is not None and self.test in (None, "student"):
            raise UsageError("only sacreBLEU's tests draw resamples: leave them out, or choose the test sacrebleu")


@dataclass(frozen=True)
class CorrelationSettings:
    """Which columns of tables are correlated, and how.

    Attributes:
        x: column with perplexities.
        y: column with scores.
        system: column with the names of systems.
        log_x: Pearson's r is against the logarithm of x; None: if x is a perplexity by its name.
        seed: of the random permutations.

    Example:
        >>> CorrelationSettings(x="bits_per_byte", y="bleu").system
        'system'
    """

    x: str = "perplexity"
    y: str = "score"
    system: str = "system"
    log_x: bool | None = None
    seed: int = DEFAULT_SEED


@dataclass(frozen=True, kw_only=True)
class NbestReading:
    """How n-best lists are read; the fields are those of JSONL, of lists and of references alike.

    Attributes:
        format: one of `lmgauge.choices.NBEST_FORMATS` for all of them; None: by what is in them.
        id: field of the utterance's id.
        field: field of the text.
        hypotheses: field of the list of an utterance's hypotheses; None: `nbest`, `hypotheses` or `hyps` where a record has
            it, else each record is a hypothesis.
        scores: which of the recognizer's scores are used; empty: all there are (JSONL: `score` or `scores`).

    Example:
        >>> NbestReading(field="words", scores=("am", "lm")).id
        'id'
    """

    format: NbestFormat | None = None
    id: str = "id"
    field: str = "text"
    hypotheses: str | None = None
    scores: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RescoreSettings:
    """How n-best lists are rescored, beside models and weights.

    Attributes:
        reading: how lists and references are read.
        metric: unit of errors and normalization of hypotheses and references before they are compared; None:
            `lmgauge.tasks.WER()`. What models score is not normalized.
        lowercase: models score the hypotheses in lower case.
        document: what is independent in the test: a file with an utterance and its speaker (or call) on each line, as
            Kaldi's utt2spk, or a mapping; None: each utterance.
        comparison: how first and rescored hypotheses are compared, and threads; its seed is that of the tuning as well.
        starts: random places at which tuning begins, besides two fixed ones.

    Example:
        >>> import lmgauge
        >>> RescoreSettings(metric=lmgauge.tasks.WER(lowercase=True), lowercase=True).starts
        8
    """

    reading: NbestReading = field(default_factory=NbestReading)
    metric: EditRate | None = None
    lowercase: bool = False
    document: str | os.PathLike[str] | Mapping[str, str] | None = None
    comparison: ComparisonSettings = field(default_factory=ComparisonSettings)
    starts: int = 8

    def __post_init__(self) -> None:
        check_whole("starts", self.starts, 0, MOST_STARTS)
