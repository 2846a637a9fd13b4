"""One model under several protocols: its perplexity by each, what was scored for it, and what the source prints."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.evaluation.protocol_table import ProtocolRow, ProtocolTable
from lmgauge.evaluation.results import Evaluation
from lmgauge.protocols import PROTOCOLS
from lmgauge.report import blocks as doc

_FIRST = {"bos": "after BOS", "eos": "after EOS", "uniform": "uniform", "unscored": "not scored"}


def blocks(table: ProtocolTable) -> doc.Document:
    """Return the table, what the sources print, what was skipped and why, what a reader must know, and the signatures."""
    pairs = [(row, row.evaluation) for row in table if row.evaluation is not None]
    rows, results = [row for row, _ in pairs], [result for _, result in pairs]
    bits = [doc.Number(result.bits_per_byte, 4) for result in results]
    columns = (
        doc.labels("protocol", [row.protocol for row in rows]),
        doc.numbers("perplexity", [result.perplexity for result in results], 4),
        doc.Column("bits/byte", bits, 4),
        doc.numbers("tokens", [result.events for result in results], form="count", drop=3),
        doc.numbers("of the bytes", [result.scored_share for result in results], 2, "percent", drop=2),
        doc.labels("window/stride", [_window(row) for row in rows]),
        doc.labels("first token", [_first(row) for row in rows]),
    )
    return (
        doc.Table(columns, f"{table.model}: one text by the rules of several programs"),
        _printed(pairs),
        *doc.notes(_notes(table)),
        *(doc.Signature(result.signature) for result in results),
    )


def _printed(pairs: list[tuple[ProtocolRow, Evaluation]]) -> doc.Table:
    figures = [(row, name, value) for row, result in pairs for name, value in result.source_figures.items()]
    columns = (
        doc.labels("protocol", [row.protocol for row, _, _ in figures]),
        doc.labels("whose", [row.source for row, _, _ in figures]),
        doc.labels("figure", [name for _, name, _ in figures]),
        doc.numbers("value", [value for _, _, value in figures], 4),
    )
    return doc.Table(columns, "what the sources print, under their own names")


def _notes(table: ProtocolTable) -> Iterator[str]:
    # Why protocols were skipped, the rules of the others, and what else must be known, each note once.
    about: dict[str, list[str]] = {}
    for row in table:
        rules = next((protocol.rules for name, protocol in PROTOCOLS.items() if name == row.protocol), "")
        if row.evaluation is None:
            yield f"{row.protocol}: skipped: {row.skipped}"
        elif rules:
            yield f"{row.protocol}: {rules}"
        for note in row.evaluation.notes if row.evaluation is not None else ():
            if not note.startswith(f"protocol {row.protocol}"):  # the rules and the share: said already
                about.setdefault(note, []).append(row.protocol)
    for note, names in about.items():
        yield f"{', '.join(names)}: {note}"


def _window(row: ProtocolRow) -> str:
    policy = row.policy
    return "-" if policy is None or policy.length is None else f"{policy.length}/{policy.stride}"


def _first(row: ProtocolRow) -> str:
    return "-" if row.policy is None else _FIRST[row.policy.first] + (", each window" if row.policy.bos_each else "")
