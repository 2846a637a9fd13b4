"""Which store an address belongs to."""

from __future__ import annotations

from lmgauge.errors import UsageError
from lmgauge.remote.addresses import has_password, is_web, scheme_of, shown_name
from lmgauge.remote.protocol import Store


def store_of(address: str) -> Store:
    """Return the store of an address; it opens no connection yet."""
    if is_web(address):
        from lmgauge.remote.web import WebStore

        return WebStore(address)
    if has_password(address):
        raise UsageError(
            f"{shown_name(address)}: {scheme_of(address)}:// takes no password in the address; put keys into the environment"
        )
    from lmgauge.remote.buckets import BucketStore

    return BucketStore(address)
