"""How models are mixed: token by token, with one speller around the mixture; and by which weights.

Models that cut text alike are mixed over their tokens. Where all of them are spelled by the same speller, what is mixed are
the models inside, over the union of their words, and the speller is put around the mixture: letters and white space cost the
same whatever the weights. The known words are then those of the union, and a component's `<unk>` is for words that no
component knows; so the weights are estimated on rows of the models inside, not on those of the spelled ones, which spell
words that another component knows.

Weights come from expectation maximization on held-out text. One step replaces each weight by the share of the events that
the component answers for:

    weight_k <- mean over events of weight_k p_k / sum_j weight_j p_j

The likelihood never falls, has no local maximum but the global one, and the distance to it is bounded at every step:
the mean log-likelihood can still grow by at most ln max_k (mean of p_k / sum_j weight_j p_j). Where components are much
alike, EM needs thousands of steps; so the step (of the logarithms) grows by half each time it pays, and falls back to that
of EM when it does not: the likelihood still never falls.

Where the likelihood is flat, rounding decides which step is the last, and weights would differ in the eighth digit from one
processor to another: a few steps of Newton's method, which look at slopes alone, end at the top itself.

Sources: Jelinek, F. & Mercer, R. L. (1980), "Interpolated estimation of Markov source parameters from sparse data";
Dempster, A. P., Laird, N. M. & Rubin, D. B. (1977), "Maximum likelihood from incomplete data via the EM algorithm", JRSS
B 39, 1-38; the bound: Cover, T. M. (1984), "An algorithm for maximizing expected log investment return", IEEE
Transactions on Information Theory 30, 369-373; the longer steps: Salakhutdinov, R. & Roweis, S. (2003), "Adaptive
overrelaxed bound optimization methods", ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.display import Displayable
from lmgauge.base.errors import InputError
from lmgauge.base.json_text import plain
from lmgauge.base.progress import say_progress
from lmgauge.models.combined.mixture.compatibility import agreeing, beside
from lmgauge.models.combined.mixture.model import MixtureModel, check_weights, mixed
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.protocol import LanguageModel
from lmgauge.numerics.exact import exact_sum
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.scores.scoring import score_together
from lmgauge.text.documents import Corpus

if TYPE_CHECKING:
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.segments import Segments


Mixture = MixtureModel | SpelledModel
"""What comes of it: a mixture, or one with a speller around it."""


def mixture_of(
    models: Sequence[LanguageModel],
    weights: Sequence[float] | None,
    held_out: Corpus | None,
    *,
    names: Sequence[str] | None = None,
    threads: int | None = None,
) -> Mixture:
    """Return the mixture with given weights, or the best ones for a held-out text, and what they are worth on it.

    >>> import lmgauge
    >>> text = lmgauge.Corpus.from_strings(["a b", "ab c"])
    >>> models = [lmgauge.train("witten-bell", text, order=n, vocabulary="spelled") for n in (1, 2)]
    >>> mixture_of(models, [0.25, 0.75], None).inner.weights
    (0.25, 0.75)
    """
    # weights: one a model, or None where there is a text; names: what to call the models in messages.
    first, estimation = models[0], None
    spelled = first if isinstance(first, SpelledModel) and all(_alike(first, other) for other in models[1:]) else None
    components = [model.inner for model in models] if spelled else models  # type: ignore[attr-defined]
    if held_out is not None:
        fit = find_weights(components, weights, held_out, threads=threads, progress=say_progress, names=names)
        weights, estimation = fit.weights, fit.to_dict()
    mixture = MixtureModel(components, weights or (), estimation=estimation, names=names)
    return mixture if spelled is None else SpelledModel(mixture, spelled.speller, spelled.separators)


def _alike(one: SpelledModel, other: LanguageModel) -> bool:
    return (
        isinstance(other, SpelledModel)
        and one.tokenizer.fingerprint == other.tokenizer.fingerprint
        and (one.speller and one.speller.fingerprint) == (other.speller and other.speller.fingerprint)
        and (one.separators and one.separators.to_dict()) == (other.separators and other.separators.to_dict())
    )


Progress = Callable[[str], None]
TOLERANCE = 1e-9
MAX_ITERATIONS = 1000
_ACCELERATION = 1.5
# Of the logarithm of a weight, in one step: beyond it a weight may vanish that is wanted later.
_LONGEST_STEP = 4.0
# Nats per event: as near the top as Newton's method needs.
_NEAR = 1e-6
_NEWTON_STEPS = 3
# Curvatures below this share of the largest are taken for none: components that are alike, which any weights suit.
_FLAT = 1e-10


@dataclass(frozen=True, repr=False)
class MixtureFit(Displayable):
    """Weights, and what they are worth on the held-out text."""

    # Perplexities count every event, `</s>` included.

    weights: tuple[float, ...]  # one a component, summing to one
    # of the mixture at the start and after each iteration, over the events that are not skipped; they never rise
    perplexities: tuple[float, ...]
    component_perplexities: tuple[float, ...]  # of each component alone, over all events; inf where one has probability zero
    component_zeros: tuple[int, ...]  # events to which each component gives probability zero
    iterations: int  # steps taken; 0 if the weights were given
    gap: float  # nats per event that the best possible weights could still gain, at most
    events: int  # of the held-out text, `</s>` included
    skipped: int
    partly_known: int = 0  # events whose word some but not all components know: those that do not give it probability zero
    # of each component, then of the mixture, over the other events; empty if there are none of them or all components know
    # the same words
    perplexities_where_known: tuple[float, ...] = ()
    held_out_sha256: str = ""
    measured: bool = False  # True if the weights were chosen by the user and only measured

    @property
    def perplexity(self) -> float:
        """Of the mixture on the held-out text; inf if an event has probability zero."""
        return math.inf if self.skipped else self.perplexities[-1]

    @property
    def perplexity_without_zeros(self) -> float:
        """Return the finite figure, over the events that are not skipped."""
        return self.perplexities[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; infinities, which JSON does not have, as the string "inf"; `measured` is called "given"."""
        content: dict[str, Any] = plain(asdict(self) | {"perplexity": self.perplexity})
        return {"given" if key == "measured" else key: value for key, value in content.items()}

    def _in_brief(self) -> str:
        weights = ", ".join(f"{weight:.4f}" for weight in self.weights)
        return f"weights {weights}: perplexity {self.perplexity:.4f} on {self.events:,} events, {self.iterations} iterations"


