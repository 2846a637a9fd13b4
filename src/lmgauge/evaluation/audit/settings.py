"""What an audit checks and how closely: one object, made at the door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lmgauge.choices import AUDIT_LEVELS, DEFAULT_SEED
from lmgauge.errors import UsageError

_LARGEST_SUM_TOLERANCE = 1e-3
DEFAULT_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """What an audit checks and how closely.

    Attributes:
        levels: which levels to check, of `choices.AUDIT_LEVELS`.
        exhaustive: take all contexts, segments and bytes instead of samples.
        contexts: number of distributions to sum.
        compression_bytes: bytes of the text to compress and decode.
        seed: of all samples.
        max_overlap: largest share (0 to 1) of the text's bytes that may lie in the training text.
        sum_tolerance: how far probabilities may sum from 1; rounded ones, as in some ARPA files, need 1e-5.

    Raises:
        UsageError: an unknown level, or a number out of range.

    Example:
        >>> AuditSettings(levels=["coverage"], contexts=10).to_dict()["contexts"]
        10
    """

    levels: Sequence[str] = AUDIT_LEVELS
    exhaustive: bool = False
    contexts: int = 1000
    compression_bytes: int = 100_000
    seed: int = DEFAULT_SEED
    max_overlap: float = 0.01
    sum_tolerance: float = DEFAULT_SUM_TOLERANCE

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in AUDIT_LEVELS]
        if unknown or not self.levels:
            level = repr(unknown[0]) if unknown else "nothing"
            raise UsageError(f"levels: {level} is not a level of the audit; choose from {', '.join(AUDIT_LEVELS)}")
        for name in ("contexts", "compression_bytes"):
            if not getattr(self, name) >= 1:
                raise UsageError(f"{name} must be 1 or more; got {getattr(self, name)}")
        if self.seed < 0:
            raise UsageError(f"seed must be 0 or more; got {self.seed}")
        if not 0 <= self.max_overlap <= 1:
            raise UsageError(f"max_overlap must be a share of the text, between 0 and 1; got {self.max_overlap}")
        if not 0 <= self.sum_tolerance <= _LARGEST_SUM_TOLERANCE:
            raise UsageError(
                f"sum_tolerance must be between 0 and {_LARGEST_SUM_TOLERANCE:g}, as sums farther off are not rounding; "
                f"got {self.sum_tolerance}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name, without the levels: results list those themselves."""
        return {name: value for name, value in asdict(self).items() if name != "levels"}
