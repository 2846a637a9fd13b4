"""What may be chosen of a cache."""

from __future__ import annotations

from typing import Annotated, ClassVar

from lmgauge.declaration import settings
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Bounds, Count

_WINDOW = 500


@settings
class CacheSettings:
    """What a cache remembers.

    Attributes:
        order: how many words in a row are remembered; 1: which went by, 2: also which came after which; up to 8.
        window: how many of the last events count; from Python None: all.
        decay: in place of a window: an event that i others came after counts decay to the i, such as 0.998.

    Example:
        >>> CacheSettings(order=1).decay is None
        True
    """

    heading: ClassVar[str] = "Memory"
    order: Annotated[int, Bounds(1, 8)] = 2
    window: Count | None = _WINDOW
    decay: Annotated[float, Bounds(0, 1, open_least=True, open_most=True)] | None = None

    def __post_init__(self) -> None:
        if self.decay is not None and self.window not in (None, _WINDOW):
            raise UsageError("a cache has a window or a decay, not both")
        if self.decay is not None:
            object.__setattr__(self, "window", None)

    @property
    def label(self) -> str:
        """In a word, for signatures: `cache500`, `cache2-decay0.998`."""
        memory = f"decay{self.decay:g}" if self.decay is not None else "" if self.window is None else str(self.window)
        return "cache" + (f"{self.order}-" if self.order > 1 else "") + memory
