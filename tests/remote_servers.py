"""Servers on this machine for tests of remote files: a web server that fails as it is asked to, and a server of S3."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from lmgauge.base.remote import problems
from lmgauge.base.remote.reading import Parts
from lmgauge.base.remote.stores import opened

KEY, SECRET = "AKIATESTTESTTEST", "s3cr3t/of+the+tests"


def in_parts(address: str) -> Any:
    """A file of which parts are read, as tables are."""
    return io.BufferedReader(Parts(opened(address)), 1)


@dataclass
class WebFiles:
    """What the web server has, and how it fails; tests change it as they go.

    Attributes:
        files: contents by path.
        faults: by path, the faults of the next replies, one each: a status, "drop" (half of what was announced), "close"
            (no reply), or "redirect ADDRESS".
        ranges: whether parts are sent.
        lengths: whether the length is said.
        tags: by path, the entity tag; "" for none.
        password: "user:password" that is wanted; "" for none.
        requests: (method, path with query, range) of each request.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    ranges: bool = True
    lengths: bool = True
    tags: dict[str, str] = field(default_factory=dict)
    password: str = ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def put(self, name: str, content: bytes) -> str:
        """Put a file there, and return its address."""
        self.files[f"/{name}"] = content
        return f"{self.address}/{name}"

    def clear(self) -> None:
        address = self.address
        self.__init__()  # type: ignore[misc]
        self.address = address


class _Handler(BaseHTTPRequestHandler):
    site: WebFiles

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.site.requests.append(("HEAD", self.path, ""))
        self.send_error(405)

    def do_GET(self) -> None:
        site, path = self.site, unquote(urlsplit(self.path).path)
        wanted = self.headers.get("Range", "")
        site.requests.append(("GET", self.path, wanted))
        site.authorizations.append(self.headers.get("Authorization", ""))
        fault = site.faults[path].pop(0) if site.faults.get(path) else ""
        if fault == "close":
            self.close_connection = True
            return
        if fault.startswith("redirect "):
            self.send_response(302)
            self.send_header("Location", fault.partition(" ")[2])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault.isdecimal():
            self._refuse(int(fault))
        elif site.password and not self.headers.get("Authorization"):
            self._refuse(401)
        elif path not in site.files:
            self._refuse(404)
        else:
            self._send(path, wanted, dropped=fault == "drop")

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()

    def _send(self, path: str, wanted: str, dropped: bool) -> None:
        site, content = self.site, self.site.files[path]
        total, status, extent = len(content), 200, ""
        if wanted and site.ranges:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1 if last else total, total)
            if start >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            content, status, extent = content[start:end], 206, f"bytes {start}-{end - 1}/{total}"
        self.send_response(status)
        if extent:
            self.send_header("Content-Range", extent)
        tag = site.tags.get(path, '"1"')
        if tag:
            self.send_header("ETag", tag)
        if site.lengths:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if dropped else content)
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


@pytest.fixture(scope="module")
def web_server() -> Iterator[WebFiles]:
    site = WebFiles()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": site}))
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture
def web(web_server: WebFiles, monkeypatch: pytest.MonkeyPatch) -> WebFiles:
    """An empty web server without faults; pauses between tries are short, and no proxy is asked."""
    web_server.clear()
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    return web_server


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """The address of a server of S3 on this machine."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's file system with an empty bucket `s3://texts`; the environment is set as a user would set it."""
    s3fs = pytest.importorskip("s3fs")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    values = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": s3_server}
    values |= {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "no_proxy": "127.0.0.1,localhost"}
    values |= {"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(use_listings_cache=False)
    files.mkdir("texts")
    yield files
    files.rm("texts", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()
