"""What a training came to: its sizes, and the perplexity by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, number

if TYPE_CHECKING:
    from lmgauge.models.training.run import NeuralTraining

# What an epoch's entry of the history has, and what people call it.
_CURVES = {"perplexity": "training text", "valid_perplexity": "validation text"}


def blocks(training: NeuralTraining) -> doc.Document:
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
    return (doc.Table(tuple(columns), "perplexity by epoch"), *charts(history))


def charts(history: Sequence[Mapping[str, float]]) -> doc.Document:
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
