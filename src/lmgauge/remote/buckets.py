"""Files in buckets and hubs (`s3://`, `gs://`, `hf://`, whatever fsspec knows), by fsspec's public functions."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TypeVar

from lmgauge.errors import InputError, MissingExtraError, UsageError, needing
from lmgauge.remote.addresses import scheme_of, shown_name
from lmgauge.remote.library_problems import problem_of, words_of
from lmgauge.remote.problems import NotThereError, PassingProblem, retried, rewritten
from lmgauge.remote.protocol import FileState
from lmgauge.threads import in_flight

_BLOCK = 8 << 20
"""Bytes of one request in a reading from start to end."""
_AHEAD = 3
"""Requests under way at a time, so that waiting for one is not waiting for all."""
_UPLOAD_PART = 16 << 20
"""Bytes of one part of an upload; the stores take 10,000 of them."""
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "sha256", "mtime", "LastModified", "last_modified", "created")
_LIBRARIES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
_IN_EXTRA = ("s3", "s3a")

T = TypeVar("T")


class BucketStore:
    """The file or folder at an address of fsspec's."""

    def __init__(self, address: str) -> None:
        self._address, self.name, self._scheme = address, shown_name(address), scheme_of(address)
        # The tries are counted here, so the libraries' own, of another number each, are turned off where they can be.
        once = {"config_kwargs": {"retries": {"max_attempts": 0}}} if self._scheme in _IN_EXTRA else {}
        self._files, self._path = _file_system(address, **once)
        if once:
            self._files.retries = 1

    def _asked(self, question: Callable[[], T]) -> T:
        return retried(self.name, lambda: self._once(question))

    def _once(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as error:
            raise problem_of(error, self.name, self._scheme) from None

    def _info(self) -> dict[str, Any]:
        self._files.invalidate_cache()  # some libraries remember what they listed whatever they are asked for
        try:
            info: dict[str, Any] = self._asked(lambda: self._files.info(self._path))
        except NotThereError:
            if self._scheme in _IN_EXTRA:  # the answer is the same where the whole bucket is missing
                self._check_bucket()
            raise
        return info

    def _check_bucket(self) -> None:
        try:
            self._asked(lambda: self._files.call_s3("head_bucket", Bucket=self._path.partition("/")[0]))
        except NotThereError:
            raise NotThereError(f"{self.name}: no such bucket") from None

    def state(self) -> FileState:
        """Return the size and the version of the file."""
        info = self._info()
        if info.get("type") == "directory":
            raise InputError(
                f"{self.name}: is a folder: name its files, or a pattern such as {self.name.rstrip('/')}/*.jsonl"
            )
        size = info.get("size")
        version = next((str(info[name]) for name in _VERSIONS if info.get(name)), "")
        return FileState(None if size is None else int(size), version.strip('"'))

    def exists(self) -> bool:
        """Return True if the file is there; a store has no folders, so a name that others begin with is not one."""
        try:
            info = self._asked(lambda: self._files.info(self._path))
        except NotThereError:
            return False
        return bool(info.get("type") != "directory")

    def matches(self) -> list[str]:
        """Return the addresses of the files that match the address as a pattern, sorted."""
        try:
            entries = self._asked(lambda: self._files.glob(self._path, detail=True))
        except NotThereError:
            return []
        return sorted(self._files.unstrip_protocol(name) for name, info in entries.items() if info.get("type") == "file")

    def names(self) -> list[str]:
        """Return the names of the files directly in the folder, sorted."""
        folder = self._path.rstrip("/")
        try:
            entries = self._asked(lambda: self._files.ls(folder, detail=True))
        except NotThereError:
            return []
        files = (str(entry["name"]).rstrip("/") for entry in entries if entry.get("type") == "file")
        return sorted(name.rpartition("/")[2] for name in files if name.strip("/") != folder.strip("/"))

    def transfer(self) -> BucketTransfer:
        """Return the means to read the file as it is now."""
        return BucketTransfer(self)

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end` of what is there now."""

        def read() -> bytes:
            part: bytes = self._files.cat_file(self._path, start=start, end=end)
            return part

        def whole_part() -> bytes:
            part = self._once(read)
            if len(part) != end - start:
                raise PassingProblem(f"the server sends {len(part):,} bytes of {end - start:,}")
            return part

        return retried(self.name, whole_part)

    @contextmanager
    def uploading(self) -> Iterator[IO[bytes]]:
        """Open a file that appears at the address when the block ends well, and not at all when it does not."""
        files, path = _file_system(self._address)
        with _saying(self.name, self._scheme):
            file = files.open(path, "wb", block_size=_UPLOAD_PART)
        upload = _Upload(file, self.name, self._scheme)
        writer = io.BufferedWriter(upload, buffer_size=1 << 20)
        try:
            yield writer
            if not writer.closed:
                writer.flush()
            with _saying(self.name, self._scheme):
                file.close()
        except BaseException:
            upload.abandon()
            raise
        finally:
            writer.close()

    def remove(self) -> None:
        """Remove the file, if it is there."""
        with _saying(self.name, self._scheme), suppress(FileNotFoundError):
            self._files.rm_file(self._path)


class BucketTransfer:
    """One version of a file in a bucket."""

    def __init__(self, store: BucketStore) -> None:
        self._store, self.state = store, store.state()

    def pieces(self, start: int) -> Iterator[bytes]:
        """Yield all bytes from `start` on; a few requests are under way at a time."""
        from concurrent.futures import ThreadPoolExecutor

        size = self.state.size
        if size is None:
            raise InputError(f"{self._store.name}: the store does not say how long the file is")
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
        """Return the bytes from `start` to before `end`."""
        return self._store.part(start, end)

    def check_unchanged(self) -> None:
        """Refuse a file that is no longer the one that was opened."""
        if self._store.state() != self.state:
            raise rewritten(self._store.name)


class _Upload(io.RawIOBase):
    """A file of fsspec's to write to, whose errors name it; what was sent is dropped when it is abandoned."""

    def __init__(self, file: Any, name: str, scheme: str) -> None:
        self._file, self._name, self._scheme, self._abandoned = file, name, scheme, False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        # Send bytes, and return how many; an upload that was abandoned sends none.
        if not self._abandoned:
            with _saying(self._name, self._scheme):
                self._file.write(data)
        return len(data)

    def abandon(self) -> None:
        # Drop the upload: nothing appears at the address, and no part of it stays.
        self._abandoned = True
        with suppress(OSError), _saying(self._name, self._scheme):
            self._file.discard()
        self._file.closed = True  # or it would be sent when it is collected


@contextmanager
def _saying(name: str, scheme: str) -> Iterator[None]:
    # Turn a library's errors in the block into an `OSError` whose text is for people; the name is put before it later.
    try:
        yield
    except Exception as error:
        text = str(problem_of(error, name, scheme)).removeprefix(f"{name}: ")
        raise OSError(text) from None


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
