"""Files and folders at a local path or at an address (`s3://bucket/part.jsonl`), by one set of functions for both.

Writing is `lmgauge.base.files.writing`, which takes both as well. A local path is never sent anywhere, and costs no library.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from io import BufferedReader
from typing import TypeVar

from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.files import naming, read_regular, reason_of, writing
from lmgauge.base.json_text import to_json
from lmgauge.base.remote.addresses import FileState, PathLike, is_remote, shown_name
from lmgauge.base.remote.stores import opened, store_of
from lmgauge.base.threads import map_in_order

_ASKED_AT_A_TIME = 16
_LARGEST_JSON = 1 << 30  # bytes

T = TypeVar("T")


def file_state(place: PathLike) -> FileState:
    """Return the size of a file in bytes, and its version."""
    if is_remote(place):
        return store_of(os.fspath(place)).state()
    try:
        state = os.stat(place)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{shown_name(place)!r}: {reason_of(error)}") from error
    return FileState(state.st_size, str(state.st_mtime_ns))


def file_states(places: Sequence[PathLike]) -> list[FileState]:
    """Return the sizes of several files in bytes, and their versions; of remote ones, several are asked for at a time."""
    return list(map_in_order(file_state, places, max(1, min(len(places), _ASKED_AT_A_TIME))))


def exists(place: PathLike) -> bool:
    """Return True if a file is there (or, at a local path, a folder)."""
    return store_of(os.fspath(place)).exists() if is_remote(place) else os.path.exists(place)


def refuse_file_names(texts: object, takes_files: str = "", *, one_in_list: bool = False) -> None:
    """Refuse strings that all name files where texts are asked for."""
    # A name scored as a text gives a plausible wrong number.
    alone = isinstance(texts, str)
    names = [texts] if alone else texts if isinstance(texts, Sequence) else ()
    if len(names) == 0 or (one_in_list and not alone and len(names) == 1):
        return
    if all(_names_file(name, bare=alone) for name in names):
        name = repr(names[0])
        call = f"{takes_files.format(name if len(names) == 1 else list(names[:8]))}, or " if takes_files else ""
        text = f"; for the name itself as a text, write [{name}]" if one_in_list else ""
        raise UsageError(f"{name} is the name of a file, not its text: write {call}open({name}).read(){text}")


def _names_file(text: object, *, bare: bool) -> bool:
    # True for a regular file; what has neither folder nor ending is not looked for, but for a bare word.
    if not isinstance(text, str) or len(text) > 4096:
        return False
    looks = "/" in text or "." in text[:-1] or (bare and " " not in text)
    return looks and os.path.isfile(text)  # False as well for what cannot be a name


def expand(pattern: str) -> list[str]:
    """Return the files that a pattern with `*`, `?` or `[` names, sorted; a plain path, or one of a file, as it is."""
    if not glob.has_magic(pattern) or (not is_remote(pattern) and os.path.lexists(pattern)):
        return [pattern]
    if is_remote(pattern):
        matches = store_of(pattern).matches()
    else:
        matches = sorted(match for match in glob.glob(pattern, recursive=True) if not os.path.isdir(match))
    if not matches:
        raise InputError(f"{shown_name(pattern)}: no file matches this pattern")
    return matches


def make_folder(folder: PathLike) -> None:
    """Make a folder and those that lead to it; an address needs none."""
    if not is_remote(folder):
        with naming(folder):
            os.makedirs(folder, exist_ok=True)


def open_reading(place: PathLike, known: FileState | None = None) -> BufferedReader:
    """Open a file for reading its bytes, from the start, with `seek`."""
    if is_remote(place):
        from lmgauge.base.remote.reading import Sequential

        return BufferedReader(Sequential(opened(os.fspath(place), known)), 1 << 20)
    try:
        return open(place, "rb")
    except (OSError, ValueError) as error:
        raise InputError(f"{shown_name(place)!r}: {reason_of(error)}") from error


def read_json(place: PathLike, kind: type[T], what: str, remedy: str, error: type[LmgaugeError] = InputError) -> T:
    """Return what a small JSON file of ours says, as an object of a type."""
    from lmgauge.base.decoding import decode  # loads a library, which a page of help does without

    try:
        if is_remote(place):
            with open_reading(place) as file:
                content = file.read(_LARGEST_JSON)
        else:
            content = read_regular(place)
    except OSError as fault:
        raise error(f"{shown_name(place)!r}: {reason_of(fault)}") from fault
    return decode(content, kind, shown_name(place), what, remedy, error)


def write_json(place: PathLike, document: object) -> None:
    """Write a small JSON file, whole or not at all."""
    with writing(place) as file:
        file.write((to_json(document) + "\n").encode())
