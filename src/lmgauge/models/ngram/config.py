"""The types and values that the config.json of an n-gram model may hold: the one place where they are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmgauge.choices import SMOOTHING_KINDS
from lmgauge.errors import ModelFileError
from lmgauge.models.ngram.settings import MAX_ORDER
from lmgauge.text.encoding import RESERVED_POLICIES

_Check = Callable[[Any], bool]
_LARGEST = 2**63


def _whole(low: int, high: int = _LARGEST) -> _Check:
    return lambda value: type(value) is int and low <= value < high


def _number(low: float, high: float) -> _Check:
    return lambda value: type(value) in (int, float) and low <= value <= high  # never true of NaN


def _is(kind: type) -> _Check:
    return lambda value: isinstance(value, kind)


def _one_of(*choices: str) -> _Check:
    return lambda value: isinstance(value, str) and value in choices


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _either(*checks: _Check) -> _Check:
    return lambda value: any(check(value) for check in checks)


_FINITE = _number(-1e300, 1e300)


def _facts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(fact, str) or _FINITE(fact) for fact in value.values())


_NEEDED: dict[str, tuple[_Check, str]] = {
    "order": (_whole(1, MAX_ORDER + 1), f"a whole number from 1 to {MAX_ORDER}"),
    "kind": (_one_of(*SMOOTHING_KINDS, "arpa"), "the name of a smoothing"),
    "vocabulary": (_one_of("open", "closed"), "open or closed"),
    "tokenizer": (_is(dict), "an object"),
    "full_context": (_is(bool), "true or false"),
    "unseen": (_number(0, 1), "a probability"),
    "checksums": (_list_of(_is(str)), "a list of strings"),
    "fingerprint": (_is(str), "a string"),
}
_OPTIONAL: dict[str, tuple[_Check, str]] = {
    "interpolate": (_is(bool), "true or false"),
    "discount": (_either(_FINITE, _list_of(_FINITE)), "a number or a list of numbers"),
    "k": (_FINITE, "a number"),
    "cutoffs": (_list_of(_whole(0)), "a list of whole numbers"),
    "prune": (_FINITE, "a number"),
    "context": (_one_of("sentence", "stream"), "sentence or stream"),
    "reserved": (_one_of(*RESERVED_POLICIES), ", ".join(RESERVED_POLICIES[:-1]) + f" or {RESERVED_POLICIES[-1]}"),
    "min_count": (_whole(0), "a whole number"),
    "vocab_size": (_whole(0), "a whole number"),
    "eos": (_is(bool), "true or false"),
    "discounts": (_list_of(_list_of(_FINITE)), "a list of lists of numbers"),
    "training": (_facts, "an object of strings and numbers"),
    "notes": (_list_of(_is(str)), "a list of strings"),
}


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a config.json that lacks a setting, or in which one has a type or value that no model has.

    >>> check_config(Path("m"), {"order": 3})
    Traceback (most recent call last):
    lmgauge.errors.ModelFileError: m: config.json has no 'kind'; the model is damaged
    """
    for name, (check, what) in (_NEEDED | _OPTIONAL).items():
        if name not in config:
            if name in _NEEDED:
                raise ModelFileError(f"{path}: config.json has no {name!r}; the model is damaged")
        elif not check(config[name]):
            value = repr(config[name])
            shown = value if len(value) <= 60 else value[:60] + "..."
            raise ModelFileError(f"{path}: config.json: {name!r} must be {what}; got {shown}; the model is damaged")
