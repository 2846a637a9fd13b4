"""A wrong address is refused at once, in one line: Ray itself would try for minutes. No test here starts Ray."""

from __future__ import annotations

import ctypes
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from lmgauge.base.errors import MissingExtraError, UsageError
from lmgauge.work import ray_engine
from lmgauge.work.ray_engine import ray_at


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def refused(address: str) -> str:
    with pytest.raises(UsageError) as error, ray_at(address):
        pass
    return str(error.value)


@pytest.mark.parametrize("address", ["auto", "host", "host:", ":6379", "host:99999", "host:0", "http://h:80", "a b:1", ""])
def test_what_is_not_an_address(address: str) -> None:
    assert refused(address) == f"{address!r} is not the address of a Ray cluster; give local, host:port or ray://host:port"


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_is_there(server: socket.socket, scheme: str) -> None:
    address = f"{scheme}127.0.0.1:{server.getsockname()[1]}"
    server.close()
    assert refused(address) == f"no Ray cluster answers at {address}: Connection refused"


def test_an_unknown_host() -> None:
    assert refused("no-such-host.invalid:6379").startswith("no Ray cluster answers at no-such-host.invalid:6379: ")


def test_nobody_answers(server: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "_SECONDS_TO_ANSWER", 0.1)
    address = f"127.0.0.1:{server.getsockname()[1]}"
    assert refused(address) == f"no Ray cluster answers at {address}: timed out"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n", b"", b"x"])
def test_something_else_answers(server: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    assert refused(address) == f"no Ray cluster answers at {address}: something else is there"
    thread.join()


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lmgauge\[ray\]'"), ray_at("local"):
        pass


ENDED = """
import os, types
from lmgauge.work import ray_engine
ray_engine.library = lambda: types.SimpleNamespace(is_initialized=bool, init=dict, shutdown=bool)
with ray_engine.ray_at("local"):
    pass
with ray_engine.ray_at("local"):
    os._exit(1)
"""


def test_a_program_that_ray_ends_in_the_middle_of_a_call_does_so_in_words() -> None:
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("lmgauge: error: the program ended while Ray worked for it: ")
    assert done.stderr.count("\n") == 1


ENDLESS = """
import atexit, ctypes, sys, threading, types
from lmgauge.work import ray_engine
ctypes.CDLL(None).on_exit(ctypes.CDLL(None).abort, None)
ray_engine._SECONDS_TO_PART = 0.1
shutdown = threading.Event().wait
atexit.register(shutdown)
ray_engine.library = lambda: types.SimpleNamespace(is_initialized=bool, init=dict, shutdown=shutdown)
with ray_engine.ray_at("local"):
    pass
sys.exit(3)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "on_exit"), reason="only glibc can end a program so")
def test_a_shutdown_that_never_ends_holds_up_no_program_and_changes_no_exit_code() -> None:
    """What runs at the end of the program in C stands for what is destroyed while Ray's threads use it."""
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, "")
