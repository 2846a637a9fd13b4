"""Files in a bucket of a local server of S3, and in a file system of fsspec's that fails as it is asked to."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pytest
from tests.remote_servers import KEY, SECRET

from lmgauge.base import paths as places
from lmgauge.base.errors import InputError, LmgaugeError, MissingExtraError, UsageError
from lmgauge.base.files import OutputError, writing
from lmgauge.base.remote import buckets

pytest.importorskip("fsspec")
CONTENT = bytes(range(256)) * 4000


def read(address: str) -> bytes:
    with places.open_reading(address) as file:
        return file.read()


def message(address: str) -> str:
    with pytest.raises(LmgaugeError) as caught:
        read(address)
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    assert KEY not in text
    return text.replace(address, "FILE")


def test_reading_and_writing(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_BLOCK", 100_000)
    bucket.pipe("texts/in/a.bin", CONTENT)
    assert read("s3://texts/in/a.bin") == CONTENT
    with places.open_reading("s3://texts/in/a.bin") as file:
        file.seek(-1000, 2)
        assert file.read() == CONTENT[-1000:]
        file.seek(5)
        assert file.read(10) == CONTENT[5:15]
    with writing("s3://texts/out/b.bin") as file:
        file.write(CONTENT)
        assert not places.exists("s3://texts/out/b.bin")
    assert bucket.cat("texts/out/b.bin") == CONTENT
    state = places.file_state("s3://texts/out/b.bin")
    assert state.size == len(CONTENT)
    with writing("s3://texts/out/b.bin") as file:
        file.write(b'{"a": [1, 2.5]}')
    assert places.file_state("s3://texts/out/b.bin").version != state.version
    assert places.read_json("s3://texts/out/b.bin", dict[str, list[float]], "a table", "make it again") == {"a": [1, 2.5]}
    assert not places.exists("s3://texts/out/c.bin")


def test_nothing_half_written_appears(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_UPLOAD_PART", 5 << 20)
    for size in (10, 12 << 20):  # in one request, and in parts of which two are sent when the block fails
        with suppress(KeyError), writing("s3://texts/out/c.bin") as file:
            file.write(b"x" * size)
            raise KeyError
        assert not places.exists("s3://texts/out/c.bin")
    assert not bucket.call_s3("list_multipart_uploads", Bucket="texts").get("Uploads")
    with writing("s3://texts/out/c.bin") as file:
        file.write(b"x" * (12 << 20))
    assert places.file_state("s3://texts/out/c.bin").size == 12 << 20
    with writing("s3://texts/out/empty") as file:
        pass
    assert places.file_state("s3://texts/out/empty").size == 0
    assert read("s3://texts/out/empty") == b""


def test_patterns_and_folders(bucket: Any) -> None:
    for name in ("b.txt", "a.txt", "sub/c.txt", "part?.txt"):
        bucket.pipe(f"texts/in/{name}", b"text")
    assert places.expand("s3://texts/in/[ab].txt") == ["s3://texts/in/a.txt", "s3://texts/in/b.txt"]
    assert places.expand("s3://texts/in/**/*.txt") == [
        f"s3://texts/in/{n}" for n in ("a.txt", "b.txt", "part?.txt", "sub/c.txt")
    ]
    assert places.expand("s3://texts/in/part?.txt") == ["s3://texts/in/part?.txt"]
    assert not places.exists("s3://texts/in")
    assert not places.exists("s3://texts/in/")
    with pytest.raises(InputError, match=r"^s3://texts/in/x\*: no file matches this pattern$"):
        places.expand("s3://texts/in/x*")
    states = places.file_states(["s3://texts/in/a.txt", "s3://texts/in/b.txt"])
    assert [state.size for state in states] == [4, 4]


def test_problems_are_said_in_one_line(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.pipe("texts/in/a.txt", b"text")
    assert message("s3://texts/in/b.txt") == "FILE: no such file"
    assert message("s3://no-such-bucket/b.txt") == "FILE: no such bucket"
    assert message("s3://texts/in").startswith("FILE: is a folder: name its files")
    no_bucket = "s3://no-such-bucket/a: cannot be written: no such bucket"
    with pytest.raises(OutputError, match=no_bucket), writing("s3://no-such-bucket/a") as file:
        file.write(b"text")
    with pytest.raises(UsageError, match=r"^s3://texts/a: s3:// takes no password in the address"):
        read(f"s3://{KEY}:{SECRET.replace('/', '')}@texts/a")
    bucket.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert message("s3://texts/in/a.txt").startswith("FILE: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")


def test_a_server_that_is_not_there(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert message("s3://texts/in/a.txt").startswith("FILE: no server answers (")
    monkeypatch.undo()


def test_an_object_written_anew_while_it_is_read(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_BLOCK", 50_000)
    bucket.pipe("texts/in/a.bin", CONTENT)
    state = places.file_state("s3://texts/in/a.bin")
    with places.open_reading("s3://texts/in/a.bin") as file:
        file.read(10)
        bucket.pipe("texts/in/a.bin", CONTENT[::-1])
        with pytest.raises(InputError, match="changed while it"):
            file.read()
    with pytest.raises(InputError, match="changed while it"):
        places.open_reading("s3://texts/in/a.bin", state)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the next reads of `faulty://` fail with; the file there is CONTENT."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    from lmgauge.base.remote import problems

    coming: list[Exception] = []

    class Faulty(MemoryFileSystem):  # type: ignore[misc]
        protocol = "faulty"
        cachable = False

        def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
            if coming:
                raise coming.pop(0)
            return CONTENT[start:end]

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            return {"name": path, "size": len(CONTENT), "type": "file", "ETag": "1"}

    monkeypatch.setattr(problems, "FIRST_PAUSE", 0.001)
    fsspec.register_implementation("faulty", Faulty, clobber=True)
    return coming


class ClientPayloadError(Exception):
    """As a library calls a body that was cut off."""


class HttpError(Exception):
    """As libraries carry a status."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def test_a_few_failures_are_passed_over(faults: list[Exception]) -> None:
    faults += [TimeoutError(), ClientPayloadError("cut"), HttpError(503, "busy"), ConnectionResetError("reset")]
    assert read("faulty://a") == CONTENT


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ClientPayloadError("cut"), "FILE: cut, after 5 tries; try again later"),
        (PermissionError("https://me:pw@host/x?X-Amz-Signature=123abc"), "FILE: access is denied (https://host/x); "),
        (HttpError(403, "quota"), "FILE: access is denied (quota); "),
        (FileNotFoundError("x"), "FILE: no such file"),
        (
            OSError(5, "PermanentRedirect: use another endpoint"),
            "FILE: the bucket is in another region: set AWS_DEFAULT_REGION",
        ),
        (HttpError(301, "Moved Permanently"), "FILE: the bucket is in another region: set AWS_DEFAULT_REGION"),
        (HttpError(400, "Bad Request"), "FILE: the store refuses the request (Bad Request); is the region right"),
        (RuntimeError("what\nis this"), "FILE: RuntimeError: what"),
    ],
)
def test_what_stays_is_said(faults: list[Exception], error: Exception, words: str) -> None:
    faults += [error] * 5
    assert message("faulty://a").startswith(words)


def test_secrets_of_the_environment_are_not_shown(faults: list[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefgh")
    faults += [RuntimeError("bad token hf_abcdefgh")] * 5
    assert message("faulty://a") == "FILE: RuntimeError: bad token ***"


@pytest.mark.parametrize(
    ("address", "module", "command"),
    [
        ("s3://bucket/a", "s3fs", "pip install 'lmgauge[remote]'"),
        ("gs://bucket/a", "gcsfs", "pip install gcsfs"),
        ("hf://datasets/u/d/a", "huggingface_hub", "pip install huggingface_hub"),
        ("s3://bucket/a", "fsspec", "pip install 'lmgauge[remote]'"),
    ],
)
def test_a_missing_library(address: str, module: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, address.partition(":")[0], raising=False)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        read(address)
    assert str(caught.value).endswith(command)


def test_unknown_kinds_of_addresses() -> None:
    with pytest.raises(UsageError, match=r"^foo://bucket/a: no such kind of address"):
        read("foo://bucket/a")
