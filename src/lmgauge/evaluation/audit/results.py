"""The result of an audit: checks, each with a verdict and its evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lmgauge.choices import AUDIT_LEVELS
from lmgauge.decoding import Perplexity, Whole, decode
from lmgauge.errors import CheckFailedError
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.units import nats_to_bits
from lmgauge.places import read_json
from lmgauge.result_columns import plain_values
from lmgauge.result_list import Tabled

Verdict = Literal["PASS", "FAIL", "NOT CHECKED"]
PASS: Verdict = "PASS"
FAIL: Verdict = "FAIL"
NOT_CHECKED: Verdict = "NOT CHECKED"
WHOLE_LEVEL = "all"
"""Name of the only check of a level that was skipped as a whole."""
NOT_ASKED_FOR = "not asked for"
LEVELS = AUDIT_LEVELS
_WRITTEN = "an audit", "write one with `lmgauge audit RUN --json`"
_LARGEST_EXPONENT = 709  # of e, in float64
_LONG_NUMBER = 10**7  # perplexities from here on are printed with an exponent


@dataclass(frozen=True)
class Check:
    """One question of an audit and its answer."""

    level: str
    name: str  # the question, in two or three words
    verdict: Verdict
    evidence: str  # the observation, in a sentence with its numbers; for a skipped check the reason
    details: dict[str, Any] = field(default_factory=dict)


def judge(
    level: str, name: str, *, bad: str = "", skipped: str = "", good: str = "", details: Mapping[str, Any] | None = None
) -> Check:
    """Return a check: FAIL where there is evidence of a fault, else NOT CHECKED where there is a reason, else PASS."""
    verdict = FAIL if bad else NOT_CHECKED if skipped else PASS
    return Check(level, name, verdict, bad or skipped or good, dict(details or {}))


@dataclass(frozen=True)
class Headline:
    """The number that an audit is about, computed from its rows by plain arithmetic."""

    perplexity: float | None = None  # over all events; None where no row was looked at
    bits_per_byte: float | None = None  # of the text; None where it is not at hand
    # whether the bytes of the text cost more than that, as unknown words are one event and white space, or what the
    # tokenizer alters, is free
    bits_per_byte_is_bound: bool = False
    events: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits_per_byte", marked(self.bits_per_byte, bound=self.bits_per_byte_is_bound))

    @classmethod
    def of(cls, nats: float, events: int, size: int | None, *, bound: bool) -> Headline:
        """Return the headline of a text."""
        # bound: True if bits per byte are a lower bound.
        if not events:
            return cls()
        mean = -nats / events
        perplexity = math.inf if mean > _LARGEST_EXPONENT else math.exp(mean)
        return cls(perplexity, nats_to_bits(-nats / size) if size else None, bound, events)

    def without_bytes(self) -> Headline:
        """Return the headline for rows whose text is not at hand."""
        return replace(self, bits_per_byte=None)

    def __str__(self) -> str:
        if self.perplexity is None:
            return ""
        large = _LONG_NUMBER <= self.perplexity < math.inf
        parts = [f"perplexity {self.perplexity:.6g}" if large else f"perplexity {self.perplexity:,.4f}"]
        if self.bits_per_byte is not None:
            parts.append(f"bits per byte {self.bits_per_byte:.4f}")
        return ", ".join([*parts, counted(self.events, "event")])


@dataclass(frozen=True, repr=False)
class Audit(Tabled):
    """The checks of all levels, in order.

    Attributes:
        model: name of the model.
        checks: the answers, level by level.
        settings: seed, tolerances, sizes of the samples: enough to repeat the audit; and `fingerprints` of model and text.
        headline: the number that was audited.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> result = lmgauge.audit(lmgauge.train("witten-bell", text), text, levels=["coverage", "normalization"])
        >>> result.passed, result.verdict("normalization"), result.verdict("causality")
        (True, 'PASS', 'NOT CHECKED')
    """

    model: str
    checks: tuple[Check, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    headline: Headline = field(default_factory=Headline)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Audit:
        """Return the audit that `to_dict` gave as plain values, such as what `lmgauge audit --json` printed.

        Args:
            plain: the values; infinities may be strings.

        Raises:
            InputError: they are not those of an audit.

        Example:
            >>> audit = Audit("mine", (judge("coverage", "spans", bad="a gap"),))
            >>> Audit.from_dict(audit.to_dict()) == audit
            True
        """
        return decode(dict(plain), _Stored, "this", *_WRITTEN).audit()

    @property
    def perplexity(self) -> float | None:
        """Perplexity over all events that were read; None where none were."""
        return self.headline.perplexity

    @property
    def bits_per_byte(self) -> float | None:
        """Bits per byte of the text, with `bits_per_byte_is_bound`; None where the text is not at hand."""
        return self.headline.bits_per_byte

    @property
    def bits_per_byte_is_bound(self) -> bool:
        """True if the bytes of the text cost more than that."""
        return self.headline.bits_per_byte_is_bound

    @property
    def passed(self) -> bool:
        """True if no check failed; a check that was not made did not fail."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.verdict == FAIL)

    def verdict(self, level: str) -> Verdict:
        """Return FAIL where a check of the level failed, else PASS where one passed, else NOT CHECKED.

        Args:
            level: one of `LEVELS`.

        Example:
            >>> Audit("mine", (judge("coverage", "spans", bad="a gap"),)).verdict("coverage")
            'FAIL'
        """
        verdicts = {check.verdict for check in self.checks if check.level == level}
        return FAIL if FAIL in verdicts else PASS if PASS in verdicts else NOT_CHECKED

    def require(self) -> Audit:
        """Return the audit itself, if nothing failed.

        Raises:
            CheckFailedError: a check failed; the message has the first one's evidence.
        """
        if self.failures:
            first = self.failures[0]
            more = f" (and {len(self.failures) - 1} more)" if self.failures[1:] else ""
            raise CheckFailedError(f"{self.model} fails the audit at {first.level}, {first.name}: {first.evidence}{more}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, with the verdict of each level."""
        return {
            "model": self.model,
            "passed": self.passed,
            **plain_values(self.headline),
            "levels": {level: self.verdict(level) for level in LEVELS},
            "checks": plain_values(list(self.checks)),
            "settings": dict(self.settings),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each check: level, name, verdict, evidence."""
        names = ("level", "name", "verdict", "evidence")
        return [{name: getattr(check, name) for name in names} for check in self.checks]

    def _in_brief(self) -> str:
        return ", ".join(filter(None, [f"{self.model}: {'passed' if self.passed else 'FAILED'}", str(self.headline)]))


@dataclass
class _Stored:
    model: str
    checks: tuple[Check, ...]
    settings: dict[str, Any]
    perplexity: Perplexity | None
    bits_per_byte: Perplexity | None
    bits_per_byte_is_bound: bool
    events: Whole

    def audit(self) -> Audit:
        headline = Headline(self.perplexity, self.bits_per_byte, self.bits_per_byte_is_bound, self.events)
        return Audit(self.model, self.checks, self.settings, headline)


def read_audit(path: Path) -> Audit:
    """Return the audit that a file holds."""
    return read_json(path, _Stored, *_WRITTEN).audit()


def numbers_of(record: object) -> dict[str, Any]:
    """Return the public attributes of what a check counted, as its details."""
    # numbers_of(Headline(2.0, 1.0, events=8))["events"] -> 8
    return {name: value for name, value in vars(record).items() if not name.startswith("_")}


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def in_nine_digits(value: float) -> str:
    """Return a log-probability, in nats, with nine digits."""
    return "NaN" if math.isnan(value) else f"{value:.9g}"


def by_level(checks: Sequence[Check], reasons: Mapping[str, str]) -> tuple[Check, ...]:
    """Return checks in the order of the levels; a level without any is NOT CHECKED.

    >>> checks = by_level([judge("coverage", "spans")], dict.fromkeys(LEVELS, NOT_ASKED_FOR))
    >>> [check.verdict for check in checks]
    ['PASS', 'NOT CHECKED', 'NOT CHECKED', 'NOT CHECKED', 'NOT CHECKED']
    """
    in_order: list[Check] = []
    for level in LEVELS:
        own = [check for check in checks if check.level == level]
        in_order += own or [judge(level, WHOLE_LEVEL, skipped=reasons[level])]
    return tuple(in_order)
