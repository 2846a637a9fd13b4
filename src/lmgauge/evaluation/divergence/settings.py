"""How models are compared with a base, and what is stored of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from lmgauge.choices import DEFAULT_BASE_SAMPLES, DEFAULT_BASE_TOP, DEFAULT_SEED, BaseType
from lmgauge.declaration import settings
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Bounds, Count, Natural

DEFAULT_EVENTS = 10_000


@settings
class DivergenceSettings:
    """At how many events models are compared with a base, and by what.

    Attributes:
        events: about how many events to look at, in whole segments drawn at random; of a stored base those it holds.
        exhaustive: look at every event of the text.
        top_k: which share of the base's K most probable tokens is among the candidate's, for each K.
        examples: tokens to show of each kind; those that suffer most.
        seed: same seed, same segments, and same tests of several candidates; of a stored base its own.
        threads: how many; no figure depends on it; all cores if not given.

    Raises:
        UsageError: a number is out of range.
    """

    heading: ClassVar[str] = "Statistics"
    events: Count | None = DEFAULT_EVENTS
    exhaustive: bool = False
    top_k: int | Sequence[int] = (1, 5, 10)
    examples: Natural = 5
    seed: Natural = DEFAULT_SEED
    threads: Count | None = None

    def __post_init__(self) -> None:
        if self.exhaustive:
            object.__setattr__(self, "events", None)
        if not self.ranks or min(self.ranks) < 1:
            raise UsageError(f"top-k must be whole numbers from 1; got {', '.join(map(str, self.ranks)) or 'none'}")

    @property
    def ranks(self) -> tuple[int, ...]:
        """Each K of `top_k`."""
        return (self.top_k,) if isinstance(self.top_k, int) else tuple(self.top_k)


@settings
class StoringSettings:
    """How much is stored of each distribution of a base.

    Attributes:
        base_top: with --save-base: most probable tokens of each event to store.
        base_samples: with --save-base: tokens to draw from the rest, for each unit of its probability; more narrow the
            bounds.
        exact: with --save-base: store whole distributions, in this type.
        seed: same seed, same draws.

    Raises:
        UsageError: a number is out of range.
    """

    heading: ClassVar[str] = "Stored bases"
    base_top: Annotated[int, Bounds(1, 1 << 20)] = DEFAULT_BASE_TOP
    base_samples: Annotated[int, Bounds(1, 1 << 20)] = DEFAULT_BASE_SAMPLES
    exact: BaseType | None = None
    seed: Natural = DEFAULT_SEED
