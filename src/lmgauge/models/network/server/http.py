"""Talking JSON to a server: connections that are kept, time limits, another try when it is busy, and words when it fails."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import socket
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from lmgauge.base.errors import LmgaugeError, ModelFileError, UsageError
from lmgauge.base.json_text import from_json
from lmgauge.base.remote.addresses import is_loopback
from lmgauge.base.remote.client import PIECE, open_reply, plain_errors, pool_for, seconds_to_wait
from lmgauge.base.remote.problems import PASSING, PassingProblem, Patience
from lmgauge.base.threads import OfProcess
from lmgauge.base.version import __version__

KEY_VARIABLE = "LMGAUGE_API_KEY"
"""Holds the key of whatever server is named."""
OPENAI_KEY_VARIABLE, OPENAI_ADDRESS_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
"""A key that other programs use too, and the server it is for; OpenAI's own if that is not set."""
_OPENAI = "https://api.openai.com"
_LOGGER = logging.getLogger(__name__)
_READ_SECONDS = 600.0
_REPLY_SECONDS = 1200.0  # for all of a reply, as one that comes drop by drop never lets a read time out
_FAILED = 500  # with which some servers refuse a request: asked again, it fails again
_REFUSED_KEY, NOBODY = (401, 403), -1  # states of a reply; the last stands for no reply
_LARGEST_REPLY = 1 << 28
_SHOWN = 300
_ADDRESS = "give one such as http://127.0.0.1:8000/v1"
_NOT_THERE = (ConnectionRefusedError, socket.gaierror)