def find_weights(
    models: Sequence[LanguageModel],
    weights: Sequence[float] | None,
    held_out: Corpus,
    *,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    progress: Progress = lambda stage: None,
) -> MixtureFit:
    """Return the weights under which a held-out text is most probable, or what given ones are worth on it."""
    start = None if weights is None else check_weights(weights, len(models))
    logprob, partly = _log_probabilities(models, held_out, threads, names, progress)
    if start is None:
        progress("estimating weights")
    fit = fit_weights(logprob, start=start, max_iterations=MAX_ITERATIONS if start is None else 0)
    return replace(_where_known(fit, logprob, partly), held_out_sha256=held_out.report.sha256, measured=start is not None)


def fit_weights(
    logprob: NDArray[np.float64],
    *,
    start: Sequence[float] | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> MixtureFit:
    """Return weights by EM from the probabilities alone."""
    # logprob: float64 [components, events], nats; -inf allowed; start: float [components], the first weights; equal ones if
    # None.
    components, events = logprob.shape
    if not events:
        raise InputError("the held-out text has no events to estimate weights on; name a text that is not empty")
    weights = np.full(components, 1.0 / components) if start is None else np.array(start, np.float64)
    best = logprob[weights > 0].max(axis=0)
    possible = best > -np.inf
    if not possible.any():
        raise InputError("no model gives any held-out event a probability above zero; smooth one of them")
    shift = best if possible.all() else best[possible]
    with np.errstate(over="ignore"):  # a component of weight zero may be far above the others
        # Divided by the best component of the event, so that long products of small numbers are not needed: one of them is
        # 1.
        relative = np.exp((logprob if possible.all() else logprob[:, possible]) - shift)
    weights, history, gap = _climb(weights, relative, tolerance, max_iterations)
    if max_iterations and gap <= _NEAR:
        weights = _at_top(weights, relative)
    offset = exact_sum(shift) / len(shift)
    history = [mean + offset for mean in history]
    if np.count_nonzero(logprob.max(axis=0) > -np.inf) > len(shift):
        gap = math.inf  # weights of zero make events impossible that need not be
    zeros = tuple(int(np.count_nonzero(row == -np.inf)) for row in logprob)
    own = tuple(-math.inf if zero else exact_sum(row) / events for row, zero in zip(logprob, zeros, strict=True))
    fit = MixtureFit(
        weights=tuple(weights.tolist()),
        perplexities=tuple(perplexity_ratio_from_nats(-mean) for mean in history),
        component_perplexities=tuple(perplexity_ratio_from_nats(-mean) for mean in own),
        component_zeros=zeros,
        iterations=len(history) - 1,
        gap=gap,
        events=events,
        skipped=events - len(shift),
    )
    return fit if start is not None else _at_corner(fit, own, history[-1])


def _climb(
    weights: NDArray[np.float64], relative: NDArray[np.float64], tolerance: float, max_iterations: int
) -> tuple[NDArray[np.float64], list[float], float]:
    # EM from `weights`, with ever longer steps while they pay; a step that would lower the likelihood is taken back.
    # weights: float64 [components]; relative: float64 [components, events], probabilities over that of the best component
    # for the event; tolerance: nats per event to which the maximum is approached.
    # -> the weights, the mean log-likelihood at the start and after each step (nats, of `relative`), and what better
    # weights could still gain at most.
    mean, gains = _expectation(weights, relative)
    history, speed = [mean], 1.0
    while (gap := max(0.0, math.log(gains.max()))) > tolerance and len(history) <= max_iterations:
        with np.errstate(divide="ignore"):
            step = np.where(weights > 0, np.log(gains), 0.0)
            reach = float(np.abs(step[np.isfinite(step)]).max())
            speed = min(speed, max(1.0, _LONGEST_STEP / reach))
            # EM multiplies a weight by its gain; so its logarithm moves by ln gain, and `speed` times as far in a longer
            # step.
            moved = np.log(weights) + speed * step
        # weights [0.5, 0.5], gains [1.2, 0.8], speed 1 -> [0.6, 0.4]
        proposal = np.exp(moved - moved.max())
        proposal /= math.fsum(proposal)
        raised, following = _expectation(proposal, relative)
        if raised < mean:
            if speed == 1.0:  # a plain step never falls but by rounding: this is the top
                break
            speed = 1.0
            continue
        weights, mean, gains = proposal, raised, following
        history.append(mean)
        speed *= _ACCELERATION
    return weights, history, gap


def _at_top(weights: NDArray[np.float64], relative: NDArray[np.float64]) -> NDArray[np.float64]:
    # Weights after Newton's method over those above zero, whose sum stays one, as far as it ends inside.
    inside = weights > 0
    rows, best = relative[inside], weights[inside]
    size, slopes = len(rows), _expectation(best, rows)[1]
    for _ in range(_NEWTON_STEPS):
        mixture = np.zeros(rows.shape[1])
        for weight, row in zip(best, rows, strict=True):
            mixture += weight * row
        shares = rows / mixture
        # Slopes g_k = mean of p_k / p and curvatures -mean of p_k p_l / p^2; at the top all slopes are 1. The last row and
        # column (Lagrange's multiplier) keep the sum of the weights.
        system = np.ones((size + 1, size + 1))
        system[size, size] = 0.0
        for k, left in enumerate(shares):
            system[k, :size] = [float(np.mean(left * right)) for right in shares]
        step = np.linalg.lstsq(system, np.append(slopes, 0.0), rcond=_FLAT)[0][:size]
        moved = best + step
        if not (moved > 0).all():
            break
        moved /= math.fsum(moved)
        following = _expectation(moved, rows)[1]
        if following.max() > slopes.max():
            break
        best, slopes = moved, following
    settled = weights.copy()
    settled[inside] = best
    return settled


def _expectation(weights: NDArray[np.float64], relative: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    # Mean log-likelihood of the mixture, and for each component the mean of its probability over the mixture's.
    mixture = np.zeros(relative.shape[1])
    for weight, row in zip(weights, relative, strict=True):
        if weight:  # not `weights @ relative`: BLAS adds in an order that depends on the number of threads
            mixture += weight * row
    with np.errstate(over="ignore"):
        gains = np.array([float(np.mean(row / mixture)) for row in relative])
    return float(np.mean(np.log(mixture))), gains


def _at_corner(fit: MixtureFit, own: Sequence[float], mean: float) -> MixtureFit:
    # A component alone can be the best mixture, where EM comes ever nearer and never arrives.
    best = max(range(len(own)), key=lambda k: own[k])
    if own[best] <= mean:
        return fit
    weights = tuple(float(k == best) for k in range(len(own)))
    gap = max(0.0, fit.gap - (own[best] - mean))
    return replace(fit, weights=weights, perplexities=(*fit.perplexities, perplexity_ratio_from_nats(-own[best])), gap=gap)


def _log_probabilities(
    models: Sequence[LanguageModel], held_out: Corpus, threads: int | None, names: Sequence[str] | None, progress: Progress
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    # float64 [models, events], natural logs, and bool [events], True for words that some but not all know.
    parts, partly, done = [np.zeros((len(models), 0))], [np.zeros(0, bool)], 0
    agreed = agreeing(models, names)
    side_by_side = beside(agreed)

    def work(block: Segments, batches: list[ScoreBatch]) -> tuple[int, list[ScoreBatch], NDArray[np.bool_]]:
        _, merged = side_by_side(block, batches)
        unknown = [batch.token_ids != both.token_ids for batch, both in zip(batches, merged, strict=True)]
        return block.byte_count(), merged, np.any(unknown, axis=0)

    for size, batches, mask in score_together(agreed, held_out, work, threads=threads):
        parts.append(np.array([batch.logprob for batch in batches], np.float64))
        partly.append(mask)
        done += size
        progress(f"scored {done / 1e6:,.0f} MB")
    return np.concatenate(parts, axis=1), np.concatenate(partly)


def _where_known(fit: MixtureFit, logprob: NDArray[np.float64], partly: NDArray[np.bool_]) -> MixtureFit:
    # Fit with the figures over the events that all components know, if there are others.
    known = logprob[:, ~partly]
    if not partly.any() or not known.shape[1]:
        return replace(fit, partly_known=int(np.count_nonzero(partly)))
    with np.errstate(divide="ignore"):
        rows = [*known, mixed(list(known), np.log(fit.weights))]
    means = [-math.inf if (row == -np.inf).any() else exact_sum(row) / len(row) for row in rows]
    return replace(
        fit,
        partly_known=int(np.count_nonzero(partly)),
        perplexities_where_known=tuple(perplexity_ratio_from_nats(-mean) for mean in means),
    )
