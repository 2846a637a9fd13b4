"""The explorer in a process of its own, and clients that ask well, badly, slowly, or hang up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import lmgauge
from lmgauge import Corpus
from tests.load.figures import Held, Load, put_under_load

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "it", "runs", "and", "then", "für", "東京", "<b>", "zebra"]
_SECONDS = 30
_MALFORMED = [
    b"\x00\x01\x02\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /api/score HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"GET /?q=" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
]
_REFUSED: list[tuple[str, object]] = [
    *(("segments", {"page": "x"}), ("segment", {"at": 999_999_999}), ("segments", {"min": None}), ("segments", [])),
    *(("segments", {"q": "(", "regex": True}), ("nothing", {}), ("score", {"text": 1}), ("segments", {"q": "x" * 9000})),
]


def make_run(folder: Path, lines: int) -> None:
    """Write a text, a model of it, and a run."""
    random = Random(1)
    text = "".join(" ".join(random.choices(WORDS, k=random.randrange(1, 30))) + "\n" for _ in range(lines))
    (folder / "text.txt").write_text(text, encoding="utf-8", newline="\n")
    corpus = Corpus.from_files(folder / "text.txt")
    model = lmgauge.train("witten-bell", corpus, order=2, output=folder / "model")
    lmgauge.evaluate(model, corpus, output=folder / "run")


class Client:
    """Asks one server in all ways; what an address answered first, it must answer always."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._answers: dict[bytes, object] = {}
        self._lock = threading.Lock()
        self._kinds = {
            "page of segments": 30, "search": 20, "numbers": 5, "segment": 15, "text scored": 10, "page": 3, "state": 4,
            "hung up before the answer": 5, "hung up in the request": 5, "slow reader": 1, "malformed": 6, "refused": 6,
        }  # fmt: skip

    def __call__(self, random: Random) -> str:
        """Ask once."""
        [kind] = random.choices(list(self._kinds), list(self._kinds.values()))
        getattr(self, "_" + kind.replace(" ", "_"))(random)
        return kind

    def wait_for_index(self) -> None:
        """Wait until the index is complete: from then on answers stay."""
        while b'"complete":false' in self._exchange(self._posted("numbers", {}))[1].replace(b" ", b""):
            threading.Event().wait(0.05)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS) as own:
            yield own

    def _head(self, path: str, *, method: str = "GET", more: str = "") -> bytes:
        lines = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nx-lmgauge-token: {self._token}\r\n"
        return f"{lines}Connection: close\r\n{more}\r\n".encode()

    def _ask(self, path: str, asked: object) -> None:
        request = self._posted(path, asked)
        status, answer = self._exchange(request)
        assert status == 200, f"{path}: {asked}: {status}: {answer[:200]!r}"
        self._must_repeat(request, answer)

    def _must_repeat(self, request: bytes, answer: bytes) -> None:
        value = json.loads(answer)
        with self._lock:
            assert self._answers.setdefault(request, value) == value, f"another answer to {request[:100]!r}"

    def _exchange(self, request: bytes) -> tuple[int, bytes]:
        with self._connected() as own:
            own.sendall(request)
            if b"Connection: close" not in request:
                own.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: own.recv(1 << 16), b""))
        head, _, body = reply.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, body

    def _page_of_segments(self, random: Random) -> None:
        self._ask("segments", {"page": random.randrange(20), "size": random.choice([5, 20])})

    def _search(self, random: Random) -> None:
        text = random.choice(WORDS) + " " + random.choice(WORDS)
        self._ask("segments", {"q": text, "regex": random.random() < 0.5, "page": random.randrange(3)})

    def _numbers(self, random: Random) -> None:
        self._ask("numbers", {"q": random.choice(WORDS)})

    def _segment(self, random: Random) -> None:
        self._ask("segment", {"at": random.randrange(200)})

    def _state(self, random: Random) -> None:
        self._ask("state", {})

    def _page(self, random: Random) -> None:
        status, answer = self._exchange(self._head("/"))
        assert status == 200, answer[:200]

    def _text_scored(self, random: Random) -> None:
        self._ask("score", {"text": " ".join(random.choices(WORDS, k=random.randrange(1, 3)))})

    def _posted(self, path: str, content: object) -> bytes:
        body = json.dumps(content).encode()
        more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return self._head(f"/api/{path}", method="POST", more=more) + body

    def _hung_up_before_the_answer(self, random: Random) -> None:
        with self._connected() as own:
            own.sendall(self._posted("segments", {"q": random.choice(WORDS), "page": random.randrange(5)}))
            if random.random() < 0.5:  # by a reset, not by a farewell
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _hung_up_in_the_request(self, random: Random) -> None:
        request = self._posted("score", {"text": "the cat " * 50})
        with self._connected() as own:
            own.sendall(request[: random.randrange(1, len(request))])

    def _slow_reader(self, random: Random) -> None:
        with self._connected() as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            own.sendall(self._head("/"))
            threading.Event().wait(0.2)
            for _ in range(3):
                own.recv(100)
                threading.Event().wait(0.05)

    def _malformed(self, random: Random) -> None:
        junk = random.randbytes(200) + b"\r\n\r\n"
        request = random.choice([*_MALFORMED, junk])
        status, _ = self._exchange(request)
        assert status in (0, 400, 403, 405), f"{status} for {request[:60]!r}"

    def _refused(self, random: Random) -> None:
        path, asked = random.choice(_REFUSED)
        status, answer = self._exchange(self._posted(path, asked))
        assert 400 <= status < 500, f"{path}: {str(asked)[:60]}: {status}"
        assert json.loads(answer)["error"]


def load_explorer(folder: Path, *, seconds: float, clients: int = 4, seed: int = 1, lines: int = 5_000) -> Load:
    """Put the explorer under load.

    Args:
        folder: for the run and for temporary files.
        seconds: how long.
        clients: how many ask at once.
        seed: of what they ask.
        lines: of the text that is looked at.
    """
    make_run(folder, lines)
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "lmgauge", "explore", str(folder / "run"), "-m", str(folder / "model"), "--no-browser"]
    environment = os.environ | {"TMPDIR": str(temporary)}
    load = Load("explorer")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            base, token = process.stdout.readline().decode().strip().split("/?token=")
            client = Client(int(base.rpartition(":")[2]), token)
            client.wait_for_index()
            put_under_load(
                load, client, seconds=seconds, clients=clients, seed=seed, held=lambda: Held.by(process.pid, temporary)
            )
        finally:
            process.send_signal(signal.SIGINT)
        errors = process.stderr.read().decode()
        if process.wait(_SECONDS) != 0 or errors:
            load.wrong.append(f"it ended with {process.returncode}, and said: {errors[-2000:]}")
    if left := list(temporary.iterdir()):
        load.wrong.append(f"it left {left[0].name}")
    return load
