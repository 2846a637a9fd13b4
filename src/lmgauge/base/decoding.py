"""The one decoder of JSON that lmgauge wrote: an object of a type, or refused with the place of what is wrong."""

# `json_text` parses: it refuses a key that occurs twice, and takes the lone surrogates that names of files may have.
# msgspec holds the values against the type. A `ValueError` of a type's own `__post_init__` is a fault of the file, too.
#
# msgspec 0.22 writes past its memory where a bounded number or string may also be a tuple of fixed length, as in
# `Whole | tuple[int, int]`: no type that is decoded has such a union. A list of bounded length does as well.

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.json_text import from_json

__all__ = ["Meta", "Perplexity", "Whole", "decode"]

T = TypeVar("T")
Whole = Annotated[int, Meta(ge=0, le=2**63 - 1)]

if TYPE_CHECKING:
    Perplexity = float
else:

    class Perplexity(float):
        """A number from 0 on, which JSON has as "inf" where it is infinite."""

        def __new__(cls, value: object) -> Perplexity:
            """Return the number, if it is one."""
            number = super().__new__(cls, value) if type(value) in (int, float) or value == "inf" else -1.0
            if not number >= 0:
                raise ValueError("Expected a number from 0 on, or `inf`")
            return number


def decode(
    content: object, kind: type[T], where: object, what: str, remedy: str, error: type[LmgaugeError] = InputError
) -> T:
    """Return what JSON says as an object of a type; `content` are its bytes, or the values that were parsed of them.

    >>> decode(b"[1, -2]", list[Whole], "x.json", "a count", "try again")
    Traceback (most recent call last):
    lmgauge.base.errors.InputError: x.json: is not a count as lmgauge writes it: Expected `int` >= 0 - at `$[1]`; try again
    """
    try:
        return msgspec.convert(from_json(content, own=True) if isinstance(content, bytes) else content, kind, dec_hook=_own)
    except (ValueError, OverflowError) as fault:
        raise error(f"{where}: is not {what} as lmgauge writes it: {str(fault)[:300]}; {remedy}") from fault


def _own(kind: type[Any], value: Any) -> Any:
    # A type that is stored as another one names it in `STORED`, and is made of that by `of_stored`.
    stored = getattr(kind, "STORED", None)
    return kind.of_stored(msgspec.convert(value, stored, dec_hook=_own)) if stored else kind(value)
