"""How inputs are damaged: bytes, lines, numbers, and values of JSON. Everything is drawn from one `random.Random`."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

PIECES: list[bytes] = [
    *(b"\n", b"\r", b"\r\n", b"\0", b" ", b"\t", b"\x0b", b"\x1b[31m", b"\x7f", b"\x85", b"\xff", b"\xfe\xff"),
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"<", b">", b"/", b"=", b"-", b"."),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\xa0", b"\xf4\x90\x80\x80", b"\\u0000", b"\\ud800"),
    *(
        b"null",
        b"true",
        b"NaN",
        b"Infinity",
        b"-inf",
        b"1e999",
        b"-0",
        b"0",
        b"-1",
        b"1",
        b"4294967296",
        b"9223372036854775808",
    ),
    *(b"<s>", b"</s>", b"<unk>", b"<UNK>", b"9" * 400, b"[" * 2000, b"a" * 3000),
]
"""What is put between bytes: what a parser takes for structure, numbers at their limits, what no text may hold."""

NUMBERS: list[Any] = [
    0,
    1,
    -1,
    2,
    3,
    255,
    256,
    -128,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**400,
]
NUMBERS += [0.5, -0.5, -0.0, 1e-320, 1e300, -1e300, float("nan"), float("inf"), float("-inf")]
"""Numbers at the limits of their types."""

TEXT_PIECES = [
    *(
        "the",
        "cat",
        "sat",
        "a",
        ".",
        ",",
        "'s",
        "1",
        "-1",
        "1e9",
        " ",
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\r",
        "\x0b",
        "\x1c",
        "\x85",
    ),
    *(
        "\u00a0",
        "\u2028",
        "\u3000",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u202e",
        "\ufffd",
        "\0",
        "\x1b[31m",
        "\x07",
        "\U0010ffff",
    ),
    *("é", "e\u0301", "ß", "İ", "ﬁ", "漢字", "かな", "한국", "ไทย", "ع", "🙂", "👩‍👩‍👧"),
    *("<unk>", "<s>", "</s>", "[red]", "<b>", "&amp;", "{{", "%s", "\\n"),
]
"""What hostile texts are made of."""

VALUES: list[Any] = [
    None,
    True,
    False,
    "",
    "a",
    "\0",
    "\ud800",
    "\x1b[31m[red]",
    "a" * 5000,
    "../../x",
    [],
    {},
    [[]],
    {"": 0},
    [None] * 300,
]
"""Values of other types, as JSON may hold them."""


def changed(content: bytes, chance: random.Random, most: int = 4, pieces: Sequence[bytes] = PIECES) -> bytes:
    """Return `content` with up to `most` changes: put in, taken out, doubled, moved, overwritten, cut off, bits flipped."""
    for _ in range(chance.randint(1, most)):
        content = _changed_once(content, chance, pieces)
    return content


def _changed_once(content: bytes, chance: random.Random, pieces: Sequence[bytes]) -> bytes:
    begin = chance.randint(0, len(content))
    end = min(len(content), begin + chance.choice([1, 1, 1, 2, 4, 8, 30, 200]))
    part, other = content[begin:end], chance.randint(0, len(content))
    match chance.randrange(9):
        case 0:
            return content[:begin] + chance.choice(pieces) + content[begin:]
        case 1:
            return content[:begin] + content[end:]
        case 2:
            return content[:end] + part + content[end:]
        case 3:
            return content[:begin] + chance.randbytes(len(part)) + content[end:]
        case 4:
            return content[:begin] + chance.choice(pieces) + content[end:]
        case 5:
            return content[:begin] + bytes(byte ^ (1 << chance.randrange(8)) for byte in part[:1]) + content[begin + 1 :]
        case 6:
            without = content[:begin] + content[end:]
            return without[:other] + part + without[other:]
        case 7:
            return content[:begin] + bytes([chance.choice([0, 1, 127, 128, 255])]) * len(part) + content[end:]
        case _:
            return (
                content[:begin] if chance.random() < 0.3 else content[:begin] + content[other : other + 50] + content[begin:]
            )


def changed_lines(content: bytes, chance: random.Random, most: int = 3) -> bytes:
    """Return `content` with lines taken out, doubled, exchanged, joined, emptied, or with a field of one changed."""
    lines = content.split(b"\n")
    for _ in range(chance.randint(1, most)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(7):
            case 0:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] += b" " + lines[other]
            case 4:
                lines[at] = b""
            case 5:
                fields = lines[at].split(b" " if b"\t" not in lines[at] else b"\t")
                fields[chance.randrange(len(fields))] = chance.choice([*PIECES, str(drawn_number(chance)).encode()])
                lines[at] = (b" " if chance.random() < 0.5 else b"\t").join(fields)
            case _:
                lines[at] = changed(lines[at], chance, 1)
        lines = lines or [b""]
    return b"\n".join(lines)


def drawn_number(chance: random.Random) -> Any:
    """Return a number at the limit of a type, or an ordinary one."""
    return (
        chance.choice(NUMBERS)
        if chance.random() < 0.7
        else chance.choice([chance.randint(-1000, 1000), chance.gauss(0, 10)])
    )


def changed_value(value: Any, chance: random.Random, most: int = 3) -> Any:
    """Return a copy of a value of JSON with up to `most` places changed: numbers, types, keys gone or renamed."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, most)):
        places = list(places_of(value))
        if not places:
            return _other(value, chance)
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(["", "x", str(key) + " ", "\ud800"])] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.insert(chance.randint(0, len(holder)), copy.deepcopy(holder[key]))
            case 3:
                there, at = chance.choice(places)
                holder[key] = (
                    copy.deepcopy(there[at]) if at in there or (isinstance(there, list) and at < len(there)) else None
                )
            case _:
                holder[key] = _other(holder[key], chance)
    return value


def places_of(value: Any) -> Any:
    """Yield (holder, key) of every value inside."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from places_of(inner)


def _other(value: Any, chance: random.Random) -> Any:
    """Return a value near to this one, or of another type."""
    draw = chance.random()
    if isinstance(value, bool) or value is None or draw < 0.2:
        return copy.deepcopy(chance.choice(VALUES)) if chance.random() < 0.6 else drawn_number(chance)
    if isinstance(value, (int, float)):
        steps = [-1, 1, 0.5, 1e-9] if isinstance(value, float) or abs(value) < 1 << 53 else [-1, 1]
        return value + chance.choice(steps) if draw < 0.5 else drawn_number(chance)
    if isinstance(value, str):
        return changed(value.encode("utf-8", "surrogatepass"), chance, 2).decode(
            "utf-8", chance.choice(["replace", "surrogateescape"])
        )
    return copy.deepcopy(chance.choice([*VALUES, value[:1] if isinstance(value, list) else {}]))


def hostile_text(chance: random.Random, length: int = 30) -> str:
    """Return a text of words, white space of all kinds, marks, controls, other scripts, characters outside the BMP."""
    return "".join(chance.choice(TEXT_PIECES) for _ in range(chance.randint(0, length)))
