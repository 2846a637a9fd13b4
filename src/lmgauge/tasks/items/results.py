"""Runs of scores of items beside each other: how high each is, which differences are real, and on which items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from lmgauge.base.errors import CheckFailedError
from lmgauge.base.result_list import Tabled, column, flat_row
from lmgauge.numerics.intervals import Interval
from lmgauge.tasks.significance import SIGNIFICANT

ITEMS, CLUSTERS = "items", "clusters"


@dataclass(frozen=True)
class ItemRun:
    """One run on all items that are compared."""

    system: str = field(metadata=column("run"))
    samples: int = field(metadata=column("scores", form="count", drop=2))  # of all items; more where items were tried again
    score: float = field(metadata=column("score"))  # mean over the items, each alike; of an item the mean of its samples
    interval: Interval | None = field(metadata=column("95 % interval", drop=3))  # Wilson's of 0 and 1, else Student's
    # variances of a score within an item, between its samples, and of the items' own means; None of single samples
    variance_within: float | None = field(metadata=column("variance within", optional=True, drop=1))
    variance_between: float | None = field(metadata=column("between items", optional=True, drop=1))


@dataclass(frozen=True)
class ItemDifference:
    """Two runs on the same items, all of them or those of a subset."""

    STATED: ClassVar = ("significant",)
    first: str
    second: str = field(metadata=column("run"))
    subset: str = field(metadata=column("subset"))  # "" for all items
    items: int = field(metadata=column("items", form="count", drop=1))
    unit: str  # what is independent: "items", "clusters", or "unknown" of items in fewer than six clusters
    units: int
    first_score: float = field(metadata=column("first", drop=3))
    second_score: float = field(metadata=column("score", drop=3))
    difference: float = field(metadata=column("difference", 4, "signed"))  # second less first
    # jackknife over the units, Student's t; None for fewer than six units, or if they differ in fewer than six
    interval: Interval | None = field(metadata=column("95 % interval", 4, "signed", drop=4))
    test: str  # "McNemar's exact test", or "Student's t" of the interval's own error
    p_value: float | None = field(metadata=column("p", form="p", drop=2))
    p_value_holm: float | None = field(metadata=column("p (Holm)", form="p"))  # for all models, or all models and subsets
    p_value_of_items: float | None  # where clusters are known, what Student's test says if they were ignored
    # items that only one of the two solves; None unless each has a single score of 0 or 1
    only_first: int | None = field(metadata=column("only first", form="count", drop=3, optional=True))
    only_second: int | None = field(metadata=column("only second", form="count", drop=3, optional=True))
    # with power 80 % at 5 %, shared out among the tests: the difference that is found; how many units this one takes
    detectable: float | None = field(metadata=column("detectable", drop=1))
    units_needed: int | None = field(metadata=column("needed", form="count", drop=1, optional=True))
    # share of the squared error that comes from sampling answers, and would go with endless samples of these items
    sampling_share: float | None = field(metadata=column("by sampling", 0, "percent", drop=1, optional=True))

    @property
    def significant(self) -> bool | None:
        """Return True if the difference is real at 5 %, adjusted for the number of tests; None if it was not tested."""
        return None if self.p_value_holm is None else self.p_value_holm < SIGNIFICANT


@dataclass(frozen=True)
class ItemExample:
    """An item to look at."""

    why: str  # it was chosen, such as "most runs miss it"
    item: str
    subset: str
    scores: tuple[float, ...]  # of each run


@dataclass(frozen=True, repr=False)
class ItemComparisons(Tabled):
    """Runs of scores of items: each beside the first, on the same items.

    Attributes:
        score: what was scored, such as "acc".
        higher_is_better: whether a higher score is the better one.
        systems: each run with its score, an interval of 95 % and, of repeated samples, variances within and between items.
        differences: of each run but the first, on all items; p-values are adjusted for the number of runs (Holm 1979).
        by_subset: the same for each subset, where there are several, adjusted for subsets times runs.
        items: how many are compared.
        matched_by: what says that items are the same: "id and content" (the question), "id and prompt", or "id" alone.
        not_shared: where runs have other items, or other prompts under the same id, in words; these are left out.
        independence: what intervals and tests take as independent, in words.
        examples: items that most runs miss, and those lost or won by a run beside the first.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.

    Example:
        >>> import pathlib, tempfile, lmgauge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = pathlib.Path(folder, "two.csv")
        ...     rows = "".join(f"{i},{i % 5 == 0:d},{i % 5 != 0:d}\\n" for i in range(10))
        ...     _ = table.write_text(f"item,a,b\\n{rows}", encoding="utf-8")
        ...     result = lmgauge.tasks.compare_items(lmgauge.tasks.import_items(table, f"{folder}/runs", score=["a", "b"]))
        >>> result.differences[0].difference, round(result.differences[0].p_value, 4)
        (0.6, 0.1094)
    """

    score: str
    higher_is_better: bool
    systems: tuple[ItemRun, ...]
    differences: tuple[ItemDifference, ...]
    by_subset: tuple[ItemDifference, ...]
    items: int
    matched_by: str
    not_shared: tuple[str, ...]
    independence: str
    examples: tuple[ItemExample, ...]
    signature: str
    notes: tuple[str, ...]

    def require(self) -> ItemComparisons:
        """Return the comparisons themselves, if all runs have the same items.

        Raises:
            CheckFailedError: they have not; the message has the counts.
        """
        if self.not_shared:
            raise CheckFailedError(f"the runs are not of the same items: {'; '.join(self.not_shared)}")
        return self

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each run and subset beside the first, all items under the subset ""."""
        return [flat_row(one) for one in (*self.differences, *self.by_subset)]

    def _in_brief(self) -> str:
        return f"{self.score} on {self.items:,} items: {', '.join(f'{run.system} {run.score:.4f}' for run in self.systems)}"
