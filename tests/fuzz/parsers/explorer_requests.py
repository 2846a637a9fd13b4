"""Requests to the explorer, as a server hands them on: paths, queries, headers and bodies; without a socket."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import lmgauge
from lmgauge import Corpus
from lmgauge.explore.launch import open_explorer
from lmgauge.explore.requests import column_names
from lmgauge.explore.server import LOOPBACK, application
from tests.finished import finished
from tests.fuzz.mutations import PIECES, changed, changed_value, drawn_number, hostile_text
from tests.fuzz.table import Attempt

TOKEN = "a token for tests"
PATHS = ["/", "/report", "/api/state", "/api/segments", "/api/segment", "/api/numbers", "/api/score"]
OTHER_PATHS = [
    "/api/",
    "/api",
    "//",
    "/..",
    "/api/segments/",
    "/favicon.ico",
    "/%00",
    "/\x00",
    "/api/score/../segment",
    "/\x1b[31m",
]
NAMES = [
    "q",
    "regex",
    "case",
    "group",
    "column",
    "min",
    "max",
    "sort",
    "falling",
    "page",
    "size",
    "at",
    "begin",
    "id",
    "text",
    "x",
]
MARKUP = '<script>alert("x")</script>'
PROMISED = [b"x-content-type-options", b"referrer-policy", b"cache-control", b"x-frame-options", b"content-security-policy"]
PROMISED += [b"cross-origin-resource-policy", b"cross-origin-opener-policy"]
PATTERNS = [
    "(",
    "[",
    "(?:a|b)*c",
    "a{1,99999}",
    "\\",
    "(?P<n>a)(?P=n)",
    "^$",
    "(a+)+$",
    ".*",
    "(?i)THE",
    "a{2}{3}",
    "\\p{L}",
]


def prepare(folder: Path) -> Attempt:
    texts = ["the cat", "", f"{MARKUP} für 東京", "\x1b[31m dog", "the dog sees it", "a " * 50] * 5
    text = folder / "text.jsonl"
    rows = [{"text": one, "kind": ["news", MARKUP][i % 2], "name": f"n{i}{MARKUP}"} for i, one in enumerate(texts)]
    text.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpus = Corpus.from_files(text, group="kind", id="name")
    for name, order in (("a", 2), ("b", 1)):
        model = lmgauge.train("witten-bell", Corpus.from_strings(texts[:9]), order=order)
        lmgauge.evaluate({f"{name}{MARKUP}": model}, corpus, by_group=True, output=folder / name)
    explorers = []
    for runs, typed in (([folder / "a", folder / "b"], None), ([folder / "a"], model), ([], model)):
        explorer = open_explorer(runs, model=typed, text=text if runs else None)
        if explorer.index is not None:
            explorer.index.wait()
        explorers.append(explorer)
    served = [application(explorer, TOKEN) for explorer in explorers]

    def attempt(chance: random.Random) -> str:
        scope, body = _request(chance)
        answers: list[dict[str, Any]] = []
        parts = [body[:10], body[10:]] if chance.random() < 0.2 else [body]

        async def receive() -> dict[str, Any]:
            if not parts:
                return {"type": "http.disconnect"}
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: dict[str, Any]) -> None:
            answers.append(message)

        finished(chance.choice(served)(scope, receive, send))  # type: ignore[arg-type]
        return _check_answer(answers)

    def close() -> None:
        for explorer in explorers:
            explorer.close()

    attempt.close = close  # type: ignore[attr-defined]
    return attempt


def _check_answer(answers: list[dict[str, Any]]) -> str:
    """Hold an answer against what is promised for every one."""
    start, *rest = answers
    headers = {name.lower(): value for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in rest)
    status = start["status"]
    assert status in (200, *range(400, 500)), (status, content)
    assert all(name in headers for name in PROMISED), headers
    kind = headers.get(b"content-type", b"")
    assert kind.startswith((b"text/html", b"application/json")) or status != 200, kind
    if kind.startswith(b"application/json"):
        answer = json.loads(content, parse_constant=_no_constant)
        if status != 200:
            assert set(answer) == {"error"}, answer
            assert answer["error"], "an error without words"
            assert "Traceback" not in answer["error"], answer
            assert answer["error"].isprintable(), answer
    else:
        assert MARKUP.encode() not in content, "markup that was sent came back"
    assert not set(b"\r\n") & set(b"".join(headers.values()))
    return "read" if status == 200 else "refused"


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} in an answer")


def _request(chance: random.Random) -> tuple[dict[str, Any], bytes]:
    path = chance.choice(PATHS) if chance.random() < 0.95 else chance.choice(OTHER_PATHS)
    posted = path.startswith("/api/")
    query = _query(chance) if chance.random() < 0.2 else b""
    headers = [(b"host", b"127.0.0.1:8000"), (b"x-lmgauge-token", TOKEN.encode()), (b"content-type", b"application/json")]
    body = _body(chance) if posted or chance.random() < 0.05 else b""
    method = "POST" if posted else "GET"
    if chance.random() < 0.15:
        method = chance.choice(["GET", "POST", "HEAD", "PUT", "OPTIONS", "X"])
    if chance.random() < 0.2:
        headers = _changed_headers(headers, chance)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": chance.choice([("127.0.0.1", 8000), None]),
    }
    return scope, body


def _query(chance: random.Random) -> bytes:
    query = f"token={quote_plus(TOKEN)}&x={quote_plus(hostile_text(chance, 3), errors='replace')}".encode()
    return changed(query, chance, 2, [*PIECES, b"%", b"&", b"=", b";", b"%ff", b"%00"])


def _value(name: str, chance: random.Random) -> object:
    if chance.random() < 0.25:
        return drawn_number(chance)
    if name in ("regex", "case", "falling"):
        return chance.random() < 0.5
    if name in ("q", "x"):
        return chance.choice([chance.choice(PATTERNS), hostile_text(chance, 3), "the", MARKUP])
    named: dict[str, list[object]] = {
        "group": ["news", MARKUP, "law"],
        "sort": [*column_names(2)],
        "column": [*column_names(2)],
        "id": ["n0", f"n1{MARKUP}", "text.jsonl:3", "a:", ":9", MARKUP],
        "text": ["the cat", hostile_text(chance), "a " * 2000, "x" * 30000],
    }
    return chance.choice(named.get(name, [chance.randint(0, 40), 1, 0, "", 10**25, 1e9, "nan", None]))


def _body(chance: random.Random) -> bytes:
    value: Any = {name: _value(name, chance) for name in chance.sample(NAMES, chance.randint(0, 4))}
    if chance.random() < 0.3:
        value = changed_value(value, chance)
    body = json.dumps(value).encode()
    if chance.random() < 0.02:
        return body + b" " * 200_000
    return changed(body, chance) if chance.random() < 0.2 else body


def _changed_headers(headers: list[tuple[bytes, bytes]], chance: random.Random) -> list[tuple[bytes, bytes]]:
    others = [
        *(
            (b"origin", b"http://evil.example"),
            (b"origin", b"null"),
            (b"sec-fetch-site", b"cross-site"),
            (b"cookie", b"=;;=\xff"),
        ),
        *((b"host", b"evil.example"), (b"host", b""), (b"host", b"[::1]"), (b"content-type", b"text/plain")),
        *((b"cookie", b"lmgauge-8000=" + TOKEN.encode()), (b"x-lmgauge-token", b"\xff"), (b"content-length", b"-1")),
        (b"host", chance.choice(sorted(LOOPBACK)).encode()),
    ]
    headers = [header for header in headers if chance.random() < 0.8]
    for name, value in chance.sample(others, chance.randint(0, 2)):
        headers = [header for header in headers if header[0] != name or chance.random() < 0.3]
        headers.append((name, changed(value, chance, 1) if chance.random() < 0.2 else value))
    return headers
