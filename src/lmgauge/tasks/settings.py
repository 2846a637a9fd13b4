"""What may be chosen when tasks are scored: the options of metrics, how files are read, how systems are compared."""

# Nothing heavy is imported, so that the help page of a command needs no more than this. A metric of `lmgauge.tasks.metrics`
# inherits from its options.

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Union, get_args

from lmgauge.base.choices import (
    BLEU_SMOOTHING_VALUES,
    DEFAULT_SEED,
    BleuSmoothing,
    BleuTokenizer,
    ErrorRateName,
    Format,
    NbestFormat,
    ReferenceLength,
    SignificanceTest,
    TaskErrorPolicy,
    TranscriptFormat,
    UnicodeForm,
    WhisperNormalizer,
)
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds, Count, Natural
from lmgauge.base.remote.addresses import PathLike
from lmgauge.tasks.substitutions import Substitutions
from lmgauge.text.reading_options import ReadingOptions

# One value: a mapping that is not quoted stands for several, and its option would be one that is repeated.
PairsFile = Union[str, os.PathLike[str], "Mapping[str, str]"]
Order = Annotated[int, Bounds(0, 64)]


@settings
class BleuOptions:
    """The options of BLEU (Papineni et al. 2002); the defaults are sacreBLEU's (Post 2018).

    Attributes:
        order: longest n-grams that count.
        smoothing: what an order without a match counts as; exp: 1/2, 1/4, ... of a match, for the first, second, ... such
            order; floor: `smoothing_value` of a match; add-k: as many matches and n-grams more, for all orders from 2; none:
            it stays zero, and so does the score.
        smoothing_value: of floor (0.1 if not given) and add-k (1 if not given).
        effective_order: leave out orders a text is too short for; for single sentences.
        lowercase: ignore case.
        tokenizer: how texts are split into words; 13a if not given, or what a test set into Chinese, Japanese or
            Korean needs.
        reference_length: length that the brevity penalty uses when there are several references; of two equally close
            lengths, the shorter.

    Example:
        >>> BleuOptions(order=3).smoothing
        'exp'
    """

    heading: ClassVar[str] = "Options"
    order: Annotated[int, Bounds(1, 64)] = 4
    smoothing: BleuSmoothing = "exp"
    smoothing_value: Annotated[float, Bounds(0, 1e6)] | None = None
    effective_order: bool = False
    lowercase: bool = False
    tokenizer: BleuTokenizer | None = None
    reference_length: ReferenceLength = "closest"

    def __post_init__(self) -> None:
        if self.smoothing_value is not None and BLEU_SMOOTHING_VALUES.get(self.smoothing) is None:
            raise UsageError(f"smoothing-value: {self.smoothing} takes no value; leave it out, or choose floor or add-k")


@settings
class ChrfOptions:
    """The options of chrF (Popović 2015) and, with word n-grams, chrF+ and chrF++ (Popović 2017).

    Attributes:
        char_order: longest n-grams of characters.
        word_order: longest n-grams of words; 2 makes it chrF++. The last character of a word, or else the first, is a word
            of its own if it is ASCII punctuation.
        beta: how many times recall weighs as much as precision.
        lowercase: ignore case.
        whitespace: white space is part of n-grams of characters.
        eps_smoothing: smooth as chrF++.py, NLTK and Moses do: the mean of the orders' F scores, with 1e-16 for what does not
            exist, instead of the F score of their averages.
        plus_plus: chrF++; the same as a word order of 2.

    Example:
        >>> ChrfOptions(plus_plus=True).word_order
        2
    """

    heading: ClassVar[str] = "Options"
    char_order: Order = 6
    word_order: Order = 0
    beta: Annotated[float, Bounds(0, 1e6, open_least=True)] = 2  # its square has to be a float with something beside 1
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False
    plus_plus: bool = False

    def __post_init__(self) -> None:
        if self.plus_plus:
            if self.word_order not in (0, 2):
                raise UsageError(f"plus-plus means word-order 2, not {self.word_order}: give one of the two")
            object.__setattr__(self, "word_order", 2)
            object.__setattr__(self, "plus_plus", False)
        if self.char_order == 0 == self.word_order:
            raise UsageError("char-order and word-order are both 0: there are no n-grams to compare; the usual is 6 and 0")


