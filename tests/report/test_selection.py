"""What is said of a selection: how much, and why."""

from __future__ import annotations

from lmgauge.filtering.selection import SelectedShare, Selection
from lmgauge.report import blocks as doc
from lmgauge.report.filtering import selection_blocks as blocks
from lmgauge.report.terminal import as_text


def test_the_answer_says_how_much_and_up_to_where() -> None:
    selection = Selection(SelectedShare(0.1, 1, 40, -1.25), 60, 400, 2, 900, 400, signature="select|v:1")
    (verdict,) = (block for block in blocks(selection) if isinstance(block, doc.Verdict))
    assert verdict.level == "fact"
    assert verdict.text == (
        "Selected: 1 document, 10.00 % of the pool's text, which differ by at most -1.2500 bits per token."
    )
    lines = as_text(blocks(selection))
    assert "1 document, 40 bytes" in lines
    assert "2 documents of the pool without a word: never selected" in lines
