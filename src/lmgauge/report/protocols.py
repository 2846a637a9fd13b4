"""One model under several protocols: its perplexity by each, what was scored for it, and what the source prints."""

from __future__ import annotations

from lmgauge.evaluation.protocol_table import ProtocolRow, ProtocolTable
from lmgauge.report import blocks as doc

_FIRST = {"bos": "after BOS", "eos": "after EOS", "uniform": "uniform", "unscored": "not scored"}


def blocks(table: ProtocolTable) -> doc.Document:
    """Return the table, what was skipped and why, what a reader must know, and the signatures.

    Args:
        table: of one model.
    """
    rows = [row for row in table if row.evaluation is not None]
    results = [row.evaluation for row in rows if row.evaluation is not None]
    bits = [doc.Number(result.bits_per_byte, 4, bound=result.bits_per_byte_is_bound) for result in results]
    columns = (
        doc.labels("protocol", [row.protocol for row in rows]),
        doc.numbers("perplexity", [result.perplexity for result in results], 4),
        doc.Column("bits/byte", bits, 4),
        doc.numbers("tokens", [result.events for result in results], form="count", drop=3),
        doc.numbers("of the text", [result.scored_share for result in results], 1, "percent", drop=2),
        doc.labels("window/stride", [_window(row) for row in rows]),
        doc.labels("first token", [_first(row) for row in rows]),
        doc.labels("the source prints", [printed(result.source_figures) or "-" for result in results]),
    )
    notes = [f"{row.protocol}: skipped: {row.skipped}" for row in table if row.evaluation is None]
    notes += [f"{row.protocol}: {note}" for row in rows if row.evaluation is not None for note in row.evaluation.notes]
    shown = doc.Table(columns, f"{table.model}: one text by the rules of several programs")
    return (shown, *doc.notes(notes), *(doc.Signature(result.signature) for result in results))


def printed(figures: dict[str, float]) -> str:
    """Return figures under the names of their source, in one line.

    Args:
        figures: by name.

    Example:
        >>> printed({"word_perplexity": 8.70712, "bits_per_byte": 0.58})
        'word_perplexity 8.7071, bits_per_byte 0.5800'
    """
    return ", ".join(f"{name} {value:,.4f}" for name, value in figures.items())


def _window(row: ProtocolRow) -> str:
    policy = row.policy
    return "-" if policy is None or policy.length is None else f"{policy.length}/{policy.stride}"


def _first(row: ProtocolRow) -> str:
    return "-" if row.policy is None else _FIRST[row.policy.first] + (", each window" if row.policy.bos_each else "")
