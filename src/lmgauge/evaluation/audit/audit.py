"""All levels of the audit of a model, in one pass over the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from lmgauge.base.errors import InputError, ModelFileError, ProbabilityError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.audit.causality import Memory, beginning, check_causality, check_copy, untouched_copy
from lmgauge.evaluation.audit.checks import LEVELS, NOT_ASKED_FOR, Audit, Check, by_level, judge
from lmgauge.evaluation.audit.compression import check_compression
from lmgauge.evaluation.audit.conformance import Conformance
from lmgauge.evaluation.audit.coverage import Coverage
from lmgauge.evaluation.audit.normalization import LEVEL as NORMALIZATION
from lmgauge.evaluation.audit.normalization import SUMS, check_normalization
from lmgauge.evaluation.audit.subject import Sample, Subject
from lmgauge.evaluation.options import AuditSettings
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.overlap.overlap_results import Overlap
    from lmgauge.text.segments import Segments


class NothingToCompareError(InputError):
    """Both texts could be read, but one of them has no words to compare."""


OverlapSource: TypeAlias = "Overlap | Callable[[], Overlap]"
"""An overlap with the training text, or the function that finds it."""


def check_contamination(
    overlap: OverlapSource | None, max_overlap: float = AuditSettings.max_overlap, skipped: str = ""
) -> Check:
    """Check the share of the text that is in the training text."""
    if skipped or overlap is None:
        return judge("contamination", "training text", skipped=skipped or "the training text was not named (--train)")
    try:
        counts = overlap() if callable(overlap) else overlap
    except NothingToCompareError as error:
        return judge("contamination", "training text", skipped=str(error))
    share = counts.long_contaminated_bytes / counts.bytes if counts.bytes else 0.0
    evidence = (
        f"{100 * share:.2f} % of the bytes ({counts.long_contaminated_bytes:,} of {counts.bytes:,}) are in the training "
        f"text, in runs of {counts.n} {counts.unit}s or more or as whole segments of 20 bytes or more; "
        f"{100 * max_overlap:g} % are allowed."
    )
    if 2 * counts.contaminated_bytes > counts.bytes:
        repeated = 100 * counts.contaminated_bytes / counts.bytes
        skipped = f"{repeated:.0f} % of the bytes are lines that the training text has too, but short ones, which repeat by "
        skipped += "nature: judge by lmgauge overlap"
    elif counts.unspaced:
        skipped = "words were compared, but spaces do not separate them here: name --overlap-unit character"
    no_runs = f" No run of {counts.n} {counts.unit}s fits in the text: only whole segments were compared."
    details = {name: getattr(counts, name) for name in ("bytes", "long_contaminated_bytes", "segments")}
    details |= {"contaminated_segments": counts.contaminated_segments, "share": share, "max_overlap": max_overlap}
    bad = evidence if share > max_overlap else ""
    good = evidence + ("" if counts.ngrams else no_runs)
    return judge("contamination", "training text", bad=bad, skipped=skipped, good=good, details=details)


_SAMPLE_BYTES = 100_000
_BATCH_BYTES = 30_000
_SHOWN_EVERY = 4096
_OF_WHOLE_SEGMENTS = ("causality", "compression")
_GIVEN_TEXT = "the text has given text in it, which this level does not show: audit the model on the text without --given"
_TURNS = "turns come after the conversation before them, which this level does not show: audit the model on plain text"
_NOT_SHOWN = "a server tells the log-probabilities of the text's tokens, not of the whole vocabulary: audit the model itself"
_BROKEN_OFF = "the audit ended before it, at what failed"


def audit(
    model: LanguageModel,
    corpus: Corpus | Sequence[Segments],
    settings: AuditSettings,
    *,
    overlap: OverlapSource | None = None,
    threads: int | None = None,
    name: str | None = None,
    untouched: Callable[[], LanguageModel] | None = None,
) -> Audit:
    """Audit a model on a text; the text is read once."""
    # model: any object with `vocabulary`, `tokenizer`, `score(segments)` and `log_distribution(context_ids)`, as it is
    # before it has scored the text: what it learned from the text earlier can no longer be seen. It may state a `tolerance`
    # (nats) within which its rows repeat, else 0, and a `context_policy`, else `sentence`.
    framed = model.context_policy.unit == "conversation"
    of_whole = set(_OF_WHOLE_SEGMENTS) if framed or (isinstance(corpus, Corpus) and corpus.boundary) else set()
    levels, exhaustive, seed = set(settings.levels) - of_whole, settings.exhaustive, settings.seed
    subject = Subject(model, threads, settings.sum_tolerance)
    copied = untouched_copy(model) if untouched is None and "causality" in levels else ""
    sample = Sample(subject, None if exhaustive else max(settings.compression_bytes, _SAMPLE_BYTES), seed)
    checks: list[Check] = []
    memory: Memory | None = None
    headline: dict[str, Any] = {}
    try:
        if levels - {"contamination"}:
            blocks: Iterator[Segments] = iter(corpus)
            first, texts = beginning(subject, blocks)
            if subject.served and levels & {NORMALIZATION, "causality"}:
                checks += Conformance(subject.served.ask, settings, subject.tolerance).checks(texts)
                subject.served.endpoint.close()
                levels -= {NORMALIZATION, "causality"}
            memory = Memory(subject, texts) if "causality" in levels else None  # before it is shown any of it
            if "coverage" in levels or not subject.served:
                coverage = _walk(subject, sample, chain(first, blocks))
                headline = coverage.headline()
                checks += coverage.checks() if "coverage" in levels else []
        if NORMALIZATION in levels:
            wanted = None if exhaustive else settings.contexts
            checks += check_normalization(subject, sample.contexts(sample.spread()), wanted=wanted, seed=seed)
        if "causality" in levels:
            few = sample.contexts(sample.segments(None if exhaustive else _BATCH_BYTES))
            checks += check_causality(subject, few, seed=seed, exhaustive=exhaustive)
        if "contamination" in levels:
            say_progress("looking for training text")
            checks.append(check_contamination(overlap, settings.max_overlap))
        if "compression" in levels and not subject.served:
            compressed = sample.segments(None if exhaustive else settings.compression_bytes)
            checks += check_compression(subject, compressed, sample.whole)
        if memory is not None:
            say_progress("asking again what was asked before the text was shown")
            copy = untouched() if untouched is not None else copied
            other = copy if isinstance(copy, str) else Subject(copy, threads, settings.sum_tolerance)
            checks += [check_copy(other, subject, sample.contexts(sample.spread()), settings), memory.check()]
    except ProbabilityError as error:
        checks.append(judge(NORMALIZATION, SUMS, bad=f"{error}."))
    except ModelFileError as error:
        if not subject.served or getattr(error, "status", -1) < 0:  # nobody answered
            raise
        checks.append(judge("coverage", "segments", bad=f"The text could not be scored to its end: {error}."))
    fingerprints = {"model": model.fingerprint, "text": corpus.report.sha256 if isinstance(corpus, Corpus) else ""}
    stated = {"tolerance": subject.tolerance, "context": subject.context, "fingerprints": fingerprints}
    reasons = dict.fromkeys(LEVELS, NOT_ASKED_FOR) | dict.fromkeys(levels, _BROKEN_OFF)
    reasons |= dict.fromkeys(levels & {"compression"} if subject.served else (), _NOT_SHOWN)
    reasons |= dict.fromkeys(of_whole & set(settings.levels), _TURNS if framed else _GIVEN_TEXT)
    return Audit(name or subject.label, by_level(checks, reasons), settings.to_dict() | stated, **headline)


def _walk(subject: Subject, sample: Sample, blocks: Iterable[Segments]) -> Coverage:
    # Score the text and read every row.
    coverage = Coverage(subject, subject.tokenizer.unit)
    for rows in coverage.walk(blocks, subject.score):
        sample.offer(rows)
        if coverage.segments_scored % _SHOWN_EVERY == 0:
            say_progress(f"reading rows, {coverage.bytes / 1e6:,.1f} MB")
    if not coverage.counted.segments:
        raise InputError("there is nothing to audit: the text has no segment")
    return coverage
