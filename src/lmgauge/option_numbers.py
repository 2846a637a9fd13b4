"""Whole numbers that are given as options: one check of them, and one sentence about what is wrong."""

from __future__ import annotations

from lmgauge.errors import UsageError

MOST = 2**64 - 1


def check_whole(name: str, value: object, least: int, most: int = MOST) -> None:
    """Refuse what is not a whole number in a range; True and False are no numbers."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value.__index__() <= most:
        allowed = f", {least} or more" if most >= MOST else f" from {least:,} to {most:,}"
        raise UsageError(f"{name} must be a whole number{allowed}; got {value!r}")
