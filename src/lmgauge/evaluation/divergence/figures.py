"""The events at which two models were compared, and the figures of them: means over events, intervals over segments.

Sources: Kullback & Leibler (1951), "On information and sufficiency"; Lin (1991), "Divergence measures based on the Shannon
entropy". The change of the true token's probability, its quantiles and its root mean square are what llama.cpp prints.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.evaluation.divergence.divergence_result import Figure, TokenErrors, WorstToken
from lmgauge.evaluation.event_sums import EventSums
from lmgauge.numerics.intervals import ratio_interval
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats, perplexity_ratio_from_nats
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.reductions import Columns
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUANTILES = (0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0)
_SHOWN_CONTEXT = 12


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

    columns: Mapping[
        str, NDArray[Any]
    ]  # of `PairRows`, [n] or [n, k], and of the true token: `token`, `logprob_a`, `logprob_b`
    sizes: Ints  # int64 [segments], events of each
    numbers: Ints  # int64 [segments], number of each in the text
    documents: Ints | None  # int64 [segments], the document of each; None where documents are not known
    tallies: tuple[EventSums, EventSums]

    def __len__(self) -> int:
        return len(self.columns["token"])

    @cached_property
    def owner(self) -> Ints:
        """Return int64 [n], the place in `sizes` of the segment of each event."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def kl(self) -> Floats:
        """Return float64 [n], KL(base || candidate), nats; NaN where a model gives nothing a probability."""
        return self.columns["kl_ab"]

    @property
    def logprob(self) -> tuple[Floats, Floats]:
        """Return the log-probability of the true token, of base and candidate, float64 [n], nats."""
        return self.columns["logprob_a"], self.columns["logprob_b"]

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
    columns: dict[str, list[NDArray[Any]]] = defaultdict(list)
    documents: list[Ints] = []
    tallies = EventSums(), EventSums()
    for part in rows:
        for column, name in zip(("mass_a", "mass_b"), names, strict=True):
            if not np.isfinite(part.columns[column]).all():
                raise InputError(
                    f"{name}: log_distribution returned a value that is not a log-probability; see lmgauge audit"
                )
        watch(part)
        of_tokens: dict[str, NDArray[Any]] = {
            "token": part.b.token_ids,
            "logprob_a": part.a.logprob,
            "logprob_b": part.b.logprob,
        }
        for column, values in (of_tokens | dict(part.columns)).items():
            columns[column].append(values)
        for batch, tally in zip((part.a, part.b), tallies, strict=True):
            tally.add(replace(batch, extra={}))  # contexts and the like are of no use here
        if part.block.documents is not None:
            documents.append(part.block.documents[part.b.segments - part.block.first])
    if not tallies[1].total_events:
        raise InputError("there is nothing to compare: the text has no event; name a text that is not empty")
    sums = tallies[1].per_segment()
    return PairEvents(
        {name: np.concatenate(values) for name, values in columns.items()},
        sums.events,
        sums.segments if numbers is None else numbers[sums.segments],
        np.concatenate(documents) if documents else None,
        tallies,
    )


def figures_of(events: PairEvents, top_k: Sequence[int]) -> dict[str, Any]:
    """Return the figures of a `Divergence` by the names of its attributes."""
    kl_ab, kl_ba = mean(events, events.kl), mean(events, events.columns["kl_ba"])
    overlap = {k: np.where(np.isnan(events.kl), np.nan, events.columns[f"overlap_{k}"]) for k in {1, *top_k}}
    finite = events.kl[np.isfinite(events.kl)]
    perplexities = [perplexity(events, which) for which in (0, 1)]
    change, ratio = _change(events, *perplexities)
    p_change = events.p[1] - events.p[0]
    return {
        "kl_ab_nats": kl_ab,
        "kl_ab_bits": kl_ab.mapped(nats_to_bits),
        "kl_ba_nats": kl_ba,
        "kl_ba_bits": kl_ba.mapped(nats_to_bits),
        "kl_ab_without_infinite_nats": math.fsum(finite.tolist()) / len(finite) if len(finite) else None,
        "infinite_kl_ab": int(np.count_nonzero(events.kl == np.inf)),
        "infinite_kl_ba": int(np.count_nonzero(events.columns["kl_ba"] == np.inf)),
        "kl_ab_quantiles_nats": quantiles(events.kl),
        "jensen_shannon_bits": mean(events, events.columns["js"]).mapped(nats_to_bits),
        "total_variation": _share(events, events.columns["tv"]),
        "acceptance_rate": _share(events, 1 - events.columns["tv"]),
        "top_1_agreement": _share(events, overlap[1]),
        "top_k_overlap": {k: _share(events, overlap[k]) for k in sorted(set(top_k))},
        "log_probability_change_nats": change,
        "probability_change": mean(events, p_change),
        "probability_change_rms": mean(events, p_change**2).mapped(math.sqrt),
        "probability_change_quantiles": quantiles(p_change),
        "perplexity_a": perplexities[0],
        "perplexity_b": perplexities[1],
        "perplexity_ratio": ratio,
        "token_errors": token_errors(events),
        "zero_probability_a": events.tallies[0].total_zeros,
        "zero_probability_b": events.tallies[1].total_zeros,
        "undefined_events": int(np.count_nonzero(np.isnan(events.kl))),
        "missing_mass_a": _missing(events.columns["mass_a"]),
        "missing_mass_b": _missing(events.columns["mass_b"]),
    }


