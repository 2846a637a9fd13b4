"""All levels of the audit of a model, in one pass over the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.audit.causality import check_causality
from lmgauge.evaluation.audit.coverage import Coverage
from lmgauge.evaluation.audit.leak import DEFAULT_MAX_OVERLAP, Overlap, check_leak
from lmgauge.evaluation.audit.normalisation import check_normalisation
from lmgauge.evaluation.audit.proof import check_proof
from lmgauge.evaluation.audit.results import LEVELS, Audit, Check, ordered
from lmgauge.evaluation.audit.rows import DEFAULT_SUM_TOLERANCE, Contexts, Portion, Rows, Subject
from lmgauge.evaluation.evaluate import DEFAULT_SEED

if TYPE_CHECKING:
    from lmgauge.models.model import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

DEFAULT_CONTEXTS = 1000
DEFAULT_PROOF_BYTES = 100_000
LOOKED_AT_BYTES = 100_000
BATCH_BYTES = 30_000
LARGEST_SUM_TOLERANCE = 1e-3
_SHOWN_EVERY = 4096

Progress = Callable[[str], None]


def audit(
    model: LanguageModel,
    corpus: Corpus | Sequence[Segments],
    *,
    levels: Sequence[str] = LEVELS,
    exhaustive: bool = False,
    contexts: int = DEFAULT_CONTEXTS,
    proof_bytes: int = DEFAULT_PROOF_BYTES,
    seed: int = DEFAULT_SEED,
    overlap: Overlap | None = None,
    max_overlap: float = DEFAULT_MAX_OVERLAP,
    sum_tolerance: float = DEFAULT_SUM_TOLERANCE,
    threads: int | None = None,
    name: str | None = None,
    progress: Progress = lambda text: None,
) -> Audit:
    """Audits a model on a text; the text is read once.

    Args:
        model: any object with `vocabulary`, `tokenizer`, `score(segments)` and `log_distribution(context_ids)`. It may state
            a `tolerance` (nats) within which its rows repeat, else 0, and a `context_policy`, else `sentence`.
        corpus: the text.
        levels: which to look at, of `LEVELS`.
        exhaustive: take all contexts, segments and bytes instead of samples.
        contexts: how many distributions are summed.
        proof_bytes: how many bytes of the text are coded.
        seed: of all samples.
        overlap: of the text with the training text (`touched_bytes` and so on), or what finds it when called.
        max_overlap: share of the text's bytes that may lie in stretches seen in training.
        sum_tolerance: how far probabilities may sum from 1; rounded ones, as in some ARPA files, need 1e-5.
        threads: of `score`, where it takes them.
        name: what to call the model.
        progress: told in words what is being done.

    Returns:
        The checks of all levels; those not asked for are NOT CHECKED.

    Raises:
        UsageError: an unknown level, a number out of range, or an object that is no model.
        InputError: the text is empty or cannot be used.
    """
    _check_arguments(levels, contexts, proof_bytes, max_overlap, sum_tolerance)
    subject = Subject(model, threads, sum_tolerance)
    sample = _Sample(subject, exhaustive, max(proof_bytes, LOOKED_AT_BYTES), seed)
    checks: list[Check] = []
    if set(levels) - {"leak"}:
        coverage = sample.walk(corpus, progress)
        checks += coverage.checks() if "coverage" in levels else []
    if "normalisation" in levels:
        wanted = None if exhaustive else contexts
        checks += check_normalisation(subject, sample.contexts(), wanted=wanted, seed=seed, progress=progress)
    if "causality" in levels:
        few = sample.contexts(BATCH_BYTES)
        checks += check_causality(subject, few, seed=seed, exhaustive=exhaustive, progress=progress)
    if "leak" in levels:
        progress("looking for training text")
        checks.append(check_leak(overlap, max_overlap))
    if "proof" in levels:
        checks += check_proof(subject, sample.segments(proof_bytes), progress)
    settings: dict[str, object] = {"seed": seed, "exhaustive": exhaustive, "contexts": contexts, "proof_bytes": proof_bytes}
    settings |= {
        "max_overlap": max_overlap,
        "sum_tolerance": sum_tolerance,
        "tolerance": subject.tolerance,
        "context": subject.context,
    }
    return Audit(name or subject.label, ordered(checks, dict.fromkeys(LEVELS, "not asked for")), settings)


class _Sample:
    """The pass over the text, and the segments that are kept of it to be looked at closely."""

    def __init__(self, subject: Subject, exhaustive: bool, size: int, seed: int) -> None:
        self._subject, self._exhaustive = subject, exhaustive
        self._portion = Portion(None if exhaustive else size, beginning=subject.running, seed=seed)

    def walk(self, corpus: Corpus | Sequence[Segments], progress: Progress) -> Coverage:
        """Scores the text and looks at every row.

        Raises:
            InputError: there is no segment.
        """
        coverage = Coverage(self._subject, self._subject.tokenizer.unit)
        for rows in coverage.walk(corpus, self._subject.score):
            self._portion.offer(rows)
            if coverage.scored % _SHOWN_EVERY == 0:
                progress(f"covering, {coverage.bytes / 1e6:,.1f} MB")
        if not coverage.counted.segments:
            raise InputError("there is nothing to audit: the text has no segment")
        return coverage

    def segments(self, size: int | None = None) -> list[Rows]:
        """About so many bytes; without segments whose ids are outside the vocabulary, which have failed already."""
        rows = self._portion.segments(None if self._exhaustive else size)
        return [part for part in rows if (part.ids < len(self._subject.vocabulary)).all()]

    def contexts(self, size: int | None = None) -> Contexts:
        """The same, with what comes before each event."""
        return Contexts(self.segments(size), self._subject.bos, running=self._subject.running)


def _check_arguments(
    levels: Sequence[str], contexts: int, proof_bytes: int, max_overlap: float, sum_tolerance: float
) -> None:
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise UsageError(f"level {unknown[0]!r} is not known; choose from {', '.join(LEVELS)}")
    if contexts < 1 or proof_bytes < 1:
        raise UsageError("an audit needs at least 1 context and 1 byte to prove")
    if not 0 <= max_overlap <= 1:
        raise UsageError(f"max-overlap {max_overlap}: it is a share of the text, between 0 and 1")
    if not 0 <= sum_tolerance <= LARGEST_SUM_TOLERANCE:
        raise UsageError(
            f"sum-tolerance {sum_tolerance}: give 0 to {LARGEST_SUM_TOLERANCE:g}; sums farther off are no rounding"
        )
