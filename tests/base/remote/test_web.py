"""Files on a web server: the same bytes whatever the server does, or one line that says what is wrong."""

from __future__ import annotations

import socket

import pytest
from tests.remote_servers import WebFiles, in_parts

from lmgauge.base import paths as places
from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.files import OutputError, writing
from lmgauge.base.remote import web as web_module
from lmgauge.base.remote.addresses import FileState
from lmgauge.base.remote.web import redirected

CONTENT = bytes(range(256)) * 9000  # 2.3 MB: several pieces, and more than what counts as progress


def read(address: str) -> bytes:
    with places.open_reading(address) as file:
        return file.read()


def message(address: str) -> str:
    with pytest.raises(LmgaugeError) as caught:
        read(address)
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.exit_code == 2
    return text.replace(address.partition("?")[0], "FILE")


def test_a_file_is_read_with_gets_alone(web: WebFiles) -> None:
    address = web.put("a b/ü.txt", CONTENT)
    assert read(address) == CONTENT
    assert {method for method, _, _ in web.requests} == {"GET"}
    assert places.file_state(address) == FileState(len(CONTENT), "1")


def test_an_empty_file(web: WebFiles) -> None:
    address = web.put("empty.txt", b"")
    assert read(address) == b""
    assert places.file_state(address).size == 0


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("lengths", [True, False])
def test_servers_without_ranges_or_lengths(web: WebFiles, ranges: bool, lengths: bool) -> None:
    web.ranges, web.lengths = ranges, lengths
    assert read(web.put("a.txt", CONTENT)) == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_is_resumed(web: WebFiles, ranges: bool) -> None:
    web.ranges = ranges
    address = web.put("a.txt", CONTENT)
    web.faults["/a.txt"] = ["", "drop", "close", "drop", "503", ""]
    assert read(address) == CONTENT
    resumed = [wanted for _, _, wanted in web.requests[2:]]
    assert all(wanted.startswith("bytes=") for wanted in resumed)


def test_a_connection_that_breaks_often_but_goes_on(web: WebFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "_PROGRESS", 10)
    address = web.put("a.txt", CONTENT)
    web.faults["/a.txt"] = ["", *["drop"] * 10]
    assert read(address) == CONTENT


def test_a_body_that_is_always_shorter_than_announced(web: WebFiles) -> None:
    address = web.put("a.txt", b"0123456789")
    web.faults["/a.txt"] = ["", *["drop"] * 20]
    assert message(address) == "FILE: the connection ends at byte 9 of 10, after 5 tries; try again later"


def test_without_a_tag_nothing_is_resumed_blindly(web: WebFiles) -> None:
    web.ranges, web.tags["/a.txt"] = False, ""
    address = web.put("a.txt", CONTENT)
    web.faults["/a.txt"] = ["", "drop"]
    assert message(address) == "FILE: the connection broke, and the server cannot send the rest alone"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_servers_are_asked_again(web: WebFiles, status: int) -> None:
    address = web.put("a.txt", b"text")
    web.faults["/a.txt"] = [str(status)] * 4
    assert read(address) == b"text"
    web.faults["/a.txt"] = [str(status)] * 5
    assert message(address) == f"FILE: the server is busy or has a problem (HTTP {status}), after 5 tries; try again later"
    assert web.faults["/a.txt"] == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "FILE: wants another user and password (HTTP 401): put USER:PASSWORD@ before the host"),
        (403, "FILE: access is denied (HTTP 403): is the address complete, and still valid?"),
        (404, "FILE: no such file (HTTP 404)"),
        (410, "FILE: no such file (HTTP 410)"),
        (400, "FILE: cannot be read (HTTP 400)"),
    ],
)
def test_refusals_are_said_at_once(web: WebFiles, status: int, words: str) -> None:
    address = web.put("a.txt", b"text")
    web.faults["/a.txt"] = [str(status)]
    assert message(address) == words
    assert len(web.requests) == 1


def test_patterns_are_refused_where_nothing_is_listed(web: WebFiles) -> None:
    assert (
        message(f"{web.address}/part-*.txt")
        == "FILE: no such file (HTTP 404); a web server takes no patterns: name each file"
    )


def test_redirects(web: WebFiles) -> None:
    address = web.put("a.txt", b"text")
    web.put("b.txt", b"another")
    web.faults["/a.txt"] = ["redirect /b.txt"] * 2
    assert read(address) == b"another"
    web.faults["/a.txt"] = [f"redirect {address}"] * 30
    assert message(address) == "FILE: is redirected in a circle (HTTP 302)"


