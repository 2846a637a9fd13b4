"""Text that came from elsewhere (names, tokens, a server's words), made safe to show: it may not drive a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

_SHOWN = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
_PLAIN = {"≥": ">=", "–": "-", "∞": "inf", "×": "x", "σ": "sd", "…": "..", "»": "[", "«": "]", "─": "-"}
_PLAIN |= dict.fromkeys("▌▋▊▉█", "#") | dict.fromkeys("▏▎▍", "")


def visible(text: str, keep: str = "", sign: Callable[[str], str] | None = None) -> str:
    """Return a text with signs for its control characters: escapes, bells, C1 controls, marks that turn the direction."""
    # sign: makes that of a character; by default one that standard output can show.
    sign = sign or _shown
    return text if text.isprintable() else "".join(each if each in keep else sign(each) for each in text)


def visible_on_page(text: str, keep: str = "") -> str:
    """Return a text as `visible` does, with the signs of Unicode whatever standard output can show."""
    return visible(text, keep, _sign)


def readable(text: str) -> str:
    """Return a text on one line, in characters that standard output can show; signs of ours become plain letters there."""
    text = visible(text)
    if text.isascii() or _can_show(text):
        return text
    return "".join(c if _can_show(c) else _PLAIN.get(c, "?") for c in text)


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Return names in quotation marks for a message, and how many more there are."""
    rest = len(names) - most
    return ", ".join(map(repr, names[:most])) + (f" and {rest:,} more" if rest > 0 else "")


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names for a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def for_output(text: str) -> str:
    """Return rows for standard output: as they are for programs, with signs for control characters in a terminal."""
    try:
        # Not its isatty: while rich shows progress, its stand-in for standard output denies it in older versions.
        is_terminal = os.isatty(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # of a stream in memory, or a closed one
        is_terminal = False
    return visible(text, keep="\n\t") if is_terminal else text


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _shown(character: str) -> str:
    shown = _sign(character)
    return shown if shown == character or _can_show(shown) else "?"


def _sign(character: str) -> str:
    if character.isprintable():
        return character
    if character.isspace() and character not in _SHOWN:
        return " "
    return _SHOWN.get(character, "\N{REPLACEMENT CHARACTER}")
