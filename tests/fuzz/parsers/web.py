"""Replies of web servers to who reads a text or a table there: cut, broken off, late in the file, of other headers."""

from __future__ import annotations

import io
import json
import random
import time
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import urllib3

from lmgauge import Corpus
from lmgauge.base.remote import web
from lmgauge.base.remote.client import plain_errors
from tests.fuzz.mutations import NUMBERS, changed
from tests.fuzz.table import Attempt

LINES = [f"the cat {number} sat on 漢字" for number in range(40)]
HEADER_PIECES = [
    b"\r\n",
    b"\n",
    b": ",
    b"Content-Length: 3",
    b"chunked",
    b"bytes */9",
    b"-1",
    b"gzip",
    b"\xff",
    b"A" * 70_000,
]
HEADERS = ["Content-Length", "Content-Range", "ETag", "Transfer-Encoding", "Location", "Content-Encoding", "Retry-After"]
STATUSES = [100, 200, 204, 206, 301, 302, 304, 400, 401, 403, 404, 410, 416, 429, 500, 503, 999]
BROKEN: list[Any] = [ConnectionResetError(104, "reset"), TimeoutError("timed out"), ConnectionRefusedError(111, "refused")]


def prepare(folder: Path) -> Attempt:
    del folder
    table = io.BytesIO()
    pq.write_table(pa.table({"text": LINES, "noise": list(range(len(LINES)))}), table, row_group_size=7)
    contents = {
        "a.txt": "".join(f"{line}\n" for line in LINES).encode(),
        "a.jsonl": "".join(json.dumps({"text": line}) + "\n" for line in LINES).encode(),
        "a.parquet": table.getvalue(),
    }

    def attempt(chance: random.Random) -> str:
        name = chance.choice([*contents])
        server = _Server(contents[name], chance)
        with (
            patch.object(web, "open_reply", server.open),
            patch.object(time, "sleep", lambda seconds: None),
        ):
            corpus = Corpus.from_files(f"http://127.0.0.1:1/{name}")
            texts = [block.text(i).decode() for block in corpus for i in range(len(block))]
        assert texts == LINES, "another text than the server has"
        return "read"

    return attempt


class _Server:
    """Answers well at first, then not always.

    What it says of the file at first is true: nobody could know better. A file sent in chunks is not said to be
    sent otherwise, as its size is not known.
    """

    def __init__(self, content: bytes, chance: random.Random) -> None:
        self._content, self._seed, self._times = content, str(chance.getrandbits(64)), dict[str, int]()
        self._rate = chance.choice([0.1, 0.3, 0.9])
        self._ranges, self._chunked = chance.random() < 0.8, chance.random() < 0.2
        self._tag = chance.choice([b'ETag: "v1"\r\n', b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n", b""])

    def open(
        self, asker: Any, method: str, url: str, headers: dict[str, str], seconds: float, **how: Any
    ) -> urllib3.HTTPResponse:
        part = headers.get("Range", "")
        times = self._times[part] = self._times.get(part, 0) + 1
        chance = random.Random(f"{self._seed} {part} {times}")
        raw: io.RawIOBase | io.BytesIO = io.BytesIO(self._reply(part))
        if len(self._times) > 1 or times > 1:
            raw = self._damaged(raw.getvalue(), chance)
        reply = HTTPResponse(_Socket(raw), method="GET")  # type: ignore[arg-type]
        reply.begin()
        said, how = urllib3.HTTPHeaderDict(reply.msg.items()), how | {"preload_content": False, "decode_content": False}
        with plain_errors():
            return urllib3.HTTPResponse(reply, said, reply.status, original_response=reply, request_method="GET", **how)

    def _reply(self, part: str) -> bytes:
        size, status, head, body = len(self._content), b"200 OK", self._tag, self._content
        if part and self._ranges:
            first, _, last = part.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(size, int(last) + 1 if last else size)
            status, body = b"206 Partial Content", self._content[begin:end]
            head += f"Content-Range: bytes {begin}-{end - 1}/{size}\r\n".encode()
        if self._chunked:
            pieces = [body[i : i + 100] for i in range(0, len(body), 100)]
            head += b"Transfer-Encoding: chunked\r\n"
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        else:
            head += b"Content-Length: %d\r\n" % len(body)
        return b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n" + body

    def _damaged(self, reply: bytes, chance: random.Random) -> io.RawIOBase | io.BytesIO:
        if chance.random() >= self._rate:
            return io.BytesIO(reply)
        head, _, body = reply.partition(b"\r\n\r\n")
        cut = head + b"\r\n\r\n" + body[: chance.randint(0, max(0, len(body) - 1))]
        match chance.randrange(5 if self._chunked else 8):
            case 0 | 1:
                return io.BytesIO(cut)
            case 2 | 3:
                return _Breaking(cut, chance.choice(BROKEN))
            case 4:
                status = chance.choice([400, 401, 403, 404, 410, 416, 429, 500, 503])
                return io.BytesIO(b"HTTP/1.1 %d No\r\nRetry-After: 99\r\nContent-Length: 0\r\n\r\n" % status)
            case 5:
                head = head.replace(head[9:12], b"%d" % chance.choice(STATUSES), 1)
            case 6:
                name, value = (
                    chance.choice(HEADERS),
                    str(chance.choice([*NUMBERS[:-4], "x", "", "gzip", "http://[", "//x/y"])),
                )
                head += f"\r\n{name}: {value[:50]}".encode()
            case _:
                head = changed(head, chance, 2, HEADER_PIECES)
        return io.BytesIO(head + b"\r\n\r\n" + body)


class _Socket:
    """What HTTPResponse asks of a socket."""

    def __init__(self, raw: io.RawIOBase | io.BytesIO) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BufferedIOBase:
        return io.BufferedReader(self._raw)  # type: ignore[type-var, return-value]


class _Breaking(io.RawIOBase):
    """Gives what there is, then raises."""

    def __init__(self, content: bytes, error: Exception) -> None:
        self._left, self._error = io.BytesIO(content), error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._left.readinto(buffer)
        if not count:
            raise self._error
        return count
