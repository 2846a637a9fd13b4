"""The clients of servers, for models and for files: servers that answer, fail, drip, cut, stall and hang up."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import lmgauge
from lmgauge import Corpus
from lmgauge.base import paths as places
from lmgauge.base.errors import LmgaugeError
from lmgauge.base.remote import problems
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server import http as completions_http
from lmgauge.models.network.server.http import Endpoint
from tests.load.figures import Held, Load, put_under_load
from tests.models.network.server.toy_server import ToyServer, toy_scores

TEXTS = ["The café is open.", "two  spaces", "東京 1984", "a b c d e", "it runs and runs"]
CONTENT = bytes(range(256)) * 400
_SOUND = "sound"
_FAULTS = ["drop", "reset", "drip", "503", "404", "not JSON", "a list", "no lengths"]


class _Forgetful(list[Any]):
    """A list of requests that a server fills, and nobody reads."""

    def append(self, value: object) -> None:
        """Forget a request."""


class _Handler(BaseHTTPRequestHandler):
    """Answers as the address asks it to: `/FAULT/...`; the fault passes when the address has been asked `tries` times."""

    protocol_version = "HTTP/1.1"
    timeout = 5
    toy: ToyServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, content: dict[str, Any]) -> None:
        _, fault, path = self.path.split("/", 2)
        fault = fault.replace("%20", " ")
        if path.startswith("v1"):
            status, text = self.toy.reply(f"/{path}", content)
            data = text.encode()
        else:
            status, data = 200, CONTENT
        if fault == "reset":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault.isdecimal():
            status, data = int(fault), b'{"error": {"message": "for a test"}}'
        if fault == "stall":
            time.sleep(2)
        data = {"not JSON": b"<html>", "a list": b"[]"}.get(fault, data)
        self.send_response(status)
        if fault == "no lengths":
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault == "drop":
            data, self.close_connection = data[: len(data) // 2], True
        if fault == "drip":
            for byte in range(0, len(data), max(1, len(data) // 20)):
                self.wfile.write(data[byte : byte + max(1, len(data) // 20)])
                time.sleep(0.002)
        else:
            self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


@contextmanager
def _serving() -> Iterator[str]:
    """Serve on a free loopback port; nobody waits long."""
    toy = ToyServer(requests=_Forgetful())
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"toy": toy}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    short = (
        mock.patch.object(completions_http, "_READ_SECONDS", 1.5),
        mock.patch.object(problems, "FIRST_PAUSE", 0.001),
        mock.patch.dict(os.environ, {"no_proxy": "127.0.0.1,localhost"}),
    )
    try:
        with short[0], short[1], short[2]:
            yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _right_or_refused(fault: str, ask: Callable[[], object], right: object) -> str:
    """Ask; the answer is right, or an error of ours says in one line why there is none."""
    answer, problem = None, ""
    try:
        answer = ask()
    except LmgaugeError as error:
        problem = str(error)
    if problem:
        assert fault != _SOUND, f"a sound server was refused: {problem}"
        assert "\n" not in problem
        return f"{fault}: refused"
    assert answer == right, f"{fault}: another answer"
    return f"{fault}: right"


def _score(address: str) -> list[list[float]]:
    model = lmgauge.load_model(address, ScoringOptions())
    [batch] = model.score(Corpus.from_strings(TEXTS))
    ends = batch.segment_events.cumsum().tolist()
    return [batch.logprob[begin:end].tolist() for begin, end in zip([0, *ends], ends, strict=False)]


def _read(address: str) -> bytes:
    with places.open_reading(address) as file:
        return bytes(file.read())


def load_clients(folder: Path, *, seconds: float, clients: int = 4, seed: int = 1) -> Load:
    """Put the clients of servers under load: models that score on one, single requests, files of a web server.

    Args:
        folder: for temporary files.
        seconds: how long.
        clients: how many ask at once.
        seed: of what they ask.
    """
    scores = [toy_scores(text) for text in TEXTS]

    def act(random: Random) -> str:
        fault = random.choice([_SOUND] * 6 + (_FAULTS if random.random() < 0.9 else ["stall"]))
        place = f"{address}/{fault.replace(' ', '%20')}"
        kind = random.choice(["model", "request", "file"])
        if kind == "model":
            return "model, " + _right_or_refused(fault, lambda: _score(f"{place}/v1"), scores)
        if kind == "file":
            assumed = {"not JSON": b"<html>", "a list": b"[]"}.get(fault, CONTENT)
            return "file, " + _right_or_refused(fault, lambda: _read(f"{place}/file{random.randrange(5)}"), assumed)
        endpoint = Endpoint(f"{place}/v1")
        try:
            return "request, " + _right_or_refused(fault, lambda: endpoint.get("/models")["object"], "list")
        finally:
            endpoint.close()

    load = Load("clients of servers")
    with _serving() as address:
        put_under_load(load, act, seconds=seconds, clients=clients, seed=seed, held=lambda: Held.by(os.getpid(), folder))
    return load
