"""Packed files, read and written: the same records in all of them, the same bytes each time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.filtering.filtered import filter_bytes

from lmgauge.base.errors import InputError
from lmgauge.base.files import OutputError
from lmgauge.records.compression import writing_packed

Packer = Callable[[bytes], bytes]
PACK: dict[str, Packer] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
UNPACK: dict[str, Packer] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
}
CONTENT = {"jsonl": b'{"text": "a b", "n": 1}\n{"text": 5}\n{"text": "the cat"}\n', "txt": b"a b\nthe cat\n"}


@pytest.mark.parametrize("form", CONTENT)
@pytest.mark.parametrize("ending", [*PACK, ".GZ"])
def test_packed_records_are_the_same(tmp_path: Path, form: str, ending: str) -> None:
    plain = filter_bytes(tmp_path, CONTENT[form], f"in.{form}")
    name = f"in.{form}{ending}"
    done = filter_bytes(tmp_path, PACK[ending.lower()](CONTENT[form]), name)
    assert UNPACK[ending.lower()](done.output) == plain.output
    assert filter_bytes(tmp_path, PACK[ending.lower()](CONTENT[form]), name).output == done.output


@pytest.mark.parametrize("source", PACK)
@pytest.mark.parametrize("target", PACK)
def test_one_packing_becomes_another(tmp_path: Path, source: str, target: str) -> None:
    done = filter_bytes(tmp_path, PACK[source](CONTENT["jsonl"]), f"in.jsonl{source}", f"out.jsonl{target}")
    assert UNPACK[target](done.output) == filter_bytes(tmp_path, CONTENT["jsonl"]).output


@pytest.mark.parametrize("ending", PACK)
def test_the_time_is_not_in_the_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for now in (1e9, 1.5e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        with writing_packed(tmp_path / f"a{ending}") as file:
            file.write(b"the cat")
        contents.append((tmp_path / f"a{ending}").read_bytes())
    assert contents[0] == contents[1]
    assert UNPACK[ending](contents[0]) == b"the cat"


@pytest.mark.parametrize("ending", PACK)
def test_an_empty_file_is_packed_too(tmp_path: Path, ending: str) -> None:
    with writing_packed(tmp_path / f"a{ending}"):
        pass
    assert UNPACK[ending]((tmp_path / f"a{ending}").read_bytes()) == b""


@pytest.mark.parametrize("ending", PACK)
def test_nothing_appears_when_the_block_fails(tmp_path: Path, ending: str) -> None:
    def fail() -> None:
        with writing_packed(tmp_path / f"a{ending}") as file:
            file.write(b"the cat")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OutputError, match="no/a"), writing_packed(tmp_path / "no" / f"a{ending}"):
        pass


@pytest.mark.parametrize("ending", [ending for ending in PACK if ending])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_a_packed_file_that_is_cut_off_is_said_to_be(tmp_path: Path, ending: str, share: float) -> None:
    packed = PACK[ending](b"".join(b'{"text": "a %d"}\n' % (n * 7919 % 10007) for n in range(5000)))
    with pytest.raises(InputError, match=rf"in.jsonl{ending}: the {ending} file (ends too early|is damaged)"):
        filter_bytes(tmp_path, packed[: int(share * len(packed))], f"in.jsonl{ending}")
    assert [path.name for path in tmp_path.iterdir()] == [f"in.jsonl{ending}"]
