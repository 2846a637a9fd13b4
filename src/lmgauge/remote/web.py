"""Files on web servers, by the standard library: nothing is sent but GETs to the address (and to where it redirects)."""

# fsspec's own file system for them takes a whole file for the part it asked for where a server knows no ranges, and never
# asks again; a text must not depend on either.

from __future__ import annotations

import base64
import http.client
import logging
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from email.message import Message
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

from lmgauge.errors import InputError, LmgaugeError
from lmgauge.readable import visible
from lmgauge.remote.addresses import is_web, shown_name
from lmgauge.remote.problems import NotThereError, PassingProblem, Patience, retried, rewritten
from lmgauge.remote.protocol import FileState
from lmgauge.version import __version__

_LOGGER = logging.getLogger(__name__)
_PIECE = 1 << 18
_PROGRESS = 1 << 20  # bytes after which a stream that breaks is not the same failure again
_TIMEOUT = 60.0  # seconds without a byte
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
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
            if parts.scheme == "http" and host not in _LOOPBACK:
                _LOGGER.warning("%s: the password is sent over http, where others can read it; use https", self.name)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
        self._url = quote(bare.geturl(), safe=_SAFE)
        self._opener = _opener()
        self._answered = False

    def ask(self, start: int | None = None, end: int | None = None) -> http.client.HTTPResponse:
        """Return the open reply to one GET."""
        headers = dict(self._headers)
        if start is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        with self.explained(in_part=start is not None):
            reply: http.client.HTTPResponse = self._opener.open(
                urllib.request.Request(self._url, headers=headers), timeout=_TIMEOUT
            )
        self._answered = True
        if reply.headers.get("Content-Encoding", "identity") not in ("", "identity") and not self.name.endswith(".gz"):
            reply.close()
            raise InputError(f"{self.name}: the server packs the file ({_said(reply.headers, 'Content-Encoding')}) unasked")
        return reply

    @contextmanager
    def explained(self, in_part: bool = False) -> Iterator[None]:
        """Turn the errors of a conversation in the block into one line each, with nothing of the address but its name."""
        try:
            yield
        except urllib.error.HTTPError as error:
            error.close()
            raise _status_problem(self.name, error, in_part) from None
        except LmgaugeError:
            raise
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
        ) as error:  # ValueError: of hosts that cannot be one
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
                    piece = reply.read1(_PIECE)
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
            if reply.length is not None and reply.length > end - start:
                raise self._too_much(f"says of {end - start:,} bytes that they are {reply.length:,} (Content-Length)")
            with self._store.explained():
                part = reply.read(end - start + 1)
        if len(part) > end - start:
            raise self._too_much(f"sends more than the {end - start:,} bytes that it was asked for")
        if len(part) < end - start:
            raise PassingProblem(f"the server sends {len(part):,} bytes of {end - start:,}")
        return part

    def _too_much(self, problem: str) -> InputError:
        return InputError(f"{self._store.name}: the server {problem}: download the file first, or ask who runs the server")

    def _check(self, reply: http.client.HTTPResponse, start: int) -> None:
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


def _opener() -> urllib.request.OpenerDirector:
    # What speaks HTTP and nothing else: the library's own would follow a redirect to FTP.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


class _NotSatisfiable(Exception):
    """The server says that the part is beyond the end of the file."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, never out of encryption, and takes the password to no other host."""

    max_redirections = 10

    def http_error_302(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any) -> Any:
        # Follow the redirect; where that cannot be done, close the connection, which the library leaves open.
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        parts = urlsplit(newurl)
        if not is_web(newurl):
            raise InputError(f"{shown_name(req.full_url)}: is redirected to what is not a web server (HTTP {code})")
        if req.type == "https" and parts.scheme == "http":
            raise InputError(f"{shown_name(req.full_url)}: is redirected from https to http, which is not followed")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and (parts.hostname, parts.port) != (
            urlsplit(req.full_url).hostname,
            urlsplit(req.full_url).port,
        ):
            request.remove_header("Authorization")
        return request


def _state_of(reply: http.client.HTTPResponse) -> FileState:
    headers = reply.headers
    length = headers.get("Content-Length", "")
    size = _range_of(headers)[1] if reply.status == 206 else _number(length)
    return FileState(size, _version_of(headers))


def _version_of(headers: Message) -> str:
    tag = headers.get("ETag", "").removeprefix("W/").strip('"')
    return tag or headers.get("Last-Modified", "")


def _range_of(headers: Message) -> tuple[int, int | None]:
    # First byte and the size of the whole file of a `Content-Range: bytes 0-99/1234`; -1 if it is not one.
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    part, _, size = rest.partition("/")
    first = part.partition("-")[0]
    start = _number(first) if unit == "bytes" else None
    return -1 if start is None else start, _number(size)


def _number(digits: str) -> int | None:
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


def _said(headers: Message, name: str) -> str:
    return f"{name}: {visible(headers.get(name, ''))[:80]}"


def _status_problem(name: str, error: urllib.error.HTTPError, in_part: bool) -> Exception:
    status = error.code
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
        after = _number(error.headers.get("Retry-After", "")) or 0
        return PassingProblem(f"the server is busy or has a problem (HTTP {status})", after)
    if status in (301, 302, 303, 307, 308):
        where = "to what is not a web server" if "not allowed" in error.msg else "in a circle"
        return InputError(f"{name}: is redirected {where} (HTTP {status})")
    return InputError(f"{name}: cannot be read (HTTP {status})")


def _connection_problem(name: str, host: str, error: Exception) -> InputError | None:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return InputError(f"{name}: the certificate of {host} is not valid: {visible(cause.verify_message)}")
    if isinstance(cause, socket.gaierror):
        return InputError(f"{name}: the host {host} is not known, or the network is down")
    if isinstance(cause, ConnectionRefusedError):
        return InputError(f"{name}: no server answers at {host}; are host and port right?")
    if isinstance(cause, ssl.SSLError):
        return InputError(f"{name}: {host} does not speak TLS as it should ({cause.reason or 'unknown'}); is it https?")
    if isinstance(cause, (http.client.InvalidURL, ValueError)):
        return InputError(f"{name}: is not an address, or is redirected to what is not one")
    return None
