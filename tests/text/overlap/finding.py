"""Overlaps as the tests ask for them: settings by name."""

from __future__ import annotations

from typing import Any

from lmgauge.text.documents import Corpus
from lmgauge.text.overlap import find
from lmgauge.text.overlap.overlap_results import Overlap
from lmgauge.text.overlap.overlap_settings import OverlapSettings


def find_overlap(train: Corpus, test: Corpus, *, threads: int | None = None, **settings: Any) -> Overlap:
    """Find overlap with `OverlapSettings(**settings)`."""
    return find.find_overlap(train, test, OverlapSettings(**settings), threads=threads)
