"""The table of protocols as data: rows for a frame, plain values, and a line."""

from __future__ import annotations

from dataclasses import replace

import lmgauge
from lmgauge.evaluation.protocol_table import ProtocolRow, ProtocolTable


def table() -> ProtocolTable:
    text = lmgauge.Corpus.from_strings(["a b", "a"])
    own = lmgauge.evaluate(lmgauge.train("laplace", text, order=1), text)
    chunks = replace(
        own, context="sentence,7/8,first=unscored,end=none,protocol=gptq", source_figures={"ppl": 2.5}, perplexity=3
    )
    rows = ProtocolRow("lmgauge", own), ProtocolRow("gptq", chunks), ProtocolRow("harness", None, "too short")
    return ProtocolTable(rows, model="tiny")


def test_rows_have_what_each_protocol_scored_and_what_its_source_prints() -> None:
    own, gptq, harness = table().to_rows()
    assert (own["length"], own["first"], own["source"], own["scored_share"]) == (None, "bos", "lmgauge", 1.0)
    assert (gptq["length"], gptq["stride"], gptq["first"], gptq["ppl"]) == (7, 8, "unscored", 2.5)
    assert (harness["skipped"], harness["perplexity"], harness["source"]) == ("too short", None, "lm-evaluation-harness")


def test_plain_values_and_the_line() -> None:
    plain = table().to_dict()
    assert [row["evaluation"] is None for row in plain["protocols"]] == [False, False, True]
    assert plain["protocols"][1]["evaluation"]["source_figures"] == {"ppl": 2.5}
    assert "gptq 3.0000" in repr(table())
    assert "harness: skipped: too short" in str(table())
