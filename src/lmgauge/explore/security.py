"""What stands before every request: only this machine, only who has the token, only what is read, nothing huge."""

# A server on a loopback address can be reached by every page that the browser shows, and by every user of the machine. So
# the name the browser asks for must be that of this machine (a foreign name that leads here is DNS rebinding), a request of
# another site is refused, and without the token in the address nothing is answered.

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING

from lmgauge.base.errors import needing

with needing("starlette", extra="explore"):
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from starlette.requests import Request

LONGEST_QUERY = 8_000
"""Bytes of what follows the ? of an address."""
LARGEST_BODY = 50_000
"""Bytes: a text of 4,000 characters in any script, as JSON."""
TOKEN_HEADER = "x-lmgauge-token"
LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""What every answer says that does not say otherwise: a page is kept to itself."""
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::[0-9]{1,5})?")


def check(request: Request, token: str, *, posted: bool) -> None:
    """Refuse a request that may not be answered."""
    # token: that it must have, in its address, the header `TOKEN_HEADER` or the cookie; posted: it comes with a body.
    headers, path, query = request.headers, request.scope["path"], request.scope["query_string"]
    if hostname(headers.get("host", "")) not in LOOPBACK:
        raise HTTPException(403, "this server answers only to names of this machine: open the address that lmgauge printed")
    if len(query) > LONGEST_QUERY:
        raise HTTPException(414, f"the address is {len(query):,} bytes long, more than {LONGEST_QUERY:,}: ask for less")
    if request.method != ("POST" if posted else "GET"):
        raise HTTPException(405, f"{path} is asked with {'POST' if posted else 'GET'}: nothing can be changed here")
    if posted and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "what is asked comes as JSON (content-type: application/json)")
    in_query = request.query_params.get("token", "")
    if _is_of_another_site(request) and not (in_query and _opens_the_page(request)):
        raise HTTPException(403, "a request of another site is not answered: open the address that lmgauge printed")
    sent = (in_query, headers.get(TOKEN_HEADER, ""), request.cookies.get(cookie_name(request), ""))
    if not any(hmac.compare_digest(one.encode(), token.encode()) for one in sent):
        raise HTTPException(403, "the token is missing or wrong: open the address that lmgauge printed, with its token")


def hostname(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    match = _HOST.fullmatch(host.lower())
    return "" if match is None else match[1] or match[2]


def _is_of_another_site(request: Request) -> bool:
    origin = request.headers.get("origin")
    is_foreign = origin is not None and origin != f"http://{request.headers.get('host', '')}"
    return is_foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site")


def _opens_the_page(request: Request) -> bool:
    headers = request.headers
    is_opening = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return is_opening and request.scope["path"] == "/" and "origin" not in headers


def cookie_name(request: Request) -> str:
    """Return the name of the cookie with the token: cookies belong to a machine, not to one of its ports."""
    server = request.scope.get("server")
    return f"lmgauge-{(server and server[1]) or 0}"


async def body_of(request: Request) -> bytes:
    """Return the body of a request, which is read no further than it may be long."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                raise HTTPException(413, f"the text is more than {LARGEST_BODY:,} bytes: use lmgauge eval for longer ones")
    except ClientDisconnect as error:
        raise HTTPException(400, "the request ends before its text does: send all of it") from error
    return body
