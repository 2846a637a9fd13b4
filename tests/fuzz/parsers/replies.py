"""Replies of completions servers, in their dialects: changed in values and bytes, and errors; no socket is used."""

from __future__ import annotations

import http.client
import json
import logging
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from lmgauge.base.remote import problems
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server import model as server_model
from lmgauge.models.network.server.http import Endpoint
from lmgauge.text.documents import Corpus
from tests.fuzz.mutations import VALUES, changed, changed_value
from tests.fuzz.table import Attempt
from tests.models.network.server.toy_server import SPELLINGS, ToyServer

TEXTS = ["the cat sat", "für 東京", "", "</s> 1984"]
ERRORS: list[BaseException] = [
    *(
        ConnectionRefusedError("refused"),
        ConnectionResetError("reset"),
        TimeoutError(),
        http.client.RemoteDisconnected("gone"),
    ),
    *(http.client.BadStatusLine("\x1b[31m"), http.client.IncompleteRead(b"x", 5), OSError(5, "Input/output error")),
]
BODIES = [b"", b"null", b"[]", b"<html>\x1b[31m</html>", b'{"error": {"message": "\xff no"}}', b'{"error": 1}', b"[" * 5000]
STATUSES = [200, 200, 201, 204, 301, 400, 401, 404, 413, 422, 429, 500, 503, 999]


def prepare(folder: Path) -> Attempt:
    del folder
    corpus = Corpus.from_strings(TEXTS)

    def attempt(chance: random.Random) -> str:
        toy = ToyServer(
            spelling=chance.choice(list(SPELLINGS)),
            bos=chance.choice(["shown", "hidden", "none"]),
            offsets=chance.choice(["characters", "bytes", None]),
            adds=chance.choice([None, None, 0, 2]),
            tells_usage=chance.random() < 0.7,
            form=chance.choice(["legacy", "legacy", "content", "prompt_logprobs", "none", "unechoed"]),
            models=chance.choice([["toy"], ["toy"], ["toy", "other"], None]),
        )
        replies = _Replies(toy, chance, rate=chance.choice([0.0, 0.02, 0.1, 0.5]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logging.getLogger("lmgauge.models.network.server.http"), "disabled", True)
            patch.setattr(problems, "go_on", lambda seconds=0.0: None)
            patch.setattr(server_model, "Endpoint", lambda url: _with_replies(url, replies))
            name = chance.choice(["#toy", "#toy", "", "#none"])
            loaded = server_model.load_completions(f"http://127.0.0.1:1/v1{name}", ScoringOptions())
            for batch in loaded.score(corpus, threads=1):
                assert (batch.logprob <= 0).all(), batch.logprob  # neither is NaN
                assert batch.ends.max(initial=0) <= 64
            assert loaded.to_dict()["fingerprint"] == loaded.fingerprint
            loaded.notes  # noqa: B018 - must be words
        return "read"

    return attempt


class _Replies:
    """What comes back: a toy server's replies, some of them changed."""

    def __init__(self, toy: ToyServer, chance: random.Random, rate: float) -> None:
        self._toy, self._chance, self._rate = toy, chance, rate
        self._seen: dict[bytes, tuple[int, bytes, float] | BaseException] = {}

    def once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Return status, content, and the seconds to wait."""
        key = method.encode() + path.encode() + (body or b"")
        if key not in self._seen:  # requests come from threads, in no order: each prompt has its own chance
            self._seen[key] = self._drawn(random.Random(key + str(self._chance.getstate()[1][:3]).encode()), path, body)
        outcome = self._seen[key]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _drawn(self, chance: random.Random, path: str, body: bytes | None) -> tuple[int, bytes, float] | BaseException:
        content: dict[str, Any] = json.loads(body) if body else {}
        status, reply = self._toy.reply(f"/v1{path}", content)
        if chance.random() >= self._rate:
            return status, reply.encode(), 0.0
        match chance.randrange(5):
            case 0:
                return chance.choice(ERRORS)
            case 1:
                return chance.choice(STATUSES), chance.choice([*BODIES, reply.encode()]), chance.choice([0.0, 1e308])
            case 2:
                return status, changed(reply.encode(), chance, 2), 0.0
            case 3 if '"choices"' in reply:
                return status, json.dumps(_changed_scores(json.loads(reply), chance)).encode(), 0.0
            case _:
                return status, json.dumps(changed_value(json.loads(reply), chance, 2)).encode(), 0.0


def _changed_scores(reply: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Change what a reply says of tokens, where it says it."""
    scores = reply["choices"][0]
    for name in ("logprobs", "prompt_logprobs"):
        if scores.get(name):
            scores[name] = (
                deepcopy(chance.choice(VALUES)) if chance.random() < 0.1 else changed_value(scores[name], chance, 2)
            )
    return reply


def _with_replies(url: str, replies: _Replies) -> Endpoint:
    endpoint = Endpoint(url)
    endpoint._once = replies.once  # type: ignore[method-assign]
    return endpoint
