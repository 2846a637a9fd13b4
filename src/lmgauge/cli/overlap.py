"""What `lmgauge overlap` does besides calling its verb: the last text is the test, a gate."""

from __future__ import annotations

from lmgauge.base.option_numbers import Bounds
from lmgauge.cli.derive import Call
from lmgauge.cli.say import say


def overlap(call: Call) -> None:
    """Find overlap, or a share of it."""
    from lmgauge.report import overlap as report

    train, test = call["train"], call["test"] or ()
    if not test and len(train) > 1:
        train, test = train[:-1], train[-1:]
    most = call["max_overlap"]
    if most is not None:
        Bounds(0, 1).check("max-overlap", most)
    result = call(train=train, test=test or None, max_overlap=None)
    call.answer(result, page=("Overlap of training and test text", report.page(result)))
    if call["write_clean"] is not None and not call.form:
        clean = result.segments - result.contaminated_segments
        say(f"{call['write_clean']}: {clean:,} of {result.segments:,} segments")
    if most is not None:
        result.require(most)
