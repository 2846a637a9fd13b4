"""Special tokens by their names, where no tokenizer says which tokens are special; and a fault that is common with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise, takewhile
from typing import TypeVar

T = TypeVar("T")
FAULT = "special tokens: "
"""What notes on a fault begin with; they are shown before others."""
SPECIAL_NAME = re.compile(
    r"<[|｜][^\s<>]+[|｜]>|</?s>|<(?:unk|pad|mask|bos|eos|\w+_of_\w+|[A-Z_]+_TOKEN|turn\||\|turn)>|\[/?[A-Z_]+\]"
)
"""What looks like the name of a special token."""
_BEGINS = re.compile(r"<s>|<bos>|<BOS_TOKEN>|\[(?:CLS|BOS)\]|<[|｜](?:begin|bos|startoftext|endoftext)[^\s|｜<>]*[|｜]>")


def is_special(token: str | bytes) -> bool:
    """Return True if a token has the name of a special token."""
    return SPECIAL_NAME.fullmatch(token if isinstance(token, str) else token.decode("utf-8", "replace")) is not None


def begins_texts(token: str) -> bool:
    """Return True if a token has the name of one that begins texts, which no model is asked to predict."""
    return _BEGINS.fullmatch(token) is not None


def doubled(tokens: Iterable[T], special: Callable[[T], bool]) -> T | None:
    """Return the special token that stands twice in a row among those that tokens begin with; None if none does.

    >>> doubled(["<s>", "<s>", "The"], is_special), doubled(["<s>", "The", "The"], is_special)
    ('<s>', None)
    """
    return next((one for one, other in pairwise(takewhile(special, tokens)) if one == other), None)
