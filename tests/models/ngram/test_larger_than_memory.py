"""Models larger than memory: pages come from disk as they are needed, and what is there is told."""

from __future__ import annotations

import ctypes
import errno
import logging
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import ok

import lmgauge
from lmgauge import Corpus
from lmgauge.base import memory
from lmgauge.base.errors import NotEnoughMemoryError
from lmgauge.models.ngram import storage


def lines(number: int, seed: int) -> list[str]:
    words = (9000 * np.random.default_rng(seed).random((number, 20)) ** 2).astype(int)
    return [" ".join(map(str, line)) for line in words.tolist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model of 6 MB, of which a load was remembered."""
    path = tmp_path_factory.mktemp("large")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path / "cache"))
        patch.setattr(storage, "_QUIET_NS", -(10**18))  # the file was written just now
        lmgauge.train("witten-bell", Corpus.from_strings(lines(10_000, 1)), order=3, output=path / "model")
        lmgauge.load_model(path / "model")
        yield path


def evict(mapped: mmap.mmap, file: Path) -> None:
    """Drop a mapped file from memory; afterwards single pages come back, without those beside them."""
    mapped.madvise(mmap.MADV_DONTNEED)
    mapped.madvise(mmap.MADV_RANDOM)
    mapped.madvise(mmap.MADV_NOHUGEPAGE)  # which is asked for only where the file fits into memory
    descriptor = os.open(file, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def bytes_in_memory(file: Path) -> int | None:
    """How many bytes of a file are in memory now; None where the system does not say."""
    # `mincore` has a byte for each page, its lowest bit set where the page is in memory.
    size = file.stat().st_size
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ)
    address = np.frombuffer(mapped, np.uint8).ctypes.data
    pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    if ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(pages.ctypes.data)):
        return None
    return min(int(np.count_nonzero(pages & 1)) * mmap.PAGESIZE, size)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no way to drop a file from memory")
def test_pages_come_as_they_are_used(folder: Path) -> None:
    file = folder / "model" / "model.safetensors"
    size = file.stat().st_size
    model = lmgauge.load_model(folder / "model")
    evict(model.tables.mapped, file)  # type: ignore[attr-defined]
    resident = [bytes_in_memory(file)]
    if resident[0] in (None, size):
        pytest.skip("this file system keeps its files in memory, or does not say")
    for number in (5, 100, 5000):
        lmgauge.perplexity(model, lines(number, 2))
        resident.append(bytes_in_memory(file))
    few, some, more, most = (count or 0 for count in resident)
    assert few < some < more < most <= size


def test_a_model_larger_than_what_is_free_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 1_000_000)
    (tmp_path / "text.txt").write_text("1 2 3\n")
    said = ok("eval", "-m", folder / "model", tmp_path / "text.txt").stderr
    assert f"lmgauge: {folder}/model: 5" in said
    assert "and 1 MB of memory are free: pages are read from disk as they are needed\n" in said
    assert "was checked" not in said
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where no load is remembered
    with caplog.at_level(logging.WARNING, logger="lmgauge"):
        lmgauge.load_model(folder / "model")
    assert "model: all of it was checked in 0 s, once for later loads" in caplog.text
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    assert ok("eval", "-m", folder / "model", tmp_path / "text.txt").stderr == ""


def test_so_is_a_file_of_kenlm(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    lmgauge.load_model(folder / "model").save(tmp_path / "wb3.binary")  # type: ignore[attr-defined]
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    with caplog.at_level(logging.WARNING, logger="lmgauge"):
        lmgauge.load_model(tmp_path / "wb3.binary")
    assert "wb3.binary: " in caplog.text
    assert "1 kB of memory are free" in caplog.text


def test_a_limit_on_addresses_is_not_called_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> mmap.mmap:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(storage.mmap, "mmap", refuse)
    with pytest.raises(NotEnoughMemoryError, match=r"are more than this process may map; see `ulimit -v`"):
        lmgauge.load_model(folder / "model")


_LIMITED = """
import psutil, resource, sys, time
import lmgauge
from lmgauge.base.threads import map_in_order, thread_count
list(map_in_order(time.sleep, [0.1] * thread_count(), thread_count()))  # threads that are there need no memory later
lmgauge.evaluate(lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b"]), order=2), texts=["a b"], threads=1)
data = psutil.Process().memory_info().data
resource.setrlimit(resource.RLIMIT_DATA, (data + (3 << 20), data + (3 << 20)))
model = lmgauge.load_model(sys.argv[1])
print(lmgauge.perplexity(model, ["1 2 3"]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a limit that Linux has")
def test_the_first_load_needs_no_memory_for_the_tables(folder: Path, tmp_path: Path) -> None:
    """Every page is looked at, in a process that may take half the size of the model."""
    assert (folder / "model" / "model.safetensors").stat().st_size > 5 << 20
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _LIMITED, str(folder / "model")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    expected = lmgauge.perplexity(lmgauge.load_model(folder / "model"), ["1 2 3"])
    assert "pages are read from disk as they are needed" in done.stderr
    assert float(done.stdout or 0) == expected, done.stderr
