"""The events at which two models were compared: columns of all of them, whoever computed the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.reductions import Columns
from lmgauge.errors import InputError
from lmgauge.evaluation.tally import Tally
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PairRows:
    """What two models say at the events of a block."""

    block: Segments
    a: ScoreBatch  # a, b: rows of the base and of the candidate: the same events
    b: ScoreBatch
    columns: Columns  # of these events, [n] or [n, k], by the names that `distributions.pairs.Divergences` gives


@dataclass(frozen=True)
class PairEvents:
    """All events that were compared, in reading order."""

    columns: Mapping[str, NDArray[Any]]  # of `PairRows`, [n] or [n, k]
    logprob: tuple[Floats, Floats]  # of the true token, of base and candidate, float64 [n], nats
    token_ids: NDArray[np.uint32]  # uint32 [n], the true tokens
    sizes: Ints  # int64 [segments], events of each
    numbers: Ints  # int64 [segments], number of each in the text
    documents: Ints | None  # int64 [segments], the document of each; None where documents are not known
    tallies: tuple[Tally, Tally]

    def __len__(self) -> int:
        return len(self.token_ids)

    @cached_property
    def owner(self) -> Ints:
        """Return int64 [n], the place in `sizes` of the segment of each event."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def kl(self) -> Floats:
        """Return float64 [n], KL(base || candidate), nats; NaN where a model gives nothing a probability."""
        return np.asarray(self.columns["kl_ab"], np.float64)

    @cached_property
    def p(self) -> tuple[Floats, Floats]:
        """Return the probability of the true token, of base and candidate, float64 [n]."""
        return np.exp(self.logprob[0]), np.exp(self.logprob[1])


def collect(
    rows: Iterable[PairRows],
    names: tuple[str, str],
    *,
    numbers: Ints | None = None,
    watch: Callable[[PairRows], None] = lambda rows: None,
) -> PairEvents:
    """Return the columns of all blocks as one."""
    # rows: of each block, in reading order; numbers: int64 [segments of all blocks], the number of each in the text; None:
    # as they are.
    columns: dict[str, list[NDArray[Any]]] = {}
    logprob: tuple[list[Floats], list[Floats]] = ([], [])
    ids: list[NDArray[np.uint32]] = []
    segments, sizes, documents = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], []
    tallies = Tally(), Tally()
    for part in rows:
        _check_mass(part.columns, names)
        watch(part)
        for name, values in part.columns.items():
            columns.setdefault(name, []).append(values)
        for batch, tally, of_model in zip((part.a, part.b), tallies, logprob, strict=True):
            tally.add(replace(batch, extra={}))  # contexts and the like are of no use here
            of_model.append(batch.logprob)
        ids.append(part.b.token_ids)
        segments.append(part.b.segments)
        sizes.append(part.b.segment_events)
        if part.block.documents is not None:
            documents.append(part.block.documents[part.b.segments - part.block.first])
    if not sum(map(len, ids)):
        raise InputError("there is nothing to compare: the text has no event; name a text that is not empty")
    of_block = np.concatenate(segments)
    return PairEvents(
        {name: np.concatenate(values) for name, values in columns.items()},
        (np.concatenate(logprob[0]), np.concatenate(logprob[1])),
        np.concatenate(ids),
        np.concatenate(sizes),
        of_block if numbers is None else numbers[of_block],
        np.concatenate(documents) if documents else None,
        tallies,
    )


def _check_mass(columns: Columns, names: tuple[str, str]) -> None:
    for column, name in zip(("mass_a", "mass_b"), names, strict=True):
        if not np.isfinite(columns[column]).all():
            raise InputError(f"{name}: log_distribution returned a value that is not a log-probability; see lmgauge audit")
