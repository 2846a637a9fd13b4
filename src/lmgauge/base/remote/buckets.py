"""Files in buckets and hubs (`s3://`, `gs://`, `hf://`, whatever fsspec knows), by fsspec's public functions."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lmgauge.base.errors import InputError, MissingExtraError, UsageError, needing
from lmgauge.base.remote.addresses import FileState, scheme_of, shown_name
from lmgauge.base.remote.problems import NotThereError, PassingProblem, Patience, RewrittenError, problem_of, words_of
from lmgauge.base.threads import in_flight

_BLOCK = 8 << 20
"""Bytes of one request in a reading from start to end."""
_AHEAD = 3
"""Requests under way at a time, so that waiting for one is not waiting for all."""
_UPLOAD_PART = 16 << 20
"""Bytes of one part of an upload; the stores take 10,000 of them."""
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "sha256", "mtime", "LastModified", "last_modified", "created")
_LIBRARIES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
_IN_EXTRA = ("s3", "s3a")


class BucketStore:
    """The file or folder at an address of fsspec's."""

    opened = FileState()

    def __init__(self, address: str) -> None:
        self._address, self.name, self._scheme = address, shown_name(address), scheme_of(address)
        # The tries are counted here, so the libraries' own, of another number each, are turned off where they can be.
        once = {"config_kwargs": {"retries": {"max_attempts": 0}}} if self._scheme in _IN_EXTRA else {}
        self._files, self._path = _file_system(address, **once)
        if once:
            self._files.retries = 1

    def _asked(self, question: Callable[[], Any]) -> Any:
        def once() -> Any:
            try:
                return question()
            except Exception as error:
                raise problem_of(error, self.name, self._scheme) from None

        return Patience(self.name).retried(once)

    def _info(self) -> dict[str, Any]:
        self._files.invalidate_cache()  # some libraries remember what they listed whatever they are asked for
        info: dict[str, Any] = self._asked(lambda: self._files.info(self._path))
        return info

    def state(self) -> FileState:
        """Return the size and the version of the file."""
        try:
            info = self._info()
        except NotThereError:
            if self._scheme in _IN_EXTRA:  # the answer is the same where the whole bucket is missing
                self._check_bucket()
            raise
        if info.get("type") == "directory":
            pattern = f"{self.name.rstrip('/')}/*.jsonl"
            raise InputError(f"{self.name}: is a folder: name its files, or a pattern such as {pattern}")
        size = info.get("size")
        version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
        return FileState(None if size is None else int(size), version.strip('"'))

    def _check_bucket(self) -> None:
        try:
            self._asked(lambda: self._files.call_s3("head_bucket", Bucket=self._path.partition("/")[0]))
        except NotThereError:
            raise NotThereError(f"{self.name}: no such bucket") from None

    def exists(self) -> bool:
        """Return True if the file is there; a store has no folders, so a name that others begin with is not one."""
        try:
            return bool(self._info().get("type") != "directory")
        except NotThereError:
            return False

    def matches(self) -> list[str]:
        """Return the address if the file is there, or the addresses of those that match it as a pattern, sorted."""
        if self.exists():
            return [self._address]
        try:
            entries = self._asked(lambda: self._files.glob(self._path, detail=True))
        except NotThereError:
            return []
        return sorted(self._files.unstrip_protocol(name) for name, info in entries.items() if info.get("type") == "file")

    def pieces(self, start: int) -> Generator[bytes]:
        """Yield all bytes from `start` on; a few requests are under way at a time."""
        from concurrent.futures import ThreadPoolExecutor

        size = self.opened.size
        if size is None:
            raise InputError(f"{self.name}: the store does not say how long the file is")
        starts = range(start, size, _BLOCK)
        pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="remote")  # its own: workers of the shared one may wait for it
        try:
            pieces = in_flight(pool, lambda first: self.fetch(first, min(first + _BLOCK, size)), starts, _AHEAD)
            for first, piece in zip(starts, pieces, strict=True):
                if first == starts[-1]:
                    self.check_unchanged()
                yield piece
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end` of what is there now."""

        def part() -> bytes:
            content: bytes = self._files.cat_file(self._path, start=start, end=end)
            if len(content) != end - start:
                raise PassingProblem(f"the server sends {len(content):,} bytes of {end - start:,}")
            return content

        whole_part: bytes = self._asked(part)
        return whole_part

    def check_unchanged(self) -> None:
        """Refuse a file that is no longer the one that was opened."""
        if self.state() != self.opened:
            raise RewrittenError(self.name)

    @contextmanager
    def uploading(self) -> Iterator[Any]:
        """Open a file that appears at the address when the block ends well, and not at all when it does not."""
        files, path = _file_system(self._address)
        with self.saying():
            file = files.open(path, "wb", block_size=_UPLOAD_PART)
        try:
            yield _Upload(file, self)
            with self.saying():
                file.close()
        except BaseException:  # nothing appears at the address, and no part of it stays
            with suppress(OSError), self.saying():
                file.discard()
            file.closed = True  # or it would be sent when it is collected
            raise

    @contextmanager
    def saying(self) -> Iterator[None]:
        """Turn a library's errors in the block into an `OSError` for people; the name is put before it later."""
        try:
            yield
        except Exception as error:
            text = str(problem_of(error, self.name, self._scheme)).removeprefix(f"{self.name}: ")
            raise OSError(text) from None


class _Upload(io.RawIOBase):
    """A file of fsspec's to write to, whose errors name it."""

    def __init__(self, file: Any, store: BucketStore) -> None:
        self._file, self._store = file, store

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with self._store.saying():
            self._file.write(data)
        return len(data)


def _file_system(address: str, **options: Any) -> tuple[Any, str]:
    # Fsspec's file system for an address, and its path there; what it listed earlier is not used.
    scheme = scheme_of(address)
    with needing("fsspec", extra="remote"):
        import fsspec
    try:
        files, path = fsspec.core.url_to_fs(address, use_listings_cache=False, **options)
    except ImportError:
        library = _LIBRARIES.get(scheme, f"fsspec[{scheme}]")
        raise MissingExtraError(library, extra="remote" if scheme in _IN_EXTRA else None) from None
    except ValueError as error:
        known = "s3://, gs://, hf://, https://"
        raise UsageError(f"{shown_name(address)}: no such kind of address ({words_of(error)}); known are {known}") from None
    return files, path
