"""How often models prefer the right one of several texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmgauge.base.result_list import Tabled, column, flat_row, pandas_module, plain_values
from lmgauge.numerics.intervals import Interval

if TYPE_CHECKING:
    import pandas as pd

RAW, PER_BYTE = "raw", "per_byte"
MEASURES = (RAW, PER_BYTE)


@dataclass(frozen=True)
class Accuracy:
    """How often a model prefers the right text."""

    model: str
    group: str  # the phenomenon, or what else groups the items; "" for all of them
    # "raw": the text of the higher probability is preferred; "per_byte": that of the higher log-probability a byte
    measure: str
    items: int
    right: int  # items in which the right text is preferred to all others
    # items in which others are as probable as the right text, and none more; each counts as tossing a coin would come out
    # on average: 1/2 of two
    ties: int = field(metadata=column("ties", form="count", drop=1))
    accuracy: float  # share of the items, ties counted so
    interval: Interval  # Wilson's, 95 %, of independent items
    # by how many bits (or bits per byte) the right text is preferred to the best of the others; mean over the items,
    # infinite where a text is impossible, None where both are
    margin: float | None = field(metadata=column("margin, bits", 2, "signed", drop=1))


@dataclass(frozen=True)
class Preference:
    """Two models on the same items."""

    first: str
    second: str
    group: str  # of the items; "" for all
    measure: str
    difference: float  # accuracy of the second less that of the first
    # only_first, only_second: items that one has right and the other has not; of a tie and a miss, the tie is right
    only_first: int = field(metadata=column("only first right", form="count", drop=2))
    only_second: int = field(metadata=column("only second", form="count", drop=2))
    # of the hypothesis that both are right equally often: McNemar's test, exact
    p_value: float = field(metadata=column("p", form="p", drop=1))
    # for the number of pairs of models or, in groups, of groups (Holm 1979)
    adjusted_p_value: float = field(metadata=column("p, adjusted", form="p"))


@dataclass(frozen=True, repr=False)
class Choices(Tabled):
    """How often models prefer the right one of several texts, by group, and whether the models differ.

    Attributes:
        kind: "pairs" or "questions".
        models: their names.
        groups: names of the groups, in order of appearance; empty if there are none.
        items: pairs or questions.
        options: fewest and most texts of an item.
        chance: accuracy of tossing coins.
        accuracies: of each model and measure those of all items, then of each group.
        preferences: of each two models and measure those of all items, then of each group.
        independence: what intervals and tests take as independent, in words.
        fingerprints: of models, vocabularies and texts.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        rows: a row for each item and model, as columns: model, id, group, right (number of the right text, from 0),
            preferred and preferred_per_byte (None in a tie), logprobs (nats) and bytes of each text.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["the cat sits", "the cats sit"]), order=3)
        >>> lmgauge.pairs(model, [("the cat sits", "the cat sit"), ("the cats sit", "the cats sits")])
        <Choices: 2 pairs; wb3: accuracy 1.0000>
    """

    kind: str
    models: tuple[str, ...]
    groups: tuple[str, ...]
    items: int
    options: tuple[int, int]
    chance: float
    accuracies: tuple[Accuracy, ...]
    preferences: tuple[Preference, ...]
    independence: str
    fingerprints: dict[str, Any]
    signature: str
    notes: tuple[str, ...]
    rows: dict[str, list[Any]] = field(repr=False)

    def accuracy(self, model: str | None = None, group: str = "", measure: str = RAW) -> Accuracy:
        """Return the accuracy of a model.

        Args:
            model: its name; the first if None.
            group: of the items; "" for all.
            measure: "raw" or "per_byte".

        Raises:
            KeyError: there is none of that name.
        """
        wanted = (self.models[0] if model is None else model, group, measure)
        for one in self.accuracies:
            if (one.model, one.group, one.measure) == wanted:
                return one
        raise KeyError(wanted)

    def mean_over_groups(self, model: str, measure: str = RAW) -> float | None:
        """Return the mean accuracy of the groups, each counted alike, as BLiMP's tables do; None without groups.

        Args:
            model: its name.
            measure: "raw" or "per_byte".
        """
        shares = [self.accuracy(model, group, measure).accuracy for group in self.groups]
        return sum(shares) / len(shares) if shares else None

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the accuracies as flat dicts, the rows of the data frame."""
        return [flat_row(one) for one in self.accuracies]

    def items_to_pandas(self) -> pd.DataFrame:
        """Return `rows` as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return pandas_module().DataFrame(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows as plain values, full precision; infinities stay floats."""
        models = self.models if self.groups else ()
        means = {model: {measure: self.mean_over_groups(model, measure) for measure in MEASURES} for model in models}
        return {**plain_values(self), "mean_over_groups": means}

    def _columns(self) -> dict[str, list[Any]]:
        return self.rows

    def _in_brief(self) -> str:
        shares = "; ".join(f"{model}: accuracy {self.accuracy(model).accuracy:.4f}" for model in self.models)
        return f"{counted(self.items, self.kind)}; {shares}"


def counted(count: int, kind: str) -> str:
    """Return how many items there are, in words."""
    return f"{count:,} {kind.removesuffix('s') if count == 1 else kind}"
