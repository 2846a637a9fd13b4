"""The result of an audit: checks, each with a verdict and its evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import AUDIT_LEVELS
from lmgauge.base.decoding import Perplexity, Whole, decode
from lmgauge.base.errors import CheckFailedError
from lmgauge.base.escaping import counted as counted
from lmgauge.base.paths import read_json
from lmgauge.base.result_list import Tabled, plain_values
from lmgauge.numerics.lower_bound import marked

Verdict = Literal["PASS", "FAIL", "NOT CHECKED"]
PASS: Verdict = "PASS"
FAIL: Verdict = "FAIL"
NOT_CHECKED: Verdict = "NOT CHECKED"
WHOLE_LEVEL = "all"
"""Name of the only check of a level that was skipped as a whole."""
NOT_ASKED_FOR = "not asked for"
LEVELS = AUDIT_LEVELS
_WRITTEN = "an audit", "write one with `lmgauge audit RUN --json`"
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


@dataclass
class Fault:
    """Something that is wrong: how many times, and where first."""

    count: int = 0
    first: str = ""

    def note(self, where: str, times: int = 1) -> None:
        """Count it; `where` is kept the first time."""
        self.count += times
        self.first = self.first or where


class Compared:
    """Log-probabilities that should be the same, compared, in nats: how many are apart, and where first."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance, self.apart = tolerance, Fault()
        self.events, self.largest = 0, 0.0

    def places_apart(self, a: NDArray[np.float64], b: NDArray[np.float64], times: int = 1) -> list[int]:
        """Compare two columns, [n]; return the places of what is apart by more than that number of tolerances."""
        with np.errstate(invalid="ignore"):  # two events of probability zero
            distance = np.where(a == b, 0.0, np.abs(a - b))
        self.events += len(distance)
        self.largest = max(self.largest, float(np.where(np.isnan(distance), np.inf, distance).max(initial=0.0)))
        return np.flatnonzero(~(distance <= times * self.tolerance)).tolist()

    def differ(self, a: float, b: float, times: int = 1) -> bool:
        """Return True if two are apart by more than that number of tolerances; then `apart` has to be told where."""
        return bool(self.places_apart(np.array([a]), np.array([b]), times))

    def details(self) -> dict[str, Any]:
        """Return what was counted."""
        return {"events": self.events, "apart": self.apart.count, "largest": self.largest, "tolerance": self.tolerance}


@dataclass(frozen=True, repr=False)
class Audit(Tabled):
    """The checks of all levels, in order.

    Attributes:
        model: name of the model.
        checks: the answers, level by level.
        settings: seed, tolerances, sizes of the samples: enough to repeat the audit; and `fingerprints` of model and text.
        perplexity: the number that was audited, computed from the rows by plain arithmetic; None where no row was read.
        bits_per_byte: of the text, with `bits_per_byte_is_bound`; None where the text is not available.
        bits_per_byte_is_bound: True if the bytes of the text cost more than that, as unknown words are one event and white
            space, or what the tokenizer alters, is free.
        events: that were read.

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
    perplexity: Perplexity | None = None
    bits_per_byte: Perplexity | None = None
    bits_per_byte_is_bound: bool = False
    events: Whole = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits_per_byte", marked(self.bits_per_byte, bound=self.bits_per_byte_is_bound))

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
        return decode(dict(plain), cls, "this", *_WRITTEN)

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
        plain: dict[str, Any] = plain_values(self)
        checks, settings = plain.pop("checks"), plain.pop("settings")
        levels = {level: self.verdict(level) for level in LEVELS}
        own = {"model": plain.pop("model"), "passed": self.passed}
        return own | plain | {"levels": levels, "checks": list(checks), "settings": settings}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each check: level, name, verdict, evidence."""
        names = ("level", "name", "verdict", "evidence")
        return [{name: getattr(check, name) for name in names} for check in self.checks]

    def headline(self) -> str:
        """Return the number that was audited, in words; empty if there is none."""
        if self.perplexity is None:
            return ""
        large = _LONG_NUMBER <= self.perplexity < math.inf
        parts = [f"perplexity {self.perplexity:.6g}" if large else f"perplexity {self.perplexity:,.4f}"]
        if self.bits_per_byte is not None:
            parts.append(f"bits per byte {self.bits_per_byte:.4f}")
        part = [f"of a sample, {self.settings['sample']} documents"] if "sample" in self.settings else []
        return ", ".join([*parts, counted(self.events, "event"), *part])

    def _in_brief(self) -> str:
        return ", ".join(filter(None, [f"{self.model}: {'passed' if self.passed else 'FAILED'}", self.headline()]))


def read_audit(path: Path) -> Audit:
    """Return the audit that a file holds."""
    return read_json(path, Audit, *_WRITTEN)


def numbers_of(record: object) -> dict[str, Any]:
    """Return the public attributes of what a check counted, as its details."""
    return {name: value for name, value in vars(record).items() if not name.startswith("_")}


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
