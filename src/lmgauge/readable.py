"""Text that came from elsewhere (names, tokens, a server's words), made safe to show: it may not drive a terminal."""

from __future__ import annotations

import sys

_SHOWN = {"\n": "⏎", "\r": "␍", "\t": "⇥"}


def sign(shown: str, plain: str) -> str:
    """A sign, or plain letters where standard output cannot show it."""
    try:
        shown.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return plain
    return shown


def visible(text: str, keep: str = "") -> str:
    """Return a text with signs for its control characters: escapes, bells, C1 controls, marks that turn the direction.

    Args:
        text: whatever.
        keep: characters that may stay, such as line ends.

    >>> visible("red\\x1b[31m\\n", keep="\\n") in ("red\\N{REPLACEMENT CHARACTER}[31m\\n", "red?[31m\\n")
    True
    """
    if text.isprintable():
        return text
    return "".join(character if character in keep else _shown(character) for character in text)


def readable(text: str) -> str:
    """A text on one line: control characters, which could also drive a terminal, as signs."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return visible(text).encode(encoding, "replace").decode(encoding)


def for_output(text: str) -> str:
    """Return rows for standard output: as they are for programs, with signs for control characters in a terminal."""
    return visible(text, keep="\n\t") if sys.stdout.isatty() else text


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    if character in _SHOWN:
        return sign(_SHOWN[character], "?")
    return " " if character.isspace() else sign("\N{REPLACEMENT CHARACTER}", "?")
