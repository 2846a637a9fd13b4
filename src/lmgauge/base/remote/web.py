"""Files on web servers: nothing is sent but GETs to the address (and to where it redirects)."""

# fsspec's own file system for them takes a whole file for the part it asked for where a server knows no ranges, and never
# asks again; a text must not depend on either.

from __future__ import annotations

import base64
import http.client
import logging
import re
import socket
import ssl
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.escaping import visible
from lmgauge.base.remote.addresses import FileState, is_loopback, is_web, scheme_of, shown_name
from lmgauge.base.remote.client import PIECE, Reply, manager_for, open_reply, plain_errors, seconds_to_wait
from lmgauge.base.remote.problems import PASSING, NotThereError, PassingProblem, Patience, RewrittenError
from lmgauge.base.version import __version__

_LOGGER = logging.getLogger(__name__)
_PROGRESS = 1 << 20  # bytes after which a stream that breaks is not the same failure again
_TIMEOUT = 60.0  # seconds without a byte
_REDIRECTS = 10
_SAFE = "%/:=&?~#+!$,;'@()*[]|"
_EXTENT = re.compile(r"bytes ([0-9]{1,18})-[^/]*(?:/([0-9]{1,18})$)?")  # as in `bytes 0-99/1234`

_SAID: dict[Any, str] = {
    ssl.SSLCertVerificationError: "the certificate of {host} is not valid: {error.verify_message}",
    socket.gaierror: "the host {host} is not known, or the network is down",
    ConnectionRefusedError: "no server answers at {host}; are host and port right?",
    ssl.SSLError: "{host} does not speak TLS as it should ({error.reason}); is it https?",
    (http.client.InvalidURL, ValueError): "is not an address, or redirects to something that is not one",
}
"""What is said of errors before a server has answered; of others, that the connection broke."""