@settings
class TerOptions:
    """The options of translation edit rate (Snover et al. 2006), as Tercom and sacreBLEU compute it.

    Attributes:
        normalized: normalize and tokenize as Tercom does: undo XML entities, separate punctuation.
        no_punct: remove punctuation.
        asian_support: with one of these, also handle Chinese and Japanese.
        case_sensitive: distinguish upper and lower case.

    Example:
        >>> TerOptions(normalized=True).no_punct
        False
    """

    heading: ClassVar[str] = "Options"
    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False


@settings
class NormalizationOptions:
    """What is done to references and hypotheses alike before error rates are counted; each step is named in the signature.

    Attributes:
        lowercase: ignore case.
        remove_punctuation: leave out punctuation (Unicode categories P).
        expand_contractions: spell out common English contractions, such as won't and they're.
        remove_nonwords: leave out text in [] or <>, such as [laugh] and <unk>.
        collapse_spaces: runs of white space count as one space; does not change words.
        unicode_form: one spelling for what Unicode spells in two ways.
        standardize: lower case, contractions, no non-words, white space: jiwer's wer_standardize.
        jiwer_words: words are separated as in jiwer: by blanks, and by two or more white-space characters in a row, not by a
            single TAB or no-break space. Changes no character.
        whisper: Whisper's text normalizer, before other steps; needs the package whisper-normalizer.
        substitutions: file of words and phrases to replace; pairs separated by a TAB.
        transform: a function of one's own, of one text, before other steps.

    Example:
        >>> NormalizationOptions(substitutions={"gonna": "going to"}).lowercase
        False
    """

    heading: ClassVar[str] = "Normalization"
    lowercase: bool = False
    remove_punctuation: bool = False
    expand_contractions: bool = False
    remove_nonwords: bool = False
    collapse_spaces: bool = False
    unicode_form: UnicodeForm | None = None
    standardize: bool = False
    jiwer_words: bool = False
    whisper: WhisperNormalizer | None = None
    substitutions: PairsFile | Substitutions | None = None
    transform: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        if self.transform is not None and not callable(self.transform):
            raise UsageError(f"transform is {type(self.transform).__name__}, not a function of one string that returns one")
        if self.transform is not None and self.whisper is not None:
            raise UsageError("give one of transform and whisper: both are the first step")
        if self.whisper in get_args(WhisperNormalizer):
            from lmgauge.tasks.whisper import whisper_normalizer

            whisper_normalizer(self.whisper)  # whether it is installed
        if self.substitutions is not None:
            object.__setattr__(self, "substitutions", Substitutions.of(self.substitutions))


@settings
class PublicTest:
    """A public test set of translation, through sacreBLEU, in place of references.

    Attributes:
        test_set: a test set of sacreBLEU, such as wmt22; has the references.
        language_pair: of the test set, such as en-de.

    Example:
        >>> PublicTest("wmt22", "en-de").test_set
        'wmt22'
    """

    heading: ClassVar[str] = "Text"
    test_set: str | None = None
    language_pair: str | None = None


@settings
class Reading(ReadingOptions):
    """How the files of references and outputs are read.

    Attributes:
        field: field or column with the text of a record; a TSV column without name by its number.
        ref_field: field of the references, if it has another name; several fields give several references. A JSONL field may
            hold a list.
        id: field that says which segment a record is, where orders differ.
        group: also a row for each group; a field of the references, a file with a name on each line, or file (folders).
        document: what is independent; a field of the references or, if these are plain text, of the first system's
            outputs; a file with a document's name on each line; file (folders), segment, unknown, blank-line or heading.
            Each of several text files of folders, if not given.
        unit: a segment is a line, or a whole file (document).
        format: format of all files; taken from their names if not given. Error rates also read the formats of speech tools,
            which are matched by ids or by time and name a speaker to group by (an stm reference takes ctm outputs); kaldi
            and trn are also recognized by their ids.
        errors: where bytes are not valid UTF-8, or NUL: stop (fail), or replace them by U+FFFD; a line left out would shift
            all that follow.
        block_bytes, lists: as `lmgauge.settings.ReadingOptions` has them.
        keep_bom: count a byte order mark at the head of a text file as text, as the commands of sacreBLEU and jiwer do.

    Example:
        >>> import tempfile, lmgauge
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name, words in (("ref", "the dog"), ("a", "a dog")):
        ...         _ = Path(folder, f"{name}.jsonl").write_text('{"said": "' + words + '"}')
        ...     files = {"references": f"{folder}/ref.jsonl", "hypotheses": [f"{folder}/a.jsonl"]}
        ...     lmgauge.tasks.score_files(lmgauge.tasks.WER(), **files, field="said")[0].score.score
        0.5
    """

    ref_field: Sequence[str] = ()
    format: Format | TranscriptFormat | None = None  # type: ignore[assignment]  # more than other texts may have
    group: str | None = None
    errors: TaskErrorPolicy = "fail"
    keep_bom: bool = True


