"""What an audit found: checks with a verdict and their evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lmgauge.choices import AUDIT_LEVELS
from lmgauge.errors import CheckFailedError

Verdict = Literal["PASS", "FAIL", "NOT CHECKED"]
PASS: Verdict = "PASS"
FAIL: Verdict = "FAIL"
NOT_CHECKED: Verdict = "NOT CHECKED"
WHOLE_LEVEL = "all"
"""Name of the only check of a level of which nothing was looked at."""
NOT_ASKED_FOR = "not asked for"
LEVELS = AUDIT_LEVELS


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
class Headline:
    """The number that an audit is about, from its rows by plain arithmetic.

    Attributes:
        perplexity: over all events; None where no row was looked at.
        bits_per_byte: of the text; None where it is not at hand.
        bits_per_byte_is_bound: whether the bytes of the text cost more than that, as unknown words are one event and white
            space, or what the tokenizer alters, is free.
        events: rows.
    """

    perplexity: float | None = None
    bits_per_byte: float | None = None
    bits_per_byte_is_bound: bool = False
    events: int = 0

    @classmethod
    def of(cls, nats: float, events: int, size: int | None, *, bound: bool) -> Headline:
        """From the log-probability of so many events and the bytes of the text."""
        if not events:
            return cls()
        mean = -nats / events
        perplexity = math.inf if mean > 709 else math.exp(mean)
        return cls(perplexity, -nats / size / math.log(2) if size else None, bound, events)

    def __str__(self) -> str:
        if self.perplexity is None:
            return ""
        large = math.isfinite(self.perplexity) and self.perplexity >= 10**7
        parts = [f"perplexity {self.perplexity:.6g}" if large else f"perplexity {self.perplexity:,.4f}"]
        if self.bits_per_byte is not None:
            bound = ">= " if self.bits_per_byte_is_bound and math.isfinite(self.bits_per_byte) else ""
            parts.append(f"bits per byte {bound}{self.bits_per_byte:.4f}")
        return ", ".join([*parts, counted(self.events, "event")])


@dataclass(frozen=True)
class Audit:
    """The checks of all levels, in order.

    Attributes:
        model: what was audited.
        checks: the answers, level by level.
        settings: seed, tolerances, size of the samples: what makes the same audit again.
        headline: the number it is about.
    """

    model: str
    checks: tuple[Check, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    headline: Headline = field(default_factory=Headline)

    @property
    def perplexity(self) -> float | None:
        """Of the rows that were looked at, over all events; None where none were."""
        return self.headline.perplexity

    @property
    def bits_per_byte(self) -> float | None:
        """Of the text, with `bits_per_byte_is_bound`; None where it is not at hand."""
        return self.headline.bits_per_byte

    @property
    def bits_per_byte_is_bound(self) -> bool:
        """Whether the bytes of the text cost more than that."""
        return self.headline.bits_per_byte_is_bound

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
            **asdict(self.headline),
            "levels": {level: self.verdict(level) for level in LEVELS},
            "checks": [asdict(check) for check in self.checks],
            "settings": dict(self.settings),
        }

    def __str__(self) -> str:
        lines = [f"{self.model}: {'passed' if self.passed else 'FAILED'}", *filter(None, [str(self.headline)])]
        for check in self.checks:
            lines.append(f"{check.verdict:<11}  {check.level}, {check.name}: {check.evidence}")
        return "\n".join(lines)


def not_checked(level: str, reason: str, name: str = WHOLE_LEVEL) -> Check:
    """A check that was not made, and why."""
    return Check(level, name, NOT_CHECKED, reason)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun, e.g. `1 segment`, `3,761 segments`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def told(value: float) -> str:
    """A log-probability, in nine digits."""
    return "NaN" if math.isnan(value) else f"{value:.9g}"


def ordered(checks: Sequence[Check], reasons: Mapping[str, str]) -> tuple[Check, ...]:
    """Checks by level; a level without any is NOT CHECKED, for the reason given."""
    found: list[Check] = []
    for level in LEVELS:
        own = [check for check in checks if check.level == level]
        found += own or [not_checked(level, reasons[level])]
    return tuple(found)
