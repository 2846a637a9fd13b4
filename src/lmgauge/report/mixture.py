"""A mixture's weights, and what they are worth on held-out text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.report import blocks as doc
from lmgauge.report.formats import number, percent
from lmgauge.report.pruning import lost

if TYPE_CHECKING:
    from lmgauge.models.mixture.mixing import Mixture, MixtureFit
    from lmgauge.models.mixture.static import StaticMixture


_EVENTS = {
    "bytes": "the models cut text differently and are mixed byte by byte: perplexities are those of bytes",
    "spelled": "the models have one speller, which is put around their mixture: perplexities are without spelled letters",
}


def blocks(mixture: Mixture, *, name: str = "", paths: Sequence[str] = ()) -> doc.Document:
    """Return a row for each component, then the mixture, and how its weights were chosen."""
    names = list(paths or [component.label for component in mixture.components])
    is_spelled = mixture.is_spelled
    notes = [_EVENTS[how] for how, holds in (("bytes", mixture.read_as == "bytes"), ("spelled", is_spelled)) if holds]
    return (*_weights(name or mixture.label, names, mixture.weights, mixture.estimation), *doc.notes(notes))


def static_blocks(merged: StaticMixture, *, name: str = "", paths: Sequence[str] = ()) -> doc.Document:
    """Return the rows of the mixture, then the n-grams of the static one and the perplexity lost."""
    notes = [f"{name or merged.model.label}: n-grams of order 1, 2, ...: {', '.join(f'{n:,}' for n in merged.ngrams)}"]
    if merged.perplexity is not None and merged.perplexity_of_mixture is not None:
        notes.append(lost(merged.perplexity_of_mixture, merged.perplexity, merged.events, ("of the mixture", "static")))
    return (*blocks(merged.mixture, paths=paths), *doc.notes(notes))


def fit_blocks(fit: MixtureFit) -> doc.Document:
    """Return a row for each component, which have no names here, then the mixture."""
    names = [f"component {i}" for i in range(1, len(fit.weights) + 1)]
    return _weights("mixture", names, fit.weights, fit.to_dict())


def _weights(name: str, names: Sequence[str], weights: Sequence[float], fit: Mapping[str, Any]) -> doc.Document:
    # Table; `fit` is `MixtureFit.to_dict()`, with infinities as the string "inf", and empty without a text.
    shares = doc.series("weight", names, weights)
    chart = doc.ChartData("weights", f"Weights of {name}", "model", "weight", "", (shares,), kind="bars")
    if not fit:
        return (doc.Table((doc.labels("model", names), doc.numbers("weight", weights, 4, "fixed"))), chart)
    perplexities = [*map(float, fit["component_perplexities"]), float(fit["perplexity"])]
    columns: tuple[doc.Column, ...] = (
        doc.labels("model", [*names, name]),
        doc.numbers("weight", [*weights, sum(weights)], 4, "fixed"),
        doc.numbers("held-out perplexity", perplexities, 3),
    )
    known = [float(value) for value in fit.get("perplexities_where_known", ())]
    if known:
        columns = (*columns, doc.numbers("where all know the word", known, 3))
    return (doc.Table(columns, bold=(len(names),)), chart, *doc.notes(_notes(fit)))


def _notes(fit: Mapping[str, Any]) -> list[str]:
    how = "weights given" if fit["given"] else f"weights by EM in {fit['iterations']} iterations"
    gap = float(fit["gap"])
    gain = number(gap) if gap else "0"
    notes = [f"{how}; {fit['events']:,} held-out events; other weights could gain at most {gain} nats an event"]
    some = fit.get("partly_known", 0)
    if some:
        notes.append(
            f"{some:,} held-out events ({percent(some / fit['events'])}) are words that only some of the models know: the "
            "others give them probability zero, and their <unk> is for words that no model knows"
        )
    if fit["skipped"]:
        without = number(float(fit["perplexities"][-1]), 3)
        notes.append(f"{fit['skipped']:,} held-out events are impossible to this mixture; perplexity without them {without}")
    return notes