class ServerError(ModelFileError):
    """Raised when a server cannot be reached, refuses a request, or answers what it should not."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class _ServerPatience(Patience):
    tries, longest = 6, 60.0

    def spent(self, problem: PassingProblem) -> ServerError:
        advice = "try again later, or with fewer --threads"
        return ServerError(f"{self.name}: no answer after {self.tries} tries: {problem}; {advice}", NOBODY)


class Endpoint:
    """The address of a server."""

    def __init__(self, url: str) -> None:
        shown = re.sub(r"//[^/]*@", "//***@", url)
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            raise UsageError(f"{shown}: is not the address of a server ({error}); {_ADDRESS}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{shown}: is not the address of a server; {_ADDRESS}")
        if parts.username is not None or parts.password is not None:
            raise UsageError(f"{shown}: an address holds no name and password; a key belongs into {KEY_VARIABLE}")
        encrypted = parts.scheme == "https" or is_loopback(parts.hostname)
        self._path, self._query = parts.path.rstrip("/"), f"?{parts.query}" if parts.query else ""
        self.url = f"{parts.scheme}://{parts.netloc}{self._path}{self._query}"
        self.model = parts.fragment
        self._key, self._key_variable = self._find_key(encrypted)
        try:
            self._pool = OfProcess(partial(pool_for, f"{parts.scheme}://{parts.netloc}", _REPLY_SECONDS))
        except ValueError as error:  # of hosts that cannot be one
            raise UsageError(f"{self.url}: is not the address of a server ({error}); {_ADDRESS}") from error
        self._answered = False

    def _find_key(self, encrypted: bool) -> tuple[str, str]:
        # Key to send and the variable that holds it; empty where no variable has one for this server.
        variable = KEY_VARIABLE
        if not os.environ.get(variable):
            known = [_OPENAI, os.environ.get(OPENAI_ADDRESS_VARIABLE, "")]
            if not encrypted or _origin(self.url) not in [_origin(url) for url in known if url]:
                return "", ""
            variable = OPENAI_KEY_VARIABLE
        key = os.environ.get(variable, "")
        if not key.isprintable() or not key.isascii():
            raise UsageError(f"{variable} holds characters that no key has, a line end perhaps; set it again")
        if key and not encrypted:
            open_to_all = "is sent over http, where others on the network can read it; use https"
            _LOGGER.warning("%s: the key in %s %s", self.url, variable, open_to_all)
        return key, variable

    def get(self, path: str) -> dict[str, Any]:
        """Return the reply to a GET, a JSON object of at most 2^28 bytes."""
        return self._request("GET", path, None)

    def post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a POST of a JSON object."""
        # Raises ServerError: no server there, it refuses, stays busy, or does not answer with a JSON object.
        return self._request("POST", path, json.dumps(content, ensure_ascii=False).encode())

    def close(self) -> None:
        """Close the connections that are kept; later requests open new ones."""
        pool = self._pool.value
        self._pool.forget()
        pool.close()

    def _request(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        status, reply = _ServerPatience(self.url).retried(lambda: self._answer(method, path, body))
        return self._checked(status, reply)

    def _answer(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        # Status and content of a reply of a server that is not busy.
        try:
            status, reply, after = self._once(method, path, body)
        except LmgaugeError:
            raise
        except TimeoutError as error:
            words = error or "timed out"
            raise ServerError(f"{self.url}: no answer in time ({words}); is the server overloaded?", NOBODY) from error
        except (http.client.HTTPException, OSError, ValueError) as error:
            passing = isinstance(error, (http.client.HTTPException, ConnectionError)) and not isinstance(error, _NOT_THERE)
            if not self._answered and not passing:  # no use in asking again: nobody listens
                reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                hint = "is it running, and are host and port right?"
                raise ServerError(f"{self.url}: no server answers ({reason}); {hint}", NOBODY) from error
            raise PassingProblem(_one_line(str(error) or type(error).__name__)) from error
        self._answered = True
        if status in PASSING and status != _FAILED:
            raise PassingProblem(f"HTTP {status} {self._words(reply)}".strip(), after)
        return status, reply

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        headers = {"Accept": "application/json", "User-Agent": f"lmgauge/{__version__}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        target, content, end = f"{self._path}{path}{self._query}", bytearray(), time.monotonic() + _REPLY_SECONDS
        try:
            with plain_errors(), open_reply(self._pool.value, method, target, headers, _READ_SECONDS, body=body) as reply:
                while (piece := reply.read1(PIECE)) and len(content) <= _LARGEST_REPLY and time.monotonic() < end:
                    content += piece
        except (http.client.HTTPException, OSError):
            if time.monotonic() < end:
                raise
        if time.monotonic() >= end:
            raise TimeoutError(f"its reply took over {_REPLY_SECONDS:.0f} s")
        if len(content) > _LARGEST_REPLY:
            raise ServerError(f"{self.url}: answers with over {_LARGEST_REPLY >> 20} MiB; is this a completions server?")
        return reply.status, bytes(content), seconds_to_wait(reply)

    def _checked(self, status: int, reply: bytes) -> dict[str, Any]:
        if status in _REFUSED_KEY:
            hint = f"the server wants a key: set {KEY_VARIABLE}"
            if self._key:
                hint = f"the server refuses the key in {self._key_variable}"
            elif os.environ.get(OPENAI_KEY_VARIABLE):
                hint += f" ({OPENAI_KEY_VARIABLE} goes only to {_OPENAI} and, encrypted, to {OPENAI_ADDRESS_VARIABLE})"
            raise ServerError(f"{self.url}: HTTP {status}: {hint}. {self._words(reply)}".rstrip(), status)
        words = self._words(reply)
        if status // 100 != 2:
            raise ServerError(f"{self.url}: HTTP {status}: {words or 'no reason given'}", status, words)
        try:
            content = from_json(reply)
        except ValueError as error:
            raise ServerError(f"{self.url}: does not answer with JSON; is /v1 missing? It says: {words}") from error
        if not isinstance(content, dict):
            raise ServerError(f"{self.url}: answers with JSON that is not an object; is this a completions server?")
        return content

    def _words(self, reply: bytes) -> str:
        # What a reply says for people: the message of the usual error objects, else its beginning.
        text = reply[: 1 << 16].decode("utf-8", "replace")
        try:
            problem = from_json(text)
        except ValueError:
            problem = None
        while isinstance(problem, dict):
            problem = next((problem[name] for name in ("error", "message", "detail") if problem.get(name)), None)
        text = problem if isinstance(problem, str) else text
        text = _one_line(text)
        if self._key:
            text = text.replace(self._key, "***")
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    # What two addresses of one server have in common; None of what is not an address.
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
