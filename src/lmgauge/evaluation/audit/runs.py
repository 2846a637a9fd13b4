"""What can be audited without the model: a stored run, or a score table of any origin, beside its text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.audit.audit import OverlapSource, check_contamination
from lmgauge.evaluation.audit.checks import (
    FAIL,
    LEVELS,
    NOT_ASKED_FOR,
    Audit,
    Check,
    by_level,
    counted,
    judge,
)
from lmgauge.evaluation.audit.coverage import LEVEL, Coverage
from lmgauge.evaluation.audit.subject import Subject
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.options import AuditSettings
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import Run, unlike_model
from lmgauge.numerics.units import nats_to_bits, perplexity_ratio_from_nats
from lmgauge.scores import EOS_KIND, OOV, SEPARATOR, SPELLED, SPELLING, TOKEN, ScoreBatch, iter_segments
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

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
