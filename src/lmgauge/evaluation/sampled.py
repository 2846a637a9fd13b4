"""Documents drawn from a text: what is known of all of them, and the figures of the whole text that the drawn ones give."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.result_list import Tabled, column, flat_row
from lmgauge.evaluation.event_sums import Floats, Ints, Paired
from lmgauge.evaluation.results import Evaluation
from lmgauge.numerics.figures import COMPARED
from lmgauge.numerics.intervals import Interval, Spread, sums_by
from lmgauge.numerics.sampling import Survey

Documents = NDArray[np.bool_]
"""Some of the documents of a text, bool [documents]."""
SIZES = ("bytes", "characters", "words")
DOCUMENTS_A_PROXY = 10
"""Documents that a sample has at least for each proxy: a slope from fewer may fit them by chance."""
_DOCUMENTS_A_SLOPE = 5
"""A proxy has a slope for its nats, and one each for its unseen words and its events where there are as many documents."""


@dataclass(frozen=True)
class Sample:
    """Documents drawn from a text, and what is known of every document, as a run folder keeps it."""

    part: str  # how many documents of how many, as in "200/5000"
    seed: int
    drawn: list[int]  # numbers of the documents, ascending
    text: str  # SHA-256 of the whole text
    segments: int  # of the whole text
    bounds: list[int]  # where the drawn segments begin and end: first, one past the last, first, ...
    sizes: dict[str, list[int]]  # of each document, by `SIZES`
    # nats, events of unseen words and all events that each proxy gives each document, by its name
    proxies: dict[str, tuple[list[float], list[float], list[float]]]

    def chosen(self) -> NDArray[np.bool_]:
        """Return which segments of the whole text were drawn, bool [segments]."""
        steps = np.zeros(self.segments + 1, np.int64)
        np.add.at(steps, self.bounds, np.where(np.arange(len(self.bounds)) % 2, -1, 1))
        return np.asarray(np.cumsum(steps)[:-1] > 0)

    @cached_property
    def numbers(self) -> Ints:
        """Return the numbers of the drawn documents, int64 [drawn]."""
        return np.array(self.drawn, np.int64)

    def by_document(self, documents: Ints | None, *columns: Floats) -> tuple[Floats, ...]:
        """Return the sums of columns of segments over the drawn documents, float64 [drawn] each."""
        # documents: int64 [segments]; a table numbers them anew, in the same order.
        numbers, codes = np.unique([] if documents is None else documents, return_inverse=True)
        if len(numbers) != len(self.drawn):
            raise InputError("runs of a sample are compared by the documents that were drawn: leave --document out")
        return tuple(sums_by(codes, values) for values in columns)

    @cached_property
    def weights(self) -> Floats:
        """Return the size of each document, by which slopes are weighted: its bytes, one at least."""
        return np.maximum(np.array(self.sizes["bytes"], np.float64), 1.0)

    def survey(self, part: Documents | None = None, *, helped: bool = True, per_event: bool = False) -> Survey:
        """Return what is known of the documents; helped: by the proxies, the nats of each first; part: of these alone."""
        helpers = np.array(list(self.proxies.values()) if helped else []).reshape(-1, 3, len(self.weights))
        if per_event:  # what makes nats per event differ: nats beyond those of as many events in the sample
            nats, _, events = helpers[..., self.numbers].sum(axis=2).T
            helpers[:, 0] -= (nats / np.maximum(events, 1.0))[:, None] * helpers[:, 2]
        of_all = np.concatenate(helpers.transpose(1, 0, 2))[: len(self.drawn) // _DOCUMENTS_A_SLOPE]
        return Survey(self.weights, of_all.T, self.numbers, np.ones(len(self.weights), np.bool_) if part is None else part)

    def spreads(
        self, nats: Floats, events: Floats, part: Documents | None = None, *, helped: bool = True, like_texts: bool = False
    ) -> dict[str, Spread]:
        """Return nats per event, byte, character and word of a text, or a part of it; of what there is, by its name."""
        # nats, events: float64 [drawn], what a model (or the difference of two) gave each document.
        by_event, by_size = (self.survey(part, helped=helped, per_event=per_event) for per_event in (True, False))
        inside = by_size.part[self.numbers]
        plain = float(nats[inside].sum() / events[inside].sum())
        above = nats - plain * events
        sizes = {size: by_size.known(np.array(counts, np.float64)) for size, counts in self.sizes.items()}
        return {"events": by_event.ratio(above, by_event.total(events), plain=plain, like_texts=like_texts)} | {
            size: by_size.ratio(nats, total, like_texts=like_texts) for size, total in sizes.items() if total.value
        }


class JoinedSample(NamedTuple):
    """Two models on the same sample: what they give the whole text, float64 [compared figures] each."""

    rates: tuple[Floats, Floats]  # log-probabilities of each model by the size of the figure
    change: Floats  # of the first less those of the second
    sizes: Floats  # 1, or 0 where the text has nothing of the kind
    spreads: list[Spread | None]
    note: str


def joined(first: Sample | None, second: Sample | None, paired: Paired) -> JoinedSample | None:
    """Return what two models give the text that they scored the same documents of; None where they scored no such sample."""
    if first is None or second is None or (first.drawn, first.text) != (second.drawn, second.text):
        return None
    # Of proxies that only one run has, as many as the sample has documents for.
    proxies = dict(list((first.proxies | second.proxies).items())[: len(first.drawn) // DOCUMENTS_A_PROXY])
    both = replace(first, proxies=proxies)
    one, other, events = both.by_document(paired.documents, *paired.nats, paired.sizes[:, 0])
    rates, changes = both.spreads(one, events), both.spreads(one - other, events, like_texts=True)
    spreads = [changes.get(figure.per) for figure in COMPARED]
    of_one, change = (
        np.array([of[figure.per].ratio if figure.per in of else 0.0 for figure in COMPARED]) for of in (rates, changes)
    )
    return JoinedSample(
        (of_one, of_one - change),
        change,
        np.array([float(spread is not None) for spread in spreads]),
        spreads,
        f"figures, intervals and the test are of all {len(both.weights):,} documents, estimated from {len(both.drawn):,} "
        "that both models scored; slices and examples are of these alone",
    )


@dataclass(frozen=True)
class EstimatedFigure:
    """A figure of the whole text, estimated from a sample.

    Attributes:
        metric: its name, as an `Evaluation` has it.
        value: the estimate; `interval` is where the whole text's figure is, at 95 %.
        plain, plain_interval: the same without the proxies.
    """

    metric: str = field(metadata=column("figure"))
    value: float = field(metadata=column("estimate"))
    interval: Interval = field(metadata=column("95 % interval"))
    plain: float = field(metadata=column("without proxies", drop=2))
    plain_interval: Interval = field(metadata=column("95 % interval", drop=1))


@dataclass(frozen=True)
class Residual:
    """A document of which the proxies say something else than the model.

    Attributes:
        document: its name, or where it begins.
        bits_per_byte: what the model gives it; `expected`, what the proxies let expect.
        share: of the squared error of the estimate, 0 to 1.
    """

    document: str = field(metadata=column("document"))
    bits_per_byte: float = field(metadata=column("bits/byte"))
    expected: float = field(metadata=column("expected"))
    share: float = field(metadata=column("of the error", 1, "percent"))


@dataclass(frozen=True)
class EstimatedGroup:
    """A group of documents, such as a domain, estimated from a sample of all.

    Attributes:
        group: its name.
        documents, all_documents: of it, drawn and in the text.
        figures: an `EstimatedFigure` each; none where fewer than six documents were drawn, which is too few.
    """

    group: str
    documents: int
    all_documents: int
    figures: tuple[EstimatedFigure, ...]


@dataclass(frozen=True, repr=False)
class Estimate(Tabled):
    """A model on a text, of which it scored a sample of documents: figures of the whole text, each with its interval.

    Attributes:
        model: its name.
        proxies: names of the models that scored all of the text.
        documents, all_documents: drawn, and in the text.
        share: of the text's bytes that the model scored, 0 to 1.
        figures: an `EstimatedFigure` each.
        correlation: of the model's nats and those of the proxies, by document and byte, 0 to 1; 0 without proxies.
        documents_needed: how many without proxies would make the interval of bits per byte as narrow.
        residuals: documents that the error comes from, the first most.
        of_sample: the evaluation of the sample alone.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        groups: an `EstimatedGroup` each, where `by_group` asked for them.

    Example:
        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["a b", "b", "a", "a a", "b a"] * 3, documents=[str(n) for n in range(15)])
        >>> big, small = (lmgauge.train("witten-bell", text, order=order) for order in (2, 1))
        >>> estimate = lmgauge.estimate(big, text, proxy=small, sample=10)
        >>> estimate.documents, estimate.all_documents, [figure.metric for figure in estimate.figures][:2]
        (10, 15, ['perplexity', 'cross_entropy'])
    """

    model: str
    proxies: tuple[str, ...]
    documents: int
    all_documents: int
    share: float
    figures: tuple[EstimatedFigure, ...]
    correlation: float
    documents_needed: int
    residuals: tuple[Residual, ...]
    of_sample: Evaluation
    signature: str
    notes: tuple[str, ...] = ()
    groups: tuple[EstimatedGroup, ...] = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each figure of the text, then those of each group, flat and with full precision."""
        whole = EstimatedGroup("", self.documents, self.all_documents, self.figures)
        return [
            {"group": of.group, "documents": of.documents, "all_documents": of.all_documents} | flat_row(figure)
            for of in (whole, *self.groups)
            for figure in of.figures
        ]

    def figure(self, metric: str) -> EstimatedFigure:
        """Return a figure by its name.

        Args:
            metric: such as bits_per_byte.

        Raises:
            InputError: there is none of this name.
        """
        named = {one.metric: one for one in self.figures}
        if metric not in named:
            raise InputError(f"{metric!r} was not estimated; there are {', '.join(named)}")
        return named[metric]

    def _in_brief(self) -> str:
        lead, drawn = self.figures[0], f"{self.documents:,} of {self.all_documents:,} documents"
        return f"{self.model}: {lead.metric} {lead.value:.4f} ({lead.interval.low:.4f} to {lead.interval.high:.4f}), {drawn}"
