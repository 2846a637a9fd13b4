r"""Bytes that are text: valid UTF-8 without NUL."""

from __future__ import annotations

import codecs

_DECODE_BYTES = 1 << 16  # text is decoded to check it in slices: a line of 100 MB then needs no 400 MB string


def find_problem(data: bytes) -> tuple[int, int]:
    r"""Return the offset of the first NUL or ill-formed UTF-8 byte (-1 if there is none), and the number of code points."""
    # The number of code points is only meaningful when there is no problem.
    nul = data.find(b"\0")
    if data.isascii():
        return nul, len(data)
    view = memoryview(data)
    position = characters = 0
    while position < len(data):
        piece = view[position : position + _DECODE_BYTES]
        try:
            text, used = codecs.utf_8_decode(piece, "strict", position + len(piece) == len(data))
        except UnicodeDecodeError as error:
            invalid = position + error.start
            return (invalid if nul < 0 else min(invalid, nul)), 0
        position += used
        characters += len(text)
    return nul, characters


def what_is_wrong(block: bytes, problem: int) -> str:
    r"""Return what is wrong with a byte that is not text."""
    if block[problem] == 0:
        return "NUL (0x00) is not text; is this UTF-16, or a binary file?"
    if block[problem] == 0xED and block[problem + 1 : problem + 2] >= b"\xa0":
        return "a lone surrogate (U+D800 to U+DFFF, \\ud800 in JSON) is not a character"
    return f"0x{block[problem]:02X} is not valid UTF-8"


def utf8(text: str) -> bytes:
    r"""Return a string as UTF-8 bytes; a lone surrogate becomes ill-formed UTF-8, to be handled like any other."""
    return text.encode("utf-8", "surrogatepass")
