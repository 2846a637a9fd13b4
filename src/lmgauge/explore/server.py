"""The server: addresses to answers, on a loopback address of this machine."""

from __future__ import annotations

import errno
import hmac
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmgauge.base.decoding import decode
from lmgauge.base.errors import LmgaugeError, UsageError, needing
from lmgauge.base.escaping import visible_on_page
from lmgauge.base.json_text import plain
from lmgauge.base.version import __version__
from lmgauge.explore import requests
from lmgauge.report.page import asset, environment, policy

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lmgauge.explore.explorer import Explorer


# -----------------------------------------------------------------------------------------------------------------------
# What stands before every request: only this machine, only who has the token, only what is read, nothing huge.
# A server on a loopback address can be reached by every page that the browser shows, and by every user of the machine. So
# the name the browser asks for must be that of this machine (a foreign name that leads here is DNS rebinding), a request of
# another site is refused, and without the token in the address nothing is answered.


with needing("starlette", extra="explore"):
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect


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


with needing("starlette", extra="explore"):
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
with needing("uvicorn", extra="explore"):  # before the address is printed
    import uvicorn


_ANSWERS: dict[str, Callable[[Explorer, requests.Asked], Response | dict[str, Any]]] = {
    "/": lambda explorer, asked: page(explorer),
    # The report brings a policy of its own, which allows it no request.
    "/report": lambda explorer, asked: _html(explorer.report(), "frame-ancestors 'none'"),
    "/api/state": lambda explorer, asked: explorer.state(),
    "/api/segments": requests.segments,
    "/api/segment": requests.segment,
    "/api/numbers": requests.numbers,
    "/api/score": requests.score,
}


def application(explorer: Explorer, token: str) -> ASGIApp:
    """Return the application."""
    # token: that every request must have.

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no sockets here, and nothing to start or stop
        request = Request(scope, receive)
        try:
            posted = scope["path"].startswith("/api/")
            check(request, token, posted=posted)
            body = await body_of(request) if posted else b"{}"
            response = await run_in_threadpool(_response, explorer, scope["path"], body)
        except HTTPException as refusal:
            response = _refused(refusal.detail, refusal.status_code)
        if scope["path"] == "/" and response.status_code == 200:
            # The page takes the token out of the address; with the cookie it can be loaded again, and its anchors pasted.
            response.set_cookie(cookie_name(request), token, httponly=True, samesite="strict")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    return app


def page(explorer: Explorer) -> Response:
    """Return the page: the style and the script of the report page, and a script of its own that asks for more."""
    style, script = (f"{asset(f'page.{kind}')}\n{asset(f'explore.{kind}', 'lmgauge.explore')}" for kind in ("css", "js"))
    template = environment("lmgauge.explore").get_template("explore.html")
    html = template.render(title=explorer.title, style=style, script=script, version=__version__)
    allowed = policy(style, script, connect="'self'")
    return _html(html, f"{allowed}; frame-ancestors 'none'")


def _html(text: str, allowed: str) -> Response:
    return HTMLResponse(text, headers={"content-security-policy": allowed})


def _response(explorer: Explorer, path: str, body: bytes) -> Response:
    # Answer as JSON or a page; what cannot be answered, in words.
    if path not in _ANSWERS:
        return _refused("there is nothing at this address: open the one that lmgauge printed", 404)
    try:
        asked = decode(body, requests.Asked, "the request", "one", "open the page again", UsageError)
        answer = _ANSWERS[path](explorer, asked)
        return answer if isinstance(answer, Response) else JSONResponse(plain(answer))
    except UsageError as error:
        return _refused(str(error), 400)
    except LmgaugeError as error:
        return _refused(str(error), 409)
    except OSError as error:
        return _refused(f"the index of the explorer cannot be read ({error.strerror or error})", 409)


def _refused(reason: str, status: int) -> Response:
    return JSONResponse({"error": visible_on_page(" ".join(reason.split("\n")))}, status)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket on a loopback address of this machine."""
    if host not in LOOPBACK:
        raise UsageError(
            f"--host {host}: the explorer is served on this machine only ({', '.join(sorted(LOOPBACK))}); to reach it from "
            "another, forward a port with ssh -L"
        )
    own = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1" if host == "localhost" else host, port))
        own.listen(64)  # who opens the address at once waits until the server is there
    except OSError as error:
        own.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            reason = "is taken" if error.errno == errno.EADDRINUSE else "may not be used by this user"
            raise UsageError(f"port {port} {reason}: choose another with --port, or leave it out for a free one") from error
        raise UsageError(f"--host {host}: cannot listen there: {error.strerror or error}") from error
    return own


def run(app: ASGIApp, own: socket.socket) -> None:
    """Answer requests until the process is interrupted."""
    # h11 refuses a head of more than 64 KB.
    silent: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", timeout_graceful_shutdown=1, **silent)
    uvicorn.Server(config).run(sockets=[own])
