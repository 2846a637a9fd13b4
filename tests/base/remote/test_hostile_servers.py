"""A server that answers with anything at all: one line for people, or bytes, never a traceback and never a hang."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.remote_servers import in_parts

from lmgauge.base import paths as places
from lmgauge.base.errors import InputError
from lmgauge.base.remote import problems

_HEADS = (b"HTTP/1.1 200 OK", b"HTTP/1.1 206 Partial", b"HTTP/1.0 302 ", b"HTTP/1.1 416 x", b"HTTP/1.1 999 \x1b[31m")
_PIECES = [
    *(head + b"\r\n" for head in _HEADS),
    *(b"Content-Length: " + length + b"\r\n" for length in (b"5", b"0", b"-1", b"1e9", b"9" * 5000)),
    *(b"Content-Range: " + extent + b"\r\n" for extent in (b"bytes 0-0/5", b"bytes 7-/*", b"bytes */0", b"\xff")),
    *(b"Location: " + to + b"\r\n" for to in (b"http://[::1/", b"http://a..b:x/", b"\x1b]0;x\x07", b"//", b"http:///")),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Retry-After: " + b"9" * 400 + b"\r\n"),
    *(b"\r\n", b"\r\n", b"5\r\nhello\r\n", b"hello", b"ffffffffffffffffffff\r\n", b"\x00\x01", b": \r\n", b" \r\n"),
    *(b"ETag: \x00\xe9\r\n", b"x" * 70_000),
]


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[bytes]]]:
    """An address, and the list of what the next requests to it are answered with."""
    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(problems.Patience, "longest", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    listening, coming = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    connection.recv(1 << 16)
                    connection.sendall(coming.pop(0) if coming else b"")
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/a.txt", coming
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_replies_of_any_kind(replies: tuple[str, list[bytes]]) -> None:
    address, coming = replies
    drawn = random.Random(19)
    outcomes = set()
    for _ in range(150):
        coming[:] = [b"".join(drawn.choices(_PIECES, k=drawn.randrange(1, 7))) for _ in range(drawn.randrange(1, 8))]
        if drawn.random() < 0.6:
            coming[0] = drawn.choice(_PIECES[:3]) + coming[0]
        try:
            with places.open_reading(address) as file:
                outcomes.add(f"read {len(file.read()) > 0}")
        except InputError as error:
            text = str(error)
            assert text.startswith("http://127.0.0.1:")
            assert text.isprintable(), text
            outcomes.add(text.partition("/a.txt: ")[2])
    assert len(outcomes) > 4


def test_a_size_that_is_said_late_still_counts(replies: tuple[str, list[bytes]]) -> None:
    """A part without the size of the whole, then a whole file that breaks off: it is asked for again, not taken as it is."""
    address, coming = replies
    version = b'ETag: "v1"\r\n'
    whole = b"HTTP/1.1 200 OK\r\n" + version + b"Content-Length: 12\r\n\r\nthe cat sat\n"
    coming[:] = [b"HTTP/1.1 206 Partial Content\r\n" + version + b"Content-Length: 1\r\n\r\nt", whole[:-5], whole]
    with places.open_reading(address) as file:
        assert file.read() == b"the cat sat\n"
    assert coming == []


def part(length: str, size: str = "1000000") -> bytes:
    return f"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/{size}\r\n{length}\r\n\r\n".encode()


def test_a_part_is_never_longer_than_what_was_asked_for(replies: tuple[str, list[bytes]]) -> None:
    address, coming = replies
    large = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    for answer, words in {
        part("Content-Length: 10000000000000"): "says of 100 bytes that they are 10,000,000,000,000 (Content-Length)",
        part("Transfer-Encoding: chunked") + large * 64: "sends more than the 100 bytes that it was asked for",
    }.items():
        coming[:] = [part("Content-Length: 1") + b"x", answer]
        with in_parts(address) as file, pytest.raises(InputError) as caught:
            file.read(100)
        assert words in str(caught.value)


def test_a_file_is_never_longer_than_its_size(replies: tuple[str, list[bytes]]) -> None:
    address, coming = replies
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"8\r\n" + b"the cat\n" + b"\r\n") * 99
    coming[:] = [part("Content-Length: 1", size="100") + b"x", endless]
    with places.open_reading(address) as file, pytest.raises(InputError, match="sends more than the 100 bytes that it says"):
        file.read()
