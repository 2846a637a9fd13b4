"""Files on web servers: nothing is sent but GETs to the address (and to where it redirects)."""

# fsspec's own file system for them takes a whole file for the part it asked for where a server knows no ranges, and never
# asks again; a text must not depend on either.

from __future__ import annotations

import base64
import http.client
import logging
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import IO
from urllib.parse import quote, unquote, urljoin, urlsplit

from lmgauge.errors import InputError, LmgaugeError
from lmgauge.readable import visible
from lmgauge.remote.addresses import is_web, scheme_of, shown_name
from lmgauge.remote.client import PIECE, Reply, manager_for, open_reply, plain_errors, seconds_to_wait
from lmgauge.remote.problems import NotThereError, PassingProblem, Patience, retried, rewritten
from lmgauge.remote.protocol import FileState
from lmgauge.version import __version__

_LOGGER = logging.getLogger(__name__)
_PROGRESS = 1 << 20  # bytes after which a stream that breaks is not the same failure again
_TIMEOUT = 60.0  # seconds without a byte
_REDIRECTS = 10
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SAFE = "%/:=&?~#+!$,;'@()*[]|"


class WebStore:
    """A file at an `http://` or `https://` address."""

    # address: its user and password, if any, are sent to its own host only.

    def __init__(self, address: str) -> None:
        self.name = shown_name(address)
        try:
            parts = urlsplit(address)
            host, _ = parts.hostname, parts.port
        except ValueError as error:
            raise InputError(f"{visible(self.name)}: is not an address: {error}") from None
        if not host:
            raise InputError(f"{visible(self.name)}: is not an address: the host is missing")
        self._host, self._headers = host, {"Accept-Encoding": "identity", "User-Agent": f"lmgauge/{__version__}"}
        self._headers["Connection"] = "close"  # a forked child must not go on with a conversation of its parent
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
            if parts.scheme == "http" and host not in _LOOPBACK:
                _LOGGER.warning("%s: the password is sent over http, where others can read it; use https", self.name)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
        self._url = quote(bare.geturl(), safe=_SAFE)
        self._answered = False

    def ask(self, start: int | None = None, end: int | None = None) -> Reply:
        """Return the open reply to one GET."""
        headers, url = dict(self._headers), self._url
        if start is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        for _ in range(_REDIRECTS + 1):
            with self.explained():
                reply = open_reply(manager_for(url), "GET", url, headers, _TIMEOUT, enforce_content_length=False)
                location = reply.get_redirect_location()
                if not location:
                    break
                reply.close()
                before, url = url, redirected(self.name, url, location, reply.status)
                if urlsplit(url)[:2] != urlsplit(before)[:2]:  # a password goes to no other host
                    headers.pop("Authorization", None)
        if not 200 <= reply.status < 300:
            reply.close()
            raise _status_problem(self.name, reply, start is not None)
        self._answered = True
        if reply.headers.get("Content-Encoding", "identity") not in ("", "identity") and not self.name.endswith(".gz"):
            reply.close()
            packed = visible(reply.headers["Content-Encoding"])[:80]
            raise InputError(f"{self.name}: the server packs the file (Content-Encoding: {packed}) unasked")
        return reply

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the errors of a conversation in the block into one line each, with nothing of the address but its name."""
        try:
            with plain_errors():
                yield
        except LmgaugeError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of hosts that cannot be one
            problem = _connection_problem(self.name, self._host, error)
            if problem is None or self._answered:  # a server that has answered may do so again
                raise PassingProblem(f"the connection broke ({type(error).__name__})") from None
            raise problem from None

    def state(self) -> FileState:
        """Return the size and the version of the file: of a GET of its first byte, as many servers refuse a HEAD."""
        return retried(self.name, self._state_once)

    def _state_once(self) -> FileState:
        try:
            with self.ask(0, 1) as reply:
                return _state_of(reply)
        except _NotSatisfiable:  # an empty file has no first byte
            with self.ask() as reply:
                return _state_of(reply)

    def exists(self) -> bool:
        """Return True if the file is there."""
        try:
            self.state()
        except NotThereError:
            return False
        return True

    def matches(self) -> list[str]:
        """Return nothing: a web server has no list of its files."""
        return []

    def names(self) -> list[str]:
        """Refuse, as a web server has no list of its files."""
        raise InputError(f"{self.name}: a web server does not list its files; name them one by one")

    def transfer(self) -> WebTransfer:
        """Return the means to read the file as it is now."""
        return WebTransfer(self)

    def uploading(self) -> AbstractContextManager[IO[bytes]]:
        """Refuse: web servers are only read."""
        raise OSError("web servers are only read; write to a local path or to a bucket")

    def remove(self) -> None:
        """Refuse: web servers are only read."""
        raise OSError("web servers are only read")


class WebTransfer:
    """One version of a file on a web server."""

    def __init__(self, store: WebStore) -> None:
        self._store, self.state = store, store.state()

    def pieces(self, start: int) -> Iterator[bytes]:
        """Yield all bytes from `start` on, over one connection, which is made anew from where it broke."""
        position, patience, mark = start, Patience(self._store.name), start
        while position != self.state.size:
            try:
                for piece in self._stream(position):
                    position += len(piece)
                    if position > (self.state.size or position):
                        raise self._too_much(f"sends more than the {self.state.size:,} bytes that it says the file has")
                    yield piece
                if self.state.size is None or position == self.state.size:
                    return
                problem = PassingProblem(f"the connection ends at byte {position:,} of {self.state.size:,}")
            except PassingProblem as passing:
                problem = passing
            if position - mark >= _PROGRESS:
                patience.restore()
            mark = position
            patience.wait(problem)

    def _stream(self, position: int) -> Iterator[bytes]:
        try:
            reply = self._store.ask(position or None)
        except _NotSatisfiable:
            raise rewritten(self._store.name) from None
        with reply:
            self._check(reply, position)
            skip = 0 if reply.status == 206 else position
            if skip and not self.state.version:
                raise InputError(f"{self._store.name}: the connection broke, and the server cannot send the rest alone")
            while True:
                with self._store.explained():
                    piece = reply.read1(PIECE)
                if not piece:
                    return
                if skip >= len(piece):
                    skip -= len(piece)
                else:
                    yield piece[skip:] if skip else piece
                    skip = 0

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""
        return retried(self._store.name, lambda: self._part(start, end))

    def _part(self, start: int, end: int) -> bytes:
        try:
            reply = self._store.ask(start, end)
        except _NotSatisfiable:
            raise rewritten(self._store.name) from None
        with reply:
            self._check(reply, start)
            if reply.status != 206:
                raise InputError(
                    f"{self._store.name}: the server does not send parts of files, as this format needs: download it first"
                )
            if reply.length_remaining is not None and reply.length_remaining > end - start:
                raise self._too_much(
                    f"says of {end - start:,} bytes that they are {reply.length_remaining:,} (Content-Length)"
                )
            with self._store.explained():
                part = reply.read(end - start + 1)
        if len(part) > end - start:
            raise self._too_much(f"sends more than the {end - start:,} bytes that it was asked for")
        if len(part) < end - start:
            raise PassingProblem(f"the server sends {len(part):,} bytes of {end - start:,}")
        return part

    def _too_much(self, problem: str) -> InputError:
        return InputError(f"{self._store.name}: the server {problem}: download the file first, or ask who runs the server")

    def _check(self, reply: Reply, start: int) -> None:
        # Refuse a reply of another version of the file, or of another part of it; learn the size if it was not known.
        state = _state_of(reply)
        other_size = None not in (state.size, self.state.size) and state.size != self.state.size
        if state.version != self.state.version or other_size:
            raise rewritten(self._store.name)
        if reply.status == 206 and _range_of(reply.headers)[0] != start:
            raise InputError(f"{self._store.name}: the server sends another part of the file than it was asked for")
        if self.state.size is None:
            self.state = state

    def check_unchanged(self) -> None:
        """Do nothing: every reply was checked when it came."""


class _NotSatisfiable(Exception):
    """The server says that the part is beyond the end of the file."""


def redirected(name: str, url: str, location: str, status: int) -> str:
    """Return where a redirect leads: to web servers only, and never out of encryption."""
    target = quote(urljoin(url, location), safe=_SAFE, encoding="latin-1")
    if not is_web(target):
        raise InputError(f"{name}: is redirected to what is not a web server (HTTP {status})")
    if scheme_of(url) == "https" and scheme_of(target) == "http":
        raise InputError(f"{name}: is redirected from https to http, which is not followed")
    return target


def _state_of(reply: Reply) -> FileState:
    headers = reply.headers
    length = headers.get("Content-Length", "")
    size = _range_of(headers)[1] if reply.status == 206 else _number(length)
    return FileState(size, _version_of(headers))


def _version_of(headers: Mapping[str, str]) -> str:
    tag = headers.get("ETag", "").removeprefix("W/").strip('"')
    return tag or headers.get("Last-Modified", "")


def _range_of(headers: Mapping[str, str]) -> tuple[int, int | None]:
    # First byte and the size of the whole file of a `Content-Range: bytes 0-99/1234`; -1 if it is not one.
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    part, _, size = rest.partition("/")
    first = part.partition("-")[0]
    start = _number(first) if unit == "bytes" else None
    return -1 if start is None else start, _number(size)


def _number(digits: str) -> int | None:
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def _status_problem(name: str, reply: Reply, in_part: bool) -> Exception:
    status = reply.status
    if status == 416 and in_part:
        return _NotSatisfiable()
    if status in (404, 410):
        pattern = "; a web server takes no patterns: name each file" if set("*[") & set(name) else ""
        return NotThereError(f"{name}: no such file (HTTP {status}){pattern}")
    if status == 401:
        return InputError(f"{name}: wants another user and password (HTTP 401): put USER:PASSWORD@ before the host")
    if status == 403:
        return InputError(f"{name}: access is denied (HTTP 403): is the address complete, and still valid?")
    if status in _PASSING:
        return PassingProblem(f"the server is busy or has a problem (HTTP {status})", seconds_to_wait(reply))
    if status in (301, 302, 303, 307, 308):
        return InputError(f"{name}: is redirected in a circle (HTTP {status})")
    return InputError(f"{name}: cannot be read (HTTP {status})")


def _connection_problem(name: str, host: str, error: Exception) -> InputError | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return InputError(f"{name}: the certificate of {host} is not valid: {visible(error.verify_message)}")
    if isinstance(error, socket.gaierror):
        return InputError(f"{name}: the host {host} is not known, or the network is down")
    if isinstance(error, ConnectionRefusedError):
        return InputError(f"{name}: no server answers at {host}; are host and port right?")
    if isinstance(error, ssl.SSLError):
        return InputError(f"{name}: {host} does not speak TLS as it should ({error.reason or 'unknown'}); is it https?")
    if isinstance(error, (http.client.InvalidURL, ValueError)):
        return InputError(f"{name}: is not an address, or is redirected to what is not one")
    return None
