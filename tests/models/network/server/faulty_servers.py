"""Servers with the faults that public threads are full of, and sound ones; only requests tell them apart.

Each breaks one thing and says which. `FAULTS` says at which check an audit must find it, and with what words.
"""

from __future__ import annotations

import json
import random
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from unittest import mock

from tests.models.network.server.toy_server import BOS, ToyServer, toy_tokens

from lmgauge.models.network.server.http import Endpoint

MANY = 4
"""Requests at once from which what fails under load fails."""
WRITTEN = [b" the", b" cat", b" saw", b" 12", b" birds", b"."]


@dataclass
class Row:
    """A token in its place: its log-probability, and that of the likeliest; None where the server has none."""

    token: bytes
    logprob: float | None
    best: float | None

    @property
    def shown(self) -> str:
        """The token as text."""
        return self.token.decode(errors="replace")


def _share(number: int) -> float:
    return zlib.crc32(b"%d" % number) / (1 << 32)


def rows_of(tokens: list[bytes]) -> list[Row]:
    """The rows of a model that remembers all that came before; BOS is the first, without a score."""
    rows, context = [Row(BOS, None, None)], zlib.crc32(BOS)
    for token in tokens:
        best = -0.1 - _share(context)
        rows.append(Row(token, best - 1.0 - 4.0 * _share(zlib.crc32(token, context)), best))
        context = zlib.crc32(token, context)
    return rows


