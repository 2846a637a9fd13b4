"""What a training came to: its sizes, and the perplexity by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, number

if TYPE_CHECKING:
    from lmgauge.models.training.run import NeuralTraining

# What an epoch's entry of the history has, and what people call it.
_CURVES = {"perplexity": "training text", "valid_perplexity": "validation text"}


def blocks(training: NeuralTraining) -> doc.Document:
    """Return what was trained and on what, a row and a point of the curves for each epoch, and notes.

    Args:
        training: a run that has ended.
    """
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
    """Return a row for each epoch, and the curves of the perplexity.

    Args:
        history: for each epoch `epoch`, `perplexity`, `learning_rate` and, with a validation text, `valid_perplexity`.
    """
    known = {key: name for key, name in _CURVES.items() if any(key in epoch for epoch in history)}
    epochs = [epoch["epoch"] for epoch in history]
    columns = [doc.numbers("epoch", epochs, form="count")]
    columns += [doc.numbers(name, [epoch.get(key) for epoch in history], 2) for key, name in known.items()]
    columns.append(doc.Column("learning rate", [f"{epoch['learning_rate']:.4g}" for epoch in history], 1))
    return (doc.Table(tuple(columns), "perplexity by epoch"), *charts(history))


def charts(history: Sequence[Mapping[str, float]], name: str = "") -> Iterator[doc.ChartData]:
    """Yield the loss curves of a training run; nothing for fewer than two epochs.

    Args:
        history: per epoch `epoch`, `perplexity` (of the training text, with dropout), `learning_rate` and, with a validation
            text, `valid_perplexity`; others are ignored.
        name: of the model.

    >>> epochs = [{"epoch": i, "perplexity": 90.0 - i, "valid_perplexity": 95.0, "learning_rate": 0.1} for i in (1, 2)]
    >>> [chart.name for chart in charts(epochs)]
    ['training', 'learning-rate']
    """
    if len(history) < 2:
        return
    epochs = [entry.get("epoch", i) for i, entry in enumerate(history, 1)]
    of = f" of {name}" if name else ""
    kinds = (("training text", "perplexity"), ("validation text", "valid_perplexity"))
    curves = [doc.series(title, epochs, [entry.get(key) for entry in history]) for title, key in kinds]
    known = tuple(curve for curve in curves if any(value is not None for value in curve.y))
    if known:
        note = "of the training text with dropout, while the model still learns"
        title = f"Perplexity by epoch{of}"
        yield doc.ChartData("training", title, "epoch", "perplexity", "", known, better="lower", log_y=True, note=note)
    rates = doc.series("learning rate", epochs, [entry.get("learning_rate") for entry in history])
    if any(rates.y):
        yield doc.ChartData("learning-rate", f"Learning rate by epoch{of}", "epoch", "learning rate", "", (rates,))
