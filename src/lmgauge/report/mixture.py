"""A mixture's weights."""

from __future__ import annotations

from collections.abc import Sequence

from lmgauge.report import blocks as doc


def blocks(
    name: str, components: Sequence[tuple[str, float, float | None]], perplexity: float | None, notes: Sequence[str] = ()
) -> doc.Document:
    """Return a row for each component, then the mixture.

    Args:
        name: of the mixture.
        components: name, weight (0 to 1), and perplexity on the held-out text (None: there was none).
        perplexity: of the mixture on it.
        notes: how the weights were chosen.
    """
    rows = list(components) if perplexity is None else [*components, (name, sum(row[1] for row in components), perplexity)]
    names, weights, perplexities = zip(*rows, strict=True)
    columns = [doc.labels("model", names), doc.numbers("weight", weights, 4, "fixed")]
    if perplexity is not None:
        columns.append(doc.numbers("held-out perplexity", perplexities, 3))
    shares = doc.series("weight", names[: len(components)], weights[: len(components)])
    chart = doc.ChartData("weights", f"Weights of {name}", "model", "weight", "", (shares,), kind="bars")
    return (doc.Table(tuple(columns), bold=tuple(range(len(components), len(rows)))), chart, *doc.notes(notes))