@dataclass
class SoundServer(ToyServer):
    """A server that says the same whenever it is asked.

    Attributes:
        form: "echo" lists, a "content" list, or "prompt_logprobs" alone.
        bos: whether the BOS token is "shown", or "hidden", which leaves the first token of the text without a score.
        noise: nats by which two replies differ.
        limit: most tokens of a prompt.
        takes_lists: whether a request may have several prompts.
        chunk: tokens that it reads at a time; real ones read 512 and more.
        waits: whether a reply waits for others, where several ask.
        at_once: requests that are being answered.
        under_load: whether they were many since there was none.
        asked: the prompt before this one.
    """

    form: str = "echo"
    noise: float = 0.0
    takes_lists: bool = True
    chunk: int = 64
    waits: ClassVar[bool] = False
    at_once: int = 0
    under_load: bool = False
    asked: str = ""
    rounding: random.Random = field(default_factory=lambda: random.Random(7))
    turn: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def at_hand(self) -> Iterator[SoundServer]:
        """Answers without a connection."""
        self.url = "http://127.0.0.1:9/v1"

        def answer(_: Endpoint, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
            self.requests.append((f"{method} {path}", {}, {}))
            status, reply = self.reply(f"/v1{path}", json.loads(body or b"{}"))
            return status, reply.encode()

        with mock.patch.object(Endpoint, "_answer", answer):
            yield self

    def reply(self, path: str, content: dict[str, Any]) -> tuple[int, str]:
        if path != "/v1/completions":
            return 200, json.dumps({"data": [{"id": "toy"}]})
        prompts = content["prompt"] if isinstance(content["prompt"], list) else [content["prompt"]]
        if len(prompts) > 1 and not self.takes_lists:
            return 400, json.dumps({"error": {"message": "prompt must be a string"}})
        if self.form == "prompt_logprobs" and "echo" in content:
            return 400, json.dumps({"error": {"message": "echo is not supported"}})
        with self.turn:
            self.at_once += 1
            self.under_load |= self.at_once > MANY
            self.turn.notify_all()
            # What the main thread asks comes alone.
            alone = threading.current_thread() is threading.main_thread()
            self.turn.wait_for(lambda: self.under_load or alone or not self.waits, 0.2)
        status, choices = self.choices(prompts, content["max_tokens"])
        with self.turn:
            self.at_once -= 1
            self.under_load &= self.at_once > 0
            self.asked = prompts[-1]
        if status != 200:
            return status, json.dumps({"error": {"message": choices}})
        usage = {"completion_tokens": len(prompts) * content["max_tokens"]}
        return 200, json.dumps({"choices": choices, "usage": usage})

    def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
        """Status, and the reply to each prompt, or the reason why there is none."""
        choices = []
        for place, prompt in enumerate(prompts):
            tokens = toy_tokens(prompt)
            if len(tokens) >= self.limit:
                return 400, f"the maximum context length is {self.limit} tokens"
            for _ in range(count):
                tokens.append(WRITTEN[zlib.crc32(b"".join(tokens)[-20:]) % len(WRITTEN)])
            whole = list(map(self._rounded, rows_of(tokens)))
            size = len(whole) - count
            choices.append(self.choice(place, prompt, self.scored(whole[:size]), self.written(whole[size:])))
        return 200, choices

    def choice(self, index: int, prompt: str, rows: list[Row], written: list[Row]) -> dict[str, Any]:
        """The reply to a prompt."""
        text = b"".join(row.token for row in written).decode()
        if self.bos == "hidden":
            rows = [replace(rows[1], logprob=None, best=None), *rows[2:]] if rows[0].token == BOS else rows
        if self.form == "prompt_logprobs":
            entries = [{"7": {"logprob": row.logprob, "decoded_token": row.shown}} for row in rows]
            return {"index": index, "text": text, "prompt_logprobs": [None, *entries[1:]]}
        echoed = rows + written
        if self.form == "content":
            content = [
                {"token": row.shown, "logprob": row.logprob, "top_logprobs": [{"logprob": row.best}]} for row in echoed
            ]
            return {"index": index, "text": prompt + text, "logprobs": {"content": content}}
        tops = [row.best and {"?": row.best, row.shown: row.logprob} for row in echoed]
        lists = {"tokens": [row.shown for row in echoed], "token_logprobs": [row.logprob for row in echoed]}
        return {"index": index, "text": prompt + text, "logprobs": {**lists, "top_logprobs": tops}}

    def _rounded(self, row: Row) -> Row:
        if row.logprob is None or row.best is None or not self.noise:
            return row
        by = self.rounding.gauss(0.0, self.noise)
        return replace(row, logprob=row.logprob + by, best=row.best + by)

    def scored(self, rows: list[Row]) -> list[Row]:
        """What it says of the tokens of a prompt, BOS first."""
        return rows

    def written(self, rows: list[Row]) -> list[Row]:
        """What it says of the tokens that it writes."""
        return rows


class EdgeOffByOne(SoundServer):
    """The first token of each chunk has the score of the token before it."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [replace(rows[i - 1], token=row.token) if i and i % self.chunk == 0 else row for i, row in enumerate(rows)]


class EdgeWithoutScore(SoundServer):
    """The first token of each chunk has no score."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [replace(row, logprob=None) if i and i % self.chunk == 0 else row for i, row in enumerate(rows)]


class EdgeLeftOut(SoundServer):
    """The last token of each chunk is left out."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [row for i, row in enumerate(rows) if i % self.chunk != self.chunk - 1]


class EdgesMoveWithLoad(SoundServer):
    """Under load prompts are read in chunks, and the first token of each has the score of the token before it."""

    waits = True

    def scored(self, rows: list[Row]) -> list[Row]:
        size = self.chunk if self.under_load else 1 << 20
        return [replace(rows[i - 1], token=row.token) if i and i % size == 0 else row for i, row in enumerate(rows)]


class LongWithoutScores(SoundServer):
    """Prompts of more than two chunks have no scores."""

    def choice(self, index: int, prompt: str, rows: list[Row], written: list[Row]) -> dict[str, Any]:
        found = super().choice(index, prompt, rows, written)
        return found if len(rows) <= 2 * self.chunk else found | {"logprobs": None, "prompt_logprobs": None}


class LoadWithoutScores(SoundServer):
    """Under load requests are evicted, and begin again without the scores of their first tokens."""

    waits = True

    def scored(self, rows: list[Row]) -> list[Row]:
        if not self.under_load:
            return rows
        return [replace(row, logprob=None) if 0 < i < 4 else row for i, row in enumerate(rows)]


class LoadMoves(SoundServer):
    """Under load all scores are others, by a third of a nat."""

    waits = True

    def scored(self, rows: list[Row]) -> list[Row]:
        by = 0.3 * self.under_load
        return [row if row.logprob is None else replace(row, logprob=row.logprob - by) for row in rows]


class LoadFails(SoundServer):
    """Under load it fails."""

    waits = True

    def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
        return (500, "EngineCore died") if self.under_load else super().choices(prompts, count)


class GroupsTurned(SoundServer):
    """The replies to prompts in one request are numbered backwards."""

    def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
        _, found = super().choices(prompts, count)
        return 200, [choice | {"index": len(found) - 1 - choice["index"]} for choice in found]


class GroupsMerged(SoundServer):
    """Prompts in one request get one reply."""

    def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
        return super().choices(["".join(prompts)], count)


class GroupsMixed(SoundServer):
    """Of prompts in one request all have the scores of the first, as far as these go."""

    def choices(self, prompts: list[str], count: int) -> tuple[int, Any]:
        status, found = super().choices(prompts, count)
        for choice in found[1:] if self.form == "echo" else []:
            own, first = (one["logprobs"]["token_logprobs"] for one in (choice, found[0]))
            own[: len(first)] = first[: len(own)]
        return status, found


class FirstIsCertain(SoundServer):
    """The first token of a text has probability one."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [rows[0], Row(rows[1].token, 0.0, 0.0), *rows[2:]]


class FirstIsSecond(SoundServer):
    """The first token has the score of the second."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [rows[0], replace(rows[min(2, len(rows) - 1)], token=rows[1].token), *rows[2:]]


class FirstIsStale(SoundServer):
    """The first token is predicted after the prompt that was asked about before."""

    def scored(self, rows: list[Row]) -> list[Row]:
        stale = -1.0 - 8.0 * _share(zlib.crc32(self.asked.encode()))
        return [rows[0], replace(rows[1], logprob=stale), *rows[2:]]


class LongCut(SoundServer):
    """Of long prompts only the beginning is read."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return rows[: 2 * self.chunk]


class LongCutInFront(SoundServer):
    """Of long prompts only the end is read."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return rows if len(rows) <= 2 * self.chunk else [rows[0], *rows[-2 * self.chunk :]]


class LongPlacesAreWrong(SoundServer):
    """Tokens beyond a place have scores that have nothing to do with them."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [replace(row, logprob=-1.0) if i > 2.3 * self.chunk else row for i, row in enumerate(rows)]


class OneRowForAll(SoundServer):
    """All tokens of a prompt are predicted in the last place."""

    def scored(self, rows: list[Row]) -> list[Row]:
        seed = zlib.crc32(b"".join(row.token for row in rows))
        return [rows[0], *(replace(row, logprob=-1.0 - 8 * _share(zlib.crc32(row.token, seed))) for row in rows[1:])]


class OtherTemperature(SoundServer):
    """What it writes is scored at another temperature than what it reads."""

    def written(self, rows: list[Row]) -> list[Row]:
        return [replace(row, logprob=0.7 * row.logprob) for row in rows if row.logprob is not None]


class DropoutLeftOn(SoundServer):
    """Each reply is another."""

    def scored(self, rows: list[Row]) -> list[Row]:
        return [
            rows[0],
            *(replace(row, logprob=min(row.best, row.logprob + self.rounding.gauss(0.0, 0.5))) for row in rows[1:]),
        ]


class SeesLater(SoundServer):
    """The last token of a prompt changes the scores of those before it."""

    def scored(self, rows: list[Row]) -> list[Row]:
        seed = zlib.crc32(rows[-1].token, len(rows))
        return [rows[0], *(replace(row, logprob=row.logprob - _share(zlib.crc32(row.token, seed))) for row in rows[1:])]


FAULTS: list[tuple[type[SoundServer], str, str]] = [
    (EdgeOffByOne, "agreement", "at the edges of chunks of 64 tokens"),
    (EdgeWithoutScore, "replies", "gives no log-probability for token 64"),
    (EdgeLeftOut, "replies", "no token for .*, which the prompt has before"),
    (EdgesMoveWithLoad, "load", "at the edges of chunks of 64 tokens; the first: token 65 with 8 at once"),
    (LongWithoutScores, "replies", "answers without log-probabilities; .*, about prompts of up to .* tokens"),
    (LoadWithoutScores, "load", "with 8 at once: gives no log-probability for token 2"),
    (LoadMoves, "load", "by up to 0.[34].* nats .*, in .* places .* with 8 at once"),
    (LoadFails, "load", "with 8 at once: .*HTTP 500: EngineCore died"),
    (GroupsTurned, "groups", "(no token for|tokens of another text|tokens for only part)"),
    (GroupsMerged, "groups", "there are no choices in it"),
    (GroupsMixed, "groups", "by up to [0-9.]+ nats .* in .* places from token 2"),
    (FirstIsCertain, "replies", "the probabilities of different first tokens sum to"),
    (FirstIsSecond, "later text", "at the first token"),
    (FirstIsStale, "order", "at the first token"),
    (LongCut, "replies", "(only part of the prompt|no token for the end)"),
    (LongCutInFront, "replies", "(only part of the prompt|no token for)"),
    (LongPlacesAreWrong, "agreement", "behind token 133, up to which all are the same"),
    (OneRowForAll, "later text", "in .* places from token 2"),
    (OtherTemperature, "agreement", "in .* places from token 3"),
    (DropoutLeftOn, "repeats", "in .* places from token 2"),
    (SeesLater, "later text", "in .* places from token 2"),
]
"""Servers, the check that must fail, and a pattern that its evidence has."""
