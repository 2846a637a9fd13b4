"""SHA-256: what texts, vocabularies, models and files are known by; the one module that makes it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable

from lmgauge.base.files import regular


def digest(*parts: object) -> str:
    """Return the SHA-256 of parts one after another: bytes as they are, strings in UTF-8, all else as JSON, keys sorted.

    >>> digest("ab", b"c") == digest("abc"), digest({"b": 1, "a": 2}) == digest('{"a": 2, "b": 1}')
    (True, True)
    """
    return growing_digest(*parts).hexdigest()


def growing_digest(*parts: object) -> hashlib._Hash:
    """Return the SHA-256 of parts, as `digest` takes them, to which more is added by `update`."""
    return _added(hashlib.sha256(), parts)


def file_sha256(path: str | os.PathLike[str], *parts: object) -> str:
    """Return the SHA-256 of the bytes of a file of a disk, and of parts after them."""
    with open(path, "rb", opener=regular) as file:
        return _added(hashlib.file_digest(file, "sha256"), parts).hexdigest()


def _added(whole: hashlib._Hash, parts: Iterable[object]) -> hashlib._Hash:
    for part in parts:
        if not isinstance(part, bytes | memoryview):
            part = (part if isinstance(part, str) else json.dumps(part, sort_keys=True, default=str)).encode()
        whole.update(part)
    return whole
