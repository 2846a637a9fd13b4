"""The socket: this machine only, and a port that is taken is said."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.explore.conftest import ADDRESS, TOKEN, Served
from tests.finished import finished

from lmgauge.base.errors import UsageError
from lmgauge.explore.launch import address_of
from lmgauge.explore.server import LARGEST_BODY, LONGEST_QUERY, application, bound_socket, hostname


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


# -----------------------------------------------------------------------------------------------------------------------
# Nothing is answered to who has no token, to another site, under a foreign name, or when it is too long.
@pytest.fixture
def stranger(one: Served) -> TestClient:
    """A client that knows nothing."""
    return TestClient(application(one.explorer, TOKEN), base_url=ADDRESS)


@pytest.mark.parametrize(
    "path", ["/", "/report", "/none", "/api/state", "/api/segments", "/api/numbers", "/api/score", "/api/"]
)
def test_without_the_token_nothing_is_answered(stranger: TestClient, path: str) -> None:
    method = "POST" if path.startswith("/api/") else "GET"
    for query in ("", "?token=wrong", "?token="):
        response = stranger.request(method, f"{path}{query}", json={} if method == "POST" else None)
        assert response.status_code == 403
        assert "token" in response.json()["error"]


def test_the_token_is_taken_from_the_address_the_header_or_the_cookie(stranger: TestClient) -> None:
    assert stranger.post("/api/state", json={}, headers={"x-lmgauge-token": TOKEN}).status_code == 200
    assert stranger.post("/api/state", json={}).status_code == 403
    page = stranger.get("/", params={"token": TOKEN})
    assert page.status_code == 200
    cookie = page.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.post("/api/state", json={}).status_code == 200  # the client keeps the cookie


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8000",
        "",
        "[::2]",
        "127.0.0.2",
        "evil.example@127.0.0.1",
        "127.0.0.1/x",
        "localhost#.evil.example",
        "localhost?x",
    ],
)
def test_a_foreign_name_is_refused(one: Served, host: str) -> None:
    response = one.client.post("/api/state", json={}, headers={"host": host})
    assert response.status_code == 403
    assert "names of this machine" in response.json()["error"]


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"])
def test_names_of_this_machine_are_answered(one: Served, host: str) -> None:
    assert one.client.post("/api/state", json={}, headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_is_refused(one: Served, headers: dict[str, str]) -> None:
    for response in (
        one.client.post("/api/state", json={}, headers=headers),
        one.client.post("/api/score", json={"text": "a"}, headers=headers),
    ):
        assert response.status_code == 403
        assert "another site" in response.json()["error"]


def test_the_own_origin_is_answered(one: Served) -> None:
    assert (
        one.client.post("/api/state", json={}, headers={"origin": ADDRESS, "sec-fetch-site": "same-origin"}).status_code
        == 200
    )


def test_a_huge_query_is_refused(one: Served) -> None:
    response = one.client.get("/", params={"q": "x" * LONGEST_QUERY})
    assert response.status_code == 414
    assert "8,000" in response.json()["error"]
    response = one.client.post("/api/score", json={"text": "x" * LARGEST_BODY})
    assert response.status_code == 413
    assert "lmgauge eval" in response.json()["error"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_nothing_can_be_changed(one: Served, method: str) -> None:
    assert one.client.request(method, "/api/segments").status_code == 405
    assert one.client.request("POST" if method == "GET" else method, "/").status_code == 405


def test_a_form_of_another_site_cannot_score(one: Served) -> None:
    response = one.client.post("/api/score", content='{"text": "a"}', headers={"content-type": "text/plain"})
    assert response.status_code == 415
    assert one.client.get("/api/score").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/../../../etc/passwd",
        "/static/page.js",
        "/scores.parquet",
        "/api/segments/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(one: Served, path: str) -> None:
    for response in (one.client.get(path), one.client.post(path, json={})):
        assert response.status_code in (404, 405)
        assert "root:" not in response.text


def test_every_answer_keeps_to_itself(one: Served, stranger: TestClient) -> None:
    for response in (one.client.get("/"), one.client.post("/api/state", json={}), stranger.get("/")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "no-store"
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in response.headers


def test_names_in_host_headers() -> None:
    assert [hostname(host) for host in ("a:80", "[::1]", "[", "a@b:1")] == ["a", "::1", "", ""]


def test_a_click_on_the_printed_address_on_another_page_opens_it(stranger: TestClient) -> None:
    click = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert stranger.get("/", params={"token": TOKEN}, headers=click).status_code == 200
    assert stranger.get("/", headers=click).status_code == 403  # the cookie alone does not open it from elsewhere
    assert stranger.post("/api/state", json={}, params={"token": TOKEN}, headers=click).status_code == 403
    for other in ({"sec-fetch-mode": "no-cors"}, {"sec-fetch-dest": "iframe"}, {"origin": "http://evil.example"}):
        assert stranger.get("/", params={"token": TOKEN}, headers=click | other).status_code == 403


def test_cookies_of_other_servers_of_this_machine_do_not_hide_ours(stranger: TestClient) -> None:
    own = stranger.get("/", params={"token": TOKEN}).headers["set-cookie"].partition(";")[0]
    stranger.cookies.clear()
    assert stranger.post("/api/state", json={}, headers={"cookie": f"junk[x]=1; a; {own}; b=2"}).status_code == 200
    assert stranger.post("/api/state", json={}, headers={"cookie": f"x{own}"}).status_code == 403


def test_no_address_leads_on_to_another(one: Served) -> None:
    assert one.client.get("/report/", follow_redirects=False).status_code == 404


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (["http.disconnect"], "send all of it"),
        (["http.request", "http.disconnect"], "send all of it"),
        (["http.request"], "is not one as lmgauge writes it"),  # all of it, and nothing in it: nobody waits for more
    ],
)
def test_who_hangs_up_within_a_request_or_sends_nothing_is_answered_at_once(
    one: Served, parts: list[str], reason: str
) -> None:
    headers = {"host": "127.0.0.1", "content-type": "application/json", "x-lmgauge-token": TOKEN}
    scope = {"type": "http", "method": "POST", "path": "/api/score", "query_string": b"", "server": ("127.0.0.1", 1)}
    scope |= {"headers": [(name.encode(), value.encode()) for name, value in headers.items()], "root_path": ""}
    waiting, sent = list(parts), list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        assert waiting, "the answer waits for more of the request"
        return {"type": waiting.pop(0), "body": b"", "more_body": bool(waiting)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    app: Any = application(one.explorer, TOKEN)
    finished(app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert reason in json.loads(sent[1]["body"])["error"]


def test_a_query_that_is_no_utf8_is_no_error_of_ours(one: Served) -> None:
    async def asked() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b'{"text": "the cat"}', "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"x-lmgauge-token", TOKEN.encode()), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/api/score", "query_string": b"x=\xff\xc3", "headers": headers}
        await one.client.app(scope, receive, send)
        return sent

    assert finished(asked())[0]["status"] == 200


def test_a_path_with_control_characters_does_not_come_back_as_it_is(one: Served) -> None:
    error: str = one.client.post("/%1b[31m%00").json()["error"]
    assert error.startswith("/\ufffd[31m\ufffd is asked with GET")
