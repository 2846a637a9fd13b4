"""What can be audited without the model: a stored run, or a score table of any origin, beside its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lmgauge.errors import InputError
from lmgauge.evaluation.audit.contamination import DEFAULT_MAX_OVERLAP, OverlapSource, check_contamination
from lmgauge.evaluation.audit.coverage import Coverage
from lmgauge.evaluation.audit.results import (
    FAIL,
    LEVELS,
    NOT_ASKED_FOR,
    NOT_CHECKED,
    PASS,
    Audit,
    Check,
    Headline,
    counted,
    ordered,
)
from lmgauge.evaluation.audit.rows import Rows, Subject, rows_of
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.scores import EOS_KIND, KINDS, OOV, TOKEN, ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

LEVEL = "coverage"
RELATIVE_TOLERANCE = 1e-12
_NEEDS_MODEL = "needs the model: name it with -m"
_NO_TEXT = "the text it scored is not at hand: name it (--text)"
_COUNTS = ("segments", "words", "characters", "bytes")

Progress = Callable[[str], None]


@dataclass
class _Sums:
    """The sums of a table, the plain way: a correctly rounded sum of each batch, and of those the sum."""

    parts: list[float] = field(default_factory=list)
    events: list[int] = field(default_factory=lambda: [0] * len(KINDS))
    zeros: int = 0
    lossy: int = 0
    spans_apart: int = 0

    def watch(self, batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        """Hands batches on and adds them up."""
        for batch in batches:
            finite = [value for value in batch.logprob.tolist() if value != -math.inf]
            self.parts.append(math.fsum(finite))
            self.zeros += len(batch) - len(finite)
            self.spans_apart += batch.spans_apart
            self.lossy += batch.lossy_segments
            for kind in range(len(KINDS)):
                self.events[kind] += int((batch.kind == kind).sum())
            yield batch

    @property
    def nats(self) -> float:
        """Log-probability of everything; -inf if an event has probability zero."""
        return -math.inf if self.zeros else math.fsum(self.parts)


def audit_run(
    run: Run,
    corpus: Corpus | None,
    *,
    levels: Sequence[str] = LEVELS,
    overlap: OverlapSource | None = None,
    max_overlap: float = DEFAULT_MAX_OVERLAP,
    progress: Progress = lambda text: None,
) -> Audit:
    """Audits a run for what can be seen without its model: coverage, denominators and sums and contamination.

    Args:
        run: the run folder or score table, as `open_run` gives it.
        corpus: the text it scored; without it the sums are all that is checked.
        levels: which to look at.
        overlap: of the text with the training text, or what finds it when called.
        max_overlap: share of the text's bytes that may lie in stretches seen in training.
        progress: told in words what is being done.

    Raises:
        InputError: the table cannot be read at all.
    """
    checks: list[Check] = []
    headline = Headline()
    if "coverage" in levels:
        progress("covering")
        found, headline = _coverage(run, corpus)
        checks += [_seal(run), *found]
    if "contamination" in levels:
        progress("looking for training text")
        contamination = check_contamination(overlap, max_overlap)
        nothing = corpus is None and overlap is None
        checks.append(Check("contamination", contamination.name, NOT_CHECKED, _NO_TEXT) if nothing else contamination)
    every = ordered(checks, {level: _NEEDS_MODEL if level in levels else NOT_ASKED_FOR for level in LEVELS})
    return Audit(run.name, every, {"run": str(run.path), "max_overlap": max_overlap}, headline)


def check_model_of_run(run: Run, corpus: Corpus, model: LanguageModel, threads: int | None = None) -> list[Check]:
    """Whether a stored run is what this model makes of this text: by fingerprint, and row by row.

    Raises:
        UsageError: the object is no model.
    """
    subject = Subject(model, threads)
    theirs, own = run.origin.fingerprints.get("model", ""), str(getattr(model, "fingerprint", ""))
    details = {"run": theirs, "model": own}
    if not theirs or not own:
        same = Check(LEVEL, "model", NOT_CHECKED, "the run, or the model, has no fingerprint", details)
    elif theirs != own:
        evidence = f"The run was made by a model with fingerprint {theirs[:6]}; this one has {own[:6]}."
        same = Check(LEVEL, "model", FAIL, evidence, details)
    else:
        same = Check(LEVEL, "model", PASS, f"The run was made by this model: its fingerprint is {own[:6]}.", details)
    compared = 0
    for stored, made in zip_longest(rows_of(run.batches()), rows_of(subject.score(corpus))):
        wrong = _row_difference(stored, made, subject)
        if wrong:
            return [same, Check(LEVEL, "stored rows", FAIL, f"The table is not what the model gives: {wrong}.")]
        compared += len(made)
    text = f"{counted(compared, 'row')} of the table are what the model gives."
    return [same, Check(LEVEL, "stored rows", PASS, text, {"rows": compared})]


def _row_difference(stored: Rows | None, made: Rows | None, subject: Subject) -> str:
    """How the rows of a segment differ from those stored of it; empty if they do not."""
    if stored is None or made is None:
        return f"{'it' if stored is None else 'the model'} ends before the other"
    where = f"segment {made.segment + 1}"
    if stored.segment != made.segment or len(stored) != len(made):
        return f"{where} has {len(made):,} rows, where segment {stored.segment + 1} of the table has {len(stored):,}"
    for j, (a, b) in enumerate(zip(stored.logprob.tolist(), made.logprob.tolist(), strict=True)):
        if subject.differs(a, b):
            return f"{where}, event {j + 1}: {a:.9g} is stored, the model gives {b:.9g}"
    return ""


def _seal(run: Run) -> Check:
    """Whether a run folder is as it was written."""
    if run.evaluation is None:
        return Check(LEVEL, "seal", NOT_CHECKED, "a bare score table has none")
    if run.broken_seal:
        return Check(LEVEL, "seal", FAIL, f"{run.broken_seal}.")
    return Check(LEVEL, "seal", PASS, "Neither the numbers nor the table were changed after they were written.")


def _coverage(run: Run, corpus: Corpus | None) -> tuple[list[Check], Headline]:
    sums, first_tokens = _Sums(), FirstTokens(run.origin.policy)
    coverage = Coverage(None, run.origin.unit, pull=True, context=run.origin.context)
    blocks: Iterable[Segments] = () if corpus is None else corpus

    def table(feed: Iterable[Segments]) -> Iterator[ScoreBatch]:
        return sums.watch(first_tokens.watch(run.batches()))

    try:
        if corpus is None:
            for _ in table(()):
                pass
        else:
            for _ in coverage.walk(blocks, table):
                pass
    except InputError as error:
        return [Check(LEVEL, "table", FAIL, f"The table breaks its own rules: {error}.")], Headline()
    if not sum(sums.events):
        return [Check(LEVEL, "table", FAIL, "The table has no rows.")], Headline()
    bound = bool(sums.events[OOV] or sums.lossy or run.origin.lossy_segments)
    size = None if corpus is None else coverage.denominators.bytes
    headline = Headline.of(sums.nats, sum(sums.events), size, bound=bound)
    scale = _first_tokens(first_tokens)
    if corpus is None:
        return [Check(LEVEL, "text", NOT_CHECKED, _NO_TEXT), scale, *_claims(run, sums, None)], headline
    if sums.spans_apart:
        coverage.faults["spans"].note("a span that does not begin where the one before ended")
        coverage.faults["spans"].count += sums.spans_apart - 1
    text = _same_text(run, corpus)
    if text.verdict == FAIL:  # rows beside another text say nothing of either
        return [text, *_claims(run, sums, None)], Headline.of(sums.nats, sum(sums.events), None, bound=bound)
    return [text, *coverage.checks(), scale, *_claims(run, sums, coverage)], headline


def _first_tokens(first_tokens: FirstTokens) -> Check:
    """Whether the probabilities of what segments begin with can be those of one distribution."""
    if first_tokens.why_not:
        return Check(LEVEL, "first tokens", NOT_CHECKED, first_tokens.why_not)
    seen = first_tokens.describe()
    verdict = {True: PASS, False: FAIL, None: NOT_CHECKED}[first_tokens.possible]
    return Check(LEVEL, "first tokens", verdict, f"{seen[0].upper()}{seen[1:]}.", {"sum": first_tokens.mass})


def _same_text(run: Run, corpus: Corpus) -> Check:
    own, theirs = corpus.report.sha256, run.text_sha256
    details = {"text": own, "run": theirs}
    if not theirs:
        return Check(LEVEL, "text", NOT_CHECKED, "the table does not say which text it scored", details)
    if own != theirs:
        evidence = f"The text has fingerprint {own[:6]}, but the run scored one with {theirs[:6]}."
        return Check(LEVEL, "text", FAIL, evidence, details)
    return Check(LEVEL, "text", PASS, f"The text is the one that was scored: its fingerprint is {own[:6]}.", details)


def _claims(run: Run, sums: _Sums, coverage: Coverage | None) -> list[Check]:
    """What evaluation.json says, held against what was added up and counted here."""
    if run.evaluation is None:
        reason = "a score table alone claims no numbers; a run folder does (eval -o)"
        return [Check(LEVEL, "claims", NOT_CHECKED, reason)]
    computed = _recomputed(sums, coverage)
    wrong = []
    for name, value in computed.items():
        claimed = _number(run.evaluation, name)
        if claimed is None or not _same(claimed, value):
            wrong.append(f"{name} is {_told(claimed)}, but comes to {_told(value)}")
    details = {"recomputed": computed, "wrong": len(wrong)}
    if wrong:
        text = f"evaluation.json does not say what the table says: {'; '.join(wrong[:3])}"
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        return [Check(LEVEL, "claims", FAIL, f"{text}{more}.", details)]
    text = (
        f"{counted(len(computed), 'number')} of evaluation.json come out the same when added up again: perplexity "
        f"{_told(computed['perplexity'])} from {sum(sums.events):,} events"
    )
    return [Check(LEVEL, "claims", PASS, f"{text}.", details)]


def _recomputed(sums: _Sums, coverage: Coverage | None) -> dict[str, float]:
    """Numbers of an evaluation, from rows and text."""
    events, nats = sum(sums.events), sums.nats
    found: dict[str, float] = {
        "events": events,
        "tokens": sums.events[TOKEN] + sums.events[OOV],
        "sentence_ends": sums.events[EOS_KIND],
        "oov": sums.events[OOV],
        "zero_probability_events": sums.zeros,
        "log_probability": nats,
        "cross_entropy": -nats / events,
        "perplexity": perplexity_ratio_from_nats(-nats / events),
        "bits_per_token": -nats / events / math.log(2),
    }
    if coverage is not None:
        for name in _COUNTS:
            count = getattr(coverage.denominators, name)
            found[name] = count
            if name != "segments" and count:
                found[f"bits_per_{name.removesuffix('s')}"] = -nats / count / math.log(2)
    return found


def _number(evaluation: Mapping[str, Any], name: str) -> float | None:
    """A claimed number; infinities are strings in JSON."""
    value = evaluation.get(name)
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _same(a: float, b: float) -> bool:
    return a == b or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)


def _told(value: float | None) -> str:
    return "not there" if value is None else f"{value:,.12g}"
