"""A model on a sample of the documents of a text, all of which cheaper models score: `lmgauge eval --sample`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.sampled import DOCUMENTS_A_PROXY, SIZES, Estimate, EstimatedFigure, EstimatedGroup, Residual, Sample
from lmgauge.evaluation.slicing.cuts import range_sizes
from lmgauge.evaluation.slicing.span_alignment import Ranges
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.intervals import FEWEST_UNITS, Spread
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.sampling import Total, documents_for, documents_until, draw
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
"""What a model gives a sample: its evaluation; nats, unseen and all events of documents; their places; notes on it alone."""
PILOT, MOST_SHOWN = 20, 5
"""Documents scored to learn how many are needed, or how long they take, at least; and shown."""
_NOTHING_LEFT = 1e-9
"""Error, as a share of the figure, that is rounding alone."""


class _Totals:
    """Adds up columns by document, block by block."""

    def __init__(self) -> None:
        self._documents: list[Ints] = []
        self._groups: list[NDArray[np.integer[Any]]] = []
        self._columns: list[Floats] = []
        self.places: dict[int, str] = {}  # where each document begins

    def add(self, block: Segments, scored: Iterable[tuple[ScoreBatch, EventSums]], *columns: NDArray[Any]) -> None:
        """Add columns, with a row for each segment of a block, and what models give it: nats, unseen and all events."""
        self._documents.append(known_documents(block))
        self._groups.append(np.zeros(len(block), np.int64) if block.groups is None else block.groups)
        each = list(columns)
        for batch, tally in scored:
            sums, unseen = tally.per_segment(), batch.row_segments()[batch.unseen()] - block.first
            each += [-sums.nats, np.bincount(unseen, minlength=len(block)), sums.events]
        self._columns.append(np.column_stack(each))
        for number, first in zip(*np.unique(self._documents[-1], return_index=True), strict=True):
            self.places.setdefault(int(number), block.place(int(first)))

    def watch(self, _: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
        """Add what a model gives a block."""
        self.add(block, [(batch, tally)])

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

    def groups(self, names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
        """Return the documents of each group, by its name."""
        documents, codes = self.documents, np.concatenate(self._groups)
        of_document = np.zeros(documents.max() + 1, np.int64)
        of_document[documents] = codes
        torn = documents[of_document[documents] != codes]
        if len(torn):
            raise InputError(
                f"{self.places[int(torn[0])]}: the document that begins here is in several groups: a group is made of whole "
                "documents; leave --by-group out, or name other groups or documents (--group, --document)"
            )
        each = np.unique(of_document).tolist()
        return {names[code] if code < len(names) else "all": of_document == code for code in each}


def read_documents(
    corpus: Corpus, model: LanguageModel, proxies: Proxies, seed: int, *, by_group: bool = False
) -> tuple[int, Callable[[int], Sample], dict[str, NDArray[np.bool_]]]:
    """Let proxies score all of a text; return how many documents it has, what draws some of them, and its groups."""
    # Documents are counted as the figures of the model count them.
    say_progress("scoring all documents with the proxies" if proxies else "counting")
    read, each = _Totals(), list(proxies)
    for block, batches in lockstep([proxies[name]() for name in each], corpus, each):
        assert block is not None  # there is a text, and a table that is longer is refused
        counted, nothing = scored_text(block, [model.context_policy]), np.zeros(len(block), np.int64)
        sizes = range_sizes(counted, Ranges(np.arange(len(block)), nothing, block.ends - block.starts, nothing, ()))
        read.add(block, zip(batches, map(EventSums.of, batches), strict=True), sizes)
    columns, of_segment = read.of_documents().T, read.documents
    documents = columns.shape[1]
    of_proxies = dict(zip(each, columns[len(SIZES) :].reshape(len(each), 3, documents), strict=True))
    for name, of_proxy in of_proxies.items():
        if not np.isfinite(of_proxy).all():
            cure = "take a proxy that gives every word a probability, such as an n-gram model with --vocabulary spelled"
            raise InputError(f"{name}: gives probability zero to some of the text, so its totals say nothing; {cure}")
    # Drawn evenly over what the first proxy gives a byte.
    rates = next((nats / np.maximum(columns[0], 1.0) for nats, *_ in of_proxies.values()), np.zeros(documents))

    def drawing(count: int) -> Sample:
        least = max(FEWEST_UNITS, DOCUMENTS_A_PROXY * len(each))
        if not least <= count <= documents:
            why = f", {DOCUMENTS_A_PROXY} for each proxy" if least > FEWEST_UNITS else ""
            raise UsageError(f"a sample of {count:,}: give {least} documents or more{why}; the text has {documents:,}")
        numbers = draw(rates, count, seed)
        chosen = np.isin(of_segment, numbers).astype(np.int8)
        return Sample(
            part=f"{count}/{documents}",
            seed=seed,
            drawn=numbers.tolist(),
            text=corpus.report.sha256,
            segments=len(chosen),
            bounds=np.flatnonzero(np.diff(chosen, prepend=0, append=0)).tolist(),
            sizes={size: values.astype(int).tolist() for size, values in zip(SIZES, columns, strict=False)},
            proxies={name: of_proxy.tolist() for name, of_proxy in of_proxies.items()},
        )

    return documents, drawing, read.groups(corpus.group_names) if by_group else {}


def estimate(
    model: LanguageModel,
    name: str,
    proxies: Proxies,
    corpus: Corpus,
    settings: SampleSettings,
    outputs: Outputs,
    *,
    by_group: bool = False,
    **how: Any,
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

    documents, drawing, groups = read_documents(corpus, model, proxies, settings.seed, by_group=by_group)
    least = min(documents, max(PILOT, DOCUMENTS_A_PROXY * len(proxies)))
    count = settings.sample or _needed(documents, least, settings, drawing, scored)
    sample = drawing(count)
    result, (nats, _, events), places, of_part = scored(sample, outputs)
    spreads, plain = (sample.spreads(nats, events, helped=helped) for helped in (True, False))
    error = spreads["bytes"].error
    of_groups = tuple(_group(group, part, result, sample, nats, events) for group, part in groups.items())
    notes = [*(note for note in result.notes if note not in of_part), *corpus.report.notes()]
    notes += caveats(spreads["bytes"]) if count < documents else ()
    if policy.runs_on:
        notes.append(f"the context of {name} runs on over documents: what is drawn follows another one than in the text")
    if not all(group.figures for group in of_groups):
        notes.append(f"a group of which fewer than {FEWEST_UNITS} documents were drawn has no figures: too few")
    if count < documents and not error > _NOTHING_LEFT * spreads["bytes"].ratio:
        notes.insert(
            0,
            "the drawn documents leave no rest (they repeat, or a proxy is the model): the interval is a point only if the "
            "others are like them",
        )
    total = sample.survey().total(nats)
    return Estimate(
        model=name,
        proxies=tuple(proxies),
        documents=count,
        all_documents=documents,
        share=float(sample.weights[sample.numbers].sum() / sample.weights.sum()),
        figures=tuple(_figures(result.to_dict(), spreads, plain)),
        correlation=total.correlation,
        documents_needed=round(documents_for(error / (plain["bytes"].error or 1.0), count, documents)),
        residuals=tuple(_largest_residuals(sample, nats, total, places)),
        of_sample=result,
        signature=_signature(result.signature, sample),
        notes=tuple(notes),
        groups=of_groups,
    )


def figures_of_run(run: Run, sample: Sample) -> tuple[list[EstimatedFigure], str]:
    """Return the figures of the whole text that a run of a sample of it gives, and their signature."""
    sums, numbers = EventSums(), run.evaluation or {}
    for batch in run.batches(["document", "kind"]):
        sums.add(batch)
    if numbers["zero_probability_events"]:
        raise InputError(f"{run.path}: its table does not give the documents that were drawn a probability; evaluate again")
    own = sums.per_segment()
    nats, events = sample.by_document(own.documents, -own.nats, own.events.astype(np.float64))
    spreads = (sample.spreads(nats, events, helped=helped) for helped in (True, False))
    return list(_figures(numbers, *spreads)), _signature(numbers["signature"], sample)


def _figures(
    result: Mapping[str, Any], spreads: Mapping[str, Spread], plain: Mapping[str, Spread]
) -> Iterator[EstimatedFigure]:
    for figure in FIGURES:
        if figure.per in spreads and result.get(figure.name) is not None:
            scaled = partial(nats_to_scale, scale=figure.scale)
            spread, alone = spreads[figure.per], plain[figure.per]
            value = marked(scaled(spread.ratio), bound=figure.bounded and result["bits_per_byte_is_bound"])
            ends = [one.interval().mapped(scaled) for one in (spread, alone)]
            yield EstimatedFigure(figure.name, value, ends[0], scaled(alone.ratio), ends[1])


def _signature(signature: str, sample: Sample) -> str:
    parts = dict(Signature.parse(signature).parts)
    del parts["v"]  # it is the last
    stated = {"seed": str(sample.seed), "proxy": "+".join(sample.proxies) or "none", "v": NUMBERS_VERSION}
    return str(Signature(parts | {"text": sample.text[:6]} | stated, "ppl"))


def _largest_residuals(sample: Sample, nats: Floats, total: Total, places: Mapping[int, str]) -> Iterator[Residual]:
    of_error = total.falls**2 / ((total.falls**2).sum() or 1.0)
    bits = nats_to_bits(np.array([nats, total.fitted[sample.numbers]]) / sample.weights[sample.numbers])
    for i in np.argsort(-of_error, kind="stable")[:MOST_SHOWN].tolist():
        yield Residual(places[sample.drawn[i]], float(bits[0, i]), float(bits[1, i]), float(of_error[i]))


def _group(
    name: str, part: NDArray[np.bool_], result: Evaluation, sample: Sample, nats: Floats, events: Floats
) -> EstimatedGroup:
    drawn = int(part[sample.numbers].sum())
    ways = [sample.spreads(nats, events, part, helped=helped) for helped in (True, False) if drawn >= FEWEST_UNITS]
    return EstimatedGroup(name, drawn, int(part.sum()), tuple(_figures(result.to_dict(), *ways) if ways else ()))


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
        what = "--sample N, --until SHARE or --budget TIME"
        raise UsageError(f"how many documents? Say it with {what}; to score all, leave --sample and --proxy out")
    pilot, begun = drawing(count), time.monotonic()
    _, (nats, _, events), *_ = scored(pilot, Outputs())
    seconds = time.monotonic() - begun
    if settings.until is None:
        of_document = seconds * pilot.weights.mean() / pilot.weights[pilot.numbers].sum()
        return min(documents, max(count, int((settings.seconds - seconds) / of_document)))
    needed = documents_until(settings.until, pilot.spreads(nats, events)["bytes"], documents)
    return min(documents, max(count, math.ceil(needed)))
