"""The one HTTP client, for files and servers of models: a request by urllib3, and what the system says where it fails."""

# No redirect is followed and nothing is tried again here: those who ask know what may be asked twice, and where the words
# of an error end.

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader

Reply = urllib3.BaseHTTPResponse
Asker = urllib3.PoolManager | urllib3.HTTPConnectionPool
PIECE = 1 << 18
_CONNECT_SECONDS = 10.0


def manager_for(url: str) -> urllib3.PoolManager:
    """Return what asks the server of an address, through the proxy that the environment names for it."""
    parts = urlsplit(url)
    proxy = "" if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme, "")
    if not proxy:
        return urllib3.PoolManager()
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    user = urlsplit(proxy).netloc.rpartition("@")[0]
    return urllib3.ProxyManager(proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=unquote(user)) if user else None)


def pool_for(url: str, seconds: float) -> urllib3.HTTPConnectionPool:
    """Return connections to one server, kept from one request to the next; one that gives no answer in time is shut."""
    pool = urllib3.connection_from_url(url, maxsize=64)

    class Timed(pool.ConnectionCls):  # type: ignore[misc,name-defined]
        def getresponse(self) -> Any:
            timer = Timer(seconds, _shut, [self.sock])  # a head that comes drop by drop never lets a read time out
            timer.daemon = True
            timer.start()
            try:
                return super().getresponse()
            finally:
                timer.cancel()

    pool.ConnectionCls = Timed
    return pool


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):  # closed meanwhile
        connected.shutdown(socket.SHUT_RDWR)


def open_reply(
    asker: Asker, method: str, url: str, headers: Mapping[str, str], seconds: float, *, body: bytes | None = None, **how: Any
) -> Reply:
    """Return the reply to one request, its content not read yet; `seconds` is how long its server may be silent."""
    # Within `plain_errors`, as the reading of the content.
    # how: more for urllib3, such as `enforce_content_length`.
    how |= {"redirect": False, "retries": False, "preload_content": False, "decode_content": False}
    how["timeout"] = urllib3.Timeout(connect=min(seconds, _CONNECT_SECONDS), read=seconds)
    return asker.urlopen(method, url, body=body, headers=headers, **how)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise in place of urllib3's errors those of the system, of TLS and of HTTP that they come from."""
    try:
        yield
    except HTTPError as error:
        cause: BaseException | None = error
        while isinstance(cause, HTTPError):
            inside = (*cause.args, cause.__cause__)
            said, cause = cause, next((each for each in inside if isinstance(each, Exception)), None)
        if cause is None:  # urllib3's own: of an address, or of a reply that is not as it should be
            cause = ValueError(str(said)) if isinstance(said, ValueError) else ConnectionError(str(said))
        raise cause from None


def seconds_to_wait(reply: Reply) -> float:
    """Return how long a server asks to wait before the next try, as a number or as a date; 0 where it does not say."""
    try:
        return urllib3.Retry().get_retry_after(reply) or 0.0
    except (InvalidHeader, ValueError, OverflowError):
        return 0.0
