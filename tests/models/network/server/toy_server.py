"""A completions server in a thread, with a deterministic toy model behind it, that speaks the dialects of real ones.

Recorded from vLLM 0.32 and llama-cpp-python 0.3.36 with tiny models; OpenAI's from its documentation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TOKENS = re.compile(rb" ?[A-Za-z]+| ?[0-9]+|.", re.DOTALL)
_SPECIAL = re.compile(rb"(<s>|</s>|<\|[a-z_]+\|>)")
BOS = b"<s>"


def toy_tokens(text: str, *, specials: bool = False) -> list[bytes]:
    """Words and numbers with the space before them; else single bytes, so that characters are cut; special tokens whole."""
    if specials:
        parts = _SPECIAL.split(text.encode())
        return [token for i, part in enumerate(parts) for token in ([part] if i % 2 else _TOKENS.findall(part))]
    return _TOKENS.findall(text.encode())


def _share(*parts: bytes) -> float:
    return int.from_bytes(hashlib.sha256(b"\0".join(parts)).digest()[:6], "big") / (1 << 48)


def toy_best(before: bytes) -> float:
    """Log-probability of the likeliest token after a context."""
    return -0.1 - _share(b"best", before)


def toy_logprob(before: bytes, token: bytes) -> float:
    """Log-probability of a token after a context, never the likeliest."""
    return toy_best(before) - 1.0 - 9.0 * _share(before, token)


def toy_scores(text: str, context: bytes = BOS) -> list[float]:
    """Log-probabilities of the tokens of a text."""
    found, before = [], context
    for token in toy_tokens(text):
        found.append(toy_logprob(before, token))
        before += token
    return found


def _escaped(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token)


def _named(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in token)


SPELLINGS: dict[str, Callable[[bytes], str]] = {
    "replaced": lambda token: token.decode("utf-8", "replace"),
    "dropped": lambda token: token.decode("utf-8", "ignore"),
    "escaped": _escaped,
    "named": _named,
    "pieces": lambda token: _named(token).replace(" ", "▁"),
    "spaceless": lambda token: token.decode("utf-8", "replace").removeprefix(" ") or " ",
}


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # the other one asks for the name of the address first


@dataclass
class ToyServer:
    """How the server behaves.

    Attributes:
        spelling: how tokens are shown.
        bos: "shown" before the text and without score, "hidden" (which leaves the first token of the text without one), or
            "none", which does too.
        offsets: units of `text_offset`: characters, bytes or None to leave it out.
        adds: how many tokens are generated; None for `max_tokens`.
        tells_usage: whether `usage` says how many.
        form: "legacy" lists, a "content" list, "prompt_logprobs" alone, "none" for no scores, "unechoed" for those of
            generated tokens alone.
        misplaced: whether scores are of the place after the token's.
        models: names that `/models` lists; None for no such page.
        limit: most bytes of a prompt.
        drops: tokens that are missing in each reply, as a slice of the text's.
        shows: what every token of the text is shown as, instead of itself.
        failures: replies to the next requests instead: a status, (status, body), (status, body, headers), "reset" or "slow".
        before_reply: called with each prompt.
        specials: special tokens are "read" in a prompt as such and shown, "hidden" (and the BOS token with them, as
            llama-cpp-python does, which counts all), or "text".
        switch: what `add_special_tokens: false` does: "heard" (no BOS token is added), "ignored" or "refused".
        tells: replies of other pages, by path.
    """

    spelling: str = "replaced"
    bos: str = "shown"
    offsets: str | None = "characters"
    adds: int | None = None
    tells_usage: bool = True
    form: str = "legacy"
    misplaced: bool = False
    models: list[str] | None = field(default_factory=lambda: ["toy"])
    limit: int = 1 << 20
    drops: slice | None = None
    shows: bytes | None = None
    failures: list[Any] = field(default_factory=list)
    before_reply: Callable[[str], None] = lambda prompt: None
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    specials: str = "text"
    switch: str = "heard"
    tells: dict[str, dict[str, Any]] = field(default_factory=dict)
    url: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[ToyServer]:
        """Serves on a free port of the loopback device."""
        toy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10
            wbufsize = -1  # head and body in one packet

            def do_GET(self) -> None:
                self._answer("GET", {})

            def do_POST(self) -> None:
                self._answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, method: str, content: dict[str, Any]) -> None:
                toy.requests.append((f"{method} {self.path}", dict(self.headers), content))
                failure = toy.failures.pop(0) if toy.failures else None
                if failure == "reset":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if failure == "slow":
                    time.sleep(0.5)
                    failure = None
                if isinstance(failure, int):
                    failure = (failure, json.dumps({"error": {"message": "for a test"}}))
                status, body, *more = failure or toy.reply(self.path, content)
                data = body if isinstance(body, bytes) else body.encode()
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle(self) -> None:
                with contextlib.suppress(OSError, ValueError):
                    super().handle()

            def finish(self) -> None:
                with contextlib.suppress(OSError, ValueError):
                    super().finish()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = _Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def reply(self, path: str, content: dict[str, Any]) -> tuple[int, str]:
        """Status and body."""
        if path == "/v1/models" and self.models is not None:
            entries = [{"id": name, "created": time.time_ns(), "max_model_len": 99} for name in self.models]
            return 200, json.dumps({"object": "list", "data": entries})
        if path in self.tells:
            return 200, json.dumps(self.tells[path])
        if path != "/v1/completions":
            return 404, json.dumps({"detail": "Not Found"})
        prompt = content["prompt"]
        self.before_reply(prompt)
        if len(prompt.encode()) > self.limit:
            return 400, json.dumps({"error": {"message": f"maximum context length is {self.limit} bytes"}})
        if not prompt:
            return 400, json.dumps({"error": {"message": "prompt must be non-empty"}})
        if self.switch == "refused" and "add_special_tokens" in content:
            return 400, json.dumps({"error": {"message": "Unrecognized request argument supplied: add_special_tokens"}})
        if self.form == "prompt_logprobs" and "echo" in content:
            return 400, json.dumps({"error": {"message": "Only no echo is supported"}})
        return 200, json.dumps(self.completion(content))

    def completion(self, content: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request."""
        prompt = content["prompt"]
        count = content["max_tokens"] if self.adds is None else self.adds
        if self.specials != "text":
            return self.with_specials(
                prompt, count, adds_bos=content.get("add_special_tokens", True) or self.switch != "heard"
            )
        shown = [BOS] if self.bos == "shown" else []
        text, special = (prompt[3:], True) if prompt.startswith("<s>") else (prompt, False)
        tokens = [*([BOS] if special and self.bos != "hidden" else []), *toy_tokens(text)] + [b"!"] * count
        context = b"" if self.bos == "none" else BOS
        scores: list[float | None] = []
        tops: list[float | None] = []
        for token in tokens:
            place = context + token if self.misplaced else context
            scores.append(toy_logprob(place, token))
            tops.append(toy_best(place))
            context += token
        if self.drops is not None:
            for part in (tokens, scores, tops):
                end = part[len(part) - count :]
                del part[len(part) - count :]
                del part[self.drops]
                part += end
        if self.shows is not None:
            tokens[: len(tokens) - count] = [self.shows] * (len(tokens) - count)
        if shown:
            tokens, scores, tops = [BOS, *tokens], [None, *scores], [None, *tops]
        scores[0] = tops[0] = None
        if self.form == "unechoed":
            tokens, scores, tops = tokens[-count:], scores[-count:], tops[-count:]
        return self._reply(prompt, count, tokens, scores, tops)

    def with_specials(self, prompt: str, count: int, *, adds_bos: bool) -> dict[str, Any]:
        """The reply of a server that reads special tokens."""
        whole = [BOS] * (adds_bos and self.bos != "none") + toy_tokens(prompt, specials=True) + [b"!"] * count
        contexts = [b"".join(whole[:i]) for i in range(len(whole))]
        scores: list[float | None] = [toy_logprob(before, token) for before, token in zip(contexts, whole, strict=True)]
        tops: list[float | None] = [toy_best(before) for before in contexts]
        shown = [b"" if self.specials == "hidden" and _SPECIAL.fullmatch(token) else token for token in whole]
        kept = [i for i, token in enumerate(whole) if self.specials != "hidden" or token != BOS]
        tokens, scores, tops = ([values[i] for i in kept] for values in (shown, scores, tops))
        scores[0] = tops[0] = None
        reply = self._reply(prompt, count, tokens, scores, tops)
        return reply | {"usage": {"prompt_tokens": len(whole) - count, "completion_tokens": count}}

    def _reply(
        self, prompt: str, count: int, tokens: list[bytes], scores: list[float | None], tops: list[float | None]
    ) -> dict[str, Any]:
        reply: dict[str, Any] = {
            "choices": [{"index": 0, "text": prompt + "!" * count, **self._scored(tokens, scores, tops)}]
        }
        if self.tells_usage:
            reply["usage"] = {"prompt_tokens": len(tokens) - count, "completion_tokens": count}
        if self.form == "prompt_logprobs":
            end = len(tokens) - count
            reply["choices"][0]["prompt_logprobs"] = [
                None if score is None else {"7": {"logprob": score, "rank": 3, "decoded_token": self._show(token)}}
                for token, score in zip(tokens[:end], scores[:end], strict=True)
            ]
        return reply

    def _show(self, token: bytes) -> str:
        return SPELLINGS[self.spelling](token)

    def _scored(self, tokens: list[bytes], scores: list[float | None], tops: list[float | None]) -> dict[str, Any]:
        if self.form in ("none", "prompt_logprobs"):
            return {"logprobs": None}
        if self.form == "content":
            entries = [
                {"token": self._show(token), "bytes": list(token), "logprob": score, "top_logprobs": [{"logprob": top}]}
                for token, score, top in zip(tokens, scores, tops, strict=True)
            ]
            return {"logprobs": {"content": entries}}
        shown = [self._show(token) for token in tokens]
        found: dict[str, Any] = {
            "tokens": shown,
            "token_logprobs": [-9999.0 if score == -math.inf else score for score in scores],
            "top_logprobs": [
                None if top is None or score is None else {"?": top, token: score}
                for token, score, top in zip(shown, scores, tops, strict=True)
            ],
        }
        if self.offsets:
            lengths = [len(piece.encode()) if self.offsets == "bytes" else len(piece) for piece in shown]
            found["text_offset"] = [sum(lengths[:i]) for i in range(len(lengths))]
        return {"logprobs": found}
