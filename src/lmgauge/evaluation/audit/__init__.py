"""Audits: whether a number is what it claims to be, level by level.

Knows models only as objects that are handed in: it may import what `evaluation` may, and no model.

1. *coverage*: every byte is scored once; what numbers are divided by is what the text has.
2. *normalization*: after any context the probabilities of all tokens sum to one, and `score` gives what they say.
3. *causality*: rows depend neither on later text, nor on the token they predict, nor on the batch, nor on earlier calls.
4. *contamination*: the text is not in the training text.
5. *compression*: the text is coded to the size that the number claims, and decoded again.
"""

from __future__ import annotations

from lmgauge.evaluation.audit.contamination import DEFAULT_MAX_OVERLAP, check_contamination
from lmgauge.evaluation.audit.levels import DEFAULT_COMPRESSION_BYTES, DEFAULT_CONTEXTS, audit
from lmgauge.evaluation.audit.results import FAIL, LEVELS, NOT_CHECKED, PASS, Audit, Check, Headline
from lmgauge.evaluation.audit.runs import audit_run, check_model_of_run

__all__ = [
    "DEFAULT_COMPRESSION_BYTES",
    "DEFAULT_CONTEXTS",
    "DEFAULT_MAX_OVERLAP",
    "FAIL",
    "LEVELS",
    "NOT_CHECKED",
    "PASS",
    "Audit",
    "Check",
    "Headline",
    "audit",
    "audit_run",
    "check_contamination",
    "check_model_of_run",
]
