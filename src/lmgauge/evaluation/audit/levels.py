"""All levels of the audit of a model, in one pass over the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.audit.causality import check_causality
from lmgauge.evaluation.audit.compression import check_compression
from lmgauge.evaluation.audit.contamination import DEFAULT_MAX_OVERLAP, OverlapSource, check_contamination
from lmgauge.evaluation.audit.coverage import Coverage
from lmgauge.evaluation.audit.memory import Memory, beginning, check_copy, untouched_copy
from lmgauge.evaluation.audit.normalization import check_normalization
from lmgauge.evaluation.audit.results import LEVELS, NOT_ASKED_FOR, Audit, Check, Headline, ordered
from lmgauge.evaluation.audit.rows import DEFAULT_SUM_TOLERANCE, Subject
from lmgauge.evaluation.audit.sample import Sample

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

DEFAULT_CONTEXTS = 1000
DEFAULT_COMPRESSION_BYTES = 100_000
_LOOKED_AT_BYTES = 100_000
_BATCH_BYTES = 30_000
_LARGEST_SUM_TOLERANCE = 1e-3
_COMPARED_WITH_COPY = 200
_SHOWN_EVERY = 4096

Progress = Callable[[str], None]


def audit(
    model: LanguageModel,
    corpus: Corpus | Sequence[Segments],
    *,
    levels: Sequence[str] = LEVELS,
    exhaustive: bool = False,
    contexts: int = DEFAULT_CONTEXTS,
    compression_bytes: int = DEFAULT_COMPRESSION_BYTES,
    seed: int = DEFAULT_SEED,
    overlap: OverlapSource | None = None,
    max_overlap: float = DEFAULT_MAX_OVERLAP,
    sum_tolerance: float = DEFAULT_SUM_TOLERANCE,
    threads: int | None = None,
    name: str | None = None,
    untouched: Callable[[], LanguageModel] | None = None,
    progress: Progress = lambda text: None,
) -> Audit:
    """Audits a model on a text; the text is read once.

    Args:
        model: any object with `vocabulary`, `tokenizer`, `score(segments)` and `log_distribution(context_ids)`, as it is
            before it has scored the text: what it learned from that earlier cannot be seen any more. It may state
            a `tolerance` (nats) within which its rows repeat, else 0, and a `context_policy`, else `sentence`.
        corpus: the text.
        levels: which to look at, of `LEVELS`.
        exhaustive: take all contexts, segments and bytes instead of samples.
        contexts: how many distributions are summed.
        compression_bytes: how many bytes of the text are coded.
        seed: of all samples.
        overlap: of the text with the training text (`contaminated_bytes` and so on), or what finds it when called.
        max_overlap: share of the text's bytes that may lie in stretches seen in training.
        sum_tolerance: how far probabilities may sum from 1; rounded ones, as in some ARPA files, need 1e-5.
        threads: of `score`, where it takes them.
        name: what to call the model.
        untouched: what gives the model as it was before it saw the text, e.g. by loading it again; if not given, a deep
            copy is made.
        progress: told in words what is being done.

    Returns:
        The checks of all levels; those not asked for are NOT CHECKED.

    Raises:
        UsageError: an unknown level, a number out of range, or an object that is no model.
        InputError: the text is empty or cannot be used.
    """
    _check_arguments(levels, contexts, compression_bytes, max_overlap, sum_tolerance)
    subject = Subject(model, threads, sum_tolerance)
    copied = untouched_copy(model) if untouched is None and "causality" in levels else ""
    sample = Sample(subject, None if exhaustive else max(compression_bytes, _LOOKED_AT_BYTES), seed)
    checks: list[Check] = []
    headline = Headline()
    memory: Memory | None = None
    if set(levels) - {"contamination"}:
        coverage, memory = _walk(subject, sample, corpus, progress, remember="causality" in levels)
        headline = coverage.headline()
        checks += coverage.checks() if "coverage" in levels else []
    if "normalization" in levels:
        wanted = None if exhaustive else contexts
        checks += check_normalization(subject, sample.spread(), wanted=wanted, seed=seed, progress=progress)
    if "causality" in levels:
        few = sample.beginning(None if exhaustive else _BATCH_BYTES)
        checks += check_causality(subject, few, seed=seed, exhaustive=exhaustive, progress=progress)
    if "contamination" in levels:
        progress("looking for training text")
        checks.append(check_contamination(overlap, max_overlap))
    if "compression" in levels:
        proved = sample.segments(None if exhaustive else compression_bytes)
        checks += check_compression(subject, proved, sample.whole, progress)
    if memory is not None:
        progress("asking again what was asked before the text was shown")
        other = untouched() if untouched is not None else copied
        checks += [_beside_copy(other, subject, sample, min(contexts, _COMPARED_WITH_COPY), seed), memory.check()]
    settings: dict[str, object] = {
        "seed": seed,
        "exhaustive": exhaustive,
        "contexts": contexts,
        "compression_bytes": compression_bytes,
    }
    settings |= {"max_overlap": max_overlap, "sum_tolerance": sum_tolerance}
    settings |= {"tolerance": subject.tolerance, "context": subject.context}
    found = ordered(checks, dict.fromkeys(LEVELS, NOT_ASKED_FOR))
    return Audit(name or subject.label, found, settings, headline)


def _beside_copy(other: LanguageModel | str, subject: Subject, sample: Sample, wanted: int, seed: int) -> Check:
    """Whether a model that was not shown the text, if there is one, gives what the audited one gave."""
    copy = other if isinstance(other, str) else Subject(other, subject.threads, subject.sum_tolerance)
    return check_copy(copy, subject, sample.spread(), wanted=wanted, seed=seed)


def _walk(
    subject: Subject, sample: Sample, corpus: Corpus | Sequence[Segments], progress: Progress, *, remember: bool
) -> tuple[Coverage, Memory | None]:
    """Scores the text and looks at every row; `remember` asks the model at some contexts before it is shown any of it.

    Raises:
        InputError: there is no segment.
    """
    blocks: Iterator[Segments] = iter(corpus)
    first, texts = beginning(subject, blocks)
    memory = Memory(subject, texts) if remember else None
    coverage = Coverage(subject, subject.tokenizer.unit)
    for rows in coverage.walk(chain(first, blocks), subject.score):
        sample.offer(rows)
        if memory is not None:
            memory.watch(rows)
        if coverage.scored % _SHOWN_EVERY == 0:
            progress(f"covering, {coverage.bytes / 1e6:,.1f} MB")
    if not coverage.counted.segments:
        raise InputError("there is nothing to audit: the text has no segment")
    return coverage, memory


def _check_arguments(
    levels: Sequence[str], contexts: int, compression_bytes: int, max_overlap: float, sum_tolerance: float
) -> None:
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise UsageError(f"level {unknown[0]!r} is not known; choose from {', '.join(LEVELS)}")
    if contexts < 1 or compression_bytes < 1:
        raise UsageError("an audit needs at least 1 context and 1 byte to prove")
    if not 0 <= max_overlap <= 1:
        raise UsageError(f"max-overlap {max_overlap}: it is a share of the text, between 0 and 1")
    if not 0 <= sum_tolerance <= _LARGEST_SUM_TOLERANCE:
        raise UsageError(
            f"sum-tolerance {sum_tolerance}: give 0 to {_LARGEST_SUM_TOLERANCE:g}; sums farther off are no rounding"
        )
