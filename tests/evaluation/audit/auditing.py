"""Audits as the tests ask for them: settings by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmgauge.evaluation.audit import audit as audits
from lmgauge.evaluation.audit.audit import OverlapSource
from lmgauge.evaluation.audit.checks import Audit
from lmgauge.evaluation.audit.compression import Decoded
from lmgauge.evaluation.options import AuditSettings
from lmgauge.evaluation.runs import Run
from lmgauge.models.protocol import LanguageModel, completed
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments


def audit(
    model: LanguageModel,
    corpus: Corpus | Sequence[Segments],
    *,
    overlap: OverlapSource | None = None,
    threads: int | None = None,
    name: str | None = None,
    **settings: Any,
) -> Audit:
    """Audit a model with `AuditSettings(**settings)`."""
    return audits.audit(completed(model), corpus, AuditSettings(**settings), overlap=overlap, threads=threads, name=name)


def audit_run(run: Run, corpus: Corpus | None, *, overlap: OverlapSource | None = None, **settings: Any) -> Audit:
    """Audit a run with `AuditSettings(**settings)`."""
    return audits.audit_run(run, corpus, AuditSettings(**settings), overlap=overlap)


def events_of(decoded: Sequence[Decoded]) -> list[list[int]]:
    """The tokens of segments that were decoded."""
    return [tokens for tokens, _ in decoded]
