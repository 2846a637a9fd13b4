"""The seal of a file: the digest of its bytes, in its footer."""

import hashlib
import io

import pytest

from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.sealed_file import UNSEALED, HashedFile, check_seal


def written(path, body=b"PAR1 rows"):
    with path.open("wb") as file:
        hashed = HashedFile(file)
        hashed.write(body)
        hashed.footer = bytearray()
        footer = b"header " + UNSEALED + b" end"
        hashed.write(footer + len(footer).to_bytes(4, "little") + b"PAR1")
        hashed.seal()
    return path


def test_the_seal_is_the_digest_of_the_bytes_with_zeros_in_its_place(tmp_path):
    data = written(tmp_path / "a").read_bytes()
    at = data.index(b"sha256:")
    plain = data[:at] + UNSEALED + data[at + len(UNSEALED) :]
    assert data[at + 7 : at + 71].decode() == hashlib.sha256(plain).hexdigest()
    with (tmp_path / "a").open("rb") as file:
        assert check_seal(file) == len(b"header " + UNSEALED + b" end")


def test_every_bit_counts(tmp_path):
    data = written(tmp_path / "a").read_bytes()
    for at in range(len(data)):
        (tmp_path / "b").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with (tmp_path / "b").open("rb") as file, pytest.raises(InputError):
            check_seal(file)


def test_what_is_discarded_is_not_written():
    file = io.BytesIO()
    hashed = HashedFile(file)
    assert (hashed.write(b"abc"), hashed.tell()) == (3, 3)
    hashed.discarding = True
    assert (hashed.write(b"def"), hashed.tell()) == (3, 3)
    assert file.getvalue() == b"abc"
