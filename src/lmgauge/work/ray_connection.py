"""Joining a cluster of Ray, or starting one on this machine: quietly, at the address named, or refused within seconds."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from lmgauge.errors import UsageError, needing

T = TypeVar("T")

LOCAL = "local"
_SECONDS_TO_ANSWER = 5.0
_SECONDS_TO_PART = 20.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How HTTP/2, which Ray speaks, begins; the answer is a frame of settings as well, of type 4."""
_LAST_WORDS = """import sys; sys.stdin.read() or sys.exit(
    "lmgauge: error: the program ended while Ray worked for it: it was killed, or Ray's process on its machine was lost")"""
"""A program of its own: where the raylet dies during a call, Ray ends the caller at once, and without a word."""

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # every line: Ray prints what its machines say to standard output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning that this will be the default
}


@contextmanager
def ray_at(address: str, workers: int | None = None, store_bytes: int | None = None) -> Iterator[Any]:
    """Yield the library, connected; what was started here ends with the block."""
    # A connection that the program has already is used as it is, and stays.
    if address != LOCAL:
        refuse_unanswered(address)
    ray = library()
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options |= {"num_cpus": workers, "object_store_memory": store_bytes, "include_dashboard": False}
    try:
        ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"cannot join Ray at {address}: {reason}") from error
    words = subprocess.Popen([sys.executable, "-IS", "-c", _LAST_WORDS], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield ray
    finally:
        words.communicate(b"not needed")
        if not wait([asked(ray.shutdown)], _SECONDS_TO_PART).done:
            abandon(ray)


def asked(call: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
    """Return what a call of Ray will return: its thread may wait for ever, and nothing waits for its end."""
    answer: Future[T] = Future()

    def _call() -> None:
        try:
            answer.set_result(call(*arguments, **options))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=_call, daemon=True).start()
    return answer


def abandon(ray: Any) -> None:
    """Let the program end, with its own exit code, while threads of Ray wait for what is lost."""
    atexit.unregister(ray.shutdown)  # it would wait as well
    with suppress(AttributeError, TypeError):  # only glibc
        libc = ctypes.CDLL(None)
        # `_exit` gets the program's code, before what those threads use is destroyed, which is a crash or a hang.
        libc.on_exit(libc._exit, None)


def library() -> Any:
    """Return Ray, set so that it sends no usage statistics, and waits for its processes on a busy machine."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    with needing("ray", extra="ray"):
        import ray
    return ray


def lifelines(ray: Any, address: str) -> dict[str, str]:
    """Return the addresses without which a connection is of no use, by what answers there."""
    if address.startswith("ray://"):
        return {"the head of the cluster": address}
    here = ray.get_runtime_context()
    own = next(node for node in ray.nodes() if node["NodeID"] == here.get_node_id())
    raylet = f"{own['NodeManagerAddress']}:{own['NodeManagerPort']}"
    return {"the head of the cluster": here.gcs_address, "Ray's process on this machine": raylet}


def refuse_unanswered(address: str) -> None:
    """Refuse an address where nobody speaks as Ray does: Ray itself would try for minutes, and then end the program."""
    match = re.fullmatch(r"(?:ray://)?(\[[0-9a-fA-F:]+\]|[^\s:/]+):(\d{1,5})", address)
    if match is None or not 0 < int(match[2]) < 65536:
        raise UsageError(f"{address!r} is not the address of a Ray cluster; give local, host:port or ray://host:port")
    try:
        with socket.create_connection((match[1].strip("[]"), int(match[2])), timeout=_SECONDS_TO_ANSWER) as connection:
            connection.sendall(_PREFACE)
            answer = connection.recv(9)
    except OSError as error:
        raise UsageError(f"no Ray cluster answers at {address}: {error.strerror or error}") from error
    if answer[3:4] != b"\4":
        raise UsageError(f"no Ray cluster answers at {address}: something else is there")
