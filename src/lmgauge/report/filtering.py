"""What became of documents that were filtered, scored or selected: how many stay, why others do not; and percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lmgauge.filtering.options import PERCENTS
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.signature import Signature
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, number, percent, share_of

if TYPE_CHECKING:
    from lmgauge.filtering.percentiles import Percentiles
    from lmgauge.filtering.results import Bins, Example, FilteredDocuments, GroupTally
    from lmgauge.filtering.selection import Selection

_MOST_ROWS = 40
_MOST_CHARTS = 4
_MOST_COLUMNS = 3
_MOST_FIGURES = 4
_LONGEST_PLACE = 160
_NO_GROUP = "(no group)"
_STAYS = "stays"
_ALL, _WHAT_STAYS = "all documents", "what stays"


def blocks(result: FilteredDocuments) -> doc.Document:
    """Return how many documents and bytes stay, what was dropped and why, the perplexities, the groups, and examples."""
    return (
        _verdict(result),
        doc.Lines(tuple(_headline(result))),
        *_outcomes(result),
        *_problems(result),
        *_perplexities(result),
        *_groups(result),
        *_examples(result),
        *doc.notes(_notes(result)),
        *doc.signatures(list(result.signatures.values())[:_MOST_ROWS]),
    )


def _is_filter(result: FilteredDocuments) -> bool:
    return bool(result.rules or result.reasons or result.buckets)


def _verdict(result: FilteredDocuments) -> doc.Verdict:
    if not result.documents:
        text = "No document could be scored."
    elif not _is_filter(result):
        text = f"{_all_documents(result)} scored, of {counted(result.bytes, 'byte')}."
    else:
        shares = [share_of(result.stay_documents, result.documents), share_of(result.stay_bytes, result.bytes)]
        documents = f"{result.stay_documents:,} of {counted(result.documents, 'document')} stay ({shares[0]})"
        text = f"{documents}, with {result.stay_bytes:,} of all {counted(result.bytes, 'byte')} ({shares[1]})."
    return doc.Verdict("fact", text)


def _all_documents(result: FilteredDocuments) -> str:
    return "1 document was" if result.documents == 1 else f"{result.documents:,} documents were"


def _headline(result: FilteredDocuments) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    yield "written to", result.output
    before = f", {result.files_before:,} of them complete before" if result.files_before else ""
    yield "files", f"{result.files:,}{before}"
    bad = sum(result.problems.values())
    unused = f", {bad:,} of them could not be used" if bad else ""
    yield "records", f"{result.records:,}{unused}"
    if result.rules:
        yield "what stays", result.rules
    if len(result.groups) > 1 and result.group_field is not None:
        yield "groups", f"{len(result.groups):,}, by {result.group_field}"


def _outcomes(result: FilteredDocuments) -> Iterator[doc.Table]:
    if not _is_filter(result) or not result.documents:
        return
    rows = {_STAYS: result.stay_documents, **result.reasons}
    yield _counts("what happened to the documents", "outcome", rows, result.documents)
    yield _counts("buckets of the documents kept", "bucket", dict(result.buckets), result.stay_documents, bold=())


def _counts(title: str, what: str, rows: dict[str, int], whole: int, bold: tuple[int, ...] = (0,)) -> doc.Table:
    shares = [count / whole if whole else 0.0 for count in rows.values()]
    columns = (
        doc.labels(what, list(rows)),
        doc.numbers("documents", list(rows.values()), form="count"),
        doc.numbers("share", shares, 2, "percent"),
        doc.Column("", [doc.Bar(share) for share in shares], 1, align="left"),
    )
    return doc.Table(columns, title, bold)


def _problems(result: FilteredDocuments) -> Iterator[doc.Table]:
    names = list(result.problems)[:_MOST_ROWS]
    firsts = [_shortened(result.first_problems.get(name, "")) for name in names]
    columns = (
        doc.labels("what is wrong", names, wraps=True),
        doc.numbers("records", [result.problems[name] for name in names], form="count"),
        doc.labels("the first", firsts, wraps=True),
    )
    yield doc.Table(columns, "records that could not be used", footnotes=_more(len(result.problems)))


def _perplexities(result: FilteredDocuments) -> Iterator[doc.Block]:
    if not result.documents:
        return
    yield doc.Heading("Perplexity")
    names = list(result.models)[:_MOST_ROWS]
    parts = [(False, _ALL), (True, _WHAT_STAYS)] if _is_filter(result) else [(False, "")]
    rows = [(name, stay, part) for name in names for stay, part in parts]
    totals = [(result.stay_totals if stay else result.totals)[name] for name, stay, _ in rows]
    bounds = [one.unseen > 0 and not _spells(result, name) for one, (name, *_) in zip(totals, rows, strict=True)]
    medians = [(result.stays if stay else result.scored).median(name) for name, stay, _ in rows]
    by_model = [doc.labels("model", [name for name, *_ in rows])] if len(result.models) > 1 else []
    by_part = [doc.labels("", [part for *_, part in rows])] if len(parts) > 1 else []
    columns = (
        *by_model,
        *by_part,
        doc.numbers("documents", [one.documents for one in totals], form="count", drop=3),
        doc.numbers("tokens", [one.tokens for one in totals], form="count", drop=2),
        doc.numbers("unseen words", [one.unseen_share for one in totals], 2, "percent", drop=1),
        doc.numbers(
            "bits/byte", [marked(one.bits_per_byte, bound=bound) for one, bound in zip(totals, bounds, strict=True)]
        ),
        *(() if result.by else (doc.numbers("perplexity", [one.perplexity for one in totals], 2),)),
        *(() if result.by else (doc.Column("median document", [_bin(median) for median in medians]),)),
    )
    yield doc.Table(columns, footnotes=_more(len(result.models)))
    if result.by:
        yield from doc.notes([f"each {result.by} has its own model: perplexities are not on one scale, bits per byte are"])
        return
    for name in names[:_MOST_CHARTS]:
        yield from _histogram(result, name)


def _bin(ends: tuple[float, float] | None) -> doc.Cell:
    if ends is None or math.isinf(ends[0]):
        return doc.Number(None if ends is None else ends[0])
    return doc.Range(*ends, 1 if ends[1] < 1000 else 0)


def _histogram(result: FilteredDocuments, model: str) -> Iterator[doc.ChartData]:
    # How many documents have which perplexity, before and after.
    extent = result.scored.extent(model)
    if extent is None:
        return
    scored = result.scored.bins(model, extent=extent)
    drawn = [(_ALL if _is_filter(result) or len(result.models) == 1 else model, scored)]
    if _is_filter(result):
        drawn.append((_WHAT_STAYS, result.stays.bins(model, extent=extent)))
    several = f" to {model}" if len(result.models) > 1 else ""
    series = tuple(doc.Series(name, bins.edges, (*map(float, bins.counts), None)) for name, bins in drawn)
    title, note = f"Documents by perplexity{several}", _not_drawn(scored)
    yield doc.ChartData("perplexity", title, "perplexity", "documents", "", series, kind="histogram", log_x=True, note=note)


def _not_drawn(bins: Bins) -> str:
    infinite = f"{counted(bins.infinite, 'document')} with an impossible event" if bins.infinite else ""
    unscored = f"{counted(bins.unscored, 'document')} with nothing to score" if bins.unscored else ""
    parts = [part for part in (infinite, unscored) if part]
    return f"Not drawn: {' and '.join(parts)}" if parts else ""


def _groups(result: FilteredDocuments) -> Iterator[doc.Block]:
    if len(result.groups) < 2:
        return
    yield doc.Heading("Groups")
    groups = sorted(result.groups, key=lambda group: (-group.bytes, group.name))[:_MOST_ROWS]
    names = [group.name or _NO_GROUP for group in groups]
    shares = [group.stay_documents / group.documents if group.documents else 0.0 for group in groups]
    columns = [
        doc.labels(result.group_field or "group", names, wraps=True),
        doc.numbers("documents", [group.documents for group in groups], form="count"),
    ]
    if _is_filter(result):
        sizes = [group.stay_bytes / group.bytes if group.bytes else 0.0 for group in groups]
        columns += [
            doc.numbers("stay", [group.stay_documents for group in groups], form="count", drop=2),
            doc.numbers("share", shares, 2, "percent"),
            doc.numbers("bytes", [group.bytes for group in groups], form="count", drop=3),
            doc.numbers("share of bytes", sizes, 2, "percent"),
        ]
    else:
        columns.append(doc.numbers("bytes", [group.bytes for group in groups], form="count"))
    columns += _group_perplexities(result, groups)
    yield doc.Table(tuple(columns), footnotes=_more(len(result.groups), "with fewer bytes"))
    if _is_filter(result):
        stay = (doc.series("stay", names, [100 * share for share in shares]),)
        title = "Documents that stay, by group"
        yield doc.ChartData("groups", title, "group", "share that stays", "%", stay, kind="bars")


def _group_perplexities(result: FilteredDocuments, groups: Sequence[GroupTally]) -> Iterator[doc.Column]:
    known = set(result.scored.names)
    for model in list(result.models)[:_MOST_COLUMNS]:
        to = f" to {model}" if len(result.models) > 1 else ""
        medians = [result.scored.median(model, group.name) if group.name in known else None for group in groups]
        yield doc.Column(f"median perplexity{to}", [_bin(median) for median in medians], 1)


def _examples(result: FilteredDocuments) -> Iterator[doc.Block]:
    if not result.examples:
        return
    yield doc.Heading("Examples, drawn at random")
    title = _STAYS if _is_filter(result) else "scored"
    parts = []
    for reason, examples in result.examples.items():
        with_text_first = sorted(examples, key=lambda example: not example.text.strip())
        items = tuple((_about(example), " ".join(example.text.split()) or "(empty)") for example in with_text_first)
        parts.append(doc.Quotes(title if reason == _STAYS else reason, items))
    yield doc.Gallery(tuple(parts))


def _about(example: Example) -> str:
    several = len(example.perplexity) > 1
    figures = [
        f"perplexity {number(value, 1)}{f' to {name}' if several else ''}" for name, value in example.perplexity.items()
    ]
    more = [f"{len(figures) - _MOST_FIGURES:,} more"] if len(figures) > _MOST_FIGURES else []
    return ", ".join([_shortened(example.place), *figures[:_MOST_FIGURES], *more])


def _shortened(text: str) -> str:
    # Text with a sign in its middle where it is long: its ends tell the most.
    half = _LONGEST_PLACE // 2
    return text if len(text) <= _LONGEST_PLACE else f"{text[:half]}…{text[-half:]}"


def _notes(result: FilteredDocuments) -> Iterator[str]:
    if result.stand_in:
        one = result.stand_in == 1
        yield (
            f"{counted(result.stand_in, 'document')} {'was' if one else 'were'} judged by the percentiles of all documents, "
            f"as {'its' if one else 'their'} group has none of its own."
        )
    if result.stay_empty and _is_filter(result):
        yield f"What stays includes {counted(result.stay_empty, 'empty document')}; --min-bytes 1 drops empty ones."
    impossible = sum(sums.impossible for sums in result.totals.values())
    if impossible:
        yield f"{counted(impossible, 'token')} had the probability 0: the perplexity of a document with one is infinite."
    if any(sums.unseen and not _spells(result, name) for name, sums in result.totals.items()):
        yield "≥ is a lower bound: unseen words share one token, <unk>, which is easier to predict than the words."
    if result.documents:
        yield (
            "Perplexity and bits/byte are of all tokens together, so long documents count for more; half of the documents "
            "have at most the perplexity of the median document (given as a range; bins are 9 % wide)."
        )


def _spells(result: FilteredDocuments, name: str) -> bool:
    parts = Signature.parse(result.signatures.get(name, "")).parts
    nested = [Signature.parse(line).parts for line in parts.values() if line.startswith("doc|")]
    return all(one.get("oov") == "spelled" for one in nested or [parts])


def _more(count: int, what: str = "") -> tuple[str, ...]:
    rest = count - _MOST_ROWS
    return (f"and {rest:,} more{f', {what}' if what else ''}: --json has them all",) if rest > 0 else ()


# -- percentiles of perplexity ------------------------------------------------------------------------------------------
SHOWN = (10.0, 30.0, 50.0, 70.0, 90.0)
"""The percentiles of the table; the file has all."""

_MOST_LINES = 6  # of a chart


def percentile_blocks(percentiles: Percentiles) -> doc.Document:
    """Return a table and a chart for each model, and what a reader must know."""
    names = _largest(percentiles, _MOST_ROWS)
    return (
        *(_percentile_table(percentiles, model, names) for model in percentiles.models),
        *doc.notes(_percentile_notes(percentiles)),
        *(_percentile_chart(percentiles, model) for model in percentiles.models),
        *doc.signatures(percentiles.models.values()),
    )


def _largest(percentiles: Percentiles, most: int) -> list[str]:
    by_size = sorted(percentiles.groups, key=lambda name: -percentiles.groups[name].documents)
    return sorted(by_size[:most])


def _percentile_table(percentiles: Percentiles, model: str, names: list[str]) -> doc.Table:
    rows: list[str | None] = [*names, *([None] if percentiles.has_stand_in else [])]
    groups = [percentiles.overall if name is None else percentiles.groups[name] for name in rows]
    own = [name is None or percentiles.has_own(model, name) for name in rows]
    columns = [
        doc.labels(percentiles.group or "group", ["all" if name is None else name for name in rows]),
        doc.numbers("documents", [group.documents for group in groups], form="count"),
        doc.numbers("scored", [group.scored(model) for group in groups], form="count", drop=6),
    ]
    is_sampled = any(group.sampled < group.documents for group in groups)
    for point, drop in zip(SHOWN, (1, 3, 5, 4, 2), strict=True):  # the ends of the outer percentiles go first
        values = [percentiles.value(model, name, point) if has else None for name, has in zip(rows, own, strict=True)]
        columns.append(doc.numbers(f"p{point:g}", values, 1))
        if is_sampled:
            cells = [_interval(percentiles, model, name, point) for name in rows]
            columns.append(doc.Column(f"95 % of p{point:g}", cells, drop))
    title = f"perplexity by {model}" if len(percentiles.models) > 1 else "perplexity"
    return doc.Table(tuple(columns), title, bold=(len(rows) - 1,) if percentiles.has_stand_in else ())


def _interval(percentiles: Percentiles, model: str, group: str | None, point: float) -> doc.Cell:
    # interval of a percentile; a dash where a group has no percentiles of its own.
    of_group = percentiles.overall if group is None else percentiles.groups[group]
    if group is not None and not percentiles.has_own(model, group):
        return doc.Number(None)
    if of_group.sampled == of_group.documents:
        return "exact"
    _, low, high = percentiles.row(model, group, point)
    return doc.Number(None) if low is None or high is None else doc.between((low, high), 1)


def _percentile_notes(percentiles: Percentiles) -> Iterator[str]:
    overall, group, sample = percentiles.overall, percentiles.group, percentiles.sample
    if percentiles.bad_records:
        yield f"{counted(percentiles.bad_records, 'record')} without valid text left out"
    for name in percentiles.models:
        if missing := overall.sampled - overall.scored(name):
            yield f"{missing:,} of {overall.sampled:,} sampled documents have no perplexity by {name}"
    judges = "judges them by the percentiles of all" if percentiles.has_stand_in else "drops them: no model is for them"
    small = [
        name for name in percentiles.groups if not all(percentiles.has_own(model, name) for model in percentiles.models)
    ]
    if small:
        count = sum(percentiles.groups[name].documents for name in small)
        these = "1 group has" if len(small) == 1 else f"{len(small):,} groups have"
        yield (
            f"{these} fewer than {percentiles.least:,} documents with a perplexity ({count:,} documents): a filter {judges}"
        )
    loose = overall.documents - sum(group.documents for group in percentiles.groups.values())
    if group is not None and loose:
        yield f"{loose:,} documents have no {group}: a filter {judges}"
    hidden = len(percentiles.groups) - _MOST_ROWS
    if hidden > 0:
        yield f"the {_MOST_ROWS} largest groups are shown; the file has {hidden:,} more"
    of_each = " of each group" if group is not None else ""
    size = "all documents" if sample is None else f"up to {sample:,} documents{of_each}"
    yield f"learned on {size}; {overall.documents:,} documents were read (seed {percentiles.seed})"


def _percentile_chart(percentiles: Percentiles, model: str) -> doc.ChartData:
    groups: list[str | None] = [name for name in _largest(percentiles, _MOST_LINES) if percentiles.has_own(model, name)]
    rest = [None] if percentiles.has_stand_in else []
    several = len(percentiles.models) > 1
    name, by = (f"percentiles-{[*percentiles.models].index(model) + 1}", f" by {model}") if several else ("percentiles", "")
    title, x = f"Percentiles of perplexity{by}", "documents up to this perplexity"
    lines = tuple(_percentile_line(percentiles, model, name) for name in [*groups, *rest])
    note = f"the largest groups{', and all documents' * len(rest)}" if len(groups) < len(percentiles.groups) else ""
    return doc.ChartData(name, title, x, "perplexity", "", lines, x_unit="%", log_y=True, note=note)


def _percentile_line(percentiles: Percentiles, model: str, group: str | None) -> doc.Series:
    x = tuple(point for point in PERCENTS if not 1 < point < 99 or point % 2 == 0)
    y, low, high = zip(*(percentiles.row(model, group, point) for point in x), strict=True)
    return doc.Series("all documents" if group is None else group, x, y, low, high)


# -- selections ---------------------------------------------------------------------------------------------------------
def selection_blocks(selection: Selection) -> doc.Document:
    """Return the answer, the chart, examples, what a reader must know, and the signature."""
    chosen = selection.chosen
    bits = f"{in_words(doc.Number(chosen.threshold, 4))} bits per token"
    of = f"{counted(chosen.documents, 'document')}, {percent(chosen.share)} of the pool's text"
    without_words = f"{counted(selection.without_words, 'document')} of the pool without a word: never selected"
    return (
        doc.Heading("Documents that are most like the target"),
        doc.Verdict("fact", f"Selected: {of}, which differ by at most {bits}."),
        _selection_totals(selection),
        *_selection_chart(selection, bits),
        *_selection_examples(selection),
        *doc.notes((*([without_words] if selection.without_words else ()), *selection.notes)),
        doc.Signature(selection.signature),
    )


def _selection_totals(selection: Selection) -> doc.Lines:
    target = f"{counted(selection.in_domain_bytes, 'byte')}, {selection.vocabulary:,} words in the vocabulary of all models"
    return doc.Lines(
        (
            ("pool", f"{counted(selection.documents, 'document')}, {counted(selection.bytes, 'byte')}"),
            ("selected", f"{counted(selection.chosen.documents, 'document')}, {counted(selection.chosen.bytes, 'byte')}"),
            ("in-domain text", target),
            *((("written", selection.outputs),) if selection.outputs else ()),
        )
    )


def _selection_examples(selection: Selection) -> Iterator[doc.Block]:
    # Documents of the pool, by where they stand in the order.
    if not selection.examples:
        return
    yield doc.Heading("Documents of the pool, by their difference")
    parts = []
    for where, examples in selection.examples.items():
        items = tuple((f"{one.place}, {one.difference:.2f} bits", " ".join(one.text.split())) for one in examples)
        parts.append(doc.Quotes(where, items))
    yield doc.Gallery(tuple(parts))


def _selection_chart(selection: Selection, bits: str) -> Iterator[doc.ChartData]:
    histogram = selection.histogram
    if histogram is not None:
        bins = doc.Series("documents", histogram.edges, (*histogram.counts, None))
        yield doc.ChartData(
            "differences", "How the documents of the pool differ from the target", "difference", "documents", "", (bins,),
            x_unit="bits per token", kind="histogram", note=f"selected are those up to {bits}",
        )  # fmt: skip
