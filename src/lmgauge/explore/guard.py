"""What stands before every request: only this machine, only who has the token, only what is read, nothing huge."""

# A server on a loopback address can be reached by every page that the browser shows, and by every user of the machine. So
# the name the browser asks for must be that of this machine (a foreign name that leads here is DNS rebinding), a request of
# another site is refused, and without the token in the address nothing is answered.

from __future__ import annotations

import hmac
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from lmgauge.readable import visible_on_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_QUERY = 8_000
"""Bytes of what follows the ? of an address."""
LARGEST_BODY = 200_000
"""Bytes: a text of 20,000 characters in any script, as JSON."""
POSTED = frozenset(("/api/score", "/api/top"))
"""What is asked with a body; all else is GET."""
TOKEN_HEADER = "x-lmgauge-token"
COOKIE = "lmgauge"
LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::[0-9]{1,5})?")

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
_NOTHING = b"default-src 'none'; frame-ancestors 'none'"


class Refusal(Exception):
    """Raised when a request is not answered."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Guard:
    """The application around the application: refuses in words, and adds the headers that keep a page to itself."""

    # token: that every request must have, in its address, the header `TOKEN_HEADER` or the cookie.

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no sockets here, and nothing to start or stop

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                own += [(name, value) for name, value in _HEADERS if name not in named]
                if b"content-security-policy" not in named:
                    own.append((b"content-security-policy", _NOTHING))
                message = {**message, "headers": own}
            await send(message)

        try:
            check(scope, self._token)
            body = await read_body(scope, receive)
        except Refusal as refusal:
            await _answer(refusal, with_headers)
            return

        async def replay() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay if scope["method"] == "POST" else receive, with_headers)


def check(scope: Scope, token: str) -> None:
    """Refuse a request that may not be answered."""
    # token: that it must have.
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    if hostname(host) not in LOOPBACK:
        raise Refusal(403, "this server answers only to names of this machine: open the address that lmgauge printed")
    query = scope.get("query_string", b"")
    if len(query) > LONGEST_QUERY:
        raise Refusal(414, f"the address is {len(query):,} bytes long, more than {LONGEST_QUERY:,}: ask for less")
    posted = scope["path"] in POSTED
    if scope["method"] != ("POST" if posted else "GET"):
        raise Refusal(405, f"{scope['path']} is asked with {'POST' if posted else 'GET'}: nothing can be changed here")
    if posted and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refusal(415, "a text to score comes as JSON (content-type: application/json)")
    in_query = _in_query(query)
    if _is_of_another_site(headers) and not (in_query and _opens_the_page(scope, headers)):
        raise Refusal(403, "a request of another site is not answered: open the address that lmgauge printed")
    sent = (in_query, headers.get(TOKEN_HEADER, ""), _in_cookie(headers, scope))
    if not any(hmac.compare_digest(one.encode(), token.encode()) for one in sent):
        raise Refusal(403, "the token is missing or wrong: open the address that lmgauge printed, with its token")


def hostname(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    match = _HOST.fullmatch(host.lower())
    return "" if match is None else match[1] or match[2]


def _is_of_another_site(headers: Mapping[str, str]) -> bool:
    origin = headers.get("origin")
    is_foreign = origin is not None and origin != f"http://{headers.get('host', '')}"
    return is_foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")


def _opens_the_page(scope: Scope, headers: Mapping[str, str]) -> bool:
    is_opening = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return is_opening and scope["path"] == "/" and "origin" not in headers


def cookie_name(scope: Mapping[str, object]) -> str:
    """Return the name of the cookie with the token: cookies belong to a machine, not to one of its ports."""
    server = scope.get("server")
    port = server[1] if isinstance(server, (list, tuple)) and len(server) > 1 else None
    return f"{COOKIE}-{port or 0}"


def _in_query(query: bytes) -> str:
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def _in_cookie(headers: Mapping[str, str], scope: Scope) -> str:
    # By hand: http.cookies gives up at a cookie it does not like, and other servers of this machine set cookies too.
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value.strip('"') for name, _, value in pairs if name == cookie_name(scope)), "")


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the body of a request, which is read no further than it may be long."""
    if scope["method"] != "POST":
        return b""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "the request ends before its text does: send all of it")
        part: bytes = message.get("body", b"")
        body += part
        if len(body) > LARGEST_BODY:
            raise Refusal(413, f"the text is more than {LARGEST_BODY:,} bytes: score a shorter one, or use lmgauge eval")
        if not message.get("more_body"):
            return body


async def _answer(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": visible_on_page(refusal.text)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
