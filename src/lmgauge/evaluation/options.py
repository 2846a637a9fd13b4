"""The settings of what looks into runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from lmgauge.choices import DEFAULT_SEED, DIAGNOSIS_SECTIONS, DiagnosisSection
from lmgauge.declaration import settings
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count, Natural

DEFAULT_CONTEXTS = 2000
"""Of a calibration."""


@settings
class DiagnosisSettings:
    """What a diagnosis works out, and how much of it.

    Attributes:
        only: work out only this; may be given several times.
        examples: how many tokens, segments and words to show of each kind.
        contexts: how many contexts to draw for calibration; with a model.
        exhaustive: calibration over all contexts; with a model, slow.
        sample_tokens: tokens to sample for the mutual-information curve; with a model, what takes seconds if not given.
        seed: same seed, same output.
        threads: threads to use; all cores if not given. No number depends on it.

    Raises:
        UsageError: a section is not known, or a number is out of range.

    Example:
        >>> DiagnosisSettings(only="slices").only
        ('slices',)
    """

    heading: ClassVar[str] = "Statistics"
    only: Sequence[DiagnosisSection] = DIAGNOSIS_SECTIONS
    examples: Natural = 10
    contexts: Count = DEFAULT_CONTEXTS
    exhaustive: bool = False
    sample_tokens: Count | None = None
    seed: Natural = DEFAULT_SEED
    threads: Count | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "only", (self.only,) if isinstance(self.only, str) else tuple(self.only))
        unknown = [name for name in self.only if name not in DIAGNOSIS_SECTIONS]
        if unknown:
            raise UsageError(f"section {unknown[0]!r} is not known; choose from {', '.join(DIAGNOSIS_SECTIONS)}")