class WebStore:
    """A file at an `http://` or `https://` address."""

    # address: its user and password, if any, are sent to its own host only.

    opened = FileState()

    def __init__(self, address: str) -> None:
        self._address, self.name = address, shown_name(address)
        try:
            parts = urlsplit(address)
            host, _ = parts.hostname, parts.port
            if not host:
                raise ValueError("the host is missing")
        except ValueError as error:
            raise InputError(f"{visible(self.name)}: is not an address: {error}") from None
        self._host, self._headers = host, {"Accept-Encoding": "identity", "User-Agent": f"lmgauge/{__version__}"}
        self._headers["Connection"] = "close"  # a forked child must not go on with a conversation of its parent
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
            if parts.scheme == "http" and not is_loopback(host):
                _LOGGER.warning("%s: the password is sent over http, where others can read it; use https", self.name)
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")
        self._url = quote(bare.geturl(), safe=_SAFE)
        self._answered = False

    def _ask(self, start: int | None = None, end: int | None = None) -> Reply:
        # The open reply to one GET.
        headers, url = dict(self._headers), self._url
        if start is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        for _ in range(_REDIRECTS + 1):
            with self._explained():
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
        packed = reply.headers.get("Content-Encoding", "identity")
        if packed not in ("", "identity") and not self.name.endswith(".gz"):
            reply.close()
            raise InputError(
                f"{self.name}: the server packs the file (Content-Encoding: {visible(packed)[:80]}) without being asked"
            )
        return reply

    @contextmanager
    def _explained(self) -> Iterator[None]:
        # Turn the errors of a conversation in the block into one line each, with nothing of the address but its name.
        try:
            with plain_errors():
                yield
        except LmgaugeError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: of hosts that cannot be one
            said = next((words for kind, words in _SAID.items() if isinstance(error, kind)), None)
            if said is None or self._answered:  # a server that has answered may do so again
                raise PassingProblem(f"the connection broke ({type(error).__name__})") from None
            raise InputError(f"{self.name}: {visible(said.format(host=self._host, error=error))}") from None

    def state(self) -> FileState:
        """Return the size and the version of the file: of a GET of its first byte, as many servers refuse a HEAD."""
        try:
            return Patience(self.name).retried(lambda: self._state(0, 1))
        except RewrittenError:  # an empty file has no first byte
            return Patience(self.name).retried(self._state)

    def _state(self, start: int | None = None, end: int | None = None) -> FileState:
        with self._ask(start, end) as reply:
            return _state_of(reply)

    def exists(self) -> bool:
        """Return True if the file is there."""
        try:
            self.state()
        except NotThereError:
            return False
        return True

    def matches(self) -> list[str]:
        """Return the address, whatever is there: a web server has no list of its files."""
        return [self._address]

    def pieces(self, start: int) -> Generator[bytes]:
        """Yield all bytes from `start` on, over one connection, which is made anew from where it broke."""
        position, patience, mark = start, Patience(self.name), start
        while position != self.opened.size:
            try:
                for piece in self._stream(position):
                    position += len(piece)
                    if position > (self.opened.size or position):
                        raise self._too_much(f"sends more than the {self.opened.size:,} bytes that it says the file has")
                    yield piece
                if self.opened.size is None or position == self.opened.size:
                    return
                problem = PassingProblem(f"the connection ends at byte {position:,} of {self.opened.size:,}")
            except PassingProblem as passing:
                problem = passing
            if position - mark >= _PROGRESS:
                patience.failures = 0
            mark = position
            patience.wait(problem)

    def _stream(self, position: int) -> Iterator[bytes]:
        with self._ask(position or None) as reply:
            self._check(reply, position)
            skip = 0 if reply.status == 206 else position
            if skip and not self.opened.version:
                raise InputError(f"{self.name}: the connection broke, and the server cannot send the rest alone")
            while True:
                with self._explained():
                    piece = reply.read1(PIECE)
                if not piece:
                    return
                if skip < len(piece):
                    yield piece[skip:]
                skip = max(0, skip - len(piece))

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`."""
        return Patience(self.name).retried(lambda: self._part(start, end))

    def _part(self, start: int, end: int) -> bytes:
        size = end - start
        with self._ask(start, end) as reply:
            self._check(reply, start)
            if reply.status != 206:
                raise InputError(f"{self.name}: the server sends no parts of files, as this format needs: download it first")
            if (reply.length_remaining or 0) > size:
                raise self._too_much(f"says of {size:,} bytes that they are {reply.length_remaining:,} (Content-Length)")
            with self._explained():
                part = reply.read(size + 1)
        if len(part) > size:
            raise self._too_much(f"sends more than the {size:,} bytes that it was asked for")
        if len(part) < size:
            raise PassingProblem(f"the server sends {len(part):,} bytes of {size:,}")
        return part

    def _too_much(self, problem: str) -> InputError:
        return InputError(f"{self.name}: the server {problem}: download the file first, or ask who runs the server")

    def _check(self, reply: Reply, start: int) -> None:
        # Refuse a reply of another version of the file, or of another part of it; learn the size if it was not known.
        state = _state_of(reply)
        if self.opened.is_another(state):
            raise RewrittenError(self.name)
        if reply.status == 206 and _extent_of(reply)[0] != start:
            raise InputError(f"{self.name}: the server sends another part of the file than it was asked for")
        if self.opened.size is None:
            self.opened = state

    def check_unchanged(self) -> None:
        """Do nothing: every reply was checked when it came."""

    def uploading(self) -> AbstractContextManager[Any]:
        """Refuse: web servers are only read."""
        raise OSError("web servers are only read; write to a local path or to a bucket")


def redirected(name: str, url: str, location: str, status: int) -> str:
    """Return where a redirect leads: to web servers only, and never out of encryption."""
    target = quote(urljoin(url, location), safe=_SAFE, encoding="latin-1")
    if not is_web(target):
        raise InputError(f"{name}: is redirected to what is not a web server (HTTP {status})")
    if scheme_of(url) == "https" and scheme_of(target) == "http":
        raise InputError(f"{name}: is redirected from https to http, which is not followed")
    return target


def _state_of(reply: Reply) -> FileState:
    tag = reply.headers.get("ETag", "").removeprefix("W/").strip('"')
    return FileState(_extent_of(reply)[1], tag or reply.headers.get("Last-Modified", ""))


def _extent_of(reply: Reply) -> tuple[int, int | None]:
    # First byte of what a reply holds, -1 if it does not say, and the size of the whole file, if it does.
    whole = f"bytes 0-/{reply.headers.get('Content-Length')}"
    match = _EXTENT.match(reply.headers.get("Content-Range", "") if reply.status == 206 else whole)
    return (-1, None) if match is None else (int(match[1]), int(match[2]) if match[2] else None)


def _status_problem(name: str, reply: Reply, in_part: bool) -> Exception:
    status = reply.status
    if status == 416 and in_part:
        return RewrittenError(name)
    if status in (404, 410):
        pattern = "; a web server takes no patterns: name each file" if set("*[") & set(name) else ""
        return NotThereError(f"{name}: no such file (HTTP {status}){pattern}")
    if status in PASSING:
        return PassingProblem(f"the server is busy or has a problem (HTTP {status})", seconds_to_wait(reply))
    if status == 401:
        return InputError(f"{name}: wants another user and password (HTTP 401): put USER:PASSWORD@ before the host")
    if status == 403:
        return InputError(f"{name}: access is denied (HTTP 403): is the address complete, and still valid?")
    said = "is redirected in a circle" if status in (301, 302, 303, 307, 308) else "cannot be read"
    return InputError(f"{name}: {said} (HTTP {status})")