@pytest.mark.parametrize("to", ["ftp://127.0.0.1:1/b.txt", "FTP://127.0.0.1/b.txt", "file:///etc/passwd", "data:,text"])
def test_redirects_lead_to_web_servers_only(web: WebFiles, to: str) -> None:
    address = web.put("a.txt", b"text")
    web.faults["/a.txt"] = [f"redirect {to}"]
    assert message(address) == "FILE: is redirected to what is not a web server (HTTP 302)"
    assert len(web.requests) == 1


def test_what_is_encrypted_stays_so() -> None:
    assert redirected("FILE", "https://host/a", "../b c", 302) == "https://host/b%20c"
    assert redirected("FILE", "http://host/a", "https://host/a", 302) == "https://host/a"
    with pytest.raises(InputError, match="is redirected from https to http, which is not followed"):
        redirected("FILE", "https://host/a", "HTTP://host/a", 302)


def test_a_proxy_is_asked_where_the_environment_names_one(web: WebFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    web.put("a.txt", b"text")
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.setenv("http_proxy", web.address)
    assert read("http://nowhere.invalid/a.txt") == b"text"


def test_a_password_goes_to_its_own_host_only(web: WebFiles) -> None:
    web.password = "me:s3cret word"
    web.put("a.txt", b"text")
    host = web.address.removeprefix("http://")
    address = f"http://me:s3cret%20word@{host}/a.txt"
    assert read(address) == b"text"
    assert set(web.authorizations) == {"Basic bWU6czNjcmV0IHdvcmQ="}
    web.authorizations.clear()
    other = host.replace("127.0.0.1", "localhost")
    web.faults["/a.txt"] = [f"redirect http://{other}/a.txt"]
    with pytest.raises(InputError, match="HTTP 401") as caught:
        read(address)
    assert web.authorizations[-1] == ""
    assert "s3cret" not in str(caught.value)


def test_a_file_written_anew_while_it_is_read(web: WebFiles) -> None:
    address = web.put("a.txt", CONTENT)
    state = places.file_state(address)
    web.tags["/a.txt"] = '"2"'
    with pytest.raises(InputError, match="changed while it was being read"):
        places.open_reading(address, state)
    web.tags["/a.txt"] = '"1"'
    with places.open_reading(address) as file:
        web.tags["/a.txt"] = '"3"'
        with pytest.raises(InputError, match="changed while it was being read"):
            file.read()


def test_a_file_of_another_size_is_another_one_whatever_its_tag(web: WebFiles) -> None:
    address = web.put("a.txt", CONTENT)
    state = places.file_state(address)
    web.put("a.txt", b"")
    with pytest.raises(InputError, match="changed while it was being read"):
        places.open_reading(address, state)


def test_a_file_that_became_shorter_while_the_connection_was_down(web: WebFiles) -> None:
    address = web.put("a.txt", CONTENT)
    web.faults["/a.txt"] = ["", "drop"]
    with places.open_reading(address) as file:
        start = file.read(100)
        web.files["/a.txt"] = b"short"
        with pytest.raises(InputError, match="changed while it"):
            file.read()
    assert start == CONTENT[:100]


def test_hosts_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/a.txt"
        assert message(address) == "FILE: no server answers at 127.0.0.1; are host and port right?"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(socket.gaierror(-2, "unknown")))
    assert message("https://nowhere.invalid/a.txt") == "FILE: the host nowhere.invalid is not known, or the network is down"


def test_a_server_that_does_not_speak_tls(web: WebFiles) -> None:
    address = web.put("a.txt", b"text").replace("http://", "https://")
    assert "does not speak TLS as it should" in message(address)


@pytest.mark.parametrize("address", ["https://", "http:///a.txt", "http://[::1/a.txt", "http://h:port/a.txt"])
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        read(address)


def test_parts_of_a_file(web: WebFiles) -> None:
    address = web.put("a.bin", CONTENT)
    with in_parts(address) as file:
        file.raw.expect([(100, 300_000)])
        file.seek(1000)
        assert file.read(500) == CONTENT[1000:1500]
        before = len(web.requests)
        assert file.read(200_000) == CONTENT[1500:201_500]
        assert len(web.requests) == before  # it came with the first request of the part
        file.seek(-10, 2)
        assert file.read() == CONTENT[-10:]
        file.seek(299_990)
        assert file.read(20) == CONTENT[299_990:300_010]
    web.ranges = False
    with in_parts(address) as file, pytest.raises(InputError, match="sends no parts of files"):
        file.read(10)


def test_web_servers_are_only_read(web: WebFiles) -> None:
    address = web.put("a.txt", b"text")
    message = "web servers are only read; write to a local path or to a bucket"
    with pytest.raises(OutputError, match=message), writing(address):
        pass
    assert places.exists(address)
    assert not places.exists(f"{web.address}/b.txt")
    assert {method for method, _, _ in web.requests} == {"GET"}
