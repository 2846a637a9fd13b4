"""A diagnosis as people read it: what the number is worth, where the bits go, what is worst, whether it may be believed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lmgauge.evaluation.diagnosis.calibration import Bin, Calibration
from lmgauge.evaluation.diagnosis.mutual_information import InformationCurve
from lmgauge.evaluation.diagnosis.ranks import RankStatistics
from lmgauge.evaluation.diagnosis.results import Diagnosis, finite_bits
from lmgauge.report.slices import Column, print_examples, print_slices, print_table
from lmgauge.report.terminal import console, number, print_evaluations, readable, sign, signed

_BAR = 16
_BLOCKS = "▏▎▍▌▋▊▉█"


def print_diagnosis(found: Diagnosis) -> None:
    """Prints all that was worked out; sections that say nothing are left out."""
    name = found.evaluation.model
    print_evaluations([found.evaluation])
    console().print()
    _print_baselines(found)
    for slices in found.slices:
        if len(slices.rows) > 1:
            print_slices(slices, [name])
    _print_tokens(found)
    print_examples("events with the least probability, bits", found.worst_tokens, [name])
    print_examples("events of probability zero, the first", found.impossible_tokens, [name])
    title = f"segments, bits (and how many beyond the {number(_average(found), 3)} a byte that bytes cost on average)"
    print_examples(title, found.worst_segments, [name])
    _print_unseen(found)
    if found.calibration is not None:
        _print_calibration(found.calibration)
    if found.ranks is not None:
        _print_lines("ranks and entropies of all events", _rank_lines(found.ranks))
    if found.information is not None:
        _print_information(found.information)
    for note in found.notes:
        _dim(note)


def _dim(line: str) -> None:
    from rich.text import Text

    console().print(Text(line, style="dim"))


def _average(found: Diagnosis) -> float | None:
    result = found.evaluation
    if not result.bytes or result.perplexity_without_zeros is None:
        return None
    return finite_bits(result) / result.bytes


def _print_lines(title: str, lines: Iterator[str]) -> None:
    out = console()
    out.print(title, style="bold")
    for line in lines:
        out.print(f"  {line}")
    out.print()


def _print_baselines(found: Diagnosis) -> None:
    if not found.baselines:
        return
    result = found.evaluation
    own = result.bits_per_byte
    rows = [(b.bits_per_byte, b.name, b.what) for b in found.baselines]
    if own is not None:
        rows.append((own, readable(result.model), "the model"))
    rows.sort()
    place = [i for i, row in enumerate(rows) if row[2] == "the model"]
    bound = sign("≥", ">=") + " " if result.bits_per_byte_is_bound and own is not None and math.isfinite(own) else ""
    columns = [
        Column("bits/byte", [(bound if i in place else "") + number(row[0], 3) for i, row in enumerate(rows)]),
        Column("beside the model", ["" if i in place else _times(row[0], own) for i, row in enumerate(rows)], 2),
        Column("what it is", [row[2] for row in rows], 1, "left"),
    ]
    title = "what the number is worth: the same bytes without a language model"
    print_table(title, [row[1] for row in rows], columns, bold=place)


def _times(value: float, own: float | None) -> str:
    if own is None or not math.isfinite(own) or not own:
        return number(None)
    return f"{value / own:.2f} {sign('×', 'x')}"


def _print_tokens(found: Diagnosis) -> None:
    costs = found.costly_tokens
    if not costs:
        return
    total = finite_bits(found.evaluation)
    columns = [
        Column("events", [f"{cost.events:,}" for cost in costs], 1),
        Column("bits in all", [number(cost.bits, 0) for cost in costs], 2),
        Column("share of bits", [f"{100 * cost.bits / total:.2f} %" if total else number(None) for cost in costs]),
        Column("bits each", [number(cost.mean_bits, 2) for cost in costs]),
    ]
    if any(cost.zeros for cost in costs):
        columns.append(Column("p = 0", [f"{cost.zeros:,}" for cost in costs]))
    labels = [readable(cost.token) if cost.token.strip() else repr(cost.token) for cost in costs]
    print_table("tokens that cost most in all", labels, columns)


def _print_unseen(found: Diagnosis) -> None:
    words = found.unseen_words
    if not words:
        return
    columns = [
        Column("events", [f"{word.events:,}" for word in words]),
        Column("bits each", [number(word.bits / word.events, 2) for word in words]),
    ]
    title = f"unseen words: {found.evaluation.oov:,} events, {found.unseen_types:,} different; the most frequent"
    print_table(title, [readable(word.word) for word in words], columns)


def _print_calibration(found: Calibration) -> None:
    rows = [b for b in found.decades if b.forecasts and b.high < 0.5]
    rows += [b for b in found.tenths if b.forecasts and b.low >= 0.1 - 1e-12]
    labels = [f"{_probability(b.low)} to {_probability(b.high)}" for b in rows]
    cells = [_cells_of(b) for b in rows]
    if found.impossible_happened:
        labels.insert(0, "0")
        share = found.impossible_happened / found.impossible_forecasts
        never = f"{found.impossible_forecasts:,}", "0", _probability(share, 3), f"{found.impossible_happened:,}", "0"
        cells.insert(0, (*never, sign("∞", "inf")))
    headings = ("forecasts", 1), ("mean p", 0), ("came true", 0), ("times", 2), ("expected", 3), ("off by", 0)
    columns = [Column(name, [row[i] for row in cells], goes) for i, (name, goes) in enumerate(headings)]
    which = "all" if found.seed is None else f"{found.contexts:,} of {found.events:,}"
    title = f"calibration: are events given p = 0.1 seen a tenth of the time? ({which} contexts)"
    print_table(title, labels, columns, heading="given p")
    _print_lines("how sure it is", _calibration_lines(found))


def _cells_of(found: Bin) -> tuple[str, ...]:
    return (
        f"{found.forecasts:,}",
        _probability(found.mean_forecast, 3),
        _probability(found.share_happened, 3),
        f"{found.happened:,}",
        number(found.expected, 1),
        _deviation(found),
    )


def _probability(value: float, digits: int = 1) -> str:
    """A probability: small ones as powers of ten, so that columns stay narrow."""
    if value and value < 0.001:
        return f"{value:.{max(0, digits - 1)}e}".replace("e-0", "e-")
    return f"{value:.{digits}g}"


def _deviation(found: Bin) -> str:
    """How far from what was expected, in standard deviations."""
    if not found.deviation:
        return number(None)
    return f"{(found.happened - found.expected) / found.deviation:+.1f} {sign('σ', 'sd')}"


def _calibration_lines(found: Calibration) -> Iterator[str]:
    sure = f"{100 * found.accuracy:.1f} % of contexts, given {100 * found.mean_confidence:.1f} % on average"
    yield f"the most probable token came in {sure}"
    yield f"expected calibration error of it: {100 * found.expected_calibration_error:.2f} % (15 equal bins)"
    yield f"entropy {number(found.mean_entropy_bits, 3)} bits an event, paid {number(found.mean_surprisal_bits, 3)}"
    if found.overconfidence_bits is not None:
        yield _confidence_sentence(found)
    yield f"Brier score {number(found.brier_score)} (0 is perfect, 2 the worst)"


def _confidence_sentence(found: Calibration) -> str:
    over, interval = found.overconfidence_bits or 0.0, found.overconfidence_interval
    if interval is None:
        return f"that is {signed(over, 3)} bits"
    told = f"that is {signed(over, 3)} bits (95 %: {signed(interval[0], 3)} to {signed(interval[1], 3)}): "
    if interval[0] > 0:
        return told + "the model is too sure of itself"
    return told + ("the model is less sure than it could be" if interval[1] < 0 else "neither too sure nor too unsure")


def _rank_lines(found: RankStatistics) -> Iterator[str]:
    if found.first is not None and found.top_5 is not None and found.top_10 is not None:
        shares = f"{100 * found.first:.1f} %, {100 * found.top_5:.1f} %, {100 * found.top_10:.1f} %"
        yield f"the token that came was the first, among 5, among 10 most probable: {shares}"
        yield f"mean reciprocal rank {number(found.mean_reciprocal_rank)}"
    if found.mean_entropy_bits is not None:
        difference = found.mean_surprisal_bits - found.mean_entropy_bits
        paid = f"entropy {number(found.mean_entropy_bits, 3)} bits an event, paid {number(found.mean_surprisal_bits, 3)}"
        sure = "too sure of itself" if difference > 0 else "less sure than it could be"
        yield f"{paid}: {signed(difference, 3)} bits, the model is {sure}" if math.isfinite(difference) else paid


def _print_information(found: InformationCurve) -> None:
    highest = max([*found.text_bits, *(found.sampled_bits or ())])
    columns = [
        Column("text", [f"{bits:.4f}" for bits in found.text_bits]),
        Column("", bars(found.text_bits, highest), 0, "left"),
    ]
    if found.sampled_bits is not None:
        columns.append(Column("sampled", [f"{bits:.4f}" for bits in found.sampled_bits]))
        columns.append(Column("", bars(found.sampled_bits, highest), 0, "left"))
    title = "how far back the text tells what comes: mutual information of tokens so far apart, bits"
    print_table(title, [str(d) for d in found.distances], columns, heading="tokens")
    merged = f"the {found.classes - 1:,} most frequent of {found.types:,} types, the others as one"
    kinds = merged if found.classes < found.types else f"all {found.types:,} types"
    where = "" if found.stretches == 1 else f" in {found.stretches} stretches"
    _dim(
        f"{found.tokens:,} tokens{where}; {kinds}: a lower bound. What the same tokens give in random order is taken off; "
        f"what is left by chance is about {found.chance_bits:.4f} bits.",
    )
    console().print()


def bars(values: Sequence[float], highest: float) -> list[str]:
    """Bars as long as the values; values below 0 have none.

    >>> bars([1.0, 0.5, -1.0], 1.0) in (["█" * 16, "█" * 8, ""], ["#" * 16, "#" * 8, ""])
    True
    """
    fine = sign(_BLOCKS, "") != ""
    found = []
    for value in values:
        eighths = round(8 * _BAR * max(0.0, value) / highest) if highest > 0 else 0
        blocks = "█" * (eighths // 8) + (_BLOCKS[eighths % 8 - 1] if eighths % 8 else "")
        found.append(blocks if fine else "#" * round(eighths / 8))
    return found
