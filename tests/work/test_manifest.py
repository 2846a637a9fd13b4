"""A manifest says what work it is of, comes back as it was, and is refused when it was changed or is of other work."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.version import __version__
from lmgauge.work.manifest import (
    UNSEALED,
    check_seal,
    described,
    difference,
    read_manifest,
    refuse_other,
    seal,
    write_manifest,
)

MADE_OF = {"order": 5, "text": ("a.txt", 3)}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "rows").write_bytes(b"123")
    write_manifest(tmp_path / "work.json", "counting", MADE_OF, {"rows": 3, "most": float("inf")}, ["rows"])
    return tmp_path / "work.json"


def test_what_was_written_comes_back(manifest: Path) -> None:
    there = read_manifest(manifest, ["rows"])
    assert there.made_of == {"lmgauge": __version__, "order": 5, "text": ["a.txt", 3]}
    assert (there.job, there.facts) == ("counting", {"rows": 3, "most": "inf"})
    refuse_other(manifest, there.made_of, described(MADE_OF))


def test_a_change_is_noticed(manifest: Path) -> None:
    (manifest.parent / "rows").write_bytes(b"124")
    read_manifest(manifest)
    with pytest.raises(InputError, match=r"rows: was changed after it was written; remove it and run the work again"):
        read_manifest(manifest, ["rows"])
    (manifest.parent / "rows").unlink()
    with pytest.raises(InputError, match=r"rows: cannot be read: no such file"):
        read_manifest(manifest, ["rows"])
    manifest.write_text(manifest.read_text().replace("5", "6", 1))
    with pytest.raises(InputError, match=r"work\.json: was changed after it was written"):
        read_manifest(manifest)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"work": {"order": 5}, "made": true}', b"[" * 100_000])
def test_what_is_not_ours_is_refused(manifest: Path, content: bytes) -> None:
    """Also what earlier versions wrote, which had no seal."""
    manifest.write_bytes(content)
    with pytest.raises(InputError, match=rf"work\.json: is not what lmgauge {__version__} notes of its work"):
        read_manifest(manifest)


@pytest.mark.parametrize(
    ("made_of", "problem"),
    [
        ({**MADE_OF, "order": 4}, "order is 5 there, and 4 here"),
        ({**MADE_OF, "prune": True}, "prune is null there, and true here"),
        ({"order": 5}, r'text is \["a.txt", 3\] there, and null here'),
    ],
)
def test_other_work_is_refused(manifest: Path, made_of: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=rf"^out: holds other work: {problem}; give the same inputs and options"):
        refuse_other("out", read_manifest(manifest).made_of, described(made_of))


def test_the_first_difference_has_a_name() -> None:
    assert difference({"a": 1}, {"a": 1}) is None
    assert difference({"a": 1}, {"a": 1, "b": 2}) == ("b", None, 2)
    assert difference({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}) == ("a: b: c", 1, 2)
    assert json.loads(json.dumps(described({"x": (1,)}))) == {"lmgauge": __version__, "x": [1]}


@pytest.mark.parametrize("before", [0, 10, 5000, (1 << 20) + 3])
def test_a_seal_within_a_file_is_the_digest_of_its_bytes_with_zeros_in_its_place(tmp_path: Path, before: int) -> None:
    plain = b"x" * before + b"header " + UNSEALED + b" end"
    with (tmp_path / "a").open("w+b") as file:
        file.write(plain)
        seal(file)
        check_seal(file)
        data = file.read()
    assert data == plain.replace(UNSEALED, b"sha256:" + hashlib.sha256(plain).hexdigest().encode())


def test_every_bit_counts(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w+b") as file:
        file.write(b"rows" + UNSEALED + b"footer")
        seal(file)
    data = (tmp_path / "a").read_bytes()
    for at in range(len(data)):
        (tmp_path / "b").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with (tmp_path / "b").open("rb") as file, pytest.raises(InputError, match=r"its seal is broken|it has no seal"):
            check_seal(file)
