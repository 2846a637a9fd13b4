"""How texts are scored and sets of them compared."""

from __future__ import annotations

from typing import Annotated, ClassVar

from lmgauge.declaration import settings
from lmgauge.option_numbers import Bounds, Count


@settings
class MembershipSettings:
    """How texts are scored and sets compared.

    Attributes:
        k: share of a text's least probable tokens that Min-K% looks at, above 0.
        fpr: rate of false alarms at which to say how many texts are recognized; between 0 and 1.
        threads: how many; no score depends on it but for rounding; all cores if not given.

    Raises:
        UsageError: a number is out of range.
    """

    heading: ClassVar[str] = "Statistics"
    k: Annotated[float, Bounds(0, 1, open_least=True)] = 0.2
    fpr: Annotated[float, Bounds(0, 1, open_least=True, open_most=True)] = 0.01
    threads: Count | None = None
