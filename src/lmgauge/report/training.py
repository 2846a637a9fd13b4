"""The training of a network as charts: perplexity and learning rate, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmgauge.report import blocks as doc


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
