"""The server: addresses to answers, on a loopback address of this machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmgauge.base.decoding import decode
from lmgauge.base.errors import LmgaugeError, UsageError, needing
from lmgauge.base.escaping import visible_on_page
from lmgauge.base.json_text import plain
from lmgauge.base.version import __version__
from lmgauge.explore import requests
from lmgauge.explore.security import HEADERS, LOOPBACK, body_of, check, cookie_name
from lmgauge.report.page import asset, environment, policy

with needing("starlette", extra="explore"):
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
with needing("uvicorn", extra="explore"):  # before the address is printed
    import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from lmgauge.explore.explorer import Explorer

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
            f"--host {host}: the explorer is served on this machine only ({', '.join(sorted(LOOPBACK))}); from another one, "
            "lead a port here through ssh -L"
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
        raise UsageError(f"--host {host}: cannot be listened on: {error.strerror or error}") from error
    return own


def run(app: ASGIApp, own: socket.socket) -> None:
    """Answer requests until the process is interrupted."""
    # h11 refuses a head of more than 64 KB.
    silent: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", timeout_graceful_shutdown=1, **silent)
    uvicorn.Server(config).run(sockets=[own])
