"""One model under the rules of several programs, beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.results import Evaluation
from lmgauge.protocols import PROTOCOLS
from lmgauge.result_list import ResultList

OWN = "lmgauge"


@dataclass(frozen=True)
class ProtocolRow:
    """One model under the rules of one program.

    Attributes:
        protocol: its name; `lmgauge` for the rules that hold without a protocol.
        evaluation: what came of it; None where the model or the text cannot follow.
        skipped: why not; empty where it can.

    Example:
        >>> row = ProtocolRow("gptq", None, "this model has too few positions")
        >>> row.source, row.to_row()["perplexity"]
        ('GPTQ', None)
    """

    protocol: str
    evaluation: Evaluation | None
    skipped: str = ""

    @property
    def source(self) -> str:
        """Whose rules they are."""
        return next((known.source for name, known in PROTOCOLS.items() if name == self.protocol), OWN)

    @property
    def policy(self) -> ContextPolicy | None:
        """What each prediction sees."""
        return None if self.evaluation is None else ContextPolicy.parse(self.evaluation.context)

    def to_row(self) -> dict[str, Any]:
        """Return the row of a data frame: scalars alone."""
        result, policy = self.evaluation, self.policy
        row: dict[str, Any] = {"protocol": self.protocol, "source": self.source, "skipped": self.skipped}
        for name in ("perplexity", "bits_per_byte", "bits_per_byte_is_bound", "events", "scored_share", "context"):
            row[name] = getattr(result, name, None)
        for name in ("length", "stride", "first"):
            row[name] = getattr(policy, name, None)
        return row | (result.source_figures if result is not None else {})


@dataclass(frozen=True, repr=False)
class ProtocolTable(ResultList[ProtocolRow]):
    """One model on one text under the rules of each program that can be followed.

    Attributes:
        items: a row for lmgauge's own rules, then one for each protocol.
        model: its name.

    Example:
        >>> from lmgauge.results import ProtocolRow
        >>> rows = (ProtocolRow("gptq", None, "this model has too few positions"),)
        >>> ProtocolTable(rows, model="tiny").to_rows()[0]["skipped"]
        'this model has too few positions'
    """

    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: of each protocol the evaluation with all it has, or why there is none."""
        rows = [
            {
                "protocol": row.protocol,
                "source": row.source,
                "skipped": row.skipped,
                "evaluation": None if row.evaluation is None else row.evaluation.to_dict(),
            }
            for row in self.items
        ]
        return {"model": self.model, "protocols": rows}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each protocol, figures under the names of their sources in columns of their own."""
        return [row.to_row() for row in self.items]

    def _in_brief(self) -> str:
        figures = [f"{row.protocol} {row.evaluation.perplexity:.4f}" for row in self.items if row.evaluation is not None]
        return f"{self.model}: perplexity by protocol: {', '.join(figures) or 'none'}"
