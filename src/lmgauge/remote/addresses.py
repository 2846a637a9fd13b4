"""Addresses as strings: which paths are one, what of it may be shown, its parts. Nothing here asks a server."""

from __future__ import annotations

import os
import re

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_USER = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+://)[^/?#]*@")
_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+://)[^/?#@]*:[^/?#]*@")  # Azure has its container before an @
_QUERY = re.compile(r"\?[^/?#]*=.*$|#.*$", re.DOTALL)
_WEB_QUERY = re.compile(r"[?#].*$", re.DOTALL)
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^\s'\"<>]+")
_VALUE = re.compile(r"([?&][^=&?#,;\s]+=)[^&#,;:)\s]*")
_WEB = ("http", "https")


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return True for an address such as `s3://bucket/part.jsonl`, False for a local path."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def is_web(address: str) -> bool:
    """Return True if an address is read from a web server."""
    return scheme_of(address) in _WEB


def has_password(address: str) -> bool:
    """Return True if a user and a password stand before the host."""
    return _PASSWORD.match(address) is not None


def scheme_of(address: str) -> str:
    """Return what stands before `://`, in lower case."""
    return address.partition("://")[0].lower()


def shown_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file as it may be shown and stored: an address without user, password and query."""
    name = os.fspath(path)
    if not is_remote(name):
        return name
    if is_web(name):
        return _WEB_QUERY.sub("", _USER.sub(r"\1", name))
    return _QUERY.sub("", _PASSWORD.sub(r"\1", name))  # here a question mark may be part of a pattern


def without_secrets(text: str) -> str:
    """Return a text in which no address has a password or the values of a query."""
    if "://" not in text:
        return text
    return _IN_TEXT.sub(lambda match: _VALUE.sub(r"\1***", _PASSWORD.sub(r"\1", match[0])), text)


def joined(folder: str | os.PathLike[str], *names: str) -> str:
    """Return the path or address of what is in a folder."""
    if not is_remote(folder):
        return os.path.join(folder, *names)
    address = os.fspath(folder)
    match = (_WEB_QUERY if is_web(address) else _QUERY).search(address)
    bare, query = (address, "") if match is None else (address[: match.start()], match[0])
    return "/".join([bare.rstrip("/"), *names]) + query


def base_name(path: str | os.PathLike[str]) -> str:
    """Return the last part of a path or an address, by which its format is known."""
    name = shown_name(path)
    return name.rstrip("/").rpartition("/")[2] if is_remote(name) else os.path.basename(name)
