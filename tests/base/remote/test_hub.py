"""Files on a hub, read from a server on this machine that answers as the hub does; in a process of its own, as the library
reads the address of its hub when it is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("huggingface_hub")
pytest.importorskip("fsspec")

LINES = b"the cat sat\n" * 1000
REWRITTEN = "changed while it was being read; try again when it no longer changes"
PROGRAM = """
import json
from lmgauge.base.errors import LmgaugeError
from lmgauge.text.documents import Corpus
said = []
for address in ("a.txt", "a.*", "missing.txt"):
    try:
        corpus = Corpus.from_files("hf://datasets/user/name/" + address)
        said.append([[part.source for part in corpus], corpus.report.bytes])
    except LmgaugeError as error:
        said.append(str(error))
corpus = Corpus.from_files("hf://datasets/user/name/changing.txt")
try:
    list(corpus)
except LmgaugeError as error:
    said.append(str(error))
print(json.dumps(said))
"""


class _Hub(BaseHTTPRequestHandler):
    listings = 0

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if "/resolve/" in self.path:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            part = LINES[int(first) : int(last) + 1]
            self._send(206, part, {"Content-Range": f"bytes {first}-{last}/{len(LINES)}"})
        elif "/tree/" in self.path:
            _Hub.listings += 1
            oids = {"a.txt": "1", "changing.txt": f"v{_Hub.listings}"}
            files = [{"type": "file", "oid": oid, "size": len(LINES), "path": path} for path, oid in oids.items()]
            self._send(200, json.dumps(files).encode())
        else:
            about = {"id": "user/name", "sha": "0" * 40, "private": False, "tags": [], "siblings": []}
            self._send(200, json.dumps(about).encode())

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), "X-Repo-Commit": "0" * 40, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_files_of_a_hub(hub: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": hub, "HF_TOKEN": "hf_secret", "no_proxy": "*", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    folder = "hf://datasets/user/name"
    one, by_pattern, missing, changing = json.loads(done.stdout)
    assert one == [[f"{folder}/a.txt"], len(LINES)]
    assert by_pattern == one
    assert missing == f"{folder}/missing.txt: no such file"
    assert changing == f"{folder}/changing.txt: {REWRITTEN}"
    assert "hf_secret" not in done.stdout + done.stderr
