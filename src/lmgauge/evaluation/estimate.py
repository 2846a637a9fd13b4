"""A model on a sample of the documents of a text, all of which cheaper models score: `lmgauge eval --sample`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.progress import say_progress
from lmgauge.base.version import NUMBERS_VERSION
from lmgauge.evaluation.denominators import known_documents, scored_text
from lmgauge.evaluation.event_sums import EventSums, Floats, Ints
from lmgauge.evaluation.options import Outputs, SampleSettings
from lmgauge.evaluation.output_files import evaluated
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import lockstep
from lmgauge.evaluation.sampled import DOCUMENTS_A_PROXY, SIZES, Estimate, EstimatedFigure, Residual, Sample
from lmgauge.evaluation.slicing.cuts import range_sizes
from lmgauge.evaluation.slicing.span_alignment import Ranges
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.intervals import FEWEST_UNITS, LEVEL, Spread, student_t_quantile
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.sampling import documents_for, draw
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits, nats_to_scale
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Proxies = Mapping[str, Callable[[], Iterable[ScoreBatch]]]
"""What gives the rows of each proxy, by its name."""
Scored = tuple[Evaluation, Floats, dict[int, str], set[str]]
"""What a model gives a sample: its evaluation, nats and events of each document, where it begins, notes on it alone."""
PILOT, MOST_SHOWN = 20, 5
"""Documents scored to learn how many are needed, or how long they take, at least; and shown."""
_NOTHING_LEFT = 1e-9
"""Error, as a share of the figure, that is rounding alone."""


class _Totals:
    """Adds up columns by document, block by block."""

    def __init__(self) -> None:
        self._documents: list[Ints] = []
        self._columns: list[Floats] = []
        self.places: dict[int, str] = {}  # where each document begins

    def add(self, block: Segments, tallies: Iterable[EventSums], *columns: NDArray[Any]) -> None:
        """Add columns, with a row for each segment of a block, and the nats and events of models."""
        self._documents.append(known_documents(block))
        sums = [tally.per_segment() for tally in tallies]
        self._columns.append(np.column_stack([*columns, *(part for one in sums for part in (-one.nats, one.events))]))
        for number, first in zip(*np.unique(self._documents[-1], return_index=True), strict=True):
            self.places.setdefault(int(number), block.place(int(first)))

    def watch(self, _: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
        """Add what a model gives a block."""
        self.add(block, [tally])

    @property
    def documents(self) -> Ints:
        """Return the document of each segment, int64 [segments]."""
        return np.concatenate([np.zeros(0, np.int64), *self._documents])

    def of_documents(self) -> Floats:
        """Return the sums, float64 [documents, columns]."""
        if not self._documents:
            raise InputError("there is nothing to evaluate: the text is empty")
        documents = self.documents
        return np.column_stack([np.bincount(documents, values) for values in np.concatenate(self._columns).T])


def read_documents(corpus: Corpus, model: LanguageModel, proxies: Proxies, seed: int) -> tuple[int, Callable[[int], Sample]]:
    """Let proxies score all of a text, and return how many documents it has, and what draws some of them."""
    # Documents are counted as the figures of the model count them.
    say_progress("scoring all documents with the proxies" if proxies else "counting")
    read, each = _Totals(), list(proxies)
    for block, batches in lockstep([proxies[name]() for name in each], corpus, each):
        assert block is not None  # there is a text, and a table that is longer is refused
        counted, nothing = scored_text(block, [model.context_policy]), np.zeros(len(block), np.int64)
        sizes = range_sizes(counted, Ranges(np.arange(len(block)), nothing, block.ends - block.starts, nothing, ()))
        read.add(block, map(EventSums.of, batches), sizes)
    columns, of_segment = read.of_documents().T, read.documents
    nats, events = columns[len(SIZES) :: 2], columns[len(SIZES) + 1 :: 2]
    for name, of_proxy in zip(each, nats, strict=True):
        if not np.isfinite(of_proxy).all():
            cure = "take a proxy that gives every word a probability, such as an n-gram model with --vocabulary spelled"
            raise InputError(f"{name}: gives probability zero to some of the text, so its totals say nothing; {cure}")
    documents = columns.shape[1]

    def drawing(count: int) -> Sample:
        least = max(FEWEST_UNITS, DOCUMENTS_A_PROXY * len(each))
        if not least <= count <= documents:
            why = f", {DOCUMENTS_A_PROXY} for each proxy" if least > FEWEST_UNITS else ""
            raise UsageError(f"a sample of {count:,}: give {least} documents or more{why}; the text has {documents:,}")
        numbers = draw(documents, count, seed)
        chosen = np.isin(of_segment, numbers).astype(np.int8)
        return Sample(
            part=f"{count}/{documents}",
            seed=seed,
            drawn=numbers.tolist(),
            text=corpus.report.sha256,
            segments=len(chosen),
            bounds=np.flatnonzero(np.diff(chosen, prepend=0, append=0)).tolist(),
            sizes={size: values.astype(int).tolist() for size, values in zip(SIZES, columns, strict=False)},
            proxies={name: (nats[i].tolist(), events[i].tolist()) for i, name in enumerate(each)},
        )

    return documents, drawing


def estimate(
    model: LanguageModel, name: str, proxies: Proxies, corpus: Corpus, settings: SampleSettings, outputs: Outputs, **how: Any
) -> Estimate:
    """Score all documents with the proxies and a sample of them with the model, and estimate the figures of the whole."""
    # how: `scoring` and `threads`, as of `evaluated`.
    policy = model.context_policy
    if policy.protocol is not None:
        raise UsageError(f"protocol {policy.protocol}: a sample of documents is scored by our own rules: leave it out")
    corpus.chosen(np.zeros(0, np.bool_))  # refuses what is joined, has given text, or can be read only once

    def scored(sample: Sample, outputs: Outputs) -> Scored:
        say_progress(f"scoring {sample.part} documents")
        part, drawn = corpus.chosen(sample.chosen(), asdict(sample)), _Totals()
        (result,) = evaluated([model], [name], part, outputs, watch=drawn.watch, **how)
        if result.zero_probability_events:
            zeros = f"probability zero to {result.zero_probability_events:,} events of the sample"
            raise InputError(f"{name}: gives {zeros}, so that all figures of the text are infinite")
        of_part = {*caveats(result.interval), *part.report.notes()}
        return result, drawn.of_documents()[sample.numbers].T, drawn.places, of_part

    documents, drawing = read_documents(corpus, model, proxies, settings.seed)
    least = min(documents, max(PILOT, DOCUMENTS_A_PROXY * len(proxies)))
    count = settings.sample or _needed(documents, least, settings, drawing, scored)
    sample = drawing(count)
    result, (nats, events), places, of_part = scored(sample, outputs)
    spreads, plain = (sample.spreads(nats, events, helped=helped) for helped in (True, False))
    notes = [*(note for note in result.notes if note not in of_part), *corpus.report.notes()]
    notes += caveats(spreads["bytes"]) if count < documents else ()
    if policy.runs_on:
        notes.append(f"the context of {name} runs on over documents: what is drawn follows another one than in the text")
    if count < documents and not spreads["bytes"].error > _NOTHING_LEFT * spreads["bytes"].ratio:
        notes.insert(
            0,
            "the drawn documents leave no rest (they repeat, or a proxy is the model): the interval is a point only if the "
            "others are like them",
        )
    total, size = sample.total(nats, 0), sample.weights[sample.numbers]
    of_error = total.falls**2 / ((total.falls**2).sum() or 1.0)
    error, plain_error = (one["bytes"].error for one in (spreads, plain))
    largest = np.argsort(-of_error, kind="stable")[:MOST_SHOWN].tolist()
    bits = nats_to_bits(np.array([nats, total.fitted[sample.numbers]]) / size)
    parts = dict(Signature.parse(result.signature).parts)
    del parts["v"]  # it is the last
    stated = {"seed": str(settings.seed), "proxy": "+".join(proxies) or "none", "v": NUMBERS_VERSION}
    return Estimate(
        model=name,
        proxies=tuple(proxies),
        documents=count,
        all_documents=documents,
        share=float(size.sum() / sample.weights.sum()),
        figures=tuple(_figures(result, spreads, plain)),
        correlation=total.correlation,
        documents_needed=round(documents_for(error / (plain_error or 1.0), count, documents)),
        residuals=tuple(
            Residual(places[sample.drawn[i]], float(bits[0, i]), float(bits[1, i]), float(of_error[i])) for i in largest
        ),
        of_sample=result,
        signature=str(Signature(parts | {"text": sample.text[:6]} | stated, "ppl")),
        notes=tuple(notes),
    )


def _figures(result: Evaluation, spreads: Mapping[str, Spread], plain: Mapping[str, Spread]) -> Iterator[EstimatedFigure]:
    for figure in FIGURES:
        if figure.per in spreads and getattr(result, figure.name) is not None:
            scaled = partial(nats_to_scale, scale=figure.scale)
            spread, alone = spreads[figure.per], plain[figure.per]
            value = marked(scaled(spread.ratio), bound=figure.bounded and result.bits_per_byte_is_bound)
            ends = [one.interval().mapped(scaled) for one in (spread, alone)]
            yield EstimatedFigure(figure.name, value, ends[0], scaled(alone.ratio), ends[1])


def _needed(
    documents: int,
    count: int,
    settings: SampleSettings,
    drawing: Callable[[int], Sample],
    scored: Callable[[Sample, Outputs], Scored],
) -> int:
    # How many documents give the interval, or fill the time, that was asked for, by a first sample of `count`.
    # It depends on how they vary, or on how long they take, and not on which of the others will be drawn: an internal pilot
    # (Wittes & Brittain 1990, "The role of internal pilot studies in increasing the efficiency of clinical trials").
    if settings.until is None and settings.budget is None:
        raise UsageError("how many documents? Say it with --sample N, --until SHARE or --budget TIME")
    pilot, begun = drawing(count), time.monotonic()
    _, (nats, events), *_ = scored(pilot, Outputs())
    seconds = time.monotonic() - begun
    if settings.until is None:
        of_document = seconds * pilot.weights.mean() / pilot.weights[pilot.numbers].sum()
        return min(documents, max(count, int((settings.seconds - seconds) / of_document)))
    spread = pilot.spreads(nats, events)["bytes"]
    reach = settings.until * spread.ratio / student_t_quantile(LEVEL, spread.freedom)
    needed = documents_for(reach / spread.error, count, documents) if spread.error else count
    return min(documents, max(count, math.ceil(needed)))
