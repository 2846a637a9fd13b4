"""What `lmgauge explore` runs."""

from __future__ import annotations

from lmgauge.cli.derive import Call
from lmgauge.cli.say import say


def explore(call: Call) -> None:
    """Serve until interrupted; no progress is shown beside the address."""
    from lmgauge.explore.door import explore as serve

    serve(**call.values, say=say)
