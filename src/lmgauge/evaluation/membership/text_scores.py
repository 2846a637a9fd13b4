"""Scores of single texts that tend to differ between what a model was trained on and what it never saw.

| score | of a text | seen texts have |
| --- | --- | --- |
| `loss` | mean nats an event (Yeom et al. 2018) | low |
| `min_k` | mean log-probability of the k % least probable events: Min-K% Prob (Shi et al. 2024, eq. 1) | high |
| `min_k_plus_plus` | the same of log p, standardized under the prediction: Min-K%++ (Zhang et al. 2025, eq. 4) | high |
| `zlib` | nats over the bytes that zlib packs the text into (Carlini et al. 2021, section 5.2) | low |
| `reference` | nats a byte less those of a second model (Carlini et al. 2021; Mireshghallah et al. 2022) | low |

Two scores look at the text alone: `zlib_per_byte` and `bytes`. Where they tell two sets apart, the sets differ without any
model (Duan et al. 2024; Meeus et al. 2024; Das et al. 2024), and the other scores may only see that.

Carlini et al. divide the mean log loss by the packed size; here it is the total, which gives texts of equal length the same
order and does not reward length among others.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import tee
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.reduce import reduce
from lmgauge.distributions.reductions import Moments
from lmgauge.evaluation.tally import Tally
from lmgauge.scores import ScoreBatch

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Side = Literal["low", "high"]

MODEL_SCORES: dict[str, tuple[str, Side]] = {
    "loss": ("loss, nats an event", "low"),
    "min_k": ("Min-K% Prob, nats", "high"),
    "min_k_plus_plus": ("Min-K%++", "high"),
    "zlib": ("zlib ratio, nats a byte", "low"),
    "reference": ("less reference, nats a byte", "low"),
}
"""For each score of a model its title, and which values speak for seen text."""
BLIND_SCORES: dict[str, tuple[str, Side]] = {
    "zlib_per_byte": ("zlib bytes a byte", "low"),
    "bytes": ("bytes", "high"),
}
"""The same for what needs no model; the side is a convention."""
MOMENTS = ("mean_logprob", "logprob_deviation")
# Below it a prediction is uniform but for rounding, and says nothing about the token that came.
_NARROW = 1e-6


@dataclass
class TextScores:
    """The scores of texts, in reading order; those without bytes or events are left out."""

    ids: list[str]
    documents: Ints | None  # int64 [n], the document of each; None where they are not known
    groups: list[str]  # the name of the group of each; empty where all are in one
    counts: dict[str, Ints]  # int64 [n] columns `segment`, `bytes`, `events`
    scores: dict[str, Floats]  # float64 [n] columns by name; NaN where a text has none
    left_out: int = 0  # how many texts have no bytes or no event

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, chosen: NDArray[np.bool_]) -> TextScores:
        """Return some of the texts."""
        # chosen: bool [n].
        places = np.flatnonzero(chosen).tolist()
        return TextScores(
            [self.ids[i] for i in places],
            None if self.documents is None else self.documents[chosen],
            [self.groups[i] for i in places] if self.groups else [],
            {name: values[chosen] for name, values in self.counts.items()},
            {name: values[chosen] for name, values in self.scores.items()},
        )


@dataclass
class _Parts:
    """Columns of blocks, waiting to be joined."""

    columns: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    left_out: int = 0

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        for name, values in columns.items():
            self.columns.setdefault(name, []).append(values)

    def joined(self) -> dict[str, NDArray[Any]]:
        return {name: np.concatenate(values) for name, values in self.columns.items()}


def score_texts(
    model: LanguageModel, corpus: Corpus, *, k: float, whole: bool, grouped: bool = False, threads: int | None = None
) -> TextScores:
    """Return the scores of each segment of a corpus."""
    parts = _Parts()
    for block, batch in _scored(model, corpus, whole, threads):
        _add_block(parts, block, batch, k)
        if grouped and block.groups is not None:
            names = corpus.group_names
            parts.groups += [names[code] for code in block.groups[_used(block, batch)].tolist()]
    columns = parts.joined()
    counts: dict[str, Ints] = {name: columns.pop(name) for name in ("segment", "bytes", "events") if name in columns}
    documents = columns.pop("document", None)
    return TextScores(parts.ids, documents, parts.groups, counts, columns, parts.left_out)


def reference_nats(model: LanguageModel, corpus: Corpus, threads: int | None = None) -> Floats:
    """Return the nats that a second model takes for each text that `score_texts` keeps, float64 [n]."""
    parts = [_nats(batch)[_used(block, batch)] for block, batch in _scored(model, corpus, False, threads)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _scored(
    model: LanguageModel, corpus: Iterable[Segments], whole: bool, threads: int | None
) -> Iterator[tuple[Segments, ScoreBatch]]:
    blocks, scored = tee(corpus)
    if whole:
        batches = reduce(model, scored, [Moments()], spans=False, threads=threads)
    else:
        batches = model.score(scored, spans=False, threads=threads)
    yield from zip(blocks, batches, strict=True)


def _used(block: Segments, batch: ScoreBatch) -> NDArray[np.bool_]:
    # Which segments of a block have bytes and events, bool [segments].
    events = np.zeros(len(block), np.int64)
    events[batch.segments - block.first] = batch.segment_events
    used: NDArray[np.bool_] = (events > 0) & (block.ends > block.starts)
    return used


def _nats(batch: ScoreBatch) -> Floats:
    # Nats of each segment of a batch, exactly summed: float64 [segments]; inf with an impossible event.
    tally = Tally()
    tally.add(batch)
    return -tally.per_segment().nats


def _add_block(parts: _Parts, block: Segments, batch: ScoreBatch, k: float) -> None:
    # Compute the scores of a block; every segment of it is in the batch.
    used = _used(block, batch)
    places = np.flatnonzero(used)
    parts.left_out += len(block) - len(places)
    ids = block.identifiers()
    parts.ids += [ids[i] for i in places.tolist()]
    nats, events = _nats(batch)[used], batch.segment_events[used].astype(np.float64)
    size = (block.ends - block.starts)[used]
    packed = np.array([len(zlib.compress(block.text(i))) for i in places.tolist()], np.float64)
    columns: dict[str, NDArray[Any]] = {
        "segment": (block.first + places).astype(np.int64),
        "bytes": size.astype(np.int64),
        "events": batch.segment_events[used].astype(np.int64),
        "loss": nats / events,
        "min_k": lowest_mean(batch.logprob, batch.segment_events, k)[used],
        "zlib": nats / packed,
        "zlib_per_byte": packed / size,
    }
    if block.documents is not None:
        columns["document"] = block.documents[used]
    if MOMENTS[0] in batch.extra:
        standard = standardized(batch.event_logprob(), *(batch.extra[name] for name in MOMENTS))
        columns["min_k_plus_plus"] = lowest_mean(standard, batch.segment_events, k)[used]
    parts.add(columns)


def standardized(logprob: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return how many standard deviations each log-probability is from its mean under the prediction."""
    # logprob: float64 [n], nats, of the tokens that came; mean: float64 [n], the mean of log p under the prediction, nats;
    # deviation: float64 [n], its standard deviation, nats.
    # -> float64 [n]; 0 where all that is possible is equally probable, -inf for an impossible token.
    # standardized([-3.0, -1.0], [-2.0, -1.0], [0.5, 0.0]) -> [-2.0, 0.0]
    far = deviation > _NARROW
    values = np.zeros(len(logprob))
    np.divide(logprob - mean, deviation, out=values, where=far)
    values[logprob == -np.inf] = -np.inf
    return values


def lowest_mean(values: Floats, counts: Ints, k: float) -> Floats:
    """Return the mean of the lowest share k of the values of each segment: floor(k n) of n, at least one."""
    # values: float64 [n], segment after segment; counts: int64 [segments], values of each.
    # -> float64 [segments]; 0 for a segment without values.
    # lowest_mean([-5.0, -1.0, -3.0, -2.0], [3, 1], 0.7) -> [-4.0, -2.0]
    owner = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((values, owner))
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    # 0.2 * 15 is 3.0000000000000004, and 0.29 * 100 is 28.999999999999996.
    wanted = np.maximum(1, np.floor(k * counts + 1e-9).astype(np.int64))
    low = place < wanted[owner]
    sums = np.bincount(owner[low], values[order][low], len(counts))
    return np.asarray(sums / np.minimum(wanted, np.maximum(counts, 1)), np.float64)
