"""Which store an address belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.base.errors import UsageError
from lmgauge.base.remote.addresses import FileState, has_password, is_web, scheme_of, shown_name

if TYPE_CHECKING:
    from lmgauge.base.remote.buckets import BucketStore
    from lmgauge.base.remote.web import WebStore


def store_of(address: str) -> WebStore | BucketStore:
    """Return where the file at an address is; it opens no connection yet."""
    # Errors of a store are `InputError` in reading, `OSError` in writing.
    if is_web(address):
        from lmgauge.base.remote.web import WebStore

        return WebStore(address)
    if has_password(address):
        name, scheme = shown_name(address), scheme_of(address)
        raise UsageError(f"{name}: {scheme}:// takes no password in the address; put keys into the environment")
    from lmgauge.base.remote.buckets import BucketStore

    return BucketStore(address)


def opened(address: str, known: FileState | None = None) -> WebStore | BucketStore:
    """Return a store from which the file is read as it is now; `known` is how it was when it was found."""
    store = store_of(address)
    store.opened = store.state()
    if known is not None and known.is_another(store.opened):
        from lmgauge.base.remote.problems import RewrittenError

        raise RewrittenError(store.name)
    return store
