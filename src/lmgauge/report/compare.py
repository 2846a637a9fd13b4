"""A comparison as people read it: what agrees, what may be compared, whether the difference is real, where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lmgauge.evaluation.comparison.comparability import EXACT, EXACT_PART, SHARED_EVENTS, WHOLE, Agreement
from lmgauge.evaluation.comparison.recipes import RecipeComparison
from lmgauge.evaluation.comparison.results import Comparison, Comparisons, Difference
from lmgauge.numerics.intervals import DOCUMENTS
from lmgauge.report.slices import Column, print_examples, print_slices, print_table
from lmgauge.report.terminal import console, number, p_value, readable, sign, signed

_YES_NO = {True: "yes", False: "NO", None: "?"}
_COLOURS = {True: "green", False: "red", None: "yellow"}
_NAMES = {
    "perplexity": "perplexity",
    "bits_per_byte": "bits per byte",
    "bits_per_character": "bits per character",
    "bits_per_word": "bits per word",
}


_ABOUT = (
    "This verdict covers these two models on similar texts. To compare the training recipes, use --recipe with several runs "
    "of each."
)


def print_comparisons(comparisons: Comparisons, *, details: bool) -> None:
    """Prints everything.

    Args:
        comparisons: what was found.
        details: also slices and examples.
    """
    out = console()
    _print_agreements(comparisons.runs, comparisons.agreements)
    for comparison in comparisons:
        out.print(readable(f"{comparison.second} compared with {comparison.first}"), style="bold")
        for line in _verdict_lines(comparison):
            out.print(readable(line))
        if comparison.differences:
            _print_differences(comparison)
        for line in _conclusion(comparison, len(comparisons)):
            out.print(readable(line))
        if comparison.independence:
            out.print(readable(f"95 % intervals and p-values: {comparison.independence}."), style="dim")
        if comparison.p_value_holm is not None:
            out.print(_ABOUT, style="dim")
        for note in comparison.notes:
            out.print(readable(note), style="dim")
        out.print()
        if details:
            _print_details(comparison)


def _print_agreements(names: Sequence[str], agreements: Sequence[Agreement]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what has to agree", style="bold", no_wrap=True)
    for name in names:
        table.add_column(Text(readable(name)), overflow="fold")
    table.add_column("agrees")
    for agreement in agreements:
        cells = (Text(readable(value)) for value in agreement.values)
        verdict, colour = _YES_NO[agreement.agrees], _COLOURS[agreement.agrees]
        if agreement.what == EXACT and not agreement.agrees:
            verdict, colour = "no", "yellow"  # stands in the way of some figures only
        table.add_row(agreement.what, *cells, Text(verdict, style=colour))
    console().print(table)


def _verdict_lines(comparison: Comparison) -> Iterator[str]:
    """One line for metrics with the same verdict and reasons."""
    told: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for verdict in comparison.verdicts:
        told.setdefault((verdict.comparable, verdict.reasons), []).append(_NAMES[verdict.metric])
    for (comparable, reasons), names in told.items():
        which = ", ".join(names)
        yield f"{which}: comparable" if comparable else f"{which}: NOT comparable: {'; '.join(reasons)}"
    nearest = next((verdict.nearest for verdict in comparison.verdicts if verdict.nearest), None)
    if nearest and not any(verdict.comparable for verdict in comparison.verdicts):
        yield f"nearest comparable figure: {nearest}"
    if comparison.part == EXACT_PART and comparison.bytes is not None and comparison.bytes_in_all:
        share = 100 * comparison.bytes / comparison.bytes_in_all
        yield f"compared below: {comparison.bytes:,} of {comparison.bytes_in_all:,} bytes ({share:.1f} %)"
    if comparison.part == SHARED_EVENTS:
        yield f"compared below: {comparison.events:,} events"


def _print_differences(comparison: Comparison) -> None:
    rows = [(_name(d, comparison), d) for d in comparison.differences]
    rows += [(f"{_name(d, comparison)}, without p = 0", d) for d in comparison.without_zeros]
    first, second, gap, between = zip(*(_cells(d, comparison.lower_bounds) for _, d in rows), strict=True)
    columns = [
        Column(readable(comparison.first), first),
        Column(readable(comparison.second), second),
        Column("difference", gap, 2),
        Column("95 % interval", between, 1),
    ]
    print_table("", [name for name, _ in rows], columns, heading="figure")


def _name(difference: Difference, comparison: Comparison) -> str:
    of_part = {WHOLE: "", EXACT_PART: " (exact part)", SHARED_EVENTS: " (shared events)"}
    return _NAMES[difference.metric] + of_part.get(comparison.part, "")


def _cells(difference: Difference, lower_bounds: tuple[bool, bool]) -> tuple[str, str, str, str]:
    if difference.metric == "perplexity":
        first, second = number(difference.first, 2), number(difference.second, 2)
        interval = difference.interval
        between = None if interval is None else (_percent(interval.low), _percent(interval.high))
        gap = _percent(difference.difference)
    else:
        first, second = (
            (sign("≥", ">=") + " " if bound and math.isfinite(value) else "") + number(value)
            for bound, value in zip(lower_bounds, (difference.first, difference.second), strict=True)
        )
        interval = difference.interval
        between = None if interval is None else (signed(interval.low), signed(interval.high))
        gap = signed(difference.difference)
    return first, second, gap, number(None) if between is None else f"{between[0]} .. {between[1]}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %" if ratio < 1e6 else number(ratio)


def _conclusion(comparison: Comparison, models: int) -> Iterator[str]:
    p = comparison.p_value_holm
    if not comparison.differences:
        yield "nothing of the two can be compared"
        return
    yield from comparison.doubts
    if p is None:
        return
    adjusted = f", adjusted for {models} models (Holm)" if models > 1 else ""
    told = f"p {p_value(p)}" if p < 0.0001 else f"p = {p_value(p)}"
    unit = comparison.unit if comparison.unit == DOCUMENTS else "segments"
    tested = f"{told}{adjusted}, {comparison.units:,} paired {unit}"
    if comparison.doubts:
        yield f"So there is no verdict ({tested}, if they are natural logs)."
        return
    lead = comparison.differences[0]
    where = {EXACT_PART: " on the part compared", SHARED_EVENTS: " on the shared events"}.get(comparison.part, "")
    if comparison.significant:
        better = comparison.second if lead.second < lead.first else comparison.first
        yield f"The difference{where} is real: {better} is better ({tested})."
        return
    yield f"The difference{where} is not significant ({tested})."
    needed = comparison.units_needed
    if needed is not None:
        yield (
            f"To find a difference of this size about {needed:,} such {unit} are needed, "
            f"{needed / max(1, comparison.units):,.1f} times this text (80 % power)."
        )


def print_recipes(comparisons: Sequence[RecipeComparison]) -> None:
    """Print recipes compared through several runs: the figures of each, the verdict, and where the variance comes from."""
    out = console()
    for found in comparisons:
        perplexity = found.metric == "perplexity"
        digits = 2 if perplexity else 4
        columns = [
            Column("runs", [f"{count}" for count in found.runs]),
            Column("mean", [number(value, digits) for value in found.figures]),
            Column("lowest", [number(min(values), digits) for values in found.values], 2),
            Column("highest", [number(max(values), digits) for values in found.values], 1),
        ]
        print_table(f"{_NAMES[found.metric]} by recipe", [found.first, found.second], columns, heading="recipe")
        shown = _percent if perplexity else signed
        low, high = shown(found.interval.low), shown(found.interval.high)
        out.print(f"difference {shown(found.difference)} (95 % interval {low} .. {high})")
        better = found.second if found.figures[1] < found.figures[0] else found.first
        p = p_value(found.p_value_holm)
        told = f"p {p}" if p.startswith("<") else f"p = {p}"
        told += f", adjusted for {len(comparisons)} recipes (Holm)" if len(comparisons) > 1 else ""
        verdict = f"is real: recipe {better} is better" if found.significant else "is not significant"
        out.print(readable(f"The difference of the recipes {verdict} ({told})."))
        share = 100 * found.seed_share
        out.print(f"Of the variance {share:.0f} % comes from the seeds, {100 - share:.0f} % from the text.", style="dim")
        out.print(readable(f"Error from the text: {found.independence}."), style="dim")
        out.print("The runs of a recipe are taken as independent.", style="dim")
        for note in found.notes:
            out.print(readable(note), style="dim")
        out.print()


def _print_details(comparison: Comparison) -> None:
    names = (comparison.first, comparison.second)
    for slices in comparison.slices:
        print_slices(slices, names)
    for title, examples in (
        (f"Tokens where {comparison.second} loses most", comparison.tokens_lost),
        (f"Tokens where {comparison.second} wins most", comparison.tokens_won),
        (f"Segments where {comparison.second} loses most", comparison.segments_lost),
        (f"Segments where {comparison.second} wins most", comparison.segments_won),
    ):
        print_examples(title, examples, names)