@settings
class ComparisonSettings:
    """How systems are compared with the first one.

    Attributes:
        significance: the test against the first system, and the intervals: student (Student's t over documents or, if these
            are not known, wide enough for neighboring segments that are alike), sacrebleu (its paired approximate
            randomization and the bootstrap's intervals, to its digits, as if segments were independent), sacrebleu-bootstrap
            (its paired bootstrap, which is lenient), or none.
        resamples: number of resamples in sacreBLEU's tests; if not given, 10,000 trials of the randomization, whose
            intervals are of 1,000 resamples, or 1,000 resamples of the bootstrap (40 at least).
        seed: seed of sacreBLEU's tests; the same seed gives sacreBLEU's draws.
        threads: how many; all cores if not given. Does not change results.

    Example:
        >>> from lmgauge.tasks import WER, score_systems
        >>> outputs = {"a": ["a dog barks", "it rains"], "b": ["the dog barks", "it rains"]}
        >>> settings = ComparisonSettings(significance="sacrebleu-bootstrap", resamples=500, seed=1)
        >>> systems = score_systems(WER(), hypotheses=outputs, references=["the dog barks", "it rains"], settings=settings)
        >>> systems.test, systems.resamples, systems.seed
        ('sacrebleu-bootstrap', 500, 1)
    """

    heading: ClassVar[str] = "Statistics"
    significance: SignificanceTest = "student"
    resamples: Annotated[int, Bounds(1, 1_000_000)] | None = None
    seed: Natural = DEFAULT_SEED
    threads: Count | None = None

    def __post_init__(self) -> None:
        if self.resamples is not None and self.significance in ("student", "none"):
            raise UsageError("only sacreBLEU's tests draw resamples: leave them out, or choose significance sacrebleu")

    @property
    def test(self) -> str | None:
        """The test; None for none."""
        return None if self.significance == "none" else self.significance


@settings
class CorrelationSettings:
    """Which columns of tables are correlated, and how.

    Attributes:
        x: column of the perplexities.
        y: column of the scores.
        system: column with the names of systems.
        log_x: Pearson's r against the logarithm of x; if not given, where x is a perplexity by its name.
        seed: same seed, same output.

    Example:
        >>> CorrelationSettings(x="bits_per_byte", y="bleu").system
        'system'
    """

    heading: ClassVar[str] = "Statistics"
    x: str = "perplexity"
    y: str = "score"
    system: str = "system"
    log_x: bool | None = None
    seed: Natural = DEFAULT_SEED


@settings
class NbestReading:
    """How n-best lists are read; the fields are those of JSONL, of lists and of references alike.

    Attributes:
        format: of all lists; recognized by content if not given.
        id: JSONL: field of the utterance's id.
        field: JSONL: field of the text.
        hypotheses: JSONL: field of the list of an utterance's hypotheses; if not given nbest, hypotheses or hyps where a
            record has it, else each record is a hypothesis.
        score: which of the recognizer's scores to use; all there are, if not given.

    Example:
        >>> NbestReading(field="words", score=("am", "lm")).id
        'id'
    """

    heading: ClassVar[str] = "Text"
    format: NbestFormat | None = None
    id: str = "id"
    field: str = "text"
    hypotheses: str | None = None
    score: Sequence[str] = ()


@settings
class RescoreSettings:
    """How the best of n-best lists are chosen, what errors are, and what is written.

    Attributes:
        weights: of scores, models and words, instead of `tune`, such as score=1,kn5=0.5,words=-0.2; 0 for those not
            named.
        metric: errors in words, or in characters, which are then the unit of length as well.
        starts: random starting points of tuning, besides two fixed ones.
        document: what is independent in the test; a file with an utterance and its speaker or call on each line, as Kaldi's
            utt2spk; each utterance if not given.
        output: file for the best hypotheses; id and words on a line, or .jsonl with scores.
        write_scores: file for all hypotheses with the scores of the models added, as JSONL.

    Example:
        >>> RescoreSettings(weights={"score": 1, "kn5": 0.5}).starts
        8
    """

    heading: ClassVar[str] = "Options"
    weights: Mapping[str, float] | None = None
    metric: ErrorRateName = "wer"
    starts: Annotated[int, Bounds(0, 10_000)] = 8
    document: PairsFile | None = None
    output: PathLike | None = None
    write_scores: PathLike | None = None
