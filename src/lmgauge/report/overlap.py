"""The overlap of training and test text as people read it: how much, in which files, and the passages themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.evaluation.clean_subset import CLEAN, CONTAMINATED
from lmgauge.report.terminal import console, print_evaluations, print_pairs, readable, sign

if TYPE_CHECKING:
    from lmgauge.text.overlap.results import Overlap, RunParts

_LONGEST_TEXT = 240
_MOST_GROUPS = 40


def print_overlap(overlap: Overlap) -> None:
    """Print everything.

    Args:
        overlap: of a test with its training text.
    """
    print_pairs(list(_headline(overlap)))
    for note in overlap.notes:
        console().print(readable(note), style="dim")
    if len(overlap.groups) > 1:
        _print_groups(overlap)
    _print_passages(overlap)
    _print_near(overlap)
    if overlap.run is not None:
        _print_split(overlap.run)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _share(part: int, whole: int) -> str:
    """A count, what it is a part of, and the share; a share that is small but not zero never reads as 0.00 %."""
    percent = 100 * part / whole if whole else 0.0
    shown = f"{percent:.2f} %" if percent >= 0.005 or not part else "< 0.01 %"
    return f"{part:,} of {whole:,} ({shown})"


def _headline(overlap: Overlap) -> Iterator[tuple[str, str]]:
    units = f"{overlap.unit}s"
    folded = ", case and punctuation ignored" if overlap.fold else ""
    yield "compared", f"runs of {overlap.n:,} {units} or more{folded}"
    blank = f"; {overlap.blank_segments:,} blank" if overlap.blank_segments else ""
    yield "contaminated segments", _share(overlap.contaminated_segments, overlap.segments) + blank
    yield "contaminated bytes", _share(overlap.contaminated_bytes, overlap.bytes)
    yield f"bytes in {overlap.n}-grams", _share(overlap.ngram_bytes, overlap.bytes)
    yield f"{overlap.n}-grams seen", _share(overlap.seen_ngrams, overlap.ngrams)
    yield "distinct ones", _share(overlap.seen_distinct_ngrams, overlap.distinct_ngrams)
    yield "longest run", _count(overlap.longest_run, overlap.unit)
    yield "whole duplicates", f"{_count(overlap.whole_duplicates, 'segment')}, {_count(overlap.duplicate_bytes, 'byte')}"
    if overlap.near_duplicates is None:
        yield "near duplicates", f"not checked: {overlap.near_note}"
    else:
        more = int((overlap.segment_near & ~overlap.segment_contaminated).sum())
        added = f" ({more:,} of them not contaminated)" if overlap.near_duplicates else ""
        yield (
            "near duplicates",
            f"{_count(overlap.near_duplicates, 'segment')}{added}, Jaccard index {overlap.near:g} or above",
        )


def _print_groups(overlap: Overlap) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    title = f"By test text (bytes and {overlap.n}-grams: the share in the training text)"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold")
    table.add_column("test text", style="bold", overflow="fold", min_width=20)
    for name in ("segments", "contaminated", "duplicates", "bytes", f"{overlap.n}-grams"):
        table.add_column(name, justify="right", no_wrap=True)
    groups = sorted(overlap.groups, key=lambda group: -group.ngram_share)
    for group in groups[:_MOST_GROUPS]:
        bytes_share = group.contaminated_bytes / group.bytes if group.bytes else 0.0
        counts = [f"{group.segments:,}", f"{group.contaminated_segments:,}", f"{group.whole_duplicates:,}"]
        table.add_row(Text(readable(group.name)), *counts, f"{100 * bytes_share:.2f} %", f"{100 * group.ngram_share:.2f} %")
    console().print()
    console().print(table)
    if len(groups) > _MOST_GROUPS:
        console().print(f"and {len(groups) - _MOST_GROUPS:,} more, with smaller shares: --json has them all", style="dim")


def _print_passages(overlap: Overlap) -> None:
    if not overlap.passages:
        return
    which = "The longest passages" if overlap.passage_count > len(overlap.passages) else "Passages"
    console().print(f"\n{which}, {len(overlap.passages):,} of {overlap.passage_count:,}", style="bold")
    for passage in overlap.passages:
        _print_place(_count(passage.length, overlap.unit), f"{passage.test}", f"{passage.train}")
        _print_text(passage.text)


def _print_near(overlap: Overlap) -> None:
    if not overlap.near_pairs:
        return
    total = overlap.near_duplicates or 0
    console().print(f"\nNear duplicates, {len(overlap.near_pairs):,} of {total:,}", style="bold")
    for pair in overlap.near_pairs:
        _print_place(f"Jaccard index {pair.jaccard:.3f}", f"{pair.test}", f"{pair.train}")
        skipped = _alike(pair.text, pair.train_text)
        _print_text(pair.text, skipped)
        _print_text(pair.train_text, skipped)


def _print_place(what: str, test: str, train: str) -> None:
    """Both places in a line, or in two where they do not fit one."""
    from rich.text import Text

    out, test, train = console(), readable(test), readable(train)
    fits = len(f"{what}  {test} = {train}") <= out.width
    out.print(
        Text.assemble((what, "cyan"), f"  {test}", " " if fits else "\n    ", f"= {train}", no_wrap=True, overflow="fold")
    )


def _alike(a: str, b: str) -> int:
    """How many characters of two texts to leave out, so that their first difference is seen."""
    flat_a, flat_b = " ".join(a.split()), " ".join(b.split())
    alike = next((i for i, (x, y) in enumerate(zip(flat_a, flat_b, strict=False)) if x != y), 0)
    return 0 if alike < _LONGEST_TEXT // 2 else flat_a.rfind(" ", 0, alike - _LONGEST_TEXT // 4) + 1


def _print_text(text: str, skipped: int = 0) -> None:
    """The text in one paragraph, whatever its line ends were."""
    from rich.padding import Padding
    from rich.text import Text

    dots = sign("…", "...")
    flat = (dots if skipped else "") + " ".join(text.split())[skipped:]
    if len(flat) > _LONGEST_TEXT:
        flat = flat[:_LONGEST_TEXT].rstrip("… ") + dots
    console().print(Padding(Text(readable(flat), style="dim"), (0, 0, 0, 4), expand=False))


def _print_split(split: RunParts) -> None:
    console().print()
    print_evaluations([part for part in (split.whole, split.clean, split.contaminated) if part is not None])
    for name, part in ((CLEAN, split.clean), (CONTAMINATED, split.contaminated)):
        if part is None:
            console().print(f"No segment is {name}: there are no numbers for that part.")
