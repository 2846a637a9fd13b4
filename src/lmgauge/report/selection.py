"""Documents selected for being like a target: the answer, a row and a point for each share, and how the documents differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lmgauge.numerics.independence import FEW_UNITS
from lmgauge.report import blocks as doc
from lmgauge.report.formats import change, counted, in_words, number, p_equals, percent

if TYPE_CHECKING:
    from lmgauge.filtering.selection_results import MeasuredModel, Selection, SelectionCut

_LEVEL = 0.05


def blocks(selection: Selection) -> doc.Document:
    """Return the answer, the shares that were tried, the charts, what a reader must know, and the signature."""
    independence = [f"95 % intervals: {selection.independence}."] if selection.independence else []
    return (
        doc.Heading("Documents that are most like the target"),
        *_verdicts(selection),
        _totals(selection),
        *_tried(selection),
        *_charts(selection),
        *_examples(selection),
        *doc.notes((*independence, *_reading(selection), *selection.notes)),
        doc.Signature(selection.signature),
    )


def _verdicts(selection: Selection) -> Iterator[doc.Verdict]:
    chosen = selection.chosen
    of = f"{counted(chosen.documents, 'document')}, {percent(chosen.share)} of the pool's text"
    if chosen.selected is None:
        yield doc.Verdict("fact", f"Selected: {of}, which differ by at most {_bits(chosen)}.")
        return
    yield doc.Verdict(
        "fact",
        f"Selected: {of}. A model trained on {_it(chosen)} has a held-out perplexity of {_perplexity(chosen.selected)}"
        f"{_how(selection)}.",
    )
    if len(selection.cuts) > 1:
        yield from _worth(chosen)


def _it(cut: SelectionCut) -> str:
    return "them" if cut.documents != 1 else "it"


def _bits(cut: SelectionCut) -> str:
    return f"{in_words(doc.Number(cut.threshold, 4))} bits per token"


def _perplexity(model: MeasuredModel) -> str:
    ends = f" (95 % interval {in_words(doc.between(model.interval, 2))})" if model.interval is not None else ""
    return number(model.perplexity, 2) + ends


def _how(selection: Selection) -> str:
    chosen, best, alike = selection.chosen, selection.best, selection.smallest_alike
    if best is not None and chosen is not best:
        return f", which is surely no more than {percent(selection.tolerance)} above the lowest, at {percent(best.share)}"
    smaller = alike is not None and best is not None and alike.share < best.share and _tells(chosen)
    return ", the lowest" + (f"; {percent(alike.share)} is not significantly worse" if smaller and alike else "")


def _tells(cut: SelectionCut) -> bool:
    interval = None if cut.selected is None else cut.selected.interval
    return interval is not None and interval.units >= FEW_UNITS


def _worth(chosen: SelectionCut) -> Iterator[doc.Verdict]:
    # Say whether the selection helps: against as much text at random.
    random = chosen.random
    if random is None or random.ratio is None:
        yield doc.Verdict("unknown", "All of the pool is best: nothing is gained by leaving documents out.")
        return
    change_of = f"{change(random.ratio)} against as much text at random ({number(random.perplexity, 2)})"
    p = "" if random.p_value is None else f", {p_equals(random.p_value)}"
    if random.p_value is None or random.p_value >= _LEVEL:
        yield doc.Verdict("unknown", f"No sign that selecting helps: {change_of}{p}.")
    elif random.ratio < 1:
        yield doc.Verdict("good", f"Selecting helps: {change_of}{p}.")
    else:
        yield doc.Verdict("bad", f"Selecting harms: {change_of}{p}.")


def _totals(selection: Selection) -> doc.Lines:
    unseen = f", {percent(selection.oov_rate)} unseen words" if selection.oov_rate is not None else ""
    held_out = [("held out", f"{counted(selection.held_out_events, 'token')}{unseen}")]
    own = selection.in_domain_perplexity
    target = f"{counted(selection.in_domain_bytes, 'byte')}, {selection.vocabulary:,} words in the vocabulary of all models"
    if own is not None:
        target += f"; a model of this text alone: perplexity {number(own, 2)}"
    return doc.Lines(
        (
            ("pool", f"{counted(selection.documents, 'document')}, {counted(selection.bytes, 'byte')}"),
            ("in-domain text", target),
            *(held_out if selection.held_out_events else ()),
            *((("written", selection.outputs),) if selection.outputs else ()),
        )
    )


def _tried(selection: Selection) -> Iterator[doc.Table]:
    cuts = selection.cuts
    columns = [
        doc.numbers("share", [cut.share for cut in cuts], 2, "percent"),
        doc.numbers("documents", [cut.documents for cut in cuts], form="count", drop=4),
        doc.numbers("bytes", [cut.bytes for cut in cuts], form="count", drop=3),
        doc.numbers("difference ≤", [cut.threshold for cut in cuts], 4, drop=5, unit="bits per token"),
    ]
    if selection.held_out_events:
        selected, random = [cut.selected for cut in cuts], [cut.random for cut in cuts]
        columns += [
            doc.numbers("perplexity", _perplexities(selected), 2, "fixed"),
            doc.Column("95 % interval", [doc.between(model.interval if model else None, 2) for model in selected], 6),
            doc.numbers("to the best", _ratios(selected), 2, "change"),
            doc.numbers("p (Holm)", [cut.p_value_holm for cut in cuts], form="p", drop=1),
            doc.numbers("random", _perplexities(random), 2, "fixed"),
            doc.numbers("to random", _ratios(random), 2, "change", drop=2),
        ]
    footnotes = ("Random: a model trained on as many bytes of random documents.",) if selection.held_out_events else ()
    row = next(i for i, cut in enumerate(cuts) if cut is selection.chosen)
    yield doc.Table(tuple(columns), bold=(row,), footnotes=footnotes)


def _perplexities(models: Sequence[MeasuredModel | None]) -> list[float | None]:
    return [None if model is None else model.perplexity for model in models]


def _ratios(models: Sequence[MeasuredModel | None]) -> list[float | None]:
    return [None if model is None else model.ratio for model in models]


def _reading(selection: Selection) -> Iterator[str]:
    if selection.without_words:
        yield f"{counted(selection.without_words, 'document')} of the pool without a word: never selected"
    if selection.held_out_events:
        yield "all models know the same words, so their perplexities can be compared with each other, and with no others"


def _examples(selection: Selection) -> Iterator[doc.Block]:
    # Documents of the pool, by where they stand in the order.
    if not selection.examples:
        return
    yield doc.Heading("Documents of the pool, by their difference")
    parts = []
    for where, examples in selection.examples.items():
        items = tuple((f"{one.place}, {one.difference:.2f} bits", " ".join(one.text.split())) for one in examples)
        parts.append(doc.Quotes(where, items))
    yield doc.Gallery(tuple(parts))


def _charts(selection: Selection) -> Iterator[doc.ChartData]:
    cuts = [cut for cut in selection.cuts if cut.selected is not None]
    if len(cuts) > 1:
        shares: list[float | str] = [100 * cut.share for cut in cuts]
        selected = [cut.selected for cut in cuts]
        # All of the pool is the end of both lines.
        random = [cut.random or cut.selected for cut in cuts]
        lines = tuple(
            doc.series(
                name,
                shares,
                _perplexities(models),
                [model.interval if model else None for model in models],
            )
            for name, models in (("selected", selected), ("random", random))
        )
        yield doc.ChartData(
            "shares", "Held-out perplexity by share of the pool", "share of the pool", "perplexity", "", lines, x_unit="%",
            better="lower", log_x=True, note="bands are of each model alone; the tests, which are paired, are surer",
        )  # fmt: skip
    histogram = selection.histogram
    if histogram is not None:
        counts = (*histogram.counts, None)
        bins = doc.Series("documents", histogram.edges, counts)
        yield doc.ChartData(
            "differences", "How the documents of the pool differ from the target", "difference", "documents", "", (bins,),
            x_unit="bits per token", kind="histogram", note=f"selected are those up to {_bits(selection.chosen)}",
        )  # fmt: skip
