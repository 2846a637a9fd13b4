"""Addresses: whatever they hold, no password and no value of a query is in what may be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.base.remote.addresses import is_remote, joined, shown_name, without_secrets

SECRET = "Qx7secret"
words = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0'\"<>"), max_size=8)
plain = st.from_regex(r"[a-z0-9._~-]{1,8}", fullmatch=True)
password = st.builds(lambda before, after: before + SECRET + after, words, words).map(
    lambda text: text.translate(str.maketrans("", "", "/?#"))
)
query = st.builds(lambda key, before, after: f"{key}={before}{SECRET}{after}", plain, plain, plain)


@st.composite
def web_addresses(draw: st.DrawFn) -> str:
    """Addresses with a password, or a signed query, or both, and names with what an address may hold."""
    user = draw(st.sampled_from(["", "user"])) + ":" + draw(password) + "@" if draw(st.booleans()) else ""
    path = "/".join(draw(st.lists(plain, min_size=1, max_size=3)))
    tail = "?" + "&".join(draw(st.lists(query, min_size=1, max_size=3))) if draw(st.booleans()) or not user else ""
    fragment = f"#{SECRET}" if tail and draw(st.booleans()) else ""
    return f"{draw(st.sampled_from(['http', 'https', 'HTTPS']))}://{user}{draw(plain)}/{path}{tail}{fragment}"


@given(web_addresses(), plain)
def test_what_is_shown_of_an_address(address: str, name: str) -> None:
    shown = shown_name(address)
    assert SECRET not in shown
    assert shown_name(shown) == shown
    assert is_remote(shown)
    assert shown_name(joined(address, name)) == joined(shown, name)


@given(web_addresses().filter(lambda address: "#" not in address), words)
def test_messages_with_an_address(address: str, text: str) -> None:
    message = f"{text} {address}: is wrong; try {address}, or another"
    assert SECRET not in without_secrets(message)
    error: LmgaugeError = InputError(message)
    assert SECRET not in str(error)
    assert SECRET not in repr(error)


@given(st.text(max_size=40), st.text(max_size=10))
def test_any_string_is_a_path_or_an_address(path: str, name: str) -> None:
    shown = shown_name(path)
    if not is_remote(path):
        assert shown == path
    assert isinstance(without_secrets(path), str)
