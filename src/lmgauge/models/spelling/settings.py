"""What may be chosen of a speller."""

from __future__ import annotations

from typing import ClassVar

from lmgauge.declaration import settings
from lmgauge.option_numbers import Count


@settings
class SpellerSettings:
    """How a speller is learned.

    Attributes:
        order: characters of its longest n-grams.
        max_count: learn from rare words only: those that occur at most this often; from all, each once, if not given.

    Example:
        >>> SpellerSettings(order=6).max_count is None
        True
    """

    heading: ClassVar[str] = "Speller"
    order: Count = 8
    max_count: Count | None = None
