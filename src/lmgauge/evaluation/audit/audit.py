"""Audits: of a model, all levels in one pass over the text; of a run or score table, what can be seen without its model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lmgauge.base.errors import InputError, ModelFileError, ProbabilityError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.audit.causality import Memory, beginning, check_causality, check_copy, untouched_copy
from lmgauge.evaluation.audit.checks import FAIL, LEVELS, NOT_ASKED_FOR, Audit, Check, by_level, counted, judge
from lmgauge.evaluation.audit.compression import check_compression
from lmgauge.evaluation.audit.conformance import Conformance
from lmgauge.evaluation.audit.coverage import LEVEL, Coverage
from lmgauge.evaluation.audit.normalization import LEVEL as NORMALIZATION
from lmgauge.evaluation.audit.normalization import SUMS, check_normalization
from lmgauge.evaluation.audit.subject import Sample, Subject
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.options import AuditSettings
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import Run, unlike_model
from lmgauge.numerics.units import nats_to_bits, perplexity_ratio_from_nats
from lmgauge.scores import EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch, iter_segments
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


RELATIVE_TOLERANCE = 1e-12
_SAME_NUMBER = 1e-4  # neural models give other last digits on other machines
_NEEDS_MODEL = "needs the model: name it with -m"
_NO_TEXT = "the text it scored is not available: name it (--text)"
_COUNTS = ("segments", "words", "characters", "bytes")
_SHOWN = 3  # of the claims that are wrong
_OF_NUMBERS = ("seal", "text", "table", "claims")  # checks of a run that say nothing of its model


def audit_run(
    run: Run, corpus: Corpus | None, settings: AuditSettings | None = None, *, overlap: OverlapSource | None = None
) -> Audit:
    """Audit what can be seen of a run without its model: its seal, coverage, denominators, sums, and contamination."""
    # corpus: the text it scored; None leaves only the sums to be checked.
    settings = settings or AuditSettings()
    checks: list[Check] = []
    headline: dict[str, Any] = {}
    if "coverage" in settings.levels:
        say_progress("reading the table")
        checks, headline = _coverage(run, corpus)
        sealed = "Neither the numbers nor the table were changed after they were written."
        bare = "a bare score table has none" if run.evaluation is None else ""
        broken = f"{run.broken_seal}." if run.broken_seal else ""
        checks.insert(0, judge(LEVEL, "seal", bad=broken, skipped=bare, good=sealed))
    if "contamination" in settings.levels:
        say_progress("looking for training text")
        no_text = _NO_TEXT if corpus is None and overlap is None else ""
        checks.append(check_contamination(overlap, settings.max_overlap, no_text))
    reasons = {level: _NEEDS_MODEL if level in settings.levels else NOT_ASKED_FOR for level in LEVELS}
    fingerprints = {"model": run.origin.fingerprints.get("model", ""), "text": run.text_sha256}
    stated = {"run": str(run.path), "max_overlap": settings.max_overlap, "fingerprints": fingerprints}
    stated |= {"sample": run.sample.part} if run.sample is not None else {}
    return Audit(run.name, by_level(checks, reasons), stated, **headline)


def why_not_about(audit: Audit, evaluation: Evaluation) -> str:
    """Return why an audit is not about a run, in words; empty if it is about it."""
    fingerprints = audit.settings.get("fingerprints")
    if not isinstance(fingerprints, dict):
        return "it does not say what was audited: audit again"
    for name in ("model", "text"):
        its, theirs = str(fingerprints.get(name, "")), evaluation.fingerprints.get(name, "")
        if its and theirs and its != theirs:
            return f"its {name} has fingerprint {its[:6]}, that of the run {theirs[:6]}"
    if audit.events and audit.events != evaluation.events:
        return f"it read {audit.events:,} events, the run has {evaluation.events:,}"
    audited, own = audit.perplexity, evaluation.perplexity
    if audited is not None and audited != own and not math.isclose(audited, own, rel_tol=_SAME_NUMBER):
        return f"its perplexity is {audited:.6g}, that of the run {own:.6g}"
    if not audit.events and not fingerprints.get("text"):
        return "it read nothing of the text that the run scored"
    return ""


def with_run(
    audit: Audit, run: Run, corpus: Corpus, settings: AuditSettings, model: LanguageModel, threads: int | None
) -> Audit:
    """Return the audit of a model with what can be seen of a run, and whether this model made it."""
    if LEVEL not in settings.levels:
        return audit
    say_progress("comparing with the run")
    seen = [check for check in audit_run(run, corpus, AuditSettings(levels=[LEVEL])).checks if check.name in _OF_NUMBERS]
    return replace(audit, checks=(*seen, *check_model_of_run(run, corpus, model, threads), *audit.checks))


def check_model_of_run(run: Run, corpus: Corpus, model: LanguageModel, threads: int | None = None) -> list[Check]:
    """Check whether this model, on this text, gives the rows that a run stored: by fingerprint, and row by row."""
    subject = Subject(model, threads)
    same = _same_fingerprints("model", model.fingerprint, run.origin.fingerprints.get("model", ""))
    rows = 0
    for before, now in zip_longest(iter_segments(run.batches()), iter_segments(subject.score(corpus))):
        difference = _row_difference(before, now, subject.tolerance)
        if difference:
            return [same, judge(LEVEL, "stored rows", bad=f"The table is not what the model gives: {difference}.")]
        rows += len(now)
    good = f"{counted(rows, 'row')} of the table are what the model gives."
    return [same, judge(LEVEL, "stored rows", good=good, details={"rows": rows})]


def _row_difference(stored: ScoreBatch | None, made: ScoreBatch | None, tolerance: float) -> str:
    # How the rows of a segment differ from those stored of it; empty if they do not.
    if stored is None or made is None:
        return f"{'it' if stored is None else 'the model'} ends before the other"
    where = f"segment {made.segment + 1}"
    if stored.segment != made.segment or len(stored) != len(made):
        return f"{where} has {len(made):,} rows, where segment {stored.segment + 1} of the table has {len(stored):,}"
    for part in ("", SPELLING, SEPARATOR):
        a, b = (np.asarray(rows.extra.get(part, ()) if part else rows.logprob) for rows in (stored, made))
        if len(a) != len(b):
            return f"the column `{part}` is only in {'the table' if len(a) else 'what the model gives'}"
        for row, apart in unlike_model(a, b, tolerance):
            return f"{where}, event {row + 1}: {f'a {part} of ' if part else ''}{apart}"
    return ""


def _coverage(run: Run, corpus: Corpus | None) -> tuple[list[Check], dict[str, Any]]:
    first_tokens = FirstTokens(run.origin.policy)
    coverage = Coverage(None, run.origin.unit, run.origin.policy)
    try:
        for _ in coverage.walk(() if corpus is None else corpus, lambda _: first_tokens.watch(run.batches())):
            pass
    except InputError as error:
        if getattr(error.__cause__, "errno", None):  # of the system, which says nothing of the table
            raise
        return [judge(LEVEL, "table", bad=f"The table breaks its own rules: {error}.")], {}
    if not coverage.events:
        return [judge(LEVEL, "table", bad="The table has no rows.")], {}
    same = judge(LEVEL, "text", skipped=_NO_TEXT)
    if corpus is not None:
        same = _same_fingerprints("text", corpus.report.sha256, run.text_sha256)
    at_hand = corpus is not None and same.verdict != FAIL  # rows beside another text say nothing of either
    checks = [same, *(coverage.checks() if at_hand else [])]
    checks += [_first_tokens(first_tokens)] if same.verdict != FAIL else []
    checks += [judge(LEVEL, "special tokens", bad=f"{first_tokens.heads}.")] if first_tokens.heads else []
    headline = coverage.headline(text=at_hand, lossy=bool(run.origin.lossy_segments))
    return [*checks, _claims(run, coverage, text=at_hand)], headline


def _first_tokens(first_tokens: FirstTokens) -> Check:
    if first_tokens.why_not:
        return judge(LEVEL, "first tokens", skipped=first_tokens.why_not)
    what = first_tokens.describe()
    evidence = f"{what[0].upper()}{what[1:]}."
    bad, skipped = (evidence if first_tokens.possible is verdict else "" for verdict in (False, None))
    return judge(LEVEL, "first tokens", bad=bad, skipped=skipped, good=evidence, details={"sum": first_tokens.mass})


def _same_fingerprints(name: str, own: str, of_run: str) -> Check:
    skipped = "" if own and of_run else f"the {name}, or that of the run, has no fingerprint"
    bad = f"The {name} has fingerprint {own[:6]}, that of the run has {of_run[:6]}." if own != of_run and not skipped else ""
    good = f"The {name} is that of the run: its fingerprint is {own[:6]}."
    return judge(LEVEL, name, bad=bad, skipped=skipped, good=good, details={name: own, "run": of_run})


def _claims(run: Run, coverage: Coverage, *, text: bool) -> Check:
    if run.evaluation is None:
        skipped = "a score table alone claims no numbers; a run folder does (eval -o)"
        return judge(LEVEL, "claims", skipped=skipped)
    computed = dict(_recomputed(coverage, text))
    wrong = []
    for name, value in computed.items():
        claimed = _number(run.evaluation.get(name))
        if claimed is None or not (claimed == value or math.isclose(claimed, value, rel_tol=RELATIVE_TOLERANCE)):
            stated = ("no number" if name in run.evaluation else "not there") if claimed is None else f"{claimed:,.12g}"
            wrong.append(f"{name} is {stated}, but comes to {value:,.12g}")
    more = f" (and {len(wrong) - _SHOWN} more)" if wrong[_SHOWN:] else ""
    bad = f"evaluation.json does not say what the table says: {'; '.join(wrong[:_SHOWN])}{more}." if wrong else ""
    good = f"{counted(len(computed), 'number')} of evaluation.json come out the same when added up again: perplexity "
    good += f"{computed['perplexity']:,.12g} from {coverage.events:,} events."
    return judge(LEVEL, "claims", bad=bad, good=good, details={"recomputed": computed, "wrong": len(wrong)})


def _recomputed(coverage: Coverage, text: bool) -> Iterator[tuple[str, float]]:
    events, kinds, nats = coverage.events, coverage.kinds, coverage.sum.nats
    yield "events", events
    yield "tokens", kinds[TOKEN] + kinds[OOV] + kinds[SPELLED]
    yield "sentence_ends", kinds[EOS_KIND]
    yield "oov", kinds[OOV] + kinds[SPELLED]
    yield "zero_probability_events", coverage.sum.zeros
    yield "log_probability", nats
    yield "cross_entropy", -nats / events
    yield "perplexity", perplexity_ratio_from_nats(-nats / events)
    yield "bits_per_token", nats_to_bits(-nats / events)
    for name in _COUNTS if text else ():
        count = getattr(coverage.denominators, name)
        yield name, count
        if name != "segments" and count and (name != "words" or coverage.denominators.has_words):
            yield f"bits_per_{name.removesuffix('s')}", nats_to_bits(-nats / count)


def _number(value: Any) -> float | None:
    # Claimed number, or None for anything else; infinities are strings in JSON.
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
