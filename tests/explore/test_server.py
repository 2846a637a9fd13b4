"""The socket: this machine only, and a port that is taken is said."""

from __future__ import annotations

import socket

import pytest

from lmgauge.base.errors import UsageError
from lmgauge.explore.launch import address_of
from lmgauge.explore.server import bound_socket


def test_a_free_port_is_found() -> None:
    with bound_socket("127.0.0.1", 0) as own, bound_socket("localhost", 0) as other:
        assert own.getsockname()[0] == other.getsockname()[0] == "127.0.0.1"
        assert own.getsockname()[1] != other.getsockname()[1]
        assert address_of(own, "a b") == f"http://127.0.0.1:{own.getsockname()[1]}/?token=a%20b"
        with socket.create_connection(own.getsockname(), timeout=5):  # it is listened on before the address is printed
            pass


def test_a_port_that_is_taken_is_said() -> None:
    with bound_socket("127.0.0.1", 0) as own, pytest.raises(UsageError, match="is taken: choose another with --port"):
        bound_socket("127.0.0.1", own.getsockname()[1])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", "", "127.0.0.2", "localhost.evil"])
def test_other_machines_are_not_served(host: str) -> None:
    with pytest.raises(UsageError, match="on this machine only"):
        bound_socket(host, 0)
