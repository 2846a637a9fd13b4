"""A model on a sample of the documents of a text, all of which cheaper models score: `lmgauge eval --sample`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.progress import say_progress
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.event_sums import EventSums, Floats, Ints
from lmgauge.evaluation.options import Outputs, SampleSettings
from lmgauge.evaluation.output_files import evaluated
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import lockstep
from lmgauge.evaluation.sampled import SIZES, Estimate, EstimatedFigure, Residual, Sample
from lmgauge.evaluation.slicing.cuts import range_sizes
from lmgauge.evaluation.slicing.span_alignment import Ranges
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.intervals import FEWEST_UNITS, LEVEL, Spread, student_t_quantile
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.sampling import draw
from lmgauge.numerics.signature import Signature
from lmgauge.numerics.units import nats_to_bits, nats_to_scale
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Rows = Callable[[], Iterable[ScoreBatch]]
Spreads = Mapping[str, Spread | None]
PILOT = 20
"""Documents that are scored to learn how many are needed, or how long they take."""
_RESIDUALS = 5
_DOCUMENTS_A_PROXY = 5


@dataclass(frozen=True)
class Population:
    """What is known of all documents of a text."""

    documents: Ints  # int64 [segments], the document of each
    sizes: Floats  # float64 [documents, sizes]
    proxies: Mapping[str, tuple[Floats, Floats]]  # nats and events of each document

    def sample(self, count: int, seed: int, text: str) -> Sample:
        """Draw documents."""
        numbers = draw(len(self.sizes), count, seed)
        chosen = np.isin(self.documents, numbers)
        bounds = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
        return Sample(
            part=f"{len(numbers)}/{len(self.sizes)}",
            seed=seed,
            drawn=numbers.tolist(),
            text=text,
            segments=len(self.documents),
            bounds=bounds.tolist(),
            sizes={size: values.astype(int).tolist() for size, values in zip(SIZES, self.sizes.T, strict=True)},
            proxies={name: (nats.tolist(), events.tolist()) for name, (nats, events) in self.proxies.items()},
        )


def read_population(corpus: Corpus, model: LanguageModel, proxies: Mapping[str, Rows]) -> Population:
    """Let proxies score all of a text, and count each of its documents as the figures of a model count them."""
    say_progress("scoring all documents with the proxies" if proxies else "counting")
    documents: list[Ints] = []
    columns: list[Floats] = []
    for block, batches in lockstep([rows() for rows in proxies.values()], corpus, list(proxies)):
        if block is None:  # there is a text
            continue
        if block.documents is None:
            raise UsageError(
                "documents of this text are not known, and a sample is drawn from documents: say what they are with "
                "--document (segment, file, blank-line, heading, or the name of a field)"
            )
        counted, nothing = scored_text(block, [model.context_policy]), np.zeros(len(block), np.int64)
        sizes = range_sizes(counted, Ranges(np.arange(len(block)), nothing, block.ends - block.starts, nothing, ()))
        sums = [EventSums.of(batch).per_segment() for batch in batches]
        documents.append(block.documents)
        columns.append(np.column_stack([sizes, *(column for one in sums for column in (-one.nats, one.events))]))
    if not documents:
        raise InputError("there is nothing to evaluate: the text is empty")
    of_segment, each = np.concatenate(documents), np.concatenate(columns)
    totals = np.column_stack([np.bincount(of_segment, values) for values in each.T])
    nats, events = totals[:, len(SIZES) :: 2].T, totals[:, len(SIZES) + 1 :: 2].T
    for name, of_proxy in zip(proxies, nats, strict=True):
        if not np.isfinite(of_proxy).all():
            raise InputError(
                f"{name}: gives probability zero to some of the text, so its totals say nothing; take a proxy that gives every "
                "word a probability (an n-gram model with --vocabulary spelled or open)"
            )
    return Population(of_segment, totals[:, : len(SIZES)], dict(zip(proxies, zip(nats, events, strict=True), strict=True)))


class _Drawn:
    """What a model gives the documents of a sample, added up while it scores them."""

    def __init__(self, sample: Sample) -> None:
        self._numbers = sample.numbers
        self.nats, self.events = np.zeros(len(sample.drawn)), np.zeros(len(sample.drawn))
        self.places: dict[int, str] = {}  # where each begins

    def add(self, index: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
        """Add a block of the sample."""
        sums, documents = tally.per_segment(), block.documents
        assert documents is not None
        codes = np.searchsorted(self._numbers, documents[sums.segments - block.first])
        self.nats += np.bincount(codes, -sums.nats, len(self.nats))
        self.events += np.bincount(codes, sums.events, len(self.nats))
        for code, first in zip(*np.unique(codes, return_index=True), strict=True):
            self.places.setdefault(int(code), block.place(int(first)))


def estimate(
    model: LanguageModel,
    name: str,
    proxies: Mapping[str, Rows],
    corpus: Corpus,
    settings: SampleSettings,
    outputs: Outputs,
    *,
    scoring: Any,
    threads: int | None = None,
) -> Estimate:
    """Score all documents with the proxies and a sample of them with the model, and estimate the figures of the whole."""
    # proxies: by their names, what gives their rows; scoring: how models without options of their own were loaded.
    policy = model.context_policy
    if policy.leaves_out or corpus.is_joined:
        raise UsageError("a sample of documents needs a text that is neither joined nor scored in part: leave the protocol out")
    corpus.without_given("a sample of documents").refuse_once("a sample is drawn once all documents are known")
    population = read_population(corpus, model, proxies)
    run = partial(_scored, model, name, corpus, scoring=scoring, threads=threads)
    draw_sample = partial(population.sample, seed=settings.seed, text=corpus.report.sha256)
    count = settings.sample or _needed(population, settings, draw_sample, run)
    result, drawn, sample = run(draw_sample(count), outputs)
    notes = [note for note in result.notes if not note.startswith(("a sample, ", "only ", "a few "))]
    spreads = sample.spreads(drawn.nats, drawn.events)
    notes += [] if count == sample.documents else caveats(spreads["bytes"])
    if policy.runs_on:
        notes.append(
            f"the context of {name} runs on from document to document, so what is drawn begins after another one than in the "
            "whole text"
        )
    plain = sample.spreads(drawn.nats, drawn.events, helped=False)
    total, size = sample.total(drawn.nats, 0), sample.weights[sample.numbers]
    of_error = total.residuals**2 / ((total.residuals**2).sum() or 1.0)
    parts = Signature.parse(result.signature).parts
    stated = {"text": sample.text[:6], "seed": str(settings.seed), "proxy": "+".join(proxies) or "none", "v": parts["v"]}
    return Estimate(
        model=name,
        proxies=tuple(proxies),
        documents=count,
        all_documents=sample.documents,
        share=float(size.sum() / sample.weights.sum()),
        figures=tuple(_figures(result, spreads, plain)),
        correlation=total.correlation,
        documents_needed=_documents_needed(spreads["bytes"], plain["bytes"], count, sample.documents),
        residuals=tuple(
            Residual(
                drawn.places[i],
                nats_to_bits(float(drawn.nats[i] / size[i])),
                nats_to_bits(float((drawn.nats[i] - total.residuals[i]) / size[i])),
                float(of_error[i]),
            )
            for i in np.argsort(-of_error, kind="stable")[:_RESIDUALS].tolist()
        ),
        of_sample=result,
        signature=str(Signature({key: value for key, value in parts.items() if key != "v"} | stated, "ppl")),
        notes=tuple(notes),
    )


def _scored(
    model: LanguageModel, name: str, corpus: Corpus, sample: Sample, outputs: Outputs, *, scoring: Any, threads: int | None
) -> tuple[Evaluation, _Drawn, Sample]:
    # The model on the documents of a sample.
    count, least = len(sample.drawn), max(FEWEST_UNITS, _DOCUMENTS_A_PROXY * len(sample.proxies))
    if count < least:
        of = f"the text has {sample.documents:,}" if count == sample.documents else f"a sample of {count:,} is too small"
        raise UsageError(f"an estimate needs {least} documents or more ({FEWEST_UNITS}, 5 for each proxy), and {of}")
    drawn, part = _Drawn(sample), corpus.chosen(sample.chosen(), asdict(sample))
    say_progress(f"scoring {count:,} of {sample.documents:,} documents")
    (result,) = evaluated([model], [name], part, outputs, scoring=scoring, threads=threads, watch=drawn.add)
    if result.zero_probability_events:
        raise InputError(
            f"{name}: gives probability zero to {result.zero_probability_events:,} events of the sample, so all figures of the "
            "text are infinite, and nothing is to be estimated"
        )
    return result, drawn, sample


def _figures(result: Evaluation, spreads: Spreads, plain: Spreads) -> Iterator[EstimatedFigure]:
    for figure in FIGURES:
        spread, alone = spreads[figure.per], plain[figure.per]
        if spread is None or alone is None or getattr(result, figure.name) is None:
            continue
        scaled = partial(nats_to_scale, scale=figure.scale)
        value = marked(scaled(spread.ratio), bound=figure.bounded and result.bits_per_byte_is_bound)
        ends = [replace(one, low=max(0.0, one.low)).mapped(scaled) for one in (spread.interval(), alone.interval())]
        yield EstimatedFigure(figure.name, value, ends[0], scaled(alone.ratio), ends[1])


def _documents_needed(spread: Spread | None, plain: Spread | None, count: int, documents: int) -> int:
    # The error of a plain sample of n documents is S sqrt(1 / n - 1 / N).
    if spread is None or plain is None or not plain.error:
        return count
    unit = (1 / count - 1 / documents) * (spread.error / plain.error) ** 2
    return round(1 / (1 / documents + unit))


def _needed(
    population: Population,
    settings: SampleSettings,
    draw_sample: Callable[[int], Sample],
    run: Callable[[Sample, Outputs], tuple[Evaluation, _Drawn, Sample]],
) -> int:
    # How many documents give the interval, or fill the time, that was asked for, by those of a first sample.
    # It depends on how they vary, or on how long they take, and not on which of the others will be drawn: an internal pilot
    # (Wittes & Brittain 1990, "The role of internal pilot studies in increasing the efficiency of clinical trials").
    documents, begun = len(population.sizes), time.monotonic()
    if settings.until is None and settings.budget is None:
        raise UsageError("how many documents? Say it with --sample N, --until SHARE or --budget TIME")
    pilot = draw_sample(min(PILOT, documents))
    _, drawn, _ = run(pilot, Outputs())
    count, seconds = len(pilot.drawn), time.monotonic() - begun
    if settings.until is None:
        of_document = seconds * pilot.weights.mean() / pilot.weights[pilot.numbers].sum()
        return min(documents, max(count, int((settings.seconds - seconds) / of_document)))
    spread = pilot.spreads(drawn.nats, drawn.events)["bytes"]
    if spread is None or not spread.error:
        return count
    reach = settings.until * spread.ratio / student_t_quantile(LEVEL, spread.freedom)
    unit = (1 / count - 1 / documents) * (reach / spread.error) ** 2
    return min(documents, max(count, math.ceil(1 / (1 / documents + unit))))
