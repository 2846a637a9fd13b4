"""The manifest of a piece of work: a JSON file that says what the work is made of, and what came of it.

It is sealed: a byte that changed is noticed, of the manifest as of the files that it lists. Two pieces of work are the same
if, and only if, what they are made of is equal: the version of lmgauge, digests of models and texts, settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lmgauge.decoding import decode
from lmgauge.digests import digest, file_sha256
from lmgauge.errors import InputError, UsageError
from lmgauge.files import reason_of
from lmgauge.json_text import from_json, plain, to_json
from lmgauge.places import read_json, shown_name, write_json
from lmgauge.remote.addresses import PathLike
from lmgauge.version import __version__

T = TypeVar("T")

_OURS = f"what lmgauge {__version__} notes of its work"
_AGAIN = "remove it and run the work again, or name another folder"


@dataclass(frozen=True)
class Manifest:
    """What a piece of work says of itself."""

    job: str  # the kind of work, such as `evaluation`
    made_of: dict[str, Any]
    facts: Any  # what came of it, of a type that its job knows; None while it is worked on
    files: dict[str, str]  # the SHA-256 of files beside it, by their names
    fingerprint: str  # the SHA-256 of all of this


def described(made_of: Mapping[str, Any]) -> dict[str, Any]:
    """Return what some work is made of as a manifest has it."""
    whole: dict[str, Any] = from_json(to_json({"lmgauge": __version__, **made_of}))
    return whole


def write_manifest(
    place: PathLike, job: str, made_of: Mapping[str, Any], facts: object = None, files: Sequence[str] = ()
) -> None:
    """Write a manifest, whole or not at all; `files` are names of files beside it that are complete."""
    digests = {name: file_sha256(Path(place).with_name(name)) for name in files}
    content = plain({"job": job, "made_of": described(made_of), "facts": facts, "files": digests})
    write_json(place, content | {"fingerprint": content_fingerprint(content)})


def read_manifest(place: PathLike, files: Sequence[str] = ()) -> Manifest:
    """Read a manifest, and see whether it, or one of the files beside it, was changed after it was written."""
    content = read_json(place, dict[str, Any], _OURS, _AGAIN)
    manifest = decode_facts(content, Manifest, place)
    changed = shown_name(place) if manifest.fingerprint != content_fingerprint(content) else ""
    for name in files if not changed else ():
        beside = Path(place).with_name(name)
        try:
            changed = changed or (str(beside) if manifest.files.get(name) != file_sha256(beside) else "")
        except OSError as error:
            raise InputError(f"{beside}: cannot be read: {reason_of(error)}; {_AGAIN}") from error
    if changed:
        raise InputError(f"{changed}: was changed after it was written; {_AGAIN}")
    return manifest


def decode_facts(content: object, kind: type[T], place: PathLike) -> T:
    """Return a part of a manifest as an object of a type."""
    return decode(content, kind, shown_name(place), _OURS, _AGAIN)


def difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the name of the first thing in which two pieces of work differ, and both values; None if they do not."""
    # difference({"a": {"b": 1}}, {"a": {"b": 2}}) -> ("a: b", 1, 2)
    for name in {**there, **here}:
        one, other = there.get(name), here.get(name)
        if one != other:
            inner = difference(one, other) if isinstance(one, dict) and isinstance(other, dict) else None
            return (f"{name}: {inner[0]}", *inner[1:]) if inner else (name, one, other)
    return None


def refuse_other(folder: PathLike, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to go on in a folder that holds other work."""
    if found := difference(there, here):
        name, one, other = found[0], *(json.dumps(value)[:100] for value in found[1:])
        raise UsageError(
            f"{shown_name(folder)}: holds other work: {name} is {one} there, and {other} here; give the same inputs and "
            "options to go on with it, or name another folder"
        )


def content_fingerprint(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a JSON file holds, without its own fingerprint; the order of keys does not matter."""
    return digest({key: value for key, value in content.items() if key != "fingerprint"})
