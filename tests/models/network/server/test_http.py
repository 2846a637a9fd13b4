"""Talking to a server: tries, time limits, connections, keys, and words for what goes wrong."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from unittest.mock import patch

import pytest
from tests.models.network.server.toy_server import ToyServer

from lmgauge.base.errors import ModelFileError, UsageError
from lmgauge.base.remote import problems
from lmgauge.models.network.server import http as completions_http
from lmgauge.models.network.server.http import (
    KEY_VARIABLE,
    OPENAI_ADDRESS_VARIABLE,
    OPENAI_KEY_VARIABLE,
    Endpoint,
    ServerError,
)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (KEY_VARIABLE, OPENAI_KEY_VARIABLE, OPENAI_ADDRESS_VARIABLE):
        monkeypatch.delenv(name, raising=False)


class Pauses(list[float]):
    """Waits that were asked for, and not waited."""

    def __call__(self, seconds: float = 0.0) -> None:
        if seconds:
            self.append(seconds)


def ask(toy: ToyServer, pause: Pauses | None = None) -> dict[str, object]:
    endpoint = Endpoint(toy.url)
    try:
        with patch.object(problems, "go_on", Pauses() if pause is None else pause):
            return endpoint.get("/models")
    finally:
        endpoint.close()


def test_addresses() -> None:
    endpoint = Endpoint("https://example.org:8443/v1/?version=2#some/model")
    assert endpoint.url == "https://example.org:8443/v1?version=2"
    assert endpoint.model == "some/model"
    assert Endpoint("http://localhost").model == ""


@pytest.mark.parametrize("url", ["ftp://x/v1", "http://", "x", "http://h:port/v1", "http://[1/v1"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        Endpoint(url)


def test_passwords_in_addresses_are_refused_and_not_told() -> None:
    with pytest.raises(UsageError, match=KEY_VARIABLE) as told:
        Endpoint("http://me:secret@example.org/v1")
    assert "secret" not in str(told.value)
    with pytest.raises(UsageError) as told:
        Endpoint("http://me:secret@example.org:port/v1")
    assert "secret" not in str(told.value)


def test_connections_are_kept() -> None:
    with ToyServer().running() as toy:
        endpoint = Endpoint(toy.url)
        for _ in range(3):
            assert endpoint.get("/models")["object"] == "list"
        assert endpoint._pool.value.num_connections == 1
        toy.failures = ["reset"]
        assert endpoint.get("/models")["object"] == "list"  # a kept connection that is gone is no failure
        endpoint.close()
        assert endpoint._pool.value.num_connections == 0
        assert endpoint.get("/models")["object"] == "list"
        endpoint.close()


@pytest.mark.parametrize("failure", [429, 503, 502, 504, "reset"])
def test_busy_servers_are_asked_again(failure: object) -> None:
    pause = Pauses()
    with ToyServer(failures=[failure] * 3).running() as toy:
        assert ask(toy, pause)["object"] == "list"
    assert pause == [0.5, 1.0, 2.0]


def test_servers_may_say_how_long_to_wait() -> None:
    pause = Pauses()
    busy = [(429, "", {"Retry-After": after}) for after in ("7", "1000", "soon")]
    with ToyServer(failures=list(busy)).running() as toy:
        ask(toy, pause)
    assert pause == [7.0, 60.0, 2.0]


def test_servers_that_stay_busy() -> None:
    pause = Pauses()
    with (
        ToyServer(failures=[429] * 10).running() as toy,
        pytest.raises(ServerError, match="after 6 tries: HTTP 429 for a test"),
    ):
        ask(toy, pause)
    assert len(pause) == 5


def test_long_pauses_are_told(caplog: pytest.LogCaptureFixture) -> None:
    busy = (503, json.dumps({"error": {"message": "loading \x1b[31m\x07\u202ered"}}))
    with ToyServer(failures=[busy] * 4).running() as toy:
        ask(toy)
        words = [record.getMessage() for record in caplog.records]
        assert words == [f"{toy.url}: HTTP 503 loading [31m red; asking again in {n} s" for n in (2, 4)]


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_reply_that_comes_drop_by_drop(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions_http, "_REPLY_SECONDS", 0.3)
    listening = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(head)
            for _ in range(200):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return
                time.sleep(0.05)

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(ServerError, match="no answer in time"):
        Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}/v1").get("/models")
    assert time.monotonic() - began < 5
    thread.join()
    listening.close()


def test_no_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ServerError, match=r"no server answers .*refused.*is it running"):
        Endpoint(f"http://127.0.0.1:{port}/v1").get("/models")


def test_no_such_host() -> None:
    with pytest.raises(ServerError, match="no server answers"):
        Endpoint("http://no-such-host.invalid/v1").get("/models")


def test_a_server_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions_http, "_READ_SECONDS", 0.05)
    with ToyServer(failures=["slow"]).running() as toy, pytest.raises(ServerError, match="no answer in time"):
        ask(toy)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "The model `x` does not exist."}}', "HTTP 404: The model `x` does not exist."),
        ('{"detail": "Not Found"}', "HTTP 404: Not Found"),
        ('{"message": "gone"}', "HTTP 404: gone"),
        ("<html>\n  <body>nothing</body>", "HTTP 404: <html> <body>nothing</body>"),
        ("", "HTTP 404: no reason given"),
        ("x" * 1000, "xxx\\.\\.\\.$"),
    ],
)
def test_refusals_are_told_in_the_servers_words(body: str, words: str) -> None:
    with ToyServer(failures=[(404, body)]).running() as toy, pytest.raises(ServerError, match=words) as told:
        ask(toy)
    assert told.value.status == 404
    assert isinstance(told.value, ModelFileError)


@pytest.mark.parametrize("body", ["<html>", "[1]", "", '"x"', b"\xff\xfe", "[" * 100_000])
def test_answers_that_are_no_json_object(body: str | bytes) -> None:
    with ToyServer(failures=[(200, body)]).running() as toy, pytest.raises(ServerError, match="JSON"):
        ask(toy)


def test_answers_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions_http, "_LARGEST_REPLY", 1 << 10)
    with ToyServer(failures=[(200, "x" * 5000)]).running() as toy, pytest.raises(ServerError, match="answers with over"):
        ask(toy)


def test_keys_are_sent_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-hidden")
    refused = (401, json.dumps({"error": {"message": "Incorrect API key provided: sk-hidden"}}))
    with ToyServer(failures=[refused]).running() as toy:
        with pytest.raises(ServerError, match=f"refuses the key in {KEY_VARIABLE}") as told:
            ask(toy)
        assert "sk-hidden" not in str(told.value)
        assert ask(toy)["object"] == "list"
        assert toy.requests[-1][1]["Authorization"] == "Bearer sk-hidden"


def sent(url: str) -> str:
    """The key that goes to an address."""
    return Endpoint(url)._key


def test_the_key_of_other_programs_goes_to_their_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPENAI_KEY_VARIABLE, "sk-theirs")
    assert sent("https://api.openai.com/v1#gpt") == "sk-theirs"
    for other in (
        "http://api.openai.com/v1",
        "https://api.openai.com.example.org/v1",
        "https://api.openai.com:8443/v1",
        "https://example.org/v1",
        "http://127.0.0.1:8000/v1",
    ):
        assert sent(other) == ""
    monkeypatch.setenv(OPENAI_ADDRESS_VARIABLE, "https://Example.org:443/v1/")
    assert sent("https://example.org/v1#a") == "sk-theirs"
    monkeypatch.setenv(OPENAI_ADDRESS_VARIABLE, "http://127.0.0.1:8000/v1")
    assert sent("http://127.0.0.1:8000/v1") == "sk-theirs"
    monkeypatch.setenv(OPENAI_ADDRESS_VARIABLE, "http://example.org/v1")
    assert sent("http://example.org/v1") == ""  # readable on the way
    monkeypatch.setenv(OPENAI_ADDRESS_VARIABLE, "http://[1")
    assert sent("https://example.org/v1") == ""
    monkeypatch.setenv(KEY_VARIABLE, "sk-own")
    assert sent("https://api.openai.com/v1") == sent("https://example.org/v1") == "sk-own"


def test_a_key_sent_in_the_open_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-own")
    for url in ("https://example.org/v1", "http://localhost:1/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"):
        assert sent(url) == "sk-own"
    assert caplog.records == []
    assert sent("http://example.org/v1") == "sk-own"
    [told] = caplog.records
    assert told.levelno == logging.WARNING
    assert told.getMessage().startswith(f"http://example.org/v1: the key in {KEY_VARIABLE} is sent over http")
    assert "sk-own" not in told.getMessage()


def test_a_key_that_was_not_sent_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPENAI_KEY_VARIABLE, "sk-theirs")
    words = rf"wants a key: set {KEY_VARIABLE} \({OPENAI_KEY_VARIABLE} goes only to https://api.openai.com"
    with ToyServer(failures=[401]).running() as toy:
        with pytest.raises(ServerError, match=words):
            ask(toy)
        assert "Authorization" not in toy.requests[-1][1]


def test_keys_that_are_wanted_or_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    with ToyServer(failures=[401]).running() as toy, pytest.raises(ServerError, match=f"wants a key: set {KEY_VARIABLE}"):
        ask(toy)
    monkeypatch.setenv(KEY_VARIABLE, "sk\nhidden")
    with pytest.raises(UsageError, match="set it again"):
        Endpoint("http://127.0.0.1/v1")