def mean(events: PairEvents, values: Floats) -> Figure:
    """Return the mean over events, and its interval; None where infinities cancel or nothing is left."""
    # values: float64 [n], a value an event; NaN is left out.
    used = ~np.isnan(values)
    values, owner = values[used], events.owner[used]
    if not len(values) or ((values == np.inf).any() and (values == -np.inf).any()):
        return Figure(None, None)
    size = len(events.sizes)
    sums, counts = np.bincount(owner, values, size), np.bincount(owner, minlength=size).astype(np.float64)
    total = math.fsum(values.tolist())
    return Figure(total / len(values), ratio_interval(sums, counts, events.documents, total=total))


def perplexity(events: PairEvents, which: int) -> Figure:
    """Return the perplexity of a model on the events that were compared."""
    tally = events.tallies[which]
    sums = tally.per_segment()
    nats = -math.inf if tally.total_zeros else tally.nats()
    interval = ratio_interval(-sums.nats, sums.events.astype(np.float64), events.documents, total=-nats)
    return Figure(-nats / tally.total_events, interval).mapped(perplexity_from_nats)


def quantiles(values: Floats) -> dict[str, float]:
    """Return quantiles by percent, interpolated linearly (method 7 of Hyndman & Fan 1996), as llama.cpp's are."""
    # values: float64 [n], one infinity allowed; NaN is left out.
    # quantiles([3.0, 1.0, 2.0])["25"] -> 1.5
    ordered = np.sort(values[~np.isnan(values)])
    by_percent: dict[str, float] = {}
    for percent in QUANTILES if len(ordered) else ():
        place = percent / 100 * (len(ordered) - 1)
        low, share = ordered[int(place)], place % 1
        # Not low + share * (high - low) as it is: between infinities there is no way.
        by_percent[f"{percent:g}"] = float(
            low if not share else low + share * (ordered[int(place) + 1] - low) if low < np.inf else low
        )
    return by_percent


def token_errors(events: PairEvents) -> TokenErrors | None:
    """Return the standard errors that llama.cpp prints: of n independent events, with n - 1 under the root."""
    # -> None for fewer than two events, or where a value is infinite or undefined.
    n = len(events)
    before, after = events.logprob
    if n < 2 or not all(np.isfinite(values).all() for values in (before, after, events.kl)):
        return None

    def error(values: Floats) -> float:
        return math.sqrt(float(values.var()) / (n - 1))

    errors = error(before), error(after)
    covariance = float(((before - before.mean()) * (after - after.mean())).mean()) / (n - 1)
    p_change = events.p[1] - events.p[0]
    same = float(np.mean(events.columns["overlap_1"]))
    return TokenErrors(
        log_perplexity_a=errors[0],
        log_perplexity_b=errors[1],
        correlation=covariance / (errors[0] * errors[1]) if errors[0] and errors[1] else 0.0,
        log_probability_change=error(after - before),
        kl_ab=error(events.kl),
        probability_change=error(p_change),
        squared_probability_change=error(p_change**2),
        top_1=math.sqrt(same * (1 - same) / (n - 1)),
    )


def _share(events: PairEvents, values: Floats) -> Figure:
    # Mean of values between 0 and 1, whose interval ends there too.
    return mean(events, values).mapped(lambda value: min(1.0, value))


def _change(events: PairEvents, perplexity_a: Figure, perplexity_b: Figure) -> tuple[Figure, Figure]:
    # Mean change of the true token's log-probability, nats, and the ratio of the perplexities.
    before, after = events.logprob
    impossible = (before == -np.inf) & (after == -np.inf)
    change = np.zeros(len(before))
    np.subtract(after, before, out=change, where=~impossible)
    rise = mean(events, -change).mapped(perplexity_ratio_from_nats)
    if perplexity_a.value == math.inf and perplexity_b.value == math.inf:
        rise = Figure(None, None)
    return mean(events, change), rise


def _missing(mass: Floats) -> float:
    # What probabilities lack of one, on average over the events where anything is possible.
    some = mass[mass > 0]
    return float(np.mean(1.0 - some)) if len(some) else 0.0


def worst_tokens(events: PairEvents, values: Floats, most: int, model: LanguageModel) -> tuple[WorstToken, ...]:
    """Return the events with the largest values above 0, largest first, each token in the same context once."""
    # values: float64 [n], by which events stand out; NaN is left out.
    ranked = np.where(np.isnan(values), 0.0, values)
    tokens: dict[tuple[str, str], WorstToken] = {}
    for row in np.argsort(-ranked, kind="stable").tolist():
        if len(tokens) == most or not ranked[row] > 0:
            break
        token = _worst(events, row, model)
        tokens.setdefault((token.context, token.token), token)
    return tuple(tokens.values())


def _worst(events: PairEvents, row: int, model: LanguageModel) -> WorstToken:
    vocabulary, tokenizer, place = model.vocabulary, model.tokenizer, int(events.owner[row])
    position = row - int(events.sizes[:place].sum())
    around = events.columns["token"][row - min(position, _SHOWN_CONTEXT) : row + 1].tolist()
    tokens = [vocabulary.token(i) for i in around]
    context, whole = tokenizer.detokenize(tokens[:-1]), tokenizer.detokenize(tokens)
    tops: list[str | float] = []
    for which in ("top_a", "top_b"):
        tops.append(vocabulary.token(int(events.columns[which][row])))
        tops.append(float(np.exp(events.columns[f"{which}_logprob"][row])))
    return WorstToken(
        int(events.numbers[place]),
        position,
        context,
        tokens[-1],
        whole.removeprefix(context) or tokens[-1],
        None if math.isnan(events.kl[row]) else float(events.kl[row]),
        float(events.p[0][row]),
        float(events.p[1][row]),
        *tops,  # type: ignore[arg-type]
    )
