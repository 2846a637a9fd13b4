"""What models are made of and what came of making them: training, pruning, mixtures, and models that spell unseen words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.evaluation.diagnosis.costs import ENDS, KNOWN, LETTERS, SPACE, UNSEEN
from lmgauge.report import blocks as doc
from lmgauge.report.formats import change, counted, number, percent

if TYPE_CHECKING:
    from lmgauge.evaluation.diagnosis.results import Diagnosis
    from lmgauge.models.combined.mixture.mixing import Mixture, MixtureFit
    from lmgauge.models.combined.mixture.static import StaticMixture
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.models.ngram.count_files import NgramCounts
    from lmgauge.models.ngram.pruning import PrunedModel
    from lmgauge.models.training.run import NeuralTraining

# -- training -----------------------------------------------------------------------------------------------------------
# What an epoch's entry of the history has, and what people call it.
_CURVES = {"perplexity": "training text", "valid_perplexity": "validation text"}


def training_blocks(training: NeuralTraining) -> doc.Document:
    """Return what was trained and on what, a row and a point of the curves for each epoch, and notes."""
    best = () if training.valid_perplexity is None else (("validation perplexity", number(training.valid_perplexity, 2)),)
    lines = doc.Lines(
        (
            ("model", str(training.path)),
            ("kind", f"{training.settings.kind}, {training.settings.preset}"),
            ("parameters", f"{training.parameters:,}"),
            ("vocabulary", counted(training.vocabulary_size, "token")),
            ("trained on", f"{counted(training.events, 'event')} in {counted(training.epochs, 'epoch')}"),
            ("seconds", number(training.seconds, 1)),
            *best,
        )
    )
    return (lines, *history_blocks(training.history), *doc.notes(training.notes))


def history_blocks(history: Sequence[Mapping[str, float]]) -> doc.Document:
    """Return a row for each epoch, and the curves of the perplexity."""
    known = {key: name for key, name in _CURVES.items() if any(key in epoch for epoch in history)}
    epochs = [epoch["epoch"] for epoch in history]
    columns = [doc.numbers("epoch", epochs, form="count")]
    columns += [doc.numbers(name, [epoch.get(key) for epoch in history], 2) for key, name in known.items()]
    columns.append(doc.Column("learning rate", [f"{epoch['learning_rate']:.4g}" for epoch in history], 1))
    return (doc.Table(tuple(columns), "perplexity by epoch"), *training_charts(history))


def training_charts(history: Sequence[Mapping[str, float]]) -> doc.Document:
    """Return the curves of the perplexity and of the learning rate; nothing for fewer than two epochs."""
    if len(history) < 2:
        return ()
    epochs = [epoch["epoch"] for epoch in history]
    known = {key: name for key, name in _CURVES.items() if any(key in epoch for epoch in history)}
    series = tuple(doc.series(name, epochs, [epoch.get(key) for epoch in history]) for key, name in known.items())
    rates = doc.series("learning rate", epochs, [epoch.get("learning_rate") for epoch in history])
    note = "the training text is measured with dropout, while the model changes"
    loss = doc.ChartData(
        "loss", "Perplexity by epoch", "epoch", "perplexity", "", series, better="lower", log_y=True, note=note
    )
    return (loss, doc.ChartData("learning-rate", "Learning rate by epoch", "epoch", "learning rate", "", (rates,)))


# -- counts and pruning ---------------------------------------------------------------------------------------------
def count_blocks(counts: NgramCounts) -> doc.Document:
    """Return how many n-grams of each order were counted."""
    orders = range(1, len(counts.ngrams) + 1)
    columns = doc.labels("order", [*map(str, orders)]), doc.numbers("n-grams", counts.ngrams, form="count")
    said = f"{counts.output}: {counted(counts.events, 'event')} in {counted(counts.segments, 'segment')}"
    return (doc.Table(columns), doc.Text(said), *doc.notes(counts.notes))


def pruned_blocks(pruned: PrunedModel, *, name: str = "") -> doc.Document:
    """Return a row for each order and one for all, and what the pruning costs."""
    before, after = ([*counts, sum(counts)] for counts in (pruned.ngrams_before, pruned.ngrams))
    columns = (
        doc.labels("order", [*(str(order) for order in range(1, len(before))), "all"]),
        doc.numbers("n-grams before", before, form="count"),
        doc.numbers("after", after, form="count"),
        doc.numbers("share", [b / a for a, b in zip(before, after, strict=True)], 2, "percent"),
    )
    how = pruned.note if pruned.threshold is None else f"pruned at threshold {pruned.threshold:.4g}"
    said = [f"{name or pruned.model.label}: {how}"]
    return (doc.Table(columns, bold=(len(before) - 1,)), *map(doc.Text, [*said, *_measured(pruned)]))


def _measured(pruned: PrunedModel) -> list[str]:
    if pruned.perplexity is None or pruned.perplexity_before is None:
        return []
    return [lost(pruned.perplexity_before, pruned.perplexity, pruned.events, ("before", "after"))]


def lost(before: float, after: float, events: int, names: tuple[str, str]) -> str:
    """Return what a smaller or simpler model costs, in a sentence."""
    # after: its own.
    return (
        f"perplexity on {events:,} events: {names[0]} {number(before, 3)}, {names[1]} {number(after, 3)} "
        f"({change(after / before)})"
    )


# -- mixtures -----------------------------------------------------------------------------------------------------------
_SPELLED = "the models have one speller, which is put around their mixture: perplexities are without spelled letters"


def mixture_blocks(mixture: Mixture, *, name: str = "", paths: Sequence[str] = ()) -> doc.Document:
    """Return a row for each component, then the mixture, and how its weights were chosen."""
    names = list(paths or [component.label for component in mixture.components])
    notes = [_SPELLED] if mixture.is_spelled else []
    return (*_weights(name or mixture.label, names, mixture.weights, mixture.estimation), *doc.notes(notes))


def static_blocks(merged: StaticMixture, *, name: str = "", paths: Sequence[str] = ()) -> doc.Document:
    """Return the rows of the mixture, then the n-grams of the static one and the perplexity lost."""
    said = [f"{name or merged.model.label}: n-grams of order 1, 2, ...: {', '.join(f'{n:,}' for n in merged.ngrams)}"]
    if merged.perplexity is not None and merged.perplexity_of_mixture is not None:
        said.append(lost(merged.perplexity_of_mixture, merged.perplexity, merged.events, ("of the mixture", "static")))
    return (*mixture_blocks(merged.mixture, paths=paths), *map(doc.Text, said))


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
    return (doc.Table(columns, bold=(len(names),)), chart, *doc.notes(_fit_notes(fit)))


def _fit_notes(fit: Mapping[str, Any]) -> list[str]:
    how = "weights given" if fit["given"] else f"weights by EM in {fit['iterations']} iterations"
    gap = float(fit["gap"])
    gain = number(gap) if gap else "0"
    notes = [f"{how}; {fit['events']:,} held-out events; other weights could gain at most {gain} nats per event"]
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


# -- spelling -----------------------------------------------------------------------------------------------------------


def spelling_blocks(diagnosis: Diagnosis) -> Iterator[doc.Block]:
    """Yield where the bits go, of a model that spells unseen words; nothing of any other."""
    costs = diagnosis.spelling
    if costs is None:
        return
    result = diagnosis.evaluation
    one = result.unit if result.unit in ("word", "character") else "token"
    names = {
        KNOWN: f"known {one}s",
        UNSEEN: f"unseen {one}s: the event <unk>",
        LETTERS: f"unseen {one}s: their letters" if one == "word" else f"unseen {one}s: which it is",
        SPACE: "white space between words",
        ENDS: "line ends",
    }
    labels = [names[part.part] for part in costs.parts]
    bits = [part.bits for part in costs.parts]
    columns = [
        doc.labels("", labels),
        *doc.columns(costs.parts, "events", "bits", "share"),
        doc.Column("", [doc.Bar(max(0.0, part.share)) for part in costs.parts], drop=1, align="left"),
        doc.numbers("bits each", [part.bits / part.events for part in costs.parts], 3, "fixed"),
    ]
    if result.bytes:
        columns.append(doc.numbers("bits/byte", [total / result.bytes for total in bits], 4, "fixed"))
    yield doc.Table(tuple(columns), "where the bits go: known and unseen words, letters, white space, line ends")
    series = doc.series("share of bits", labels, [round(100 * part.share, 2) for part in costs.parts])
    yield doc.ChartData("spelling", "Where the bits go", "part", "share of bits", "%", (series,), kind="bars")


def learned(content: Mapping[str, Any]) -> list[str]:
    """Return what a speller learned from, and what white space costs."""
    if not content:
        return ["unseen characters share what is left of Unicode; there is nothing to learn"]
    speller, separators = content["speller"], content["separators"]
    single = separators["single_space"]
    return [
        f"spelling: learned from {speller['words']:,} words of {speller['alphabet']:,} different characters, order "
        f"{speller['order']}; {percent(speller['known_mass'])} of its probability is on known words, never spelled",
        f"white space: {separators['seen']:,} places, {percent(single)} a single space; {separators['bits']:.4f} bits each",
    ]


def model_blocks(model: SpelledModel) -> doc.Document:
    """Return what a model is made of: the model inside, and what its speller learned."""
    known = f"{model.known_count:,}, predicted by {model.inner.label}"
    lines = (("model", model.label), (f"known {model.tokenizer.unit}s", known))
    return (doc.Lines(lines), *map(doc.Text, learned(model.learned())))
