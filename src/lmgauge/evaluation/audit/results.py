"""What an audit found: checks with a verdict and their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lmgauge.errors import CheckFailedError

Verdict = Literal["PASS", "FAIL", "NOT CHECKED"]
PASS: Verdict = "PASS"
FAIL: Verdict = "FAIL"
NOT_CHECKED: Verdict = "NOT CHECKED"
WHOLE_LEVEL = "all"
"""Name of the only check of a level of which nothing was looked at."""
LEVELS = ("coverage", "normalisation", "causality", "leak", "proof")


@dataclass(frozen=True)
class Check:
    """One question of an audit and its answer.

    Attributes:
        level: one of `LEVELS`.
        name: the question, in two or three words.
        verdict: PASS, FAIL or NOT CHECKED.
        evidence: what was seen, in a sentence with its numbers; of what was not checked the reason.
        details: the numbers, by name.
    """

    level: str
    name: str
    verdict: Verdict
    evidence: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """The checks of all levels, in order.

    Attributes:
        model: what was audited.
        checks: the answers, level by level.
        settings: seed, tolerances, size of the samples: what makes the same audit again.
    """

    model: str
    checks: tuple[Check, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing failed; what was not checked did not."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.verdict == FAIL)

    def verdict(self, level: str) -> Verdict:
        """FAIL where a check of the level failed, PASS where one passed, NOT CHECKED where none was made."""
        verdicts = {check.verdict for check in self.checks if check.level == level}
        return FAIL if FAIL in verdicts else PASS if PASS in verdicts else NOT_CHECKED

    def require(self) -> Audit:
        """The audit itself, if nothing failed.

        Raises:
            CheckFailedError: a check failed; the message has the first one's evidence.
        """
        if self.failures:
            first = self.failures[0]
            more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
            raise CheckFailedError(f"{self.model} fails the audit at {first.level}, {first.name}: {first.evidence}{more}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with the verdict of each level."""
        return {
            "model": self.model,
            "passed": self.passed,
            "levels": {level: self.verdict(level) for level in LEVELS},
            "checks": [asdict(check) for check in self.checks],
            "settings": dict(self.settings),
        }

    def __str__(self) -> str:
        lines = [f"{self.model}: {'passed' if self.passed else 'FAILED'}"]
        for check in self.checks:
            lines.append(f"{check.verdict:<11}  {check.level}, {check.name}: {check.evidence}")
        return "\n".join(lines)


def not_checked(level: str, reason: str, name: str = WHOLE_LEVEL) -> Check:
    """A check that was not made, and why."""
    return Check(level, name, NOT_CHECKED, reason)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, e.g. `1 segment`, `3,761 segments`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def ordered(checks: Sequence[Check], reasons: Mapping[str, str]) -> tuple[Check, ...]:
    """Checks by level; a level without any is NOT CHECKED, for the reason given."""
    found: list[Check] = []
    for level in LEVELS:
        own = [check for check in checks if check.level == level]
        found += own or [not_checked(level, reasons[level])]
    return tuple(found)
