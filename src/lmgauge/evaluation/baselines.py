"""The ladder that a network must climb: what a text costs compressors, simple models of a training text, and your models."""

# All figures are bits per byte of one text, so that everything stands in one column. Where it is known what each segment
# costs, figures have intervals, and neighbors on the ladder are tested, paired, as `compare` does.

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import folder_named
from lmgauge.base.result_list import Result, column, data_frame, plain_values
from lmgauge.evaluation.comparison.results import SIGNIFICANT
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.diagnosis.compressors import Baseline, in_order
from lmgauge.evaluation.evaluate import evaluate_scores
from lmgauge.evaluation.event_sums import EventSums, Paired, SegmentSums
from lmgauge.evaluation.options import Outputs
from lmgauge.evaluation.output_files import evaluated
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.runs import Run, about, lockstep
from lmgauge.numerics.intervals import ratio_interval
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments, TextReport

if TYPE_CHECKING:
    import pandas as pd

    from lmgauge.models.protocol import LanguageModel

Floats = NDArray[np.float64]
LADDER_FILE = "ladder.json"


def is_ladder_folder(path: Path) -> bool:
    """Return True if a folder was written by `lmgauge.baseline`, so that it may be replaced by one."""
    return (path / LADDER_FILE).is_file()


def measure(
    model: LanguageModel,
    name: str,
    what: str,
    corpus: Corpus,
    folder: Path | None,
    *,
    began: float | None = None,
    own: bool = False,
    **how: Any,
) -> MeasuredRung:
    """Score a text with a model, and keep its run where there is a folder for it."""
    # began: when its training did; how: threads and scoring, as of `evaluated`.
    began, policies = began or time.perf_counter(), [model.context_policy]
    costs: list[Paired] = []

    def watch(index: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
        costs.append(segment_costs(scored_text(block, policies), tally.per_segment()))

    outputs = Outputs(None if folder is None else folder / folder_named(name.replace(" ", "-")))
    (result,) = evaluated([model], [name], corpus, outputs, watch=watch, **how)
    return rung_of(result, costs, what, seconds=time.perf_counter() - began, own=own)


def segment_costs(block: Segments, sums: SegmentSums) -> Paired:
    """Return what each segment of a block costs a model, and its bytes."""
    # block: segments of the text, its line ends as the model counts them; sums: of the model's rows of these segments.
    at = sums.segments - block.first
    nats, zeros = np.zeros(len(block)), np.zeros(len(block), np.int64)
    nats[at], zeros[at] = sums.nats, sums.zeros
    sizes = (block.ends - block.starts + block.terminator).astype(np.float64)
    return Paired((nats,), zeros, sizes[:, None], block.documents)


@dataclass(frozen=True)
class LadderStep:
    """One rung of a ladder and the next better one, tested."""

    STATED: ClassVar = ("significant",)
    better: str = field(metadata=column("compared with"))
    worse: str = field(metadata=column(""))
    difference: float = field(metadata=column("bits/byte more", 4, "signed"))  # of the worse less those of the better
    # 95 % of it, low and high; None for fewer than six documents or segments
    interval: tuple[float, float] | None = field(metadata=column("95 % interval", 4, "signed"))
    p_value: float | None  # two-sided, paired; None where it cannot be tested
    p_value_holm: float | None = field(default=None, metadata=column("p", form="p"))  # adjusted for the number of steps

    @property
    def significant(self) -> bool | None:
        """Return True if the difference is significant, at 5 %, adjusted; None where it was not tested."""
        return None if self.p_value_holm is None else self.p_value_holm < SIGNIFICANT


@dataclass(frozen=True)
class MeasuredRung:
    """A model's rung, its evaluation, and what each segment of the text costs it; None where that cannot be compared."""

    rung: Baseline
    evaluation: Evaluation = field(repr=False)
    costs: Paired | None = field(default=None, repr=False)


@dataclass(frozen=True, repr=False)
class Ladder(Result):
    """Compressors, simple models of a training text, and models of yours, on one text.

    Attributes:
        rungs: the fewest bits first, behind them those whose bits are lower bounds; `own` ones are your models.
        steps: neighbors that could be tested, from the top: models, as what a segment costs a compressor is not known.
        segments, words, characters, bytes: of the text.
        training_bytes: of the training text.
        fingerprints: SHA-256 of both texts, `text` and `training_text`.
        notes: what a reader must know.

    Example:
        >>> import lmgauge
        >>> train = lmgauge.Corpus.from_strings(["the cat sat on the mat", "the dog sat", "a dog ran"] * 20)
        >>> ladder = lmgauge.baseline(train, lmgauge.Corpus.from_strings(["a cat sat on the dog", "the cow ran"]))
        >>> ladder.best.name, round(ladder.best.bits_per_byte, 2), len(ladder.steps)
        ('word 5-gram', 2.02, 2)
    """

    rungs: tuple[Baseline, ...]
    steps: tuple[LadderStep, ...]
    segments: int
    words: int
    characters: int
    bytes: int
    training_bytes: int
    fingerprints: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Baseline:
        """The rung with the fewest bits; never one whose bits are a lower bound."""
        return self.rungs[0]

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """The rungs that are not your models."""
        return tuple(rung for rung in self.rungs if not rung.own)

    def rung(self, name: str) -> Baseline:
        """Return the rung of this name.

        Args:
            name: of the rung.

        Raises:
            KeyError: there is none.

        Example:
            >>> rungs = (Baseline("xz", "LZMA", 16.0, 2.0),)
            >>> ladder = Ladder(rungs, (), segments=1, words=1, characters=8, bytes=8, training_bytes=9, fingerprints={})
            >>> ladder.rung("xz").bits
            16.0
        """
        return {rung.name: rung for rung in self.rungs}[name]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict for each rung, the fewest bits first."""
        return [
            {
                **plain_values(rung),
                "bound": rung.bound,
                "bits_per_character": float(rung.bits / self.characters),
                "bits_per_word": float(rung.bits / self.words) if self.words else None,
                "times_best": rung.bits / self.best.bits if self.best.bits and not rung.bound else None,
            }
            for rung in self.rungs
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**plain_values(self), "rungs": self.to_rows()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each rung, the fewest bits first; `interval` as two columns.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = self.to_rows()
        for row in rows:
            row["interval_low"], row["interval_high"] = row.pop("interval") or (None, None)
        return data_frame(rows)

    def _in_brief(self) -> str:
        best = self.best
        ranked = sum(not rung.bound for rung in self.rungs)
        return f"{best.name} is the best of {ranked}: {best.bits_per_byte:.4f} bits per byte"


def rung_of(
    evaluation: Evaluation, parts: Sequence[Paired], what: str, *, seconds: float | None = None, own: bool = False
) -> MeasuredRung:
    """Return an evaluated model as a rung."""
    # parts: what each segment costs, block by block.
    if evaluation.bits_per_byte is None or not evaluation.bytes:
        raise InputError(f"{evaluation.model}: bits per byte are not known, as the text has no bytes")
    exact = evaluation.scored_share in (None, 1.0) and not evaluation.bits_per_byte_is_bound
    costs = Paired.joined(parts)
    over = None
    if exact and not costs.zeros.any():
        over = ratio_interval(-costs.nats[0], costs.sizes[:, 0], costs.documents, total=-evaluation.log_probability)
    rung = Baseline(
        evaluation.model,
        what,
        evaluation.bits_per_byte * evaluation.bytes,
        evaluation.bits_per_byte,
        trained=not own,
        own=own,
        interval=None if over is None else (nats_to_bits(over.low), nats_to_bits(over.high)),
        seconds=seconds,
    )
    return MeasuredRung(rung, evaluation, costs if exact else None)


def of_run(run: Run, corpus: Corpus) -> tuple[Evaluation, list[Paired]]:
    """Evaluate a run's scores together with the text."""
    # Raises InputError: the run was changed, or is of another text.
    run, costs = about(run, corpus), list[Paired]()
    evaluation = evaluate_scores(run.batches(), origin=run.origin, corpus=corpus)
    for block, (table,) in lockstep([run.batches()], corpus, [run.name]):
        if block is not None:
            costs.append(segment_costs(scored_text(block, [run.origin.policy]), EventSums.of(table).per_segment()))
    return evaluation, costs


def ladder_of(
    measured: Sequence[MeasuredRung], compressed: Iterable[Baseline], training: TextReport, scored: TextReport
) -> Ladder:
    """Put rungs in order, and test neighbors."""
    # -> the rungs, in bits per byte of the test text, the fewest bits first.
    rungs = in_order([*(one.rung for one in measured), *compressed])
    first = measured[0].evaluation
    return Ladder(
        rungs=rungs,
        steps=_steps(measured),
        segments=first.segments,
        words=(first.words or 0) if first.bits_per_word is not None else 0,
        characters=scored.characters,
        bytes=scored.bytes,
        training_bytes=training.bytes,
        fingerprints={"text": scored.sha256, "training_text": training.sha256},
        notes=tuple(_notes(measured, training, scored)),
    )


def _notes(measured: Sequence[MeasuredRung], training: TextReport, scored: TextReport) -> Iterator[str]:
    # What must be known of the rungs, the most important first.
    if any(one.rung.bound for one in measured):
        yield (
            "≥ is a lower bound: part of the text is not predicted. Such a model is not ranked or tested; `lmgauge spell` "
            "gives models of words exact bits"
        )
    for one in measured:
        if one.evaluation.scored_share is not None and one.evaluation.scored_share < 1.0:
            yield f"{one.rung.name}: its protocol leaves out part of the text, so its rank is not exact"
    independence = next((one.evaluation.independence for one in measured if one.evaluation.independence), "")
    if independence:
        yield f"95 % intervals and p-values: {independence}."
    yield from (f"training text: {note}" for note in training.notes())
    yield from (f"test text: {note}" for note in scored.notes())


def _steps(measured: Iterable[MeasuredRung]) -> tuple[LadderStep, ...]:
    rungs = sorted((one for one in measured if one.costs is not None), key=lambda one: (one.rung.bits, one.rung.name))
    return holm_adjusted(_step(better, worse) for better, worse in pairwise(rungs))


def _step(better: MeasuredRung, worse: MeasuredRung) -> LadderStep:
    first, second = better.costs, worse.costs
    assert first is not None
    assert second is not None
    names = better.rung.name, worse.rung.name
    difference = worse.rung.bits_per_byte - better.rung.bits_per_byte
    zeros = first.zeros + second.zeros
    paired = Paired(first.nats + second.nats, zeros, first.sizes, first.documents)
    spread = None if zeros.any() else paired.spreads()[0]
    if spread is None:
        return LadderStep(*names, difference, None, None)
    interval = spread.interval().mapped(nats_to_bits)
    return LadderStep(*names, nats_to_bits(spread.ratio), (interval.low, interval.high), spread.p_value)
