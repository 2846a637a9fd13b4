"""Where helpers of the door were before; nothing new belongs here."""

from __future__ import annotations

from lmgauge.api.compare import compare as compare
from lmgauge.api.diagnose import diagnose as diagnose
from lmgauge.api.inputs import opened as _opened
from lmgauge.api.inputs import text_of as _text_of

__all__ = ["_opened", "_text_of", "compare", "diagnose"]
