"""The functions of `lmgauge.tasks` for the texts of one system: BLEU, chrF, TER, WER and CER, with examples of commands.

Hypotheses and references are told apart by name and never by position: exchanged, they give a plausible wrong number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from lmgauge.base.declaration import verb
from lmgauge.base.option_numbers import Count
from lmgauge.settings import BleuOptions, ChrfOptions, NormalizationOptions, PublicTest, TerOptions

if TYPE_CHECKING:
    from lmgauge.tasks.metrics.bleu import BleuScore
    from lmgauge.tasks.metrics.chrf import ChrfScore
    from lmgauge.tasks.metrics.error_rates import ErrorRates
    from lmgauge.tasks.metrics.protocol import TaskMetric
    from lmgauge.tasks.metrics.ter import TerScore
    from lmgauge.tasks.texts import GivenReferences


@verb
def bleu(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: BleuOptions = BleuOptions(),
    **fields: Any,
) -> BleuScore:
    """Return BLEU of one system (Papineni et al. 2002), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them; None in a list is absent. Tuples where there are as many
            lists as texts in each. (sacreBLEU has a list for each translation instead: `list(zip(*lists))` turns it round.)
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. Does not change results.
        options: of `lmgauge.tasks.BLEU`.
        fields: those of `public` and `options`, by name, such as `order=3`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError: lengths differ, a segment has no reference, a text holds NUL, there is nothing to score, or a test set
            cannot be fetched.
        UsageError: an option is out of range, something is not a string, or sacreBLEU has no such test set.
        MissingExtraError: a test set is named, and sacreBLEU is not installed.

    Shell:
        lmgauge bleu ref.txt baseline.txt better.txt
        lmgauge bleu -t wmt22 -l en-de hyp.txt
        lmgauge bleu ref1.txt -r ref2.txt hyp.txt --tokenizer intl

    Example:
        >>> bleu(hypotheses=["The cat sat on the mat"], references=["The cat sits on the mat"], order=3).score
        50.0
    """
    from lmgauge.tasks.metrics.bleu import BLEU
    from lmgauge.tasks.public_sets import tokenizer_for

    chosen = vars(options) | {"tokenizer": options.tokenizer or tokenizer_for(public.language_pair)}
    return cast("BleuScore", _score(BLEU(**chosen), hypotheses, references, threads, public))


@verb
def chrf(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: ChrfOptions = ChrfOptions(),
    **fields: Any,
) -> ChrfScore:
    """Return chrF of one system (Popović 2015), or chrF++ (Popović 2017), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. Does not change results.
        options: of `lmgauge.tasks.ChrF`.
        fields: those of `public` and `options`, by name, such as `plus_plus=True`.

    Returns:
        The score (0 to 100) and its parts.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge chrf ref.txt hyp.txt
        lmgauge chrf ref.txt baseline.txt better.txt --plus-plus

    Example:
        >>> chrf(hypotheses=["ab"], references=["ac"], char_order=1).score
        50.0
    """
    from lmgauge.tasks.metrics.chrf import ChrF

    return cast("ChrfScore", _score(ChrF(**vars(options)), hypotheses, references, threads, public))


@verb
def ter(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences | None = None,
    threads: Count | None = None,
    public: PublicTest = PublicTest(),
    options: TerOptions = TerOptions(),
    **fields: Any,
) -> TerScore:
    """Return the translation edit rate of one system (Snover et al. 2006), digit for digit as sacreBLEU.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        public: instead of references, a public test set in sacreBLEU's registry.
        threads: how many to use; all cores if not given. Does not change results.
        options: of `lmgauge.tasks.TER`.
        fields: those of `public` and `options`, by name, such as `normalized=True`.

    Returns:
        Edits and shifts for 100 words of the references (percent, and may be above 100), and their parts.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge ter ref.txt hyp.txt
        lmgauge ter ref.txt baseline.txt better.txt --normalized

    Example:
        >>> ter(hypotheses=["a b c x"], references=["a b c d"]).score
        25.0
    """
    from lmgauge.tasks.metrics.ter import TER

    return cast("TerScore", _score(TER(**vars(options)), hypotheses, references, threads, public))


@verb
def wer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: Count | None = None,
    options: NormalizationOptions = NormalizationOptions(),
    **fields: Any,
) -> ErrorRates:
    """Return the word error rate of one system, with MER, WIL and the counts, as jiwer has them.

    White space of any kind splits words; in jiwer a single tab or no-break space does not. Source: Morris, Maier &
    Green (2004).

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        threads: how many to use; all cores if not given. Does not change results.
        options: of `lmgauge.tasks.WER`.
        fields: those of `options`, by name, such as `lowercase=True`.

    Returns:
        The rates, as ratios (0.5 is 50 %; BLEU, chrF and TER are percent), and the counts of hits, substitutions, deletions
        and insertions.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge wer ref.txt hyp.txt --lowercase --remove-punctuation
        lmgauge wer ref.txt hyp.txt --align | less
        lmgauge wer ref.tsv a.tsv b.tsv --field text --id utterance --group speaker
        lmgauge wer ref.stm hyp.ctm --group speaker
        lmgauge wer data/test/text exp/decode/hyp.txt --format kaldi

    Example:
        >>> wer(hypotheses=["This test"], references=["This is a test"]).score
        0.5
    """
    from lmgauge.tasks.metrics.error_rates import WER

    return cast("ErrorRates", _score(WER(**vars(options)), hypotheses, references, threads))


@verb
def cer(
    *,
    hypotheses: Sequence[str],
    references: GivenReferences,
    threads: Count | None = None,
    options: NormalizationOptions = NormalizationOptions(),
    **fields: Any,
) -> ErrorRates:
    """Return the character error rate of one system, a ratio, as jiwer has it.

    Args:
        hypotheses: the system's outputs, a string for each segment.
        references: for each segment a string, or a list of them, as `bleu` has them.
        threads: how many to use; all cores if not given. Does not change results.
        options: of `lmgauge.tasks.CER`.
        fields: those of `options`, by name, such as `lowercase=True`.

    Returns:
        The rates, as ratios, and the counts, as `wer`.

    Raises:
        InputError, UsageError, MissingExtraError: as `bleu`.

    Shell:
        lmgauge cer ref.txt hyp.txt --unicode-form NFKC

    Example:
        >>> cer(hypotheses=["abxd"], references=["abcd"]).score
        0.25
    """
    from lmgauge.tasks.metrics.error_rates import CER

    return cast("ErrorRates", _score(CER(**vars(options)), hypotheses, references, threads))


def _score(
    metric: TaskMetric,
    hypotheses: Sequence[str],
    references: GivenReferences | None,
    threads: int | None,
    public: PublicTest = PublicTest(),
) -> object:
    from lmgauge.tasks.public_sets import references_or_public
    from lmgauge.tasks.scoring import score_strings

    return score_strings(metric, hypotheses, references_or_public(references, public), threads)
