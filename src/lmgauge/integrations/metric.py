"""A torchmetrics metric: perplexity and its relatives from logits, with sums that no cut into batches or processes changes.

The states are whole numbers. Log-probabilities are added up as multiples of 2^-52 nats in two of them, so their sum is the
same for every order, every batch size and every number of processes, also where a metric is cast to another precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args

from lmgauge.base.errors import InputError, MissingExtraError, UsageError
from lmgauge.numerics.figures import FIGURES, FigureName
from lmgauge.numerics.units import nats_to_scale

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
except ImportError as error:
    raise MissingExtraError("torchmetrics", extra="torchmetrics") from error

__all__ = ["Figure", "PerplexityMetric", "Predictions"]

Predictions = Literal["logits", "log-probabilities"]
Figure = FigureName

# Of the sum's two limbs, the higher counts 2^-16 nats and the lower, below 2^36, what is left in 2^-52 nats.
_HIGH_BITS, _LOW_BITS = 16, 36
# What the higher limb can hold with room for thousands of processes.
_LARGEST_SUM = 2.0**35
# Logits in float64 at a time: 8 MB.
_TILE_VALUES = 1 << 20
# How far from one the sum of a row of log-probabilities may be, by how finely its type tells them apart.
_LOOSEST_SUM = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 1e-1}
_DENOMINATORS = ("bytes", "characters", "words")


class PerplexityMetric(Metric):
    """Perplexity, cross-entropy and bits of the tokens seen since the last reset, as a `torchmetrics.Metric`.

    It is the corpus figure: all nats over all events, never a mean of batch means. Log-sum-exp is float64 over tiles of
    rows, so logits of any precision may come, and neither a float64 nor a float32 copy of all of them is made. An event
    of probability zero makes perplexity `inf`; `perplexity_without_zeros` then comes as well.

    Bits per byte, character and word need the counts of the source text the targets are from: give them to every update
    or to none. Words are what white space parts.

    Attributes:
        figure: the one figure `compute` returns, or None for all.
        ignore_index: targets of this value are not events.
        predictions: what predictions are.
        shift: whether predictions at a position are for the target at the next.

    Example:
        >>> import torch
        >>> metric = PerplexityMetric(figure="perplexity")
        >>> metric.update(torch.zeros(2, 3, 8), torch.tensor([[1, 2, 3], [4, 5, -100]]))
        >>> round(metric.compute().item(), 6)
        8.0
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    events: Tensor
    zeros: Tensor
    updates: Tensor

    def __init__(
        self,
        figure: Figure | None = None,
        *,
        ignore_index: int | None = -100,
        predictions: Predictions = "logits",
        shift: bool = False,
        **kwargs: Any,
    ) -> None:
        """Keep the choices and begin at zero.

        Args:
            figure: the figure that `compute` and calling the metric return; None for a dictionary of all that are known.
            ignore_index: targets of this value are not scored; None if all are.
            predictions: "logits", or "log-probabilities" (natural, each row summing to one).
            shift: True for labels as `transformers` has them, where labels equal input ids: the last prediction and the
                first target are left out. False where predictions and targets are aligned.
            **kwargs: what every torchmetrics metric takes, such as `process_group`.

        Raises:
            UsageError: an unknown figure or kind of predictions.
        """
        super().__init__(**kwargs)
        if figure is not None and figure not in get_args(Figure):
            raise UsageError(f"figure {figure!r} is unknown: it is one of {', '.join(get_args(Figure))}, or None for all")
        if predictions not in get_args(Predictions):
            raise UsageError(f"predictions {predictions!r}: they are {' or '.join(get_args(Predictions))}")
        self.figure = figure
        self.ignore_index = ignore_index
        self.predictions = predictions
        self.shift = shift
        self._is_batch_value = False
        counts = ("nats_high", "nats_low", "events", "zeros", "updates")
        for name in (*counts, *_DENOMINATORS, *(f"updates_with_{name}" for name in _DENOMINATORS)):
            self.add_state(name, torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(
        self,
        predictions: Tensor,
        targets: Tensor,
        *,
        bytes: int | Tensor | None = None,
        characters: int | Tensor | None = None,
        words: int | Tensor | None = None,
    ) -> None:
        """Add the tokens of a batch.

        Args:
            predictions: floating point [..., vocabulary], logits or log-probabilities.
            targets: integer [...], the token that each row is a prediction of.
            bytes: how many bytes the source text of this batch has: a number, or a tensor of numbers to be summed.
            characters: how many characters, in the same way.
            words: how many words, in the same way.

        Raises:
            InputError: shapes or types do not fit, a target is outside the vocabulary, or a row is not a distribution (NaN,
                infinite logits, log-probabilities that do not sum to one). Nothing of the batch is added then.

        Example:
            >>> metric = PerplexityMetric(figure="bits_per_byte")
            >>> metric.update(torch.zeros(1, 2, 4), torch.tensor([[1, 2]]), bytes=4)  # two events of 2 bits
            >>> metric.compute().item()
            1.0
        """
        predictions, targets = _checked(predictions.detach(), targets, self.shift)
        scored = torch.ones_like(targets, dtype=torch.bool) if self.ignore_index is None else targets != self.ignore_index
        denominators = {"bytes": bytes, "characters": characters, "words": words}
        counts = {name: _count(value, name) for name, value in denominators.items() if value is not None}
        sums = {"nats_high": 0, "nats_low": 0, "events": 0, "zeros": 0}
        for nats in _event_nats(predictions, targets, scored, self.predictions):
            certain = nats[torch.isfinite(nats)]
            high, low = _limbs(certain, self._nats())
            sums["nats_high"] += high
            sums["nats_low"] += low
            sums["events"] += nats.numel()
            sums["zeros"] += nats.numel() - certain.numel()
        sums["nats_high"] += sums["nats_low"] >> _LOW_BITS
        sums["nats_low"] &= (1 << _LOW_BITS) - 1
        sums["updates"] = 1
        for name, count in counts.items():
            sums[name], sums[f"updates_with_{name}"] = count, 1
        for name, count in sums.items():
            setattr(self, name, getattr(self, name) + count)

    def compute(self) -> Any:
        """Return the figures of all that was added, in all processes.

        Returns:
            float64 scalar tensor of `figure`; or a dictionary of such: `perplexity`, `cross_entropy` (nats per event),
            `bits_per_token`, `events`, `zero_probability_events`; with zeros `perplexity_without_zeros`; with counts
            `bits_per_byte`, `bits_per_character`, `bits_per_word` and `word_perplexity`. Calling the metric gives the
            same for the batch alone, with NaN for the figures of a batch without events.

        Raises:
            InputError: there was no event.
            UsageError: counts of the source text came with some updates only, or `figure` needs counts and none came.
        """
        events, zeros = int(self.events), int(self.zeros)
        if not events and not self._is_batch_value:
            raise InputError("there is nothing to evaluate: no update had a target that is scored")
        counts = {name: self._count_of(name) for name in _DENOMINATORS if self._was_counted(name)}
        figures = _figures(math.inf if zeros else self._nats(), events, counts)
        if self.figure is not None:
            if self.figure not in figures:
                raise UsageError(f"{self.figure} needs counts of the source text: give bytes, characters or words to update")
            return self._tensor(figures[self.figure])
        figures |= {"events": events, "zero_probability_events": zeros}
        if 0 < zeros < events:
            figures["perplexity_without_zeros"] = _figures(self._nats(), events - zeros, {})["perplexity"]
        return {name: self._tensor(value) for name, value in figures.items()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and return the figures of that batch alone."""
        self._is_batch_value = True
        try:
            return super().forward(*args, **kwargs)
        finally:
            self._is_batch_value = False

    def set_dtype(self, dst_type: str | torch.dtype) -> PerplexityMetric:
        """Change nothing: states are whole numbers, figures are float64.

        Args:
            dst_type: any; 64 bits stay.

        Example:
            >>> PerplexityMetric().set_dtype(torch.float16).events.dtype
            torch.int64
        """
        return self

    def _nats(self) -> float:
        # Minus the sum of the finite log-probabilities, correctly rounded.
        whole = (self._count_of("nats_high") << _LOW_BITS) + self._count_of("nats_low")
        return whole / (1 << (_HIGH_BITS + _LOW_BITS))

    def _count_of(self, name: str) -> int:
        return int(cast(Tensor, getattr(self, name)))

    def _was_counted(self, name: str) -> bool:
        given, updates = self._count_of(f"updates_with_{name}"), int(self.updates)
        if given not in (0, updates):
            raise UsageError(f"{name} came with {given:,} of {updates:,} updates: give them with all, or with none")
        return self._count_of(name) > 0

    def _tensor(self, value: float) -> Tensor:
        dtype = _widest(self.device)
        return torch.tensor(value, dtype=dtype, device=self.device)


def _widest(device: torch.device) -> torch.dtype:
    # float64 where the device has it.
    return torch.float32 if device.type == "mps" else torch.float64


def _checked(predictions: Tensor, targets: Tensor, shift: bool) -> tuple[Tensor, Tensor]:
    if not predictions.is_floating_point() or predictions.dtype not in _LOOSEST_SUM:
        raise InputError(f"predictions are {predictions.dtype}: give float64, float32, float16 or bfloat16")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise InputError(f"targets are {targets.dtype}: give token ids as whole numbers")
    if predictions.ndim < 2 or predictions.shape[:-1] != targets.shape:
        shapes = f"{tuple(predictions.shape)} and {tuple(targets.shape)}"
        raise InputError(f"predictions and targets have shapes {shapes}: give [..., vocabulary] and [...]")
    if shift:
        predictions, targets = predictions[..., :-1, :], targets[..., 1:]
    if predictions.device != targets.device:
        raise InputError(f"predictions are on {predictions.device}, targets on {targets.device}: move one of them")
    return predictions, targets


def _count(value: int | Tensor, name: str) -> int:
    count = int(value.sum()) if isinstance(value, Tensor) else value
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InputError(f"{name} is {value!r}: give how many the source text has, a whole number from 0")
    return count


def _event_nats(predictions: Tensor, targets: Tensor, scored: Tensor, kind: Predictions) -> Iterator[Tensor]:
    # Minus the log-probability of each scored target, float64 [n] on the CPU, tile by tile.
    # Rows are picked by index and not by reshaping first: a shifted view of logits would be copied as a whole.
    vocabulary = predictions.shape[-1]
    where = scored.nonzero(as_tuple=True)
    wanted = targets[where].long()
    outside = (wanted < 0) | (wanted >= vocabulary)
    if bool(outside.any()):
        at = int(outside.nonzero()[0])
        raise InputError(
            f"target {_place(where, at)} is {int(wanted[at])}, outside the vocabulary of {vocabulary:,}: "
            "leave it out with ignore_index, or look for a tokenizer of another model"
        )
    step = max(1, _TILE_VALUES // vocabulary)
    for begin in range(0, len(wanted), step):
        tile = slice(begin, begin + step)
        rows = predictions[tuple(index[tile] for index in where)].to(_widest(predictions.device))
        logprob = rows.gather(1, wanted[tile, None])[:, 0]
        normalizer = rows.logsumexp(1)
        if kind == "logits":
            logprob = logprob - normalizer
            bad = ~torch.isfinite(normalizer)
        else:
            bad = ~(normalizer.exp().sub(1.0).abs() <= _LOOSEST_SUM[predictions.dtype])
            logprob = logprob.clamp(max=0.0)
        if bool(bad.any()):
            at = int(bad.nonzero()[0])
            _refuse(kind, _place(where, begin + at), rows[at])
        yield -logprob.double().cpu() if logprob.device.type != "mps" else -logprob.cpu().double()


def _place(where: tuple[Tensor, ...], at: int) -> str:
    return "[" + ", ".join(str(int(index[at])) for index in where) + "]"


def _refuse(kind: Predictions, place: str, row: Tensor) -> None:
    if bool(row.isnan().any()):
        nans = int(row.isnan().sum())
        raise InputError(f"predictions {place} have {nans:,} NaN among {row.numel():,} values: fix what made them")
    if kind == "logits":
        what = "a logit of +inf" if bool((row == math.inf).any()) else "no finite logit"
        raise InputError(f"predictions {place} have {what}, which is not a distribution: fix the program that made them")
    total = float(row.logsumexp(0).exp())
    raise InputError(
        f"predictions {place} sum to {total:g}, not to 1, as natural log-probabilities do: if they are logits, "
        'say predictions="logits"'
    )


def _limbs(nats: Tensor, before: float) -> tuple[int, int]:
    # Sum of values >= 0, float64 [n], in the two units; `before` is what has been added up already.
    if float(nats.sum()) + before >= _LARGEST_SUM:
        raise InputError("the log-probabilities sum to less than -3e10 nats: a mask value such as -1e9 must be -inf")
    scaled = nats * 2.0**_HIGH_BITS
    whole = scaled.floor()
    rest = ((scaled - whole) * 2.0**_LOW_BITS).round()
    return int(whole.long().sum()), int(rest.long().sum())


def _figures(nats: float, events: int, counts: dict[str, int]) -> dict[str, float]:
    # Figures of `nats` over `events`, NaN if there are none, and over what the source text counts.
    counts = counts | {"events": events}
    return {
        figure.name: nats_to_scale(nats / counts[figure.per], figure.scale) if counts[figure.per] else math.nan
        for figure in FIGURES
        if figure.per in counts
    }
