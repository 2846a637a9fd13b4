"""What the config.json of an n-gram model may hold: the one place where its types are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmgauge.choices import SMOOTHING_KINDS
from lmgauge.errors import ModelFileError
from lmgauge.models.ngram.hash_table import MAX_ORDER
from lmgauge.text.encoding import RESERVED_POLICIES

_Check = Callable[[Any], bool]
_LARGEST = 2**63


def _whole(low: int, high: int = _LARGEST) -> _Check:
    return lambda value: type(value) is int and low <= value < high


def _number(low: float, high: float) -> _Check:
    return lambda value: type(value) in (int, float) and low <= value <= high  # never true of NaN


def _string(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*choices: str) -> _Check:
    return lambda value: isinstance(value, str) and value in choices


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _either(*checks: _Check) -> _Check:
    return lambda value: any(check(value) for check in checks)


_FINITE = _number(-1e300, 1e300)


def _facts(value: Any) -> bool:
    return isinstance(value, dict) and all(_string(fact) or _FINITE(fact) for fact in value.values())


_NEEDED: dict[str, tuple[_Check, str]] = {
    "order": (_whole(1, MAX_ORDER + 1), f"a whole number from 1 to {MAX_ORDER}"),
    "kind": (_one_of(*SMOOTHING_KINDS, "arpa"), "the name of a smoothing"),
    "vocabulary": (_one_of("open", "closed"), "open or closed"),
    "tokenizer": (_object, "an object"),
    "longest": (_list_of(_whole(0)), "a list of whole numbers"),
    "full_context": (_flag, "true or false"),
    "unseen": (_number(0, 1), "a probability"),
    "checksums": (_list_of(_string), "a list of strings"),
    "fingerprint": (_string, "a string"),
}
_OPTIONAL: dict[str, tuple[_Check, str]] = {
    "interpolate": (_flag, "true or false"),
    "discount": (_either(_FINITE, _list_of(_FINITE)), "a number or a list of numbers"),
    "k": (_FINITE, "a number"),
    "cutoffs": (_list_of(_whole(0)), "a list of whole numbers"),
    "prune": (_FINITE, "a number"),
    "context": (_one_of("sentence", "stream"), "sentence or stream"),
    "reserved": (_one_of(*RESERVED_POLICIES), ", ".join(RESERVED_POLICIES[:-1]) + f" or {RESERVED_POLICIES[-1]}"),
    "min_count": (_whole(0), "a whole number"),
    "vocab_size": (_whole(0), "a whole number"),
    "eos": (_flag, "true or false"),
    "discounts": (_list_of(_list_of(_FINITE)), "a list of lists of numbers"),
    "training": (_facts, "an object of strings and numbers"),
    "notes": (_list_of(_string), "a list of strings"),
}


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a config.json that lacks a setting, or in which one has a type or value that no model has.

    Args:
        path: the model's folder, for messages.
        config: what the file holds.

    Raises:
        ModelFileError: names the setting, and what it must be.
    """
    for name, (check, what) in (_NEEDED | _OPTIONAL).items():
        if name not in config:
            if name in _NEEDED:
                raise ModelFileError(f"{path}: config.json has no {name!r}; the model is damaged")
        elif not check(config[name]):
            found = repr(config[name])
            shown = found if len(found) <= 60 else found[:60] + "..."
            raise ModelFileError(f"{path}: config.json: {name!r} must be {what}; got {shown}; the model is damaged")
