"""Addresses as strings: which paths are one, what of it may be shown, its parts. Nothing here asks a server."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

PATHS = (str, os.PathLike)
PathLike = str | os.PathLike[str]
"""A local path, or the address of a remote file or folder."""
# Not compiled: the first page of help needs none of them.
_ADDRESS = r"[A-Za-z][A-Za-z0-9+.-]+://"
_USER = r"^([A-Za-z][A-Za-z0-9+.-]+://)[^/?#]*@"
_PASSWORD = r"^([A-Za-z][A-Za-z0-9+.-]+://)[^/?#@]*:[^/?#]*@"  # Azure has its container before an @
_QUERY = r"(?s)\?[^/?#]*=.*$|#.*$"
_WEB_QUERY = r"(?s)[?#].*$"
IN_TEXT = r"[A-Za-z][A-Za-z0-9+.-]+://[^\s'\"<>]+"
_VALUE = r"([?&][^=&?#,;\s]+=)[^&#,;:)\s]*"


class FileState(NamedTuple):
    """What is known of a file without reading it."""

    size: int | None = None  # bytes; None where the server does not say
    version: str = ""  # differs once the file is written anew (an entity tag, or the time of writing); "" if not known

    def is_another(self, now: FileState) -> bool:
        """Return True if a file that was in this state is another one now."""
        return self.version != now.version or (None not in (self.size, now.size) and self.size != now.size)


def is_remote(path: PathLike) -> bool:
    """Return True for an address such as `s3://bucket/part.jsonl`, False for a local path."""
    return isinstance(path, str) and re.match(_ADDRESS, path) is not None


def is_web(address: str) -> bool:
    """Return True if an address is read from a web server."""
    return scheme_of(address) in ("http", "https")


def is_loopback(host: str) -> bool:
    """Return True for a name or an address by which this machine calls itself."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def has_password(address: str) -> bool:
    """Return True if a user and a password stand before the host."""
    return re.match(_PASSWORD, address) is not None


def scheme_of(address: str) -> str:
    """Return what stands before `://`, in lower case."""
    return address.partition("://")[0].lower()


def shown_name(path: PathLike) -> str:
    """Return the name of a file as it may be shown and stored: an address without user, password and query."""
    name = os.fspath(path)
    if not is_remote(name):
        return name
    if is_web(name):
        return re.sub(_WEB_QUERY, "", re.sub(_USER, r"\1", name))
    return re.sub(_QUERY, "", re.sub(_PASSWORD, r"\1", name))  # here a question mark may be part of a pattern


def without_secrets(text: str) -> str:
    """Return a text in which no address has a password or the values of a query."""
    if "://" not in text:
        return text
    return re.sub(IN_TEXT, lambda match: re.sub(_VALUE, r"\1***", re.sub(_PASSWORD, r"\1", match[0])), text)


def joined(folder: PathLike, *names: str) -> str:
    """Return the path or address of what is in a folder."""
    if not is_remote(folder):
        return os.path.join(folder, *names)
    address = os.fspath(folder)
    match = re.search(_WEB_QUERY if is_web(address) else _QUERY, address)
    bare, query = (address, "") if match is None else (address[: match.start()], match[0])
    return "/".join([bare.rstrip("/"), *names]) + query
