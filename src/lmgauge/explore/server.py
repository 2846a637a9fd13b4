"""The server: addresses to answers, on a loopback address of this machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmgauge.errors import InputError, LmgaugeError, UsageError, needing
from lmgauge.explore import requests
from lmgauge.explore.guard import LOOPBACK, POSTED, Guard, cookie_name
from lmgauge.explore.page import page
from lmgauge.json_text import from_json, plain
from lmgauge.readable import visible_on_page

with needing("starlette", extra="explore"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route
with needing("uvicorn", extra="explore"):  # before the address is printed
    import uvicorn

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from lmgauge.explore.explorer import Explorer

Answer = Callable[["Explorer", requests.Parameters], dict[str, Any]]

_ANSWERS: dict[str, Answer] = {
    "state": lambda explorer, parameters: explorer.state(),
    "live": lambda explorer, parameters: explorer.live(),
    "segments": requests.segments,
    "segment": requests.segment,
    "numbers": requests.numbers,
}
"""Name of an address under /api/ -> what answers it."""


def application(explorer: Explorer, token: str) -> ASGIApp:
    """Return the application, with its guard around it."""
    # token: that every request must have.

    async def show(request: Request) -> Response:
        html, policy = page(explorer)
        response = HTMLResponse(html, headers={"content-security-policy": policy})
        # The page takes the token out of the address; with the cookie it can be loaded again, and its anchors pasted.
        response.set_cookie(cookie_name(request.scope), token, httponly=True, samesite="strict")
        return response

    def answering(answer: Answer) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(_in_words, answer, explorer, dict(request.query_params))

        return endpoint

    async def report(request: Request) -> Response:
        return await run_in_threadpool(_report, explorer)

    async def typed(request: Request) -> Response:
        asked = {"path": str(request.scope["path"]), "body": await _body(request)}  # request.url takes no query but UTF-8
        return await run_in_threadpool(_in_words, _typed, explorer, asked)

    routes = [Route("/", show), Route("/report", report)]
    routes += [Route(f"/api/{name}", answering(answer)) for name, answer in _ANSWERS.items()]
    routes += [Route(path, typed, methods=["POST"]) for path in sorted(POSTED)]
    served = Starlette(routes=routes, exception_handlers={404: _no_such_address})
    served.router.redirect_slashes = False  # a redirection would repeat the address with its token
    return Guard(served, token)


async def _body(request: Request) -> str:
    return (await request.body()).decode("utf-8", "replace")


async def _no_such_address(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "there is nothing at this address: open the one that lmgauge printed"}, 404)


def _in_words(answer: Answer, explorer: Explorer, parameters: requests.Parameters) -> Response:
    # Answer as JSON; what cannot be answered, in words.
    try:
        with explorer.answering():
            return JSONResponse(plain(answer(explorer, parameters)))
    except UsageError as error:
        return _refused(error, 400)
    except LmgaugeError as error:
        return _refused(error, 409)
    except OSError as error:
        return _refused(InputError(f"the index of the explorer cannot be read ({error.strerror or error})"), 409)


def _report(explorer: Explorer) -> Response:
    try:  # the page brings a policy of its own, which allows it no request
        return HTMLResponse(explorer.report(), headers={"content-security-policy": "frame-ancestors 'none'"})
    except LmgaugeError as error:
        return _refused(error, 409)


def _refused(error: Exception, status: int) -> Response:
    return JSONResponse({"error": visible_on_page(" ".join(str(error).split("\n")))}, status)


def _typed(explorer: Explorer, request: requests.Parameters) -> dict[str, Any]:
    # Answer what was posted: a text to score, or one event of it to look at.
    if explorer.typed is None:
        raise UsageError("there is no model that scores what is typed: start with -m MODEL")
    try:
        content = from_json(request["body"])
    except ValueError as error:
        raise UsageError("what was posted is not JSON") from error
    text = content.get("text") if isinstance(content, dict) else None
    event = content.get("event") if isinstance(content, dict) else None
    if not isinstance(text, str):
        raise UsageError('a text to score is posted as {"text": "..."}')
    if request["path"] == "/api/score":
        return explorer.typed.score(text)
    if not isinstance(event, int) or isinstance(event, bool):
        raise UsageError('the number of an event is posted as {"text": "...", "event": 0}')
    return explorer.typed.top(text, event)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket on a loopback address of this machine."""
    if host not in LOOPBACK:
        raise UsageError(
            f"--host {host}: the explorer is served on this machine only ({', '.join(sorted(LOOPBACK))}); from another one, "
            "lead a port here through ssh -L"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    own = socket.socket(family, socket.SOCK_STREAM)
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
    config = uvicorn.Config(
        app,
        http="h11",  # which refuses a head of more than 64 KB
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[own])
